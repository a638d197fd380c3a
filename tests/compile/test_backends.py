"""`graphc.compile(backend=)`: NumPy does what eager does, and `auto` takes the way that pays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace as Record
from typing import Any

import numpy as np
import pytest

import eager as torch
import graphc
from eager import nn
from graphc.compiling import allowances, choice, waiting
from graphc.lowering import HostExecutable, machine
from graphc.lowering.machine import Machine
from tests.compile.interrupt_programs import gradients, views
from tests.compile.interrupted import Subject, sweep
from tests.depth import one_in
from tests.scenarios import test_programs  # noqa: F401  (registers the programs)
from tests.scenarios.harness import PROGRAMS, check

SLOW = Machine(1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
FAST = Machine(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
KINDS = ("aliases", "models", "training", "tutorials", "writes")  # the files of programs that NumPy runs, too


@pytest.mark.parametrize("name", one_in(6, [n for n in PROGRAMS if n.partition(".")[0] in KINDS]))
def test_programs_do_what_eager_does(name: str):
    assert check(PROGRAMS[name], backend="numpy") == ""


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("make", [views, gradients], ids=lambda make: make.__name__)
def test_interrupts_leave_the_state_before_or_after(make: Callable[[], Subject], monkeypatch: pytest.MonkeyPatch):
    by_default = graphc.compile
    monkeypatch.setattr(graphc, "compile", lambda fn, **options: by_default(fn, backend="numpy", **options))
    assert not sweep(make, 8, 12, fresh=False, error=KeyboardInterrupt)


def make_step(backend: str) -> tuple[Any, nn.Module]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    @graphc.compile(backend=backend)
    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step, model


def test_a_bad_label_changes_nothing():
    step, model = make_step("numpy")
    x, y = torch.randn(6, 4), torch.randint(0, 2, (6,))
    for _ in range(3):
        step(x, y)
    before = [p.detach().numpy().copy() for p in model.parameters()]
    with pytest.raises(IndexError, match="Target 2 is out of bounds"):
        step(x, torch.full((6,), 2))
    assert all(np.array_equal(a, p.detach().numpy()) for a, p in zip(before, model.parameters(), strict=True))


def test_whoever_holds_the_memory_of_a_parameter_sees_the_step():
    step, model = make_step("numpy")
    seen = model[0].weight.detach().numpy()
    for _ in range(4):
        step(torch.randn(6, 4), torch.randint(0, 2, (6,)))
        assert np.array_equal(seen, model[0].weight.detach().numpy())


def test_nothing_is_compiled_for_few_calls(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(choice, "machine", lambda: pytest.fail("the machine is measured"))
    step, _ = make_step("auto")
    for n in range(2, 20):
        step(torch.randn(n, 4), torch.randint(0, 2, (n,)))
    assert "backend numpy" in step.explain() and "xla" not in step.explain()
    assert "step: 1 program\n" in step.explain() and "eager for 17 more signatures" in step.explain()


def test_a_signature_that_is_called_often_gets_a_program():
    f = graphc.compile(lambda x: torch.tanh(x).sum(), backend="auto")
    f(torch.ones(3))
    sizes, calls = f.graph.input_avals()[0].shape, 0
    while f.graph.input_avals()[0].shape == sizes and calls < 100_000:
        assert f(torch.ones(5)).item() == torch.tanh(torch.ones(5)).sum().item()
        calls += 1
    assert 1 < calls < 100_000


def settle(known: Machine, seconds: dict[bool, float], monkeypatch: pytest.MonkeyPatch) -> Any:
    """A compiled function after `auto` has chosen, as programs take `seconds`, by whether they are NumPy's."""
    monkeypatch.setattr(choice, "machine", lambda: known)
    monkeypatch.setattr(choice, "PATIENCE", 0.0)
    monkeypatch.setattr(choice, "seconds_of_program", lambda p, _=(): seconds[isinstance(p, HostExecutable)])
    f = graphc.compile(lambda x: torch.tanh(x) * 2, backend="auto")
    x = torch.tensor([0.5, -1.0], requires_grad=False)
    for _ in range(6):
        assert torch.allclose(f(x), torch.tanh(x) * 2)
    return f


def on_host(f: Any) -> bool:
    return isinstance(f._last().runner.forward, HostExecutable)


