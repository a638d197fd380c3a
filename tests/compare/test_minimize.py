"""Small programs that show what a large one does: the same mode and culprit, also in a fresh process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

import compare
import eager as torch
import graphc
from benchmarks import minimizing as measured
from compare.cases.case import Case
from compare.command_line import main
from compare.fuzzing import Input, Program, Statement
from compare.minimizing import minimize_program
from compare.minimizing.reducing import around, simpler_expressions
from compare.minimizing.simplifying import smaller_shapes, with_short_names
from compare.minimizing.sources import source_of
from compare.minimizing.statements import apart, cut, live, statement, statements, values_of, with_aliases
from compare.minimizing.unrolling import goes_on, inside, opened
from compare.minimizing.writing import program_of
from eager.engine.language import E
from graphc.lowering.overrides import OVERRIDES
from graphc.ops import OPS
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


def program_with(text: str, results: list[str], **inputs: Any) -> Program:
    given = [Input(name, np.asarray(a, np.float32), False) for name, a in inputs.items()]
    return Program("p", given, statements(text), results)


def values(program: Program) -> list[Any]:
    return [r.tolist() for r in program.function(*program.arguments())]


@pytest.mark.deep
@pytest.mark.usefixtures("wrong_expm1")
def test_a_wrong_lowering_is_one_op(tmp_path):
    found = compare.minimize(network, *operands(), modes=["graph", "compiled"])
    assert found.program.ops == ("expm1",) and found.checks < 30
    assert found.bug.mode == "compiled" and found.bug.culprit and found.bug.culprit.op == "expm1"
    assert [i.array.size for i in found.program.inputs] == [1]
    for head, code in ((FAULT, 1), ("", 0)):
        script = tmp_path / f"script{code}.py"
        script.write_text(head + found.script)
        done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        assert ("of op 'expm1'" in done.stdout) is bool(code)


@pytest.mark.usefixtures("wrong_expm1")
def test_scripts_are_readable():
    script = compare.minimize(network, *operands(), modes=["compiled"]).script
    assert script == (
        "import numpy as np\n\nimport compare\nimport eager as torch\nimport graphc\n"
        "from eager.engine.language import E\n\n\n"
        "def network(x):\n    a = E.expm1(x)\n    return a,\n\n\n"
        "x = torch.from_numpy(np.array([[1.0]], 'float32'))\n\n"
        "# bug in mode 'compiled': result.0, the lowering of op 'expm1'\n"
        "report = compare.check(network, x, modes=['compiled'])\nprint(report)\n"
        "raise SystemExit(0 if report.ok else 1)\n"
    )


def test_a_wrong_gradient_rule_is_one_op(declare):
    declare("planted", "x", impl="square", rule=pointwise_float, vjp={"x": lambda F, g, x: g * (2.001 * x)})
    x = torch.tensor([0.5, 1.5], requires_grad=True)
    found = compare.minimize(lambda x: torch.tanh(E.planted(torch.exp(-x))).sum() * 2, x)
    assert found.program.ops == ("planted",)
    assert [i.requires_grad for i in found.program.inputs] == [True]


@pytest.mark.deep
def test_a_random_program_becomes_small():
    row, script = measured.measure("random cumsum 6")
    assert row.reproduced, row.note + script
    assert row.ops == 1 and row.before > 20


@pytest.mark.parametrize("name", [pytest.param("in_scan", marks=pytest.mark.deep), "written_argument", "differences"])
def test_kinds_of_programs(name):
    """Control flow, writes, exceptions and rewrite rules; the rest of the cases takes minutes."""
    row, script = measured.measure(next(case for case in measured.cases() if case.startswith(name)))
    assert row.reproduced, row.note + script
    assert row.ops <= 2 < row.before


def test_what_cannot_be_minimized_says_why():
    x = torch.ones(3)
    with pytest.raises(compare.MinimizeError, match="no bug"):
        compare.minimize(torch.sin, x, modes=["graph"])
    calls = iter(range(100))
    with pytest.raises(compare.MinimizeError, match=r"graph by itself does not show.*no script can make"):
        compare.minimize(lambda x: x + next(calls), x, modes=["eager"])


# --- control flow


def looping(x: Any) -> Any:
    y = graphc.cond(x.sum() > 0, lambda a: torch.cos(a) * 2 + x.mean(), lambda a: a * a, x)
    z = graphc.fori_loop(0, 3, lambda i, a: torch.tanh(a) + 0.1 * i, y)
    w = graphc.while_loop(lambda s: s[0].abs().sum() > 0.5, lambda s: (s[0] * 0.5, s[1] + 1), (z, z[0] * 0))[0]
    c, s = graphc.scan(lambda c, a: ((c[0] + a, c[1]), (torch.sin(c[0]), a)), (w[0] * 0, w[1]), w, reverse=True)
    m = graphc.map(lambda a: graphc.cond(a.sum() > 0, lambda: a * c[0], lambda: a - 1), s[0])
    return graphc.switch((x.sum() > 0).long(), [lambda a, b: a, lambda a, b: a + b], m, s[1]), c[1]


def test_graphs_with_control_flow_are_written_as_they_are():
    (x, _) = operands()
    program = program_of(Case(looping, (x,), {}, 0))
    assert [n in program.source for n in ("switch", "while_loop", "scan")] == [True] * 3
    arguments = program.arguments()
    found, wanted = program.function(*arguments), looping(x)
    for a, b in zip(found, wanted, strict=True):
        assert a.tolist() == b.tolist()
    (g,) = torch.autograd.grad(sum(r.sum() for r in found), arguments)
    (h,) = torch.autograd.grad(sum(r.sum() for r in wanted), x)
    assert np.allclose(g.numpy(), h.numpy(), rtol=1e-6)


@pytest.mark.parametrize("text", [
    "def f(c, a):\n    s = c + a\n    return s, torch.exp(s)\nc, ys = graphc.scan(f, x[0], x)",
    "c, ys = graphc.scan(lambda c, a: (c + a, torch.exp(c + a)), x[0], x)",
])  # fmt: skip
def test_a_body_is_a_program_on_what_it_is_called_with_first(text):
    (found,) = inside(program_with(text, ["ys"], x=[1.0, 2.0]))
    assert [s.text.partition(" = ")[2].split("(")[0] for s in found.statements][-1] == "torch.exp"
    assert sorted(i.array.tolist() for i in found.inputs) == [1.0, 1.0]
    assert np.exp(np.float32(2)) == pytest.approx(values(found)[-1])


def test_branches_of_pythons_are_replaced_by_what_is_in_them():
    program = program_with("if x.sum() > 0:\n    y = x + 1\n    z = y * 2\nelse:\n    z = x", ["z"], x=[3.0])
    assert [[s.text for s in p.statements] for p in opened(program)] == [["y = x + 1", "z = y * 2"], ["z = x"]]


def test_loops_that_a_reduction_has_made_endless_are_not_run():
    text = "y = graphc.while_loop(lambda a: a.sum() > 1, lambda a: {}, x)"
    assert not goes_on(program_with(text.format("a * 0.5"), ["y"], x=[3.0]))
    assert goes_on(program_with(text.format("a"), ["y"], x=[3.0]))
    assert goes_on(program_with("y = x\nwhile y.sum() > 1:\n    y = y + 1", ["y"], x=[3.0]))
    assert goes_on(simpler := next(p for p in simpler_expressions(program_with(text.format("a * 0.5"), ["y"], x=[3.0]))
                                   if "lambda a: a," in p.source)), simpler.source  # fmt: skip


# --- writes, draws, decisions: what the source shows and a graph does not


def drawing(x: Any) -> Any:
    y = x * 2
    view = y[0]
    view.add_(OFFSET)
    if y.sum() > 0:
        y = helper(y) + torch.rand_like(y)
    return {"y": y, "rest": (view, 3)}


OFFSET = 0.5


def helper(y: Any) -> Any:
    return torch.sin(y)


def test_the_source_of_a_function_is_a_program():
    x = torch.ones(2, 2)
    program = source_of(Case(drawing, (x,), {}, 0))
    torch.manual_seed(3)
    found = program.function(*program.arguments())
    torch.manual_seed(3)
    wanted = drawing(x)
    assert [r.tolist() for r in found] == [wanted["y"].tolist(), wanted["rest"][0].tolist()]


@pytest.fixture
def forgetful_draws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Compiled programs draw other numbers than eager does, which no graph shows: there they are inputs."""
    from compare.modes import COMPILED

    observe = Case.observe

    def observed(case: Case, call: Any) -> Any:
        wrong = call is not case.fn
        return observe(case, (lambda *a, **k: (torch.rand(1), call(*a, **k))[1]) if wrong else call)

    monkeypatch.setattr(Case, "observe", observed)
    assert COMPILED.name == "compiled"
    yield


