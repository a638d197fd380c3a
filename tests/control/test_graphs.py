"""Structured operations in graphs: text, checks, NumPy against XLA, gradients of first and second order, passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphc
from graphc.autodiff import control, gradients
from graphc.errors import GraphError, ParseError
from graphc.ir import Builder, Graph, Node, Ref, refs_of
from graphc.ir.structure import SCAN, SWITCH, emit, every_node
from graphc.lowering import lower
from graphc.lowering.reference import vjp
from graphc.ops.aval import Aval
from graphc.ops.dtypes import FLOAT32, FLOAT64, INT32
from tests.control.programs import PROGRAMS, SCALAR, build, cell, choice, loop
from tests.depth import one_in

Make = Callable[[], tuple[Graph, list[Any]]]
every_program = pytest.mark.parametrize("make", PROGRAMS.values(), ids=PROGRAMS)


def scalar(graph: Graph) -> Graph:
    """`graph` with its first result only."""
    return graph.replace(graph.nodes, graph.result[0])


def difference_quotients(graph: Graph, arguments: list[Any], k: int, step: float = 1e-6) -> np.ndarray:
    found = np.zeros_like(arguments[k])
    for at in np.ndindex(np.shape(arguments[k])):
        ends = []
        for sign in (1, -1):
            moved = np.array(arguments[k])
            moved[at] += sign * step
            ends.append(graph(*arguments[:k], moved, *arguments[k + 1 :]))
        found[at] = (ends[0] - ends[1]) / (2 * step)
    return found


def floats(graph: Graph) -> list[int]:
    return [k for k, aval in enumerate(graph.input_avals()) if aval.dtype.kind == "f"]


def summed(graph: Graph) -> Graph:
    """The sum of the sines of all results of `graph`: something to differentiate again."""
    b = Builder(graph.nodes)
    b.inputs = list(graph.inputs)
    total = b.constant(np.float64(0))
    for ref in refs_of(graph.result):
        s = b.language.sin(b.symbol(ref.id))
        total = total + b.language.sum(s, axis=tuple(range(len(s.shape))), keepdims=False)
    return b.graph("summed", Ref(total.id))


def check_gradients(graph: Graph, arguments: list[Any], rtol: float = 1e-5) -> dict[str, np.ndarray]:
    found = gradients(graph).check()(*arguments)
    for k, name in zip(floats(graph), found, strict=True):
        expected = difference_quotients(graph, arguments, k)
        np.testing.assert_allclose(found[name], expected, rtol=rtol, atol=1e-7, err_msg=name)
    return found


@every_program
def test_text_is_read_back(make: Make):
    graph, _ = make()
    for g in (graph.check(), gradients(scalar(graph)).check()):
        assert Graph.parse(str(g)) == g
        assert str(Graph.parse(str(g))) == str(g)
        assert hash(Graph.parse(str(g))) == hash(g)


@every_program
def test_xla_and_numpy_agree(make: Make):
    graph, arguments = make()
    for g in (graph, gradients(scalar(graph))):
        ours, theirs = g(*arguments), lower(g)(*arguments)
        if isinstance(ours, dict):
            ours, theirs = ours.values(), theirs.values()
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(np.asarray(b), a, rtol=1e-9)


@every_program
def test_gradients_are_difference_quotients(make: Make):
    graph, arguments = make()
    check_gradients(scalar(graph), arguments)


@every_program
def test_gradients_of_gradients(make: Make):
    graph, arguments = make()
    again = summed(gradients(scalar(graph)))
    second = gradients(again).check()
    found = second(*arguments)
    compiled = lower(graphc.optimize(second))(*arguments)
    for k, name in zip(floats(again), found, strict=True):
        at = (0,) * np.ndim(arguments[k])
        only_one = difference_quotients_at(again, arguments, k, at)
        np.testing.assert_allclose(found[name][at], only_one, rtol=1e-4, atol=1e-6, err_msg=name)
        np.testing.assert_allclose(np.asarray(compiled[name]), found[name], rtol=1e-7, atol=1e-9)


def difference_quotients_at(graph: Graph, arguments: list[Any], k: int, at: tuple[int, ...]) -> float:
    ends = []
    for sign in (1, -1):
        moved = np.array(arguments[k])
        moved[at] += sign * 1e-5
        ends.append(graph(*arguments[:k], moved, *arguments[k + 1 :]))
    return (ends[0] - ends[1]) / 2e-5


@pytest.mark.parametrize("make", [cell, choice, lambda: choice(0), lambda: choice(9), lambda: choice(-4)])
def test_gradients_are_jaxs(make: Make):
    graph, arguments = make()
    graph = scalar(graph)
    _, theirs = vjp(graph, arguments, {0: np.ones(())}, floats(graph))
    for ours, expected in zip(gradients(graph)(*arguments).values(), theirs, strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-10)


@pytest.mark.parametrize("steps", one_in(3, [0, 1, 63, 65, 64, 200, 4097, 4096, 9000]))
def test_loops_of_every_length_have_gradients(steps: int):
    """Up to 64 * 64 steps are computed once more, later ones several times."""
    graph, arguments = loop(steps)
    graph = scalar(graph)
    arguments[1] = np.float64(1.0)
    found = lower(graphc.optimize(gradients(graph)))(*arguments)
    run = lower(graph)
    for k, name in zip(floats(graph), found, strict=True):
        np.testing.assert_allclose(
            np.asarray(found[name]), difference_quotients(run_as_numpy(run), arguments, k), rtol=2e-4, atol=1e-7
        )


def run_as_numpy(run: Any) -> Any:
    return lambda *arrays: np.asarray(run(*arrays))


@every_program
def test_optimizing_keeps_values_and_ends(make: Make):
    graph, arguments = make()
    for g in (graph, scalar(graph), gradients(scalar(graph))):
        done = graphc.optimize(g, after_each=lambda _, after: after.check())
        ours, theirs = g(*arguments), done(*arguments)
        for ref_a, ref_b in zip(refs_of(g.result), refs_of(done.result), strict=True):
            np.testing.assert_allclose(
                done.evaluate(*arguments)[ref_b.id], g.evaluate(*arguments)[ref_a.id], rtol=1e-10
            )
        assert type(ours) is type(theirs)
        assert graphc.optimize(done) == done


def test_what_nobody_reads_goes():
    """The cell's count is a carry; its ys are results: with neither read, only one carry is left."""
    graph, arguments = cell()
    step = next(n for n in graph.operations() if n.op is SCAN)
    last = next(n for n in graph.operations() if n.inputs == (step.id,))
    less = graphc.optimize(graph.replace(graph.nodes, Ref(last.id)))
    (scan,) = [n for n in less.operations() if n.op is SCAN]
    assert scan.params["carries"] == 1
    assert len(scan.results) == 1
    np.testing.assert_allclose(less(*arguments), graph.evaluate(*arguments)[last.id])


