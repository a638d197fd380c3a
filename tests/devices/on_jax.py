"""Tensors on JAX's devices, of which this process has eight. Started by `test_jax.py`."""

from __future__ import annotations

import os
from typing import Any

import jax
import numpy as np
import pytest

import eager as torch
import graphc
from eager import nn
from eager.core import runtime
from graphc.lowering.executable import Executable
from tests.devices import test_memory as programs
from tests.devices.test_memory import LOSSES, PROGRAMS, made, plain
from tests.distributed.models import training_step
from tests.ops import elsewhere
from tests.ops.cases import Case, by_op, every_case
from tests.scenarios.training import OPTIMIZERS

RTOL = 1e-9
SOME = set(  # the ops of which the quick suite runs a case
    "mul matmul sum index_put basic_index diagonal as_strided floor_divide cast view_as_complex".split()
)


def check(case: Case, rng: np.random.Generator) -> None:
    elsewhere.check(case, rng, lambda t: t.to("xla:1"), lambda t: str(t.device) == "xla:1")


@pytest.mark.deep
@pytest.mark.parametrize("cases", by_op(every_case()))
def test_every_op(cases: list[Case], rng: np.random.Generator):
    for case in cases:
        check(case, rng)


@pytest.mark.parametrize("cases", by_op([c for c in every_case() if c.op.name in SOME]))
def test_some_ops(cases: list[Case], rng: np.random.Generator):
    check(cases[0], rng)


@pytest.mark.parametrize("program", [pytest.param(p, marks=() if k in (1, 4) else pytest.mark.deep)
                                     for k, p in enumerate(PROGRAMS)])  # fmt: skip
def test_programs_that_write(program: Any):
    results = []
    for device in ("cpu", "xla:2"):
        x = made(device)
        results.append([plain(program(x)), plain(x)])
    programs.same(*results)


@pytest.mark.parametrize("loss", [pytest.param(p, marks=() if k in (1, 4) else pytest.mark.deep)
                                  for k, p in enumerate(LOSSES)])  # fmt: skip
def test_gradients(loss: Any):
    results = []
    for device in ("cpu", "xla:2"):
        x = made(device).requires_grad_()
        loss(x).backward()
        assert x.grad is not None
        results.append(plain(x.grad))
    programs.same(*results)


def test_devices_are_jax_s():
    x = torch.ones(3, device="xla:5")
    assert x._d.array.devices() == {jax.devices()[5]}
    assert (x + 1)._d.array.devices() == {jax.devices()[5]}
    assert jax.numpy.asarray(x).devices() == {jax.devices()[5]}
    assert not torch.cuda.is_available()
    with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
        x.cuda()
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        torch.ones(1, device="xla:8")


def test_run_time_checks():
    x, i = torch.arange(4, device="xla:1"), torch.tensor([0, 7], device="xla:1")
    with pytest.raises(RuntimeError, match="index 7 is out of bounds for dimension 0 with size 4"):
        torch.gather(x, 0, i)
    with pytest.raises(IndexError, match="index 7 is out of bounds for dimension 0 with size 4"):
        x[i]
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        x // torch.zeros(4, dtype=torch.int64, device="xla:1")


def test_the_words_are_those_of_jax():
    from eager.rng.threefry import Threefry

    stream = Threefry(2**40 + 5)
    for n in range(3):
        with jax.enable_x64(True):
            key = jax.random.fold_in(jax.random.PRNGKey(2**40 + 5), n)
            expected = np.asarray(jax.random.bits(key, (7,), "uint32"))
        np.testing.assert_array_equal(stream.words(7, False), expected)


# --- compiled programs


@pytest.mark.parametrize("shown", [lambda x: x.view(2, 2), lambda x: x.detach(), lambda x: x[1:]])
@pytest.mark.parametrize("apart_first", [True, False])
def test_a_write_that_another_argument_would_show_is_refused(shown: Any, apart_first: bool):
    def f(x: Any, y: Any) -> Any:
        x.add_(1)
        return y * 2

    fast = graphc.compile(f)
    x = torch.zeros(4, device="xla:1")
    if apart_first:  # of the same signature
        assert fast(x, shown(torch.ones(4, device="xla:1"))).sum().item() > 0
    before = x.tolist()
    with pytest.raises(graphc.errors.CaptureError, match="share memory in a way that a graph cannot express"):
        fast(x, shown(x))
    assert x.tolist() == before
    assert fast(x, x).tolist() == [2 * (v + 1) for v in before]
    read = graphc.compile(lambda x, y: x.sum() + y.sum())  # what is only read may be shared
    assert read(x, shown(x)).item() == (x.sum() + shown(x).sum()).item()


def test_a_program_runs_where_its_inputs_lie(monkeypatch: pytest.MonkeyPatch):
    fast = graphc.compile(lambda x, y: (x * y).tanh().sum())
    x, y = (torch.tensor([1.0, k], device="xla:3").requires_grad_() for k in (2.0, -1.0))
    fast(x, y)
    with monkeypatch.context() as patch:  # without a trip over the host
        patch.setattr(runtime.runtime(), "fetch", lambda array: pytest.fail("values went over the host"))
        for _ in range(3):  # also the short way
            result = fast(x, y)
            assert str(result.device) == "xla:3"
            assert result._d.array.devices() == {jax.devices()[3]}
            x.grad = y.grad = None
            result.backward()
    expected = torch.autograd.grad((x * y).tanh().sum(), (x, y))
    np.testing.assert_allclose(plain(x.grad), plain(expected[0]), rtol=1e-6)
    assert fast(x.detach().cpu(), y.detach().cpu()).is_cpu
    assert str(fast(x.detach().to("xla:4"), y.detach().to("xla:4")).device) == "xla:4"
    with pytest.raises(RuntimeError, match="at least two devices, xla:3 and cpu"):
        fast(x, torch.ones(2))
    with pytest.raises(RuntimeError, match="at least two devices, xla:3 and xla:1"):
        fast(x, torch.ones(2, device="xla:1"))
    assert "xla:3" in str(fast.explain())