def test_the_faster_one_is_chosen(monkeypatch: pytest.MonkeyPatch):
    f = settle(FAST, {True: 2.0, False: 1.0}, monkeypatch)
    assert not on_host(f) and "backend jax: numpy takes 2e+06 us, XLA 1e+06, measured" in f.explain()
    f = settle(FAST, {True: 1.0, False: 2.0}, monkeypatch)
    assert on_host(f) and "backend numpy: numpy takes 1e+06 us" in f.explain()


def test_what_the_call_alone_costs_decides_at_once(monkeypatch: pytest.MonkeyPatch):
    f = settle(SLOW, {True: 0.5}, monkeypatch)
    assert on_host(f) and "a call of XLA takes" in f.explain()


def test_compiling_waits_until_it_pays(monkeypatch: pytest.MonkeyPatch):
    f = settle(FAST._replace(compiling=1000.0), {True: 1.0}, monkeypatch)
    assert on_host(f) and f._last().choice.again == 1000 and "pays from call 1,000 on" in f.explain()
    f = settle(Machine(0.0, 0.0, 0.0, 1.0, 0.0, 10.0, 0.0), {True: 1.0}, monkeypatch)
    assert f._last().choice.again == 10 * choice.DOUBT


def test_backends_by_name():
    with pytest.raises(ValueError, match="backend must be one of jax, numpy, auto"):
        graphc.compile(torch.tanh, backend="torch")
    with pytest.raises(ValueError, match="computes on the CPU"):
        graphc.compile(torch.tanh, backend="numpy", device="gpu")
    strict = graphc.compile(torch.tanh, backend="auto", strict=True)
    strict(torch.ones(2))
    assert not on_host(strict)  # bits do not change between calls


def test_control_flow_with_checks_stays_with_xla():
    @graphc.compile(backend="numpy")
    def f(x: Any, i: Any) -> Any:
        return graphc.cond(x.sum() > 0, lambda x: x[i], lambda x: x[i] * 2, x)

    x = torch.ones(3)
    assert f(x, torch.tensor([0, 1])).tolist() == [1.0, 1.0]
    assert not on_host(f) and "not on numpy: NumPy would run switch with run-time checks" in f.explain()


def test_the_machine_is_measured_once(tmp_path: Any, monkeypatch: pytest.MonkeyPatch):
    found = Machine(1e-6, 2e-6, 3e-9, 4e-9, 5e-12, 0.1, 0.01)
    measured: list[int] = []
    monkeypatch.setenv("GRAPHC_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("GRAPHC_CACHE", raising=False)
    monkeypatch.setattr(machine, "measured", lambda: measured.append(1) or found)
    for content, count in [(None, 1), (None, 1), ("{}", 2), ("[", 3), ('{"machine": 1, "call": "x"}', 4)]:
        if content is not None:
            (tmp_path / machine.FILE).write_text(content)
        machine.machine.cache_clear()
        assert machine.machine() == found and len(measured) == count
    machine.machine.cache_clear()


def test_the_figures_are_those_of_a_machine():
    found = machine.measured()
    assert all(0 <= x < 10 for x in found) and found.call > 0 and found.compiling > 0


class _Known:
    """As `Specializations` of programs that took a second to make, half of it in XLA, for these signatures."""

    def __init__(self, *signatures: Any):
        self.signatures = signatures

    def __iter__(self) -> Iterator[Any]:
        yield Record(seconds={"trace": 0.5}, runner=Record(forward=Record(seconds={"xla": 0.5})))

    def of(self, signature: Any) -> list[Any]:
        return [s for s in self.signatures if s == signature]


def test_a_signature_waits_until_its_eager_calls_have_taken_some_times_as_long_as_a_program(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(allowances.time, "perf_counter", lambda: clock[0])
    waits, known = waiting.Waiting(10, {lambda signature: None: 1}), _Known("first")
    call: Any = Record(signature="other", args=(), kwargs={})
    count = 0
    while waits.waits("other", known):  # type: ignore[arg-type]
        waits.run(lambda: clock.__setitem__(0, clock[0] + 1.0), call)
        count += 1
    assert count == 10
    assert not waits.described()


def test_the_signature_that_has_waited_longest_is_forgotten_for_one_too_many():
    waits, known = waiting.Waiting(10, {lambda signature: None: 1}), _Known("first")
    for k in range(allowances.MOST + 5):
        assert waits.waits(k, known)  # type: ignore[arg-type]
    assert list(waits._allowed._left) == [*range(5, allowances.MOST + 5)]
