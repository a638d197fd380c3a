"""The yardstick of a graph: its float64 run, and the spread of runs with simulated rounding."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import final

import numpy as np

from compare.judging.float64 import widen, widen_array
from compare.judging.numeric import Rounding, evaluate, value_of
from compare.judging.tolerance import RUNS, TOGETHER
from graphc.ir import Graph, Node
from graphc.ir.structure import ITEM, ancestors
from graphc.ops.dtypes import finfo, is_floating, is_inexact

NEARER = 2.0**-10  # power that takes what float64 can hold to numbers between 0.4 and 2


@final
class Yardstick:
    """For each node of `graph`, run on `arrays`: `exact[id]`, and `noise[id]` (see `tolerance.judge`).

    Where float64 would decide otherwise than the graph's own dtypes (a comparison, a number that is made an integer),
    `exact` goes the way that those take; simulated runs decide for themselves.
    Empty if the graph cannot be run in float64: an op's rule contradicts its kernel.
    flushing  also simulate a backend that flushes denormal numbers to zero, always or not (see `Rounding`)
    choices   of nodes with several right results, what the one taken is to be like
    held      values of nodes that are taken as they are
    """

    def __init__(
        self, graph: Graph, arrays: Sequence[np.ndarray], seed: int, *, flushing: bool = False,
        choices: Mapping[int, np.ndarray] | None = None, held: Mapping[int, np.ndarray] | None = None,
    ):  # fmt: skip
        self._graph = graph
        self._wide = widen(graph)
        self._flushing = flushing
        self._choices, self._held = choices, held
        self._run = functools.partial(evaluate, self._wide, checked=False, choices=choices)
        self._arrays = [widen_array(a) for a in arrays]
        self._seed = seed
        self._acted = False
        self._spreads: dict[int, dict[int, np.ndarray]] = {}  # by the identity of a part: that of its nodes

    @cached_property
    def exact(self) -> dict[int, np.ndarray]:
        """The value of every node in float64."""
        try:
            return self._run(self._arrays, held={**self._decided(), **(self._held or {})})
        except Exception:  # whatever a wrong declaration raises: the judge then has only eager's values to go by
            return {}

    @cached_property
    def _unrounded(self) -> frozenset[int]:
        """The nodes that are made of integers and bools alone."""
        nodes = self._graph.nodes
        found = {id for id in self._graph.inputs if not is_inexact(nodes[id].dtype)}
        for node in self._graph.operations():
            whole = not node.op.several and not node.op.impure and not is_inexact(node.dtype)
            if whole and found.issuperset(node.inputs):
                found.add(node.id)
        return frozenset(found)

    def _decided(self) -> dict[int, np.ndarray]:
        """The integers and bools of a run in the graph's own dtypes."""
        nodes = self._graph.nodes
        whole = [n.id for n in self._graph.operations() if not (n.op.several or is_inexact(n.dtype))]
        if not whole:
            return {}
        arrays = [a.astype(nodes[i].dtype, copy=False) for i, a in zip(self._graph.inputs, self._arrays, strict=True)]
        held = {id: a.astype(nodes[id].dtype, copy=False) for id, a in (self._held or {}).items()}
        values = evaluate(self._graph, arrays, checked=False, choices=self._choices, held=held)
        return {id: values[id] for id in whole}

    @cached_property
    def noise(self) -> dict[int, np.ndarray]:
        """The spread of every node: root mean square deviation, or for integers and bools whether any run differs."""
        parts = {id(part): part for part in self._parts.values()} if self.exact else {}
        return {node: found for part in parts.values() for node, found in self._noise_in(part).items()}

    def noise_of(self, id: int) -> np.ndarray:
        """That of one node. Of a graph that is several programs, only the one with this node is run."""
        return self._noise_in(self._parts[id])[id]

    @cached_property
    def _parts(self) -> dict[int, set[int]]:
        """By node: the nodes that it hangs together with."""
        found: dict[int, set[int]] = {}
        for node in self._graph.nodes.values():
            largest = max((found[i] for i in node.inputs), key=len, default=set[int]())
            for part in (found[i] for i in node.inputs if found[i] is not largest):
                largest |= part
                found |= dict.fromkeys(part, largest)
            largest.add(node.id)
            found[node.id] = largest
        return found

    def out_of_range(self, id: int) -> bool:
        """Whether a number that node `id` is made of leaves the range of float64: what is infinite, or zero, of finite
        operands, and would not be if these were nearer to one, as the quotient by zero is."""
        for one in sorted(ancestors(self._wide.nodes, [id])):
            node = self._wide.nodes[one]
            whole = not node.op.several and node.op is not ITEM and not node.op.structured
            if not whole or not node.inputs or not is_floating(node.dtype):
                continue
            operands = [np.where(np.isfinite(a), a, 0) for a in (self.exact[i] for i in node.inputs)]
            near = [np.copysign(np.abs(a) ** NEARER, a) if is_floating(a.dtype) else a for a in operands]
            if _extremes(node, near) < _extremes(node, operands):
                return True
        return False

    def _noise_in(self, part: set[int]) -> dict[int, np.ndarray]:
        exact, total = self.exact, self._spreads.setdefault(id(part), {})
        for rounding in () if total else self._roundings():
            found = self._run(self._arrays, rounding=rounding, held=self._held, only=part)
            self._acted = self._acted or bool(rounding.acted)
            for node in part:
                value = found[node]
                if not isinstance(value, tuple):  # several results: each is a node of its own
                    total[node] = spread(value, exact[node], total.get(node, np.False_))
        return total

    @property
    def flushes(self) -> bool:
        """Whether the simulated flushing has changed any number on the way."""
        return bool(self.noise) and self._acted

    def _roundings(self) -> Iterator[Rounding]:
        for run in range(RUNS):
            # once all denormal numbers are flushed, then some
            flushed = (0.5 if run else 1.0) if self._flushing else 0.0
            yield Rounding(self._graph, self._seed * RUNS + run, flushed, exact=self.exact)
        for sign in TOGETHER:
            yield Rounding(self._graph, self._seed, 0.5 if self._flushing else 0.0, sign, self.exact)

    def of(self, id: int, eager: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(exact, noise) of node `id`, or what stands in for them: where none is rounded, float64 knows no better."""
        exact = None if id in self._unrounded else self.exact.get(id)
        if exact is not None and exact.shape == eager.shape:
            return exact, self.noise_of(id)
        return stand_in(eager)


def _extremes(node: Node, operands: Sequence[np.ndarray]) -> int:
    """How many elements of the result of `node` are infinite, or zero."""
    value = value_of(node, operands, checked=False)
    return int(np.count_nonzero(np.isinf(value) | (value == 0)))


def spread(value: np.ndarray, exact: np.ndarray, before: np.ndarray | np.bool) -> np.ndarray:
    """The spread of runs about `exact`, that of some runs and of one more, which gave `value`. See `Yardstick`."""
    if not is_inexact(value.dtype):
        return (value != exact) | before
    with np.errstate(all="ignore"):
        same = (value == exact) | (np.isnan(value) & np.isnan(exact))
        share = np.abs(np.where(same, 0, value - exact)) / RUNS**0.5
        return np.asarray(np.hypot(before, share))  # a square may underflow


def stand_in(eager: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(exact, noise) of a value that no float64 run is known of: `eager` itself, and one ULP."""
    if is_inexact(eager.dtype):
        return eager, np.where(np.isfinite(eager), np.abs(eager), 0) * float(finfo(eager.dtype).eps)
    return eager, np.zeros(eager.shape, bool)