def test_steady_carries_and_invariants_leave_the_loop():
    body = build("body", [SCALAR, SCALAR, SCALAR], lambda F, a, b, c: (b, F.sin(a) * c + F.exp(b)))

    def whole(F: Any, a: Any, b: Any) -> Any:
        return emit(F._builder, SCAN, [a, b, b], body=body, consts=1, carries=2, length=4, reverse=False, unroll=1)

    graph = build("f", [SCALAR, SCALAR], whole)
    done = graphc.optimize(graph)
    (scan,) = [n for n in done.operations() if n.op is SCAN]
    assert scan.params["carries"] == 1
    assert {n.op.name for n in scan.params["body"].operations()} <= {"mul", "add"}
    np.testing.assert_allclose(done(np.float64(0.3), np.float64(0.4)), graph(np.float64(0.3), np.float64(0.4)))


def test_a_result_that_a_loop_hands_on_is_its_operand():
    """Also if that is the result of another loop, which nobody else reads."""
    body = build("body", [SCALAR, SCALAR, SCALAR], lambda F, a, b, c: (b, F.sin(a) * c))
    first = build("first", [SCALAR], lambda F, c: F.exp(c))

    def whole(F: Any, a: Any, b: Any) -> Any:
        (start,) = emit(F._builder, SCAN, [b], body=first, consts=0, carries=1, length=2, reverse=False, unroll=1)
        given = [a, start, b]
        return emit(F._builder, SCAN, given, body=body, consts=1, carries=2, length=4, reverse=False, unroll=1)[0]

    graph = build("f", [SCALAR, SCALAR], whole)
    done = graphc.optimize(graph)
    assert [node.op.name for node in done.operations()].count("scan") == 1
    np.testing.assert_allclose(done(np.float64(0.3), np.float64(0.4)), np.exp(np.exp(0.4)))


