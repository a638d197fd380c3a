"""The gradient of an op that runs graphs, judged on the operands that it has in a program.

It is judged beside that of the operations that the op has run, written one after the other (`unrolled`); for a gradient
rule of the user's, beside that rule, run by itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from compare.judging.float64 import widen, widen_array
from compare.judging.isolate import Objection, alone, cotangent
from compare.judging.numeric import evaluate, outputs_of
from compare.judging.tolerance import INDEPENDENT, Verdict, judge
from compare.judging.unrolled import TooLong, unrolled
from compare.judging.yardstick import Yardstick
from graphc.autodiff import gradients
from graphc.ir import Builder, Graph, Node, Ref
from graphc.ir.structure import CUSTOM, SCAN, WHILE, with_bodies
from graphc.ops.aval import Aval
from graphc.ops.control import BodyProxy
from graphc.ops.dtypes import is_inexact

STEPS = 200  # of a loop that are looked at: more than a loop keeps apart for its gradient
Part = tuple[Sequence[int], Sequence[int]]


def structured_objections(node: Node, operands: Sequence[np.ndarray], seed: int) -> Iterator[Objection]:
    """Who disagrees with the gradient of a structured node as a whole: the operations that it runs, by themselves."""
    node, operands = _bounded(node, operands)
    for results, wrt in _parts(node, operands):
        graph = alone(node, operands, results)
        rng = np.random.default_rng(seed)
        cotangents = [cotangent(graph.nodes[id].aval, rng) for id in graph.outputs]
        try:
            wide = widen(graph)
            arrays = [widen_array(np.asarray(a)) for a in (*operands, *cotangents)]
            pulled = gradients(wide, [f"x{k}" for k in wrt], cotangents=True)
            found = dict(zip(wrt, outputs_of(pulled, evaluate(pulled, arrays, checked=False)), strict=True))
        except Exception as error:
            yield Objection(str(wrt[0]), f"raises {type(error).__name__}: {str(error).partition(chr(10))[0]}")
            return
        try:
            expected, noise = _by_themselves(node, wide, arrays, results, wrt)
        except TooLong:
            return
        for k in wrt:
            judgement = judge(found[k], expected[k], expected[k], noise[k], slack=INDEPENDENT)
            if judgement.verdict is Verdict.BUG:
                where = f"operand {k}, cotangents of results {', '.join(map(str, results))}"
                evidence = f"{where}: against the operations that it runs, one by one: {judgement.detail}"
                yield Objection(str(k), evidence)
                return


def _parts(node: Node, operands: Sequence[np.ndarray]) -> Iterator[Part]:
    """Which results have cotangents, and which operands get gradients: all, then all but one of each kind, or one."""
    results = [k for k, aval in enumerate(node.results) if is_inexact(aval.dtype)]
    first = node.params["results"] if node.op is CUSTOM else 0
    live: Collection[int] = range(len(operands))
    if node.op is CUSTOM:  # of which a rule that is no graph says nothing
        live = () if node.params["pullback"] is None else node.params["wrt"]
    wrt = [k for k, a in enumerate(operands) if k >= first and k in live and is_inexact(a.dtype)]
    if not results or not wrt:
        return
    yield results, wrt
    if len(results) > 1:
        yield from (([k], wrt) for k in results)
    if len(wrt) > 1:
        yield from ((results, [k]) for k in wrt)


def _by_themselves(
    node: Node, graph: Graph, arrays: list[np.ndarray], results: Sequence[int], wrt: Sequence[int]
) -> tuple[Mapping[int, np.ndarray], Mapping[int, np.ndarray]]:
    """(gradients, what rounding can do to them) of the node's operations; of a rule of the user's, by that rule."""
    count = len(graph.inputs)
    if node.op is CUSTOM:
        rule, size = widen(node.params["pullback"]), node.params["results"]
        given = dict(zip(results, arrays[count:], strict=True))
        cotangents = [given.get(k, np.zeros(a.shape, a.dtype)) for k, a in enumerate(arrays[:size])]
        differentiated, arrays = rule, [*arrays[size:count], *cotangents]
        ids = dict(zip(node.params["wrt"], rule.outputs, strict=True))
    else:
        plain = unrolled(graph, arrays[:count])
        differentiated = gradients(_distinct(plain), [f"x{k}" for k in wrt], cotangents=True)
        ids = dict(zip(wrt, differentiated.outputs, strict=True))
    values = evaluate(differentiated, arrays, checked=False)
    yardstick = Yardstick(differentiated, arrays, 0)
    expected = {k: values[ids[k]] for k in wrt}
    return expected, {k: yardstick.of(ids[k], expected[k])[1] for k in wrt}


def _distinct(graph: Graph) -> Graph:
    """`graph` with a node of its own for each output: results that are the same have a cotangent each."""
    builder = Builder(graph.nodes)
    builder.inputs = list(graph.inputs)
    ends = [builder.language.positive(builder.symbol(id)) for id in graph.outputs]
    return builder.graph(graph.name, tuple(Ref(s.id) for s in ends))


def _bounded(node: Node, operands: Sequence[np.ndarray]) -> tuple[Node, Sequence[np.ndarray]]:
    """A long loop from its last steps on, a long scan of its first rows: what they do is the same."""
    if node.op is SCAN and node.params["length"] > STEPS:
        return _shorter_scan(node, operands)
    if node.op is WHILE:
        return node, _near_the_end(node, operands)
    return node, operands


def _shorter_scan(node: Node, operands: Sequence[np.ndarray]) -> tuple[Node, Sequence[np.ndarray]]:
    params = node.params
    first_x, carries = params["consts"] + params["carries"], params["carries"]
    ys = [Aval((STEPS, *a.shape[1:]), a.dtype) for a in node.results[carries:]]
    results = (*node.results[:carries], *ys)
    rows = [*operands[:first_x], *(x[:STEPS] for x in operands[first_x:])]
    return Node(node.id, node.op, node.inputs, {**params, "length": STEPS}, results, node.where, node.scope), rows


def _near_the_end(node: Node, operands: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
    """The operands with which a loop ends after `STEPS` steps at most."""
    consts = node.params["consts"]
    carries: list[tuple[np.ndarray, ...]] = []
    body = node.params["body"]

    def watched(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        carries.append(tuple(np.array(a) for a in arrays[consts:]))
        del carries[:-STEPS]
        return tuple(outputs_of(body, evaluate(body, arrays, checked=False)))

    evaluate_node = with_bodies(node, lambda b: BodyProxy(b, watched) if b is body else b)
    evaluate(alone(evaluate_node, operands), operands, checked=False)
    return [*operands[:consts], *carries[0]] if carries else operands
