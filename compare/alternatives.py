"""Other results that are as right as eager's: by another machine arithmetic, or where a definition leaves a choice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, final

import numpy as np

from compare.isolate import lowered_result
from compare.numeric import evaluate
from compare.tolerance import Judgement, Verdict, judge
from compare.yardstick import Yardstick
from graphc.ir import Graph

FLUSHED = "XLA flushes denormal numbers to zero, and multiplies inf and nan with padding"
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
        if judge(found, expected, *self._flushing.of(id, expected), **options).verdict is not Verdict.BUG:
            return Judgement(Verdict.ENVIRONMENT, FLUSHED)
        if self._choices:
            value = self._chosen.get(id, expected)
            if value.shape == found.shape:
                judgement = judge(found, value, *self._choosing.of(id, value), **options)
                if judgement.verdict is not Verdict.BUG:
                    return Judgement(Verdict.CONVENTION, CHOSEN)
        return None

    @cached_property
    def _flushing(self) -> Yardstick:
        return Yardstick(self._graph, self._arrays, self._seed, flushing=True)

    @cached_property
    def _choices(self) -> Mapping[int, np.ndarray]:
        """XLA's results of the nodes that have several, on NumPy's operands."""
        nodes = [node for node in self._graph.operations() if node.op.nearest is not None]
        if not nodes:
            return {}
        values = evaluate(self._graph, self._arrays, checked=False)
        return {node.id: lowered_result(node, [values[i] for i in node.inputs]) for node in nodes}

    @cached_property
    def _chosen(self) -> Mapping[int, np.ndarray]:
        return evaluate(self._graph, self._arrays, checked=False, choices=self._choices)

    @cached_property
    def _choosing(self) -> Yardstick:
        return Yardstick(self._graph, self._arrays, self._seed, flushing=True, choices=self._choices)
