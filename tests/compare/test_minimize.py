"""Small programs that show what a large one does: the same mode and culprit, also in a fresh process."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import compare
import eager as torch
from compare.command_line import main
from compare.fuzzing import Input, Program, Statement, generate
from compare.fuzzing.coverage import Coverage
from compare.minimizing import _cut, _live, minimize_program
from compare.tolerance import Verdict
from eager.language import E
from graphc.lowering.overrides import OVERRIDES
from graphc.ops.rules import pointwise_float

# run at the start of a script: the fault is there too
FAULT = """from graphc.lowering.overrides import OVERRIDES
import jax.numpy as jnp
OVERRIDES["expm1"] = lambda x: 1.0001 * jnp.expm1(x)
"""


@pytest.fixture
def wrong_expm1(monkeypatch: pytest.MonkeyPatch) -> None:
    import jax.numpy as jnp

    monkeypatch.setitem(OVERRIDES, "expm1", lambda x: 1.0001 * jnp.expm1(x))


def network(x: Any, w: Any) -> Any:
    h = torch.tanh(x @ w)
    y = torch.expm1(h) * torch.sin(h) + x.mean()
    return (y.softmax(1) ** 2).sum(), h


def operands() -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    x, w = (torch.from_numpy(rng.standard_normal(s).astype(np.float32)).requires_grad_() for s in ((4, 5), (5, 3)))
    return x, w


@pytest.mark.usefixtures("wrong_expm1")
def test_a_wrong_lowering_is_one_op(tmp_path):
    found = compare.minimize(network, *operands(), modes=["graph", "compiled"])
    assert found.program.ops == ("expm1",) and found.checks < 60
    bugs = [f for f in found.report.findings if f.verdict is Verdict.BUG]
    assert bugs and all(f.mode == "compiled" and f.culprit and f.culprit.op == "expm1" for f in bugs)
    for head, code in ((FAULT, 1), ("", 0)):
        script = tmp_path / f"script{code}.py"
        script.write_text(head + found.script)
        done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        assert ("of op 'expm1'" in done.stdout) is bool(code)


def test_a_wrong_gradient_rule_is_one_op(declare):
    declare("planted", "x", impl="square", rule=pointwise_float, vjp={"x": lambda F, g, x: g * (2.001 * x)})
    x = torch.tensor([0.5, 1.5], requires_grad=True)
    found = compare.minimize(lambda x: torch.tanh(E.planted(torch.exp(-x))).sum() * 2, x)
    assert found.program.ops == ("planted",)
    assert [i.requires_grad for i in found.program.inputs] == [True]


@pytest.mark.usefixtures("wrong_expm1")
def test_random_programs_become_small():
    coverage, sizes = Coverage(), []
    for seed in range(400):
        program = generate(seed, coverage)
        if "expm1" not in program.ops or len(sizes) == 3:
            continue
        report = compare.check(program.function, *program.arguments(), modes=["compiled"])
        bug = next((f for f in report.findings if f.verdict is Verdict.BUG), None)
        if bug is not None and bug.culprit is not None and bug.culprit.op == "expm1":
            sizes.append(len(minimize_program(program, ["compiled"], bug).program.statements))
    assert len(sizes) == 3 and max(sizes) <= 2


def test_what_cannot_be_minimized_says_why():
    x = torch.ones(3)
    with pytest.raises(compare.MinimizeError, match="no bug"):
        compare.minimize(torch.sin, x, modes=["graph"])
    calls = iter(range(100))
    with pytest.raises(compare.MinimizeError, match="by itself does not show"):
        compare.minimize(lambda x: x + next(calls), x, modes=["eager"])


def test_in_place_writes_are_kept_with_what_they_write():
    statements = [
        Statement("a = x * 2", ("a",), ("x",)),
        Statement("b = x + 1", ("b",), ("x",)),
        Statement("a.add_(1)\nc = a.clone()", ("c",), ("a",), writes=("a",)),
        Statement("d = a * 3", ("d",), ("a",)),
    ]
    program = Program("p", [Input("x", np.ones(2, np.float32), False)], statements, ["b", "c", "d"])
    small = _live(program, ["d"])
    assert [s.makes[0] for s in small.statements] == ["a", "c", "d"]
    assert small.function(*small.arguments())[0].tolist() == [9.0, 9.0]
    cut = _cut(program, {0})
    assert cut is not None and [i.name for i in cut.inputs] == ["x", "a"] and cut.function(*cut.arguments())


@pytest.mark.usefixtures("wrong_expm1")
def test_command_line(tmp_path, capsys):
    source = tmp_path / "program.py"
    source.write_text("import eager as torch\ndef f(x):\n    return torch.sin(torch.expm1(x)).sum()\n"
                      "def example_args():\n    return (torch.tensor([0.5, 1.0]),)\n")  # fmt: skip
    out = tmp_path / "small.py"
    assert main(["minimize", f"{source}:f", "--modes", "compiled", "--out", str(out)]) == 1
    assert "E.expm1" in out.read_text() and "E.expm1" in capsys.readouterr().out
    assert main(["minimize", f"{source}:f", "--modes", "graph"]) == 2
    assert "no bug" in capsys.readouterr().err
