"""Graphs on NumPy, node by node, with what the harness needs besides: values held fixed, and simulated rounding."""

from __future__ import annotations

import operator
from collections.abc import Container, Mapping, Sequence
from functools import partial
from typing import Any, final

import numpy as np

from compare.judging.exactness import exact_elements
from compare.judging.tolerance import divides_by_rounding, operand_terms, operand_ulps, result_terms, result_ulps
from graphc.ir import Graph, Node
from graphc.ir.structure import bodies
from graphc.ops import Trait
from graphc.ops.control import BodyProxy
from graphc.ops.dtypes import finfo, is_floating, is_inexact, real_of
from graphc.ops.interpret import run_kernel

_NANS = np.array([0x7FF8 << 48, 0xFFF8 << 48, (1 << 63) - 1, (1 << 64) - 1], np.uint64).view(np.float64)


@final
class Rounding:
    """Random relative errors of the size that a backend may make at each node of `graph` (Monte-Carlo arithmetic).

    The graph that is run is in float64; `graph` has the dtypes, and so the rounding errors, of the program itself.
    `flushed` is the share of denormal numbers that become zero; and of the products, and sums of them, that an inf
    or nan reaches only through padding and other zeros that ops lay around parts, the share that become nan. If it
    is not 0, the bits of nan are random, too; if it is 1, there are no other errors, which would turn a 0 that is
    divided by into something else. `acted` is not empty once any of this has changed a number. `together` is not 0
    if all elements of an array have the same error, and its sign is that of the errors. Exact results, of operands
    without errors, have none: small integers stay what they are.
    Quotients by what the errors have moved by half are nan, for every other seed, if `exact` has the values of the run
    without errors: they may be anything, also where the run without errors has nan.
    """

    def __init__(
        self,
        graph: Graph,
        seed: int,
        flushed: float = 0.0,
        together: float = 0.0,
        exact: Mapping[int, np.ndarray] | None = None,
    ):
        self._graph = graph
        self._rng = np.random.default_rng(seed)
        self._flushed = flushed
        self._together = together
        self._exact = None if seed % 2 else exact
        self.acted: list[str] = []
        self._sound = set(graph.inputs)  # nodes without errors
        self._laid: dict[int, np.ndarray] = {}  # by node: which elements are zeros that ops lay around parts
        self._given_sound = False  # whether the operands of the node that is run are such

    def inside(self, node: Node, k: int) -> Rounding:
        """The errors in graph number `k` of those that `node` runs, by the same stream of random numbers."""
        inner = Rounding(list(bodies(self._graph.nodes[node.id]))[k], 0, self._flushed, self._together)
        inner._rng, inner.acted = self._rng, self.acted
        inner._sound.clear()  # what a graph inside another is given has its errors
        return inner

    def operands(self, node: Node, operands: list[np.ndarray]) -> list[np.ndarray]:
        ulps = operand_ulps(node, self._graph)
        size = ulps * max(self._unit(aval.dtype) for aval in self._graph.nodes[node.id].results)
        found = [self._shake(a, size, operand_terms(node, a)) for a in operands] if size else operands
        if self._flushed:
            dtypes = [self._graph.nodes[i].dtype for i in self._graph.nodes[node.id].inputs]
            found = [self._flush(a, dtype) for a, dtype in zip(found, dtypes, strict=True)]
            found = [self._turn(a) for a in found] if node.op.traits & Trait.BITS else found
        self._given_sound = self._sound.issuperset(node.inputs) and all(map(operator.is_, found, operands))
        return found

    def result(self, node: Node, value: Any, operands: list[np.ndarray]) -> Any:
        """What a backend may make of `value`, an array or a tuple of several."""
        dtypes = [aval.dtype for aval in self._graph.nodes[node.id].results]
        if not node.op.several:
            return self._result(node, dtypes[0], value, operands)
        return tuple(self._result(node, dtype, v, operands) for dtype, v in zip(dtypes, value, strict=True))

    def _result(self, node: Node, dtype: np.dtype, value: np.ndarray, operands: list[np.ndarray]) -> np.ndarray:
        size = result_ulps(node, self._graph) * self._unit(dtype)
        terms = result_terms(node, value, operands) if size else 0.0
        before, value = value, self._shake(value, size, terms)
        if self._given_sound and value is not before:
            exact = exact_elements(node.op, node.params, before, operands, dtype)
            value = before if exact.all() else laid_out_as(np.where(exact, before, value), before)
        if self._exact is not None and size:
            lost = divides_by_rounding(node, operands, [self._exact[i] for i in node.inputs])
            value = value if lost is None else laid_out_as(np.where(lost, np.nan, value), value)
        value = self._flushed_result(node, self._underflow(value, dtype), operands, dtype)
        if self._given_sound and value is before:
            self._sound.add(node.id)
        return value

    def _flushed_result(self, node: Node, value: np.ndarray, operands: list[np.ndarray], dtype: np.dtype) -> np.ndarray:
        if not self._flushed:
            return value
        pads = node.op.traits & Trait.PADS or (node.op.bilinear and not self._laid.keys().isdisjoint(node.inputs))
        if pads and not all(np.isfinite(a).all() for a in operands):
            value = self._padded(node, value, operands)
        self._lay(node, value, operands)
        if node.op.traits & Trait.CONTRACTS and is_floating(value.dtype) and (value == 0).any():
            value = self._begun(node, value, operands)
        return self._flush(value, dtype)

    def _begun(self, node: Node, value: np.ndarray, operands: list[np.ndarray]) -> np.ndarray:
        """A sum of products that are all -0 is that where it begins with the first, and +0 where it begins with 0."""
        sizes, signs, ones = ([f(a) for a in operands] for f in (np.abs, _sign, np.ones_like))
        nothing, balance, count = (run_kernel(node.op, given, node.params) for given in (sizes, signs, ones))
        either = (nothing == 0) & (balance == -count) & (count > 0)
        chosen = np.where(self._rng.random(value.shape) < 0.5, -0.0, 0.0).astype(value.dtype)
        return self._acting(np.where(either, chosen, value), value) if either.any() else value

    def _padded(self, node: Node, value: np.ndarray, operands: list[np.ndarray]) -> np.ndarray:
        """A sum of products, some of them with padding: what is not finite may or may not be multiplied with that."""
        odd = [~np.isfinite(a) for a in operands]
        ones = [self._elements(id, a) for id, a in zip(node.inputs, operands, strict=True)]
        zeroed = run_kernel(node.op, [np.where(o, 0, a) for o, a in zip(odd, operands, strict=True)], node.params)
        reached = np.zeros(value.shape, bool)  # by what is not finite, multiplied with an element
        for k, o in enumerate(odd):
            counts = [o.astype(float) if i == k else one for i, one in enumerate(ones)]
            reached |= run_kernel(node.op, counts, node.params) > 0.5
        share = 0.0 if self._together else self._flushed  # many places alike are rare where each is drawn by itself
        spread = np.where(self._rng.random(value.shape) < share, np.nan, zeroed)
        return value if reached.all() else self._acting(np.where(reached, value, spread), value)

    def _elements(self, id: int, value: np.ndarray) -> np.ndarray:
        """1 where the value of a node is an element of something, 0 where it is a zero laid around that."""
        return np.ones(value.shape) if id not in self._laid else np.where(self._laid[id], 0.0, 1.0)

    def _lay(self, node: Node, value: np.ndarray, operands: list[np.ndarray]) -> None:
        """Note which elements of the value of a node are zeros laid around a part."""
        known = not self._laid.keys().isdisjoint(node.inputs)
        if not operands or not (known or node.op.moves) or not is_inexact(value.dtype) or (value != 0).all():
            return
        weights = [self._elements(id, a) for id, a in zip(node.inputs, operands, strict=True)]
        if node.op.pointwise and not node.op.bilinear:
            mask = np.logical_and.reduce(np.broadcast_arrays(*[w == 0 for w in weights]))
        elif node.op.bilinear or (node.op.traits & Trait.LINEAR and len(operands) == 1):
            mask = run_kernel(node.op, weights, node.params) == 0
        else:
            return
        if (mask := mask & (value == 0)).any():
            self._laid[node.id] = mask

    def _acting(self, changed: np.ndarray, value: np.ndarray) -> np.ndarray:
        self.acted.append("flushed")
        return laid_out_as(changed, value)

    def _unit(self, dtype: np.dtype) -> float:
        return float(finfo(dtype).eps) if is_inexact(dtype) and self._flushed < 1 else 0.0

    def _shake(self, value: np.ndarray, size: float, terms: np.ndarray | float) -> np.ndarray:
        """`value` with errors of up to `size`, relative to itself and, besides, to `terms`."""
        if not is_inexact(value.dtype) or not size:
            return value
        moved = np.asarray(value * (1.0 + size * self._error(value)))
        return laid_out_as(moved + size * terms * self._error(value) if np.any(terms) else moved, value)

    def _error(self, value: np.ndarray) -> np.ndarray | complex:
        """A number for each element, of magnitude 1 at most."""
        shape = () if self._together else value.shape
        size = self._rng.uniform(-1.0, 1.0, shape) * (self._together or 1.0)
        return size * np.exp(1j * self._rng.uniform(0.0, np.pi, shape)) if value.dtype.kind == "c" else size

    def _turn(self, value: np.ndarray) -> np.ndarray:
        """Give nan other bits: backends do."""
        if not is_floating(value.dtype):
            return value
        odd = np.isnan(value)
        return self._acting(np.where(odd, self._rng.choice(_NANS, value.shape), value), value) if odd.any() else value

    def _underflow(self, value: np.ndarray, dtype: np.dtype) -> np.ndarray:
        """Denormal numbers have an absolute error."""
        if not is_inexact(dtype):
            return value
        unit = finfo(dtype)
        small = (np.abs(value) < float(unit.tiny)) & (value != 0)
        if not small.any():
            return value
        error = float(unit.smallest_subnormal) * self._rng.uniform(-1.0, 1.0, value.shape)
        return laid_out_as(np.where(small, value + error, value), value)

    def _flush(self, value: np.ndarray, dtype: np.dtype) -> np.ndarray:
        if dtype.kind == "c":
            real, parts = real_of(dtype), (np.real(value), np.imag(value))
            re, im = (self._flush(part, real) for part in parts)
            return value if re is parts[0] and im is parts[1] else laid_out_as(re + 1j * im, value)
        if not is_floating(dtype):
            return value
        small = (np.abs(value) < float(finfo(dtype).tiny)) & (value != 0)
        chosen = small & (self._rng.random(value.shape) < self._flushed)
        return self._acting(np.where(chosen, np.copysign(0.0, value), value), value) if chosen.any() else value


