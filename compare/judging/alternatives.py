"""Other results that are as right as eager's: by another machine arithmetic, or where a definition leaves a choice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, final

import numpy as np

from compare.judging.float64 import widen_array
from compare.judging.isolate import lowered_result
from compare.judging.numeric import evaluate, outputs_of
from compare.judging.tolerance import INDEPENDENT, Judgement, Verdict, accumulation_length, judge, same_bits
from compare.judging.yardstick import Yardstick
from graphc.ir import Graph, Node, Ref
from graphc.ir.structure import ITEM
from graphc.lowering import lower
from graphc.ops import Trait
from graphc.ops.aval import Aval, aval_of
from graphc.ops.dtypes import is_inexact
from graphc.ops.interpret import run_kernel
from graphc.passes import optimize
from graphc.passes.pipeline import DISTRIBUTING, default_passes

FLUSHED = (
    "XLA flushes denormal numbers to zero, multiplies inf and nan with padding or does not, and gives nan other bits"
)
SIMPLIFIED = "XLA's algebraic simplifier changes it: 0 * nan becomes 0, and the like"
FLIPPED = "agrees once XLA decides where rounding does: '{op}'{where}"
REORDERED = "no number, in whatever order factors are taken out of a sum with infinite terms: nan, or infinite"
CHOSEN = "agrees once the free signs, phases and orders are XLA's"


@final
class Alternatives:
    """What XLA may make of `graph` on `arrays` that no rounding explains."""

    def __init__(self, graph: Graph, arrays: Sequence[np.ndarray], seed: int):
        self._graph, self._arrays, self._seed = graph, arrays, seed

    def excuse(self, id: int, found: np.ndarray, expected: np.ndarray, **options: Any) -> Judgement | None:
        """The judgement of `found` for node `id`, which by rounding alone is a bug; None if it stays one.

        expected  NumPy's value of the node
        options   of `tolerance.judge`
        """
        flushing = self._flushing.of(id, expected)

        def agree(a: np.ndarray, b: np.ndarray, **options: Any) -> bool:
            return aval_of(a) == aval_of(b) and judge(a, b, *flushing, **options).verdict is not Verdict.BUG

        if self._flushing.flushes and agree(found, expected, **options):
            return Judgement(Verdict.ENVIRONMENT, FLUSHED)
        if (programs := self._by_xla(id)) is not None:
            simplified, plain = programs
            # without its passes XLA rounds in yet another way, and that is not the question
            changed = not agree(simplified, plain, slack=INDEPENDENT)
            if changed and agree(found, simplified, **options) and agree(plain, expected, slack=INDEPENDENT):
                return Judgement(Verdict.ENVIRONMENT, SIMPLIFIED)
        if self._flips:
            node = self._maker(next(iter(self._flips)))
            value = self._flipped[id]
            judgement = judge(found, value, *self._flipping.of(id, value), **options)
            if judgement.verdict is not Verdict.BUG:
                where = f" at {node.where}" if node.where else ""
                return Judgement(Verdict.WITHIN_ROUNDING, FLIPPED.format(op=node.op.name, where=where))
        if self._choices:
            value = self._chosen.get(id, expected)
            if value.shape == found.shape:
                judgement = judge(found, value, *self._choosing.of(id, value), **options)
                if judgement.verdict is not Verdict.BUG:
                    return Judgement(Verdict.CONVENTION, CHOSEN)
        return None

    def reordered(self, id: int, found: np.ndarray, expected: np.ndarray) -> np.ndarray:
        """Where `found` and `expected` are both no numbers, since factors are taken out of sums.

        x/0 + y/0 is nan or infinite, (x + y)/0 perhaps the other.
        """
        odd = ~np.isfinite(found) & ~np.isfinite(expected)
        if not odd.any() or id not in self._graph.outputs:
            return np.zeros_like(odd)
        try:
            free, exact = (outputs[self._graph.outputs.index(id)] for outputs in self._passed)
        except Exception:  # a pass that raises excuses nothing
            return np.zeros_like(odd)
        return odd & _are_alike(found, free) & _are_alike(expected, exact)

    @cached_property
    def _passed(self) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """The outputs on NumPy after the passes that distribute, and after those that keep every bit."""
        free = optimize(self._graph, passes=[p for p in default_passes() if p[0] in DISTRIBUTING])
        exact = optimize(self._graph, strict=True)
        return outputs_of(free, evaluate(free, self._arrays)), outputs_of(exact, evaluate(exact, self._arrays))

    def _by_xla(self, id: int) -> tuple[np.ndarray, np.ndarray] | None:
        """The value of an output by XLA, and by XLA without its simplifier."""
        if id not in self._graph.outputs:
            return None
        try:
            simplified, plain = (outputs[self._graph.outputs.index(id)] for outputs in self._programs)
        except Exception:  # a program that XLA, or a check of it, refuses excuses nothing
            return None
        return simplified, plain

    @cached_property
    def _programs(self) -> tuple[list[np.ndarray], list[np.ndarray]]:
        return self._lowered(strict=False), self._lowered(strict=True)

    def _lowered(self, strict: bool, also: Sequence[int] = ()) -> list[np.ndarray]:
        """The outputs by XLA; or the nodes `also`, computed along with the outputs."""
        graph = self._graph
        outputs = graph.replace(graph.nodes, tuple(map(Ref, (*also, *graph.outputs))))
        found = [np.asarray(a) for a in lower(optimize(outputs), strict=strict)(*self._arrays)]
        return found[: len(also)] if also else found

    @cached_property
    def _flushing(self) -> Yardstick:
        return Yardstick(self._graph, self._arrays, self._seed, flushing=True)

    @cached_property
    def _flips(self) -> Mapping[int, np.ndarray]:
        """XLA's results of ops that jump, where they differ and rounding explains it: signs, exponents, comparisons.

        Simulated errors meet such a jump at zero, say, with no probability; numbers of few digits cancel exactly.
        """
        nodes = self._graph.nodes
        jumping = [id for id in nodes if not nodes[id].op.several and _jumps(self._maker(id), self._graph)]
        try:
            found = dict(zip(jumping, self._lowered(strict=False, also=jumping), strict=True)) if jumping else {}
            differing = {id: a for id, a in found.items() if not same_bits(a, self._values[id])}
            return {id: a for id, a in differing.items() if self._is_explained(id, a) or self._is_inherited(id)}
        except Exception:  # as in `_by_xla`
            return {}

    def _is_explained(self, id: int, found: np.ndarray) -> bool:
        """Whether rounding, or flushing, explains XLA's value of a node."""
        value = self._values[id]
        return judge(found, value, *self._flushing.of(id, value)).verdict is not Verdict.BUG

    def _is_inherited(self, id: int) -> bool:
        """Whether the kernel of a node gives XLA's result on XLA's operands, which rounding explains."""
        node, found = self._maker(id), self._by_node
        value = run_kernel(node.op, [found[i] for i in node.inputs], node.params)
        if not same_bits(value[self._graph.nodes[id].params["index"]] if node.op.several else value, found[id]):
            return False
        return all(
            self._is_explained(i, found[i]) and all(self._may_round(n) for n in self._origins(i)) for i in node.inputs
        )

    def _maker(self, id: int) -> Node:
        """The node that computes node `id`: of one of several results, the op that has them."""
        node = self._graph.nodes[id]
        return self._graph.nodes[node.inputs[0]] if node.op is ITEM else node

    def _origins(self, id: int) -> Iterator[int]:
        """The first nodes on the way to node `id` that XLA gives other bits."""
        pending, seen = [id], {id}
        while pending:
            at = pending.pop()
            if same_bits(self._by_node[at], self._values[at]):
                continue
            before = [i for i in self._maker(at).inputs if not same_bits(self._by_node[i], self._values[i])]
            if not before:
                yield at
            pending += [i for i in before if i not in seen]
            seen.update(before)

    def _may_round(self, id: int) -> bool:
        """Whether rounding explains what XLA makes of a node, also if it is only the sign of a zero: in long sums."""
        node = self._maker(id)
        if np.array_equal(self._by_node[id], self._values[id], equal_nan=True):
            return accumulation_length(node, self._graph) > 1
        return self._is_explained(id, self._by_node[id])

    @cached_property
    def _values(self) -> Mapping[int, np.ndarray]:
        return evaluate(self._graph, self._arrays, checked=False)

    @cached_property
    def _by_node(self) -> Mapping[int, np.ndarray]:
        """The value of every node by XLA, all computed by one program."""
        ids = [id for id, node in self._graph.nodes.items() if not node.op.several]
        return dict(zip(ids, self._lowered(strict=False, also=ids), strict=True))

    @cached_property
    def _flipped(self) -> Mapping[int, np.ndarray]:
        return evaluate(self._graph, self._arrays, checked=False, held=self._flips)

    @cached_property
    def _flipping(self) -> Yardstick:
        held = {id: widen_array(a) for id, a in self._flips.items()}
        return Yardstick(self._graph, self._arrays, self._seed, flushing=True, held=held)

    @cached_property
    def _choices(self) -> Mapping[int, np.ndarray]:
        """XLA's results of the nodes that have several, on NumPy's operands."""
        nodes = [node for node in self._graph.operations() if node.op.nearest is not None]
        if not nodes:
            return {}
        return {node.id: lowered_result(node, [self._values[i] for i in node.inputs]) for node in nodes}

    @cached_property
    def _chosen(self) -> Mapping[int, np.ndarray]:
        return evaluate(self._graph, self._arrays, checked=False, choices=self._choices)

    @cached_property
    def _choosing(self) -> Yardstick:
        return Yardstick(self._graph, self._arrays, self._seed, flushing=True, choices=self._choices)


def _are_alike(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a == b) | ((a != a) & (b != b))


def _jumps(node: Node, graph: Graph) -> bool:
    """Whether the op is a piecewise constant function of inexact numbers, or one of its results is.

    The other results then belong to that one: a mantissa to its exponent.
    """
    if node.op.structured or node.op.traits & Trait.VIEW:
        return False
    if node.op.differentiable and all(is_inexact(aval.dtype) for aval in node.results):
        return False
    operands = [graph.nodes[i].type for i in node.inputs]
    return all(isinstance(a, Aval) for a in operands) and any(is_inexact(a.dtype) for a in operands)
