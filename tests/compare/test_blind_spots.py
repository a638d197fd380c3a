"""Faults that checks once passed over, each for a reason of its own."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import compare
import eager as torch
import graphc
from compare.cases.sharing import SAME, SHARED, sharing_of
from compare.checking.findings import Report
from compare.command_line import main
from compare.fuzzing.origins import declarations_for
from compare.judging.exactness import exact_elements
from compare.judging.tolerance import Verdict
from compare.locating.surroundings import STATE
from compare.selftest.faults import functionalization
from compare.selftest.planting import attribute, declared, entry, with_rule
from graphc.capture.state.places import Change
from graphc.capture.state.settings import SETTINGS
from graphc.capture.storage.results import Results
from graphc.execution import steps
from graphc.lowering.overrides import OVERRIDES
from graphc.ops import OPS
from graphc.ops.rules import pointwise_float
from graphc.ops.spec import Vjp
from tests.depth import one_in


def numbers(*shape: int, dtype: Any = np.float32) -> Any:
    return torch.from_numpy(np.random.default_rng(5).uniform(0.5, 1.5, shape).astype(dtype))


def is_named(report: Report, op: str) -> bool:
    """Whether each bug of the report names the op."""
    return bool(report.bugs) and all(f.culprit is not None and f.culprit.op == op for f in report.bugs)


# --- cotangents of complex results are complex


def test_a_lost_gradient_of_an_imaginary_part():
    rule = OPS["complex"].vjp["imag"]
    lost = Vjp(lambda F, *values: rule.fn(F, *values) * 0, rule.names)
    x, y = numbers(4).requires_grad_(), numbers(4).requires_grad_()
    for fn in (lambda x, y: torch.complex(x, y) * 2, lambda x, y: torch.complex(x, y).abs().sum()):
        for mode in ("jax.grad", "finite differences"):
            assert compare.check(fn, x, y, modes=[mode]).ok
            with declared(OPS["complex"], vjp=with_rule(OPS["complex"], "imag", lost)):
                assert is_named(compare.check(fn, x, y, modes=[mode]), "complex")


# --- simulated runs leave strides alone, and flushing is an excuse only where something is flushed


def test_a_kernel_that_is_wrong_on_operands_in_another_order():
    sound = OPS["exp"].kernel

    def wrong(x: np.ndarray) -> np.ndarray:
        return sound(x) if x.flags.c_contiguous else sound(x) * x.dtype.type(1.5)

    fns = (lambda x: x.T.exp(), lambda x: x[:, ::2].exp(), lambda x: (x.T * 2).exp(), lambda x: x.T.sin().exp())
    with declared(OPS["exp"], kernel=wrong):
        for fn in fns:
            assert is_named(compare.check(fn, numbers(3, 4), modes=["compiled"]), "exp")


# --- what shares memory in one mode shares it in the other


@pytest.mark.parametrize(
    ("fn", "what"),
    [
        pytest.param(lambda x: x.view(-1), "memory of result and x", marks=pytest.mark.deep),
        (lambda x: (lambda y: (y, y[1:]))(x * 2), "memory of result.0 and result.1"),
        pytest.param(lambda x: (x * 2, x.T), "memory of result.1 and x", marks=pytest.mark.deep),
    ],
)
def test_views_that_come_back_as_copies(fn: Any, what: str):
    assert compare.check(fn, numbers(2, 3), modes=["compiled", "strict"]).ok
    with attribute(Results, "_base", lambda self, memory: None):
        report = compare.check(fn, numbers(2, 3), modes=["compiled"])
        assert [(f.what, f.detail) for f in report.bugs] == [(what, "memory of their own, eager has shared memory")]
        assert not compare.audit(fn, numbers(2, 3)).ok
    assert report.bugs[0].culprit is not None
    assert report.bugs[0].culprit.part == STATE


def test_a_copy_of_the_argument_is_not_the_argument():
    with functionalization._COPIED():
        report = compare.check(lambda x: x, numbers(3), modes=["compiled"])
    assert [(f.what, f.detail) for f in report.bugs] == [
        ("memory of result and x", "memory of their own, eager has one tensor")
    ]


def test_an_argument_that_gets_another_memory():
    with entry(steps.SHARED, "overwrite", functionalization._memory_replaced):
        report = compare.check(lambda x: x.mul_(2).sum(), numbers(3), modes=["compiled"])
    assert "memory of x and x before the call" in {f.what for f in report.bugs}


def test_equal_results_with_memory_of_their_own():
    x, w = numbers(3), numbers(3)
    for fn in (lambda x: (x * 2, x * 2), lambda x: (w, w[1:], x, x), lambda x: (x * 2).expand(2, 3)):
        assert compare.check(fn, x, modes=["compiled"]).ok


def test_interleaved_views_have_no_element_in_common():
    memory = torch.zeros(10)
    found = sharing_of({"even": memory[::2], "odd": memory[1::2], "all": memory, "same": memory, "number": 3})
    assert found == {
        ("even", "all"): SHARED, ("odd", "all"): SHARED, ("even", "same"): SHARED, ("odd", "same"): SHARED,
        ("all", "same"): SAME,
    }  # fmt: skip


# --- gradients without history are asked whether they are constants


def test_a_gradient_that_is_cut_off_from_its_operand():
    cut = Vjp(lambda F, g, r: g * (1 - F.stop_gradient(r * r)), ("g", "r"))
    x, modes = numbers(4).requires_grad_(), ("compiled", "jax.grad", "finite differences")
    for fn in (lambda x: x.tanh().sum(), lambda x: (x * 3).sum(), lambda x: (x * x.detach()).sum()):
        assert compare.check(fn, x, modes=modes, order=2).ok
    with declared(OPS["tanh"], vjp=with_rule(OPS["tanh"], "input", cut)):
        report = compare.check(lambda x: x.tanh().sum(), x, modes=modes, order=2)
    assert {(f.mode, f.what) for f in report.bugs} == {(mode, "second gradient of x") for mode in modes[1:]}


# --- modes that share a gradient rule agree on what it makes of float32


def test_a_gradient_rule_that_is_wrong_in_one_dtype():
    rule = OPS["sigmoid"].vjp["input"]

    def fn(F: Any, *values: Any) -> Any:
        found = rule.fn(F, *values)
        return found * 1.01 if np.dtype(getattr(found.dtype, "numpy", found.dtype)) == np.float32 else found

    x = numbers(6).requires_grad_()
    assert compare.check(lambda x: x.sigmoid().sum(), x, modes=["eager"]).ok
    with declared(OPS["sigmoid"], vjp=with_rule(OPS["sigmoid"], "input", Vjp(fn, rule.names))):
        report = compare.check(lambda x: x.sigmoid().sum(), x, modes=["eager"])
        assert compare.check(lambda x: x.sigmoid().sum(), numbers(6, dtype=np.float64).requires_grad_()).ok
    assert is_named(report, "sigmoid")
    assert [(f.mode, f.what) for f in report.bugs] == [("eager", "gradient of x")]


def test_signs_that_float64_chooses_otherwise_are_no_fault():
    x = numbers(4, 4)
    for fn in (lambda x: torch.linalg.svd(x)[0].sum(), lambda x: torch.linalg.eigh(x @ x.T)[1].sum()):
        assert compare.check(fn, x.requires_grad_(), modes=["eager"]).ok


# --- numbers of few digits are added and multiplied exactly: what is made of them has no error to hide behind


def _last_of_equals(x: Any, axis: int, keepdims: bool) -> Any:
    return x.shape[axis] - 1 - jnp.argmax(jnp.flip(x, axis), axis, keepdims=keepdims)


_LOWERINGS: list[tuple[str, Any, Any, tuple[Any, ...]]] = [
    ("eq", lambda x, y: (x == y) & False, lambda p, y: (p.argmax(-1).float() == y).float().mean(), (4, np.arange(4))),
    ("ge", lambda x, y: x > y, lambda p, y: ((p > 0.5).float() >= y).sum(), (4, np.arange(4))),
    ("ge", lambda x, y: x > y, lambda p, y: (p + 1 >= y).sum(), (4, np.full(4, 2))),
    ("argmax", _last_of_equals, lambda p, y: (y * 2).argmax(0), (4, np.full(4, 0.25))),
    ("round", lambda x: jnp.sign(x) * jnp.floor(abs(x) + 0.5), lambda p, y: (p * y).round(), (4, np.full(4, 2.5))),
]


@pytest.mark.parametrize("dtype", one_in(2, [np.float32, np.float64], lambda t: t.__name__))
@pytest.mark.parametrize(("op", "wrong", "fn", "given"), _LOWERINGS)
def test_decisions_on_exact_numbers(op: str, wrong: Any, fn: Any, given: Any, dtype: Any):
    p, y = torch.from_numpy(np.eye(given[0], dtype=dtype)), torch.from_numpy(given[1].astype(dtype))
    assert compare.check(fn, p, y, modes=["compiled"]).ok
    with entry(OVERRIDES, op, wrong):
        assert is_named(compare.check(fn, p, y, modes=["compiled"]), op)


def test_rounded_numbers_decide_either_way():
    x = torch.from_numpy(np.linspace(0.1, 9.9, 99, dtype=np.float32))
    with entry(OVERRIDES, "ge", lambda x, y: x > y):
        assert compare.check(lambda x: (x * 3 >= x + x + x).sum(), x, modes=["compiled"]).verdict < Verdict.BUG


def test_what_a_sum_has_lost_counts():
    big = np.array([1e20, 2.0])
    assert exact_elements(OPS["add"], {}, big + 1, [big, np.ones(2)], np.dtype("f8")).tolist() == [False, True]
    assert exact_elements(OPS["mul"], {}, big * 0.1, [big, np.full(2, 0.1)], np.dtype("f8")).tolist() == [False, False]


# --- what later calls see, and what is put back


def test_a_draw_that_puts_the_generator_back(monkeypatch: pytest.MonkeyPatch):
    def fn(x: Any) -> Any:
        return x + torch.rand(3)

    def same_again(call: Any) -> Any:
        def drawn(*args: Any) -> Any:
            before = torch.get_rng_state()
            result = call(*args)
            torch.set_rng_state(before)
            return result

        return drawn

    assert compare.check(fn, numbers(3), modes=["compiled"]).ok
    monkeypatch.setattr("compare.cases.case.compile", lambda fn: same_again(graphc.compile(fn)))
    report = compare.check(fn, numbers(3), modes=["compiled"])
    assert [f.what for f in report.bugs] == ["random numbers after the call"]


def test_settings_that_are_left_changed_are_compared_and_put_back():
    def fn(x: Any) -> Any:
        torch.set_grad_enabled(False)
        torch.set_default_dtype(torch.float64)
        torch.set_printoptions(precision=2)
        return x * torch.ones(1)

    before = [setting.read() for setting in SETTINGS]
    assert compare.check(fn, numbers(3), modes=["eager", "graph", "compiled"]).verdict is Verdict.IDENTICAL
    with attribute(Change, "carry_out", lambda self, value, given: None):
        found = compare.check(fn, numbers(3), modes=["compiled"]).bugs
    assert {f"{name} after the call" for name in ("torch.get_default_dtype()", "torch.is_grad_enabled()")} <= {
        f.what for f in found
    }
    assert [setting.read() for setting in SETTINGS] == before


def test_a_function_that_eager_does_not_repeat():
    report = compare.check(lambda x: x * random.random(), numbers(3), modes=["eager", "graph"])
    assert {f.mode for f in report.bugs} == {"eager", "graph"}
    assert all(f.culprit is None and f.detail.startswith("eager itself differs") for f in report.bugs)


# --- exceptions, exit codes


def test_what_every_mode_raises_is_in_the_first_line():
    def fn(x: Any) -> Any:
        return x @ x

    report = compare.check(fn, numbers(2, 3), modes=["graph", "compiled"])
    first = str(report).splitlines()[0]
    assert report.ok
    assert "every mode raises RuntimeError: " in first
    assert "shapes cannot be multiplied" in first
    assert "test_blind_spots.py:" in first
    assert report.to_dict()["raised"] == report.raised


def test_wrong_arguments_are_an_error_of_the_caller():
    with pytest.raises(TypeError, match="missing a required argument: 'y'"):
        compare.check(lambda x, y: x * 2, numbers(3))


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "program.py"
    path.write_text(
        "import eager as torch\n"
        "def loss(x): return x * 2\n"
        "def example(): return (torch.ones(2),)\n"
        "def broken(): raise KeyError('no data')\n"
        "def factory(): return loss, example()\n"
        "def raising(): return (lambda x: x @ torch.ones(3)), example()\n"
    )
    return str(path)


def test_exit_code_2_and_one_line_where_it_cannot_be_found_out(program: str, capsys: pytest.CaptureFixture[str]):
    for argv, said in [
        (["check", f"{program}:loss"], "Remedy"),
        (["check", f"{program}:broken"], "no data"),
        (["check", f"{program}:loss", "--args", f"{program}:broken"], "no data"),
        (["report", f"{program}:factory", "--out", f"{program}/x/report.html"], "cannot be written"),
        (["bench", f"{program}:factory", "--sizes", "8,x"], "'8,x'"),
        (["fuzz", "--count", "-3"], "-3"),
    ]:
        assert main(argv) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("compare: ")
        assert said in line
    assert main(["check", f"{program}:factory", "--modes", "jax.grad"]) == 2  # nothing to differentiate: no opinion
    assert main(["check", f"{program}:raising", "--modes", "graph"]) == 0
    assert "every mode raises RuntimeError" in " ".join(capsys.readouterr().out.split())


def test_gradients_that_jax_contradicts_are_not_timed():
    rule = OPS["sin"].vjp["input"]
    wrong = Vjp(lambda F, *values: rule.fn(F, *values) * 2, rule.names)
    with (
        declared(OPS["sin"], vjp=with_rule(OPS["sin"], "input", wrong)),
        pytest.raises(compare.DisagreementError, match="not timed"),
    ):
        compare.bench(lambda x: x.sin().sum(), numbers(3).requires_grad_(), modes=["eager", "jax.jit"], min_time=0.01)


# --- scripts declare the ops that are not graphc's own

_OWN = """
import eager as torch
from eager.engine.language import E
from graphc.ops import OPS, op
from graphc.ops.rules import pointwise_float