@pytest.mark.deep
@pytest.mark.usefixtures("forgetful_draws")
def test_a_bug_in_draws_is_minimized_from_the_source():
    found = compare.minimize(drawing, torch.ones(2, 2), modes=["compiled"])
    assert [s.text for s in found.program.statements] == ["a = torch.rand_like(x)"], found.script
    assert "torch.manual_seed(0)\n" in found.script


def test_a_bug_in_writes_is_minimized_from_the_text(monkeypatch: pytest.MonkeyPatch):
    import jax.numpy as jnp

    monkeypatch.setitem(OVERRIDES, "tanh", lambda x: 1.01 * jnp.tanh(x))
    program = program_with("a = x * 2\nb = a[0]\nb.tanh_()\nx.add_(a)\nc = a.sum() + x.exp()", ["c"], x=np.ones((3, 3)))
    found = minimize_program(program, ["compiled"])
    assert len(found.program.statements) == 1 and "tanh_()" in found.program.source


# --- the parts


@pytest.mark.parametrize(("text", "makes", "reads", "writes"), [
    ("a = E.mul(b, c, axis=1)", ["a"], ["b", "c"], []),
    ("b[0] += c.sum()", [], ["b", "c"], ["b"]),
    ("b[0].mul_(c)\nd = b.clone()", ["d"], ["b", "c"], ["b"]),
    ("def f(x):\n    y = x * k\n    return y", ["f"], ["k"], []),
    ("a, (b, _) = graphc.scan(lambda c, x: (c + w, x), p, q)", ["a", "b", "_"], ["w", "p", "q"], []),
    ("b.requires_grad_()", [], ["b"], ["b"]),
])  # fmt: skip
def test_statements_know_what_they_do(text, makes, reads, writes):
    found = statement(text)
    assert (sorted(found.makes), sorted(found.reads)) == (sorted(makes), sorted(reads))
    assert list(found.writes) == writes