def _sign(array: np.ndarray) -> np.ndarray:
    """1 or -1 for each element: -1 for -0."""
    return np.copysign(np.ones_like(array), array)


def laid_out_as(array: np.ndarray, like: np.ndarray) -> np.ndarray:
    """`array` in memory as `like` is: kernels may take another way through other strides.

    Where elements of `like` share memory, which `array` cannot follow, its axes are in the same order at least.

    >>> laid_out_as(np.zeros((2, 3)), np.zeros((6, 4))[::-3, 1:]).strides
    (-96, 8)
    """
    array = np.asarray(array)
    if array.strides == like.strides or array.shape != like.shape or array.dtype != like.dtype:
        return array
    found = np.empty_like(like, subok=False)
    spans = sorted((abs(s), (n - 1) * abs(s)) for n, s in zip(like.shape, like.strides, strict=True) if n > 1)
    extent = like.itemsize
    for stride, span in spans:
        if stride < extent:
            break
        extent += span
    else:
        start = sum((n - 1) * -s for n, s in zip(like.shape, like.strides, strict=True) if s < 0)
        memory = np.empty(extent, np.uint8)
        found = np.ndarray(like.shape, like.dtype, memory, start, like.strides)
    np.copyto(found, array)
    return found


def evaluate(
    graph: Graph,
    arrays: Sequence[np.ndarray],
    *,
    held: Mapping[int, np.ndarray] | None = None,
    rounding: Rounding | None = None,
    checked: bool = True,
    choices: Mapping[int, np.ndarray] | None = None,
    only: Container[int] | None = None,
) -> dict[int, np.ndarray]:
    """The value of every node, or of those in `only`, by the NumPy kernels.

    held      values of nodes that are not computed but taken from here
    rounding  simulated errors, added at each node
    choices   of nodes with several right results: what the one taken is to be like
    checked   False: no run-time check is asked, and kernels that fail give nan: other numbers than the program's, on
              the path that Python took with those
    Raises the error of a run-time check that fails, with the user's line.
    """
    values = dict(zip(graph.inputs, arrays, strict=True))
    for node in graph.operations():
        if only is not None and node.id not in only:
            continue
        if held is not None and node.id in held:
            values[node.id] = held[node.id]
            continue
        operands = [values[i] for i in node.inputs]
        check = node.check
        if checked and check is not None and not check.ok(np, *operands, **node.params):
            raise check.failure(node.params, node.where or "unknown line", operands)
        if node.op.structured:
            values[node.id] = run_kernel(
                node.op, operands, node.params if rounding is None else _inside(node, rounding)
            )
            continue
        if rounding is not None:
            operands = rounding.operands(node, operands)
        value = value_of(node, operands, checked and rounding is None)
        if choices is not None and node.id in choices and node.op.nearest is not None:
            value = node.op.nearest(value, choices[node.id])
        values[node.id] = value if rounding is None else rounding.result(node, value, operands)
    return values