def declare():
    op("own_cube", "x", impl=lambda xp, x: x * x * x, rule=pointwise_float, vjp={"x": lambda F, g, x: g * x * x})

def model():
    if "own_cube" not in OPS:
        declare()
    return (lambda x: E.own_cube(x).sum()), (torch.ones(2, requires_grad=True),)
"""


@pytest.mark.deep
def test_a_minimized_script_declares_the_op(tmp_path: Path):
    model, small = tmp_path / "own_model.py", tmp_path / "small.py"
    model.write_text(_OWN)
    try:
        assert main(["minimize", f"{model}:model", "--modes", "jax.grad", "--seconds", "1", "--out", str(small)]) == 1
    finally:
        OPS.remove("own_cube")
    ran = subprocess.run([sys.executable, str(small)], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "gradient rule for 'x' of op 'own_cube'" in ran.stdout


def test_a_script_that_cannot_declare_the_op_says_so(declare: Any):
    declare("own_square", "x", impl=lambda xp, x: x * x, rule=pointwise_float)  # this function has an argument
    text = declarations_for("def f(x):\n    return E.tanh(E.own_square(x))\n")
    assert "run_path" not in text
    assert "own_square" in text
    assert "SystemExit(2)" in text
    assert declarations_for("def f(x):\n    return E.tanh(x)\n") == ""