@pytest.mark.parametrize("branch", [0, 1])
def test_results_are_one_only_if_they_are_in_every_branch(branch: int):
    def same(F: Any, a: Any) -> Any:
        return (found := F.sin(a)), found

    def whole(F: Any, i: Any, a: Any) -> Any:
        one, other = emit(F._builder, SWITCH, [i, a], branches=(
            build("same", [SCALAR], same), build("apart", [SCALAR], lambda F, a: (F.sin(a), F.exp(a)))))  # fmt: skip
        return one, other * 2.0

    graph = build("f", [Aval((), INT32), SCALAR], whole)
    given = np.int32(branch), np.float64(0.3)
    np.testing.assert_allclose(graphc.optimize(graph)(*given), graph(*given))


def test_equal_operations_are_one():
    def whole(F: Any, i: Any, a: Any, x: Any) -> Any:
        (r,) = emit(F._builder, SWITCH, [i, a, x], branches=branches())
        (s,) = emit(F._builder, SWITCH, [i, a, x], branches=branches())
        return r + s

    def branches() -> tuple[Graph, ...]:
        avals = [SCALAR, Aval((3,), FLOAT64)]
        return tuple(build("branch", avals, f) for f in (lambda F, a, x: F.sin(a), lambda F, a, x: a * 2.0))

    graph = build("f", [Aval((), INT32), SCALAR, Aval((3,), FLOAT64)], whole)
    done = graphc.optimize(graph)
    (switch,) = [n for n in done.operations() if n.op is SWITCH]
    assert len(switch.inputs) == 2  # nobody reads x


def test_checks_inside_bodies_are_reported():
    """An index out of range in a step of a scan, in a branch, in a loop: the error and the line of the user's."""
    index = graphc.ops.OPS["index"]
    b = Builder()
    table, total, i = b.input("t", Aval((4,), FLOAT32)), b.input("c", Aval((), FLOAT32)), b.input("i", Aval((), INT32))
    b.where = "model.py:7"
    picked = b.apply(index, (table, i), {"spec": (0,)})
    body = b.graph("body", (Ref((total + picked).id),))

    def whole(F: Any, table: Any, xs: Any) -> Any:
        zero = F.full(shape=(), value=0, dtype=FLOAT32)
        return emit(F._builder, SCAN, [table, zero, xs], body=body, consts=1, carries=1, length=3, reverse=False,
                    unroll=1)[0]  # fmt: skip

    graph = build("f", [Aval((4,), FLOAT32), Aval((3,), INT32)], whole).check()
    t, good, bad = np.arange(4, dtype="f4"), np.array([0, 3, 1], "i4"), np.array([0, 4, 1], "i4")
    for run in (graph, lower(graph), lower(graphc.optimize(graph))):
        assert float(run(t, good)[0]) == 4
        with pytest.raises(IndexError, match=r"out of range.*model\.py:7"):
            run(t, bad)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("consts=2", "consts=9", "operands"),
        ("length=6", "length=5", "5 elements"),
        ("carries=2", "carries=1", "scan"),
        ("body=body_v8", "body=body_v9", "parameter"),
        ("index=2)", "index=7)", "no result number 7"),
    ],
)
def test_forged_text_is_refused(old: str, new: str, says: str):
    text = str(cell()[0])
    at = next(n.id for n in cell()[0].operations() if n.op is SCAN)
    old = old.replace("body_v8", f"body_v{at}").replace("length=6", "length=6, reverse")
    new = new.replace("length=5", "length=5, reverse")
    assert old in text
    with pytest.raises(ParseError, match=says):
        Graph.parse(text.replace(old, new))