def test_what_a_statement_is_computed_from_is_tried_step_by_step():
    text = "a = x * 2\nb = x + 1\nc = a.exp()\nd = b - c\ne = d.sin()\nf = x - 3"
    program = program_with(text, ["e", "f"], x=[1.0])
    found = [[s.makes[0] for s in small.statements] for small in around(program, 0, "sin", values_of(program))]
    assert found[0] == ["e"] and ["d", "e"] in found and ["a", "b", "c", "d", "e"] in found
    assert all("f" not in made for made in found)


def test_a_variable_that_is_assigned_again_gets_another_name():
    program = program_with("y = x + 1\ny = y * 2\nif y.sum() > 0:\n    y = y - 1\nx = y + x", ["x", "y"], x=[1.0])
    split = apart(program)
    assert values(split) == values(program) == [[4.0], [3.0]]
    assert [s.makes for s in split.statements] == [("y",), ("t1",), ("t1",), ("t2",)]


def test_calls_are_taken_apart():
    program = program_with("y = (torch.exp(x.reshape(-1)[:2]) + 1.5).roll(1, -1)", ["y"], x=[[0.0, 1.0], [2.0, 3.0]])
    split = apart(program)
    assert [s.text for s in split.statements] == [
        "t1 = x.reshape(-1)", "t2 = t1[:2]", "t3 = torch.exp(t2)", "t4 = t3 + 1.5", "y = t4.roll(1, -1)",
    ]  # fmt: skip
    assert values(split) == values(program)


def test_in_place_writes_are_kept_with_what_they_write():
    made = [
        Statement("a = x * 2", ("a",), ("x",)),
        Statement("b = x + 1", ("b",), ("x",)),
        Statement("a.add_(1)\nc = a.clone()", ("c",), ("a",), writes=("a",)),
        Statement("d = a * 3", ("d",), ("a",)),
    ]
    program = Program("p", [Input("x", np.ones(2, np.float32), False)], made, ["b", "c", "d"])
    small = live(program, ["d"])
    assert [s.makes[0] for s in small.statements] == ["a", "c", "d"]
    assert small.function(*small.arguments())[0].tolist() == [9.0, 9.0]
    left = cut(program, {0}, values_of(program))
    assert left is not None and [i.name for i in left.inputs] == ["x", "a"] and left.function(*left.arguments())


def test_writes_through_views_are_kept():
    program = program_with("a = x * 2\nb = a[0]\nb.add_(1)\nc = a * 3", ["c"], x=np.ones((2, 2)))
    assert values(live(with_aliases(program), ["c"])) == values(program) == [[[9.0, 9.0], [6.0, 6.0]]]


def test_dims_of_one_size_become_shorter_together_and_in_the_text():
    program = program_with("z = E.reshape(x, shape=(2, 6)) @ y", ["z"], x=np.ones((4, 3)), y=np.ones((6, 4)))
    found = {tuple(i.array.shape for i in p.inputs): p for p in smaller_shapes(program)}
    assert ((1, 3), (6, 1)) in found and "shape=(2, 1)" in found[(4, 3), (1, 4)].source


def test_short_names_do_not_meet():
    program = program_with("a = x1 + 1\ndef f1(x, a):\n    y = x + a\n    return y\nx = f1(a, x2)", ["x"],
                           x1=[1.0], x2=[2.0])  # fmt: skip
    short = with_short_names(program)
    assert values(short) == values(program) == [[4.0]]
    assert [i.name for i in short.inputs] == ["x", "y"] and "def f(" in short.source


def test_parameters_that_have_no_text_are_refused():
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * x

    assert isinstance(OPS["sin"].vjp, MappingProxyType)
    program = program_of(Case(lambda x: Square.apply(x) + 1, (torch.ones(2),), {}, 0))
    assert values(program) == [[2.0, 2.0]]


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