def test_gradients_of_gradients_through_a_program():
    fast = graphc.compile(lambda x: (x**3).sum())
    x = torch.tensor([1.0, 2.0], device="xla:3", requires_grad=True)
    (g,) = torch.autograd.grad(fast(x), x, create_graph=True)
    g.sum().backward()
    assert str(x.grad.device) == "xla:3"
    assert x.grad.tolist() == [6, 12]


def test_a_training_step_keeps_its_state_there():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.3), nn.BatchNorm1d(8))
    x, y = torch.randn(16, 4).to("xla:2"), torch.randn(16, 8).to("xla:2")
    losses, moments = [], []
    for compiled in (True, False):
        net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.3), nn.BatchNorm1d(8))
        net.load_state_dict(model.state_dict())
        net.to("xla:2")
        optimizer = torch.optim.Adam(net.parameters(), 0.02)

        def step(x: Any, y: Any, net: Any = net, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            loss = ((net(x) - y) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss

        run = graphc.compile(step) if compiled else step
        torch.manual_seed(1)
        losses.append([run(x, y).item() for _ in range(5)])
        state = [*net.parameters(), *net.buffers(), optimizer.state[net[0].weight]["exp_avg"], net[0].weight.grad]
        assert all(str(t.device) == "xla:2" for t in state)
        assert net[0].weight._d.array.devices() == {jax.devices()[2]}
        assert (net[0].weight + 1)._d.array.devices() == {jax.devices()[2]}
        moments.append(plain(optimizer.state[net[0].weight]["exp_avg"]))
        if compiled:
            held = net[0].weight._d.array
            view = net[0].weight.detach()[0]
            del held
            run(x, y)
            np.testing.assert_array_equal(plain(view), plain(net[0].weight)[0])  # who sees the memory sees the write
            with pytest.raises(RuntimeError, match="at least two devices"):
                run(x.cpu(), y.cpu())
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-4)
    np.testing.assert_allclose(moments[0], moments[1], rtol=1e-3, atol=1e-6)


def of_squares(model: Any, optimizer: Any) -> Any:
    """f(x): a step that makes the results of `model` smaller."""
    step = training_step(model, optimizer, lambda found, _: found.square().sum())
    return lambda x: step(x, None)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in ("momentum", "adafactor") else pytest.mark.deep)
                                  for n in OPTIMIZERS])  # fmt: skip
def test_the_state_of_an_optimizer_lies_with_its_parameters(name: str, compiled: bool):
    losses = []
    for device in ("cpu", "xla:2"):
        torch.manual_seed(0)
        layer, x = nn.Linear(4, 3).to(device), torch.ones(2, 4).to(device)
        optimizer = OPTIMIZERS[name](layer.parameters())
        step = of_squares(layer, optimizer)
        run = graphc.compile(step) if compiled else step
        losses.append([run(x).item() for _ in range(4)])
        held = [t for s in optimizer.state.values() for t in s.values() if isinstance(t, torch.Tensor)]
        assert all(str(t.device) == device for t in held if t.shape != ())
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-5)


def test_a_step_copies_nothing_of_its_state(monkeypatch: pytest.MonkeyPatch):
    model = nn.Linear(4, 2).to("xla:2")
    optimizer = torch.optim.Adam(model.parameters(), 0.02)  # counts its steps in tensors on the CPU

    step, x = graphc.compile(of_squares(model, optimizer)), torch.ones(3, 4, device="xla:2")
    step(x), step(x)
    with monkeypatch.context() as patch:
        patch.setattr(Executable, "own", lambda program, array: pytest.fail("a copy"))
        for _ in range(3):
            step(x)
    seen = optimizer.state[model.bias]["step"]
    held = seen.clone(), seen.detach()  # which shows what is written
    step(x)
    assert [t.item() for t in (seen, *held)] == [6, 5, 6]


def test_what_a_program_moves_to_its_device():
    weight = torch.ones(2, 2, device="xla:1")
    fast = graphc.compile(lambda x: x.to(weight.device) @ weight)
    assert str(fast(torch.ones(2, 2)).device) == "xla:1"
    with pytest.raises(graphc.errors.CaptureError, match="moved to"):
        graphc.compile(lambda x: (x @ weight).cpu())(torch.ones(2, 2, device="xla:1"))


def test_random_numbers_of_a_program():
    layer, x = nn.Dropout(0.5), torch.ones(16, device="xla:1")
    rows = []
    for run in (layer, graphc.compile(lambda x: layer(x))):
        torch.manual_seed(3)
        rows.append([run(x).tolist() for _ in range(4)])
    assert rows[0] == rows[1]
    assert rows[0][0] != rows[0][1]


def test_this_process_has_eight_devices():
    assert len(jax.devices()) == 8
    assert "host_platform_device_count=8" in os.environ["XLA_FLAGS"]