def value_of(node: Node, operands: Sequence[np.ndarray], checked: bool) -> Any:
    """The result of the node; if not `checked`, nan where its kernel fails: on a matrix that is not finite, say."""
    try:
        return run_kernel(node.op, operands, node.params)
    except RuntimeError:
        if checked:
            raise
        nothing = [np.full(a.shape, np.nan if is_inexact(a.dtype) else 0, a.dtype) for a in node.results]
        return tuple(nothing) if node.op.several else nothing[0]


def _shaken(graph: Graph, rounding: Rounding, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    """The results of a graph that a node runs, with simulated errors."""
    return tuple(outputs_of(graph, evaluate(graph, arrays, rounding=rounding, checked=False)))


def _inside(node: Node, rounding: Rounding) -> dict[str, Any]:
    """The parameters of `node`, with simulated errors in the graphs that it runs."""
    shaken = {
        id(body): BodyProxy(body, partial(_shaken, body, rounding.inside(node, k)))
        for k, body in enumerate(bodies(node))
    }

    def replaced(value: Any) -> Any:
        return tuple(map(replaced, value)) if isinstance(value, tuple) else shaken.get(id(value), value)

    return {name: replaced(value) for name, value in node.params.items()}


def outputs_of(graph: Graph, values: Mapping[int, np.ndarray]) -> list[np.ndarray]:
    """The values of the graph's outputs, in order."""
    return [values[id] for id in graph.outputs]