def test_a_damaged_body_is_found():
    graph, _ = cell()
    node = next(n for n in graph.operations() if n.op is SCAN)
    body: Graph = node.params["body"]
    broken = dict(body.nodes)
    id, inner = next((i, n) for i, n in body.nodes.items() if n.op.name == "tanh")
    broken[id] = Node(id, inner.op, inner.inputs, inner.params, (Aval((7,), FLOAT64),))
    params = {**node.params, "body": Graph(body.name, broken, body.inputs, body.result)}
    nodes = {**graph.nodes, node.id: Node(node.id, node.op, node.inputs, params, node.results)}
    with pytest.raises(GraphError, match="tanh"):
        graph.replace(nodes, graph.result).check()


def test_a_wrong_residual_is_caught(monkeypatch: pytest.MonkeyPatch):
    """The checkers of this file find a backward scan that reads the values of other steps."""
    extend = control.stack_more

    def wrong(*given: Any) -> Any:
        found = extend(*given)
        return [s.builder.language.flip(s, axis=(0,)) for s in found]

    monkeypatch.setattr(control, "stack_more", wrong)
    graph, arguments = cell()
    with pytest.raises(AssertionError):
        check_gradients(scalar(graph), arguments)


def test_gradient_size_is_linear_in_the_body():
    def of(count: int) -> int:
        def step(F: Any, c: Any) -> Any:
            for _ in range(count):
                c = F.sin(c) * 1.1
            return c

        body = build("body", [SCALAR], step)
        graph = build("f", [SCALAR], lambda F, x: emit(F._builder, SCAN, [x], body=body, consts=0, carries=1, length=3,
                                                       reverse=False, unroll=1))  # fmt: skip
        return len(list(every_node(gradients(scalar(graph)))))

    assert of(400) - of(200) <= 1.05 * 2 * (of(200) - of(100))


def test_products_of_all_steps_are_one():
    """x_t W before the loop, and its gradient after it; not under strict=True, as sums change their order."""
    w, h, x = Aval((24, 40), FLOAT64), Aval((2, 40), FLOAT64), Aval((2, 24), FLOAT64)
    body = build("body", [w, h, x], lambda F, w, h, x: F.tanh(x @ w + h))

    def whole(F: Any, w: Any, h: Any, xs: Any) -> Any:
        last = emit(F._builder, SCAN, [w, h, xs], body=body, consts=1, carries=1, length=7, reverse=True, unroll=1)[0]
        return F.sum(F.square(last), axis=(0, 1), keepdims=False)

    graph = build("f", [w, h, Aval((7, 2, 24), FLOAT64)], whole)
    rng = np.random.default_rng(0)
    arguments = [rng.normal(size=a.shape) for a in graph.input_avals()]
    for g in (graph, gradients(scalar(graph))):
        done, strict = graphc.optimize(g), graphc.optimize(g, strict=True)
        inside = [n.op.name for s in done.operations() if s.op is SCAN for n in every_node(s.params["body"])]
        assert inside.count("matmul") <= 1  # that of the cotangent with W^T, if it is asked for
        assert len([n for n in every_node(strict) if n.op.name == "matmul"]) >= inside.count("matmul")
        for a, b in zip(refs_of(g.result), refs_of(done.result), strict=True):
            np.testing.assert_allclose(
                done.check().evaluate(*arguments)[b.id], g.evaluate(*arguments)[a.id], rtol=1e-10, atol=1e-12
            )


def test_the_harness_judges_control_flow():
    import compare
    import eager as torch

    def f(x, w):
        h, ys = graphc.scan(lambda h, v: (torch.tanh(h @ w + v), h.sum()), torch.zeros(3), x)
        return graphc.cond(h.sum() > 0, lambda: ys.sum(), lambda: (ys * 2).sum())

    torch.manual_seed(0)
    report = compare.check(f, torch.randn(5, 3), torch.randn(3, 3, requires_grad=True))
    assert report.ok, str(report)
