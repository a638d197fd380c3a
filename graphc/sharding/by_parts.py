"""A graph computed as devices would compute it, one after the other on NumPy: each node from parts of its operands.

It holds what is declared of ops against their kernels: the parts of a result, put together, are the result, and terms
of a sum add up to it. No JAX and no devices are needed.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphc.ir import Node
from graphc.ops.interpret import run_kernel
from graphc.sharding.correspondence import Correspondence, Label, coefficient, correspondence
from graphc.sharding.propagation import Propagated
from graphc.sharding.sharding import Axes

_SHAPES = ("shape", "stop")  # parameters that say how large a result, or what is read, is


def evaluate(found: Propagated, arrays: Sequence[Any]) -> dict[int, Any]:
    """The value of every node. Nodes that are computed whole, and control flow, are run as they are."""
    graph = found.graph
    values: dict[int, Any] = dict(zip(graph.inputs, arrays, strict=True))
    for node in graph.operations():
        values[node.id] = of_node(found, node, [values[i] for i in node.inputs])
    return values


def of_node(found: Propagated, node: Node, operands: Sequence[Any]) -> Any:
    """The value of one node, made of what each device makes of its parts of the operands."""
    c = correspondence(node, found.graph.nodes) if node.id in found.computed else None
    split = {} if c is None else _splits(found.computed[node.id], c)
    if c is None or not split or node.op.impure or node.op.several:
        return run_kernel(node.op, operands, node.params)
    sizes = {w: found.mesh.count(axes) for w, axes in split.items()}
    whole = np.zeros(node.shape, node.dtype)
    factor = coefficient(node.op, [np.shape(a) for a in operands], node.params)
    for numbers in itertools.product(*[range(n) for n in sizes.values()]):
        at = dict(zip(sizes, numbers, strict=True))
        parts = [_part(a, labels, at, sizes) for a, labels in zip(operands, c.operands, strict=False)]
        parts += operands[len(parts) :]
        if any(at[w] for w in sizes if w in c.reduced):
            parts = [np.zeros_like(p) if k in c.added else p for k, p in enumerate(parts)]
        local = local_params(node, c, sizes)
        made = run_kernel(node.op, parts, local)
        # a mean of parts divides by the number of their elements, not by that of all
        if (ratio := factor / coefficient(node.op, [np.shape(p) for p in parts], local)) != 1:
            made = made * node.dtype.type(float(ratio))
        box = _box(node.shape, c.results[0], at, sizes)
        if any(w in c.reduced for w in sizes):
            whole[box] += np.asarray(made, node.dtype)
        else:
            whole[box] = made
    return whole


def _splits(chosen: Mapping[Label, Axes], c: Correspondence) -> dict[Label, Axes]:
    """The labels that are split, and whose parts are results or add up to them."""
    return {w: axes for w, axes in chosen.items() if axes and c.reduced.get(w, "sum") == "sum" and w[0] != "@"}


def _part(array: Any, labels: Sequence[Label | None], at: Mapping[Label, int], sizes: Mapping[Label, int]) -> Any:
    return array[_box(array.shape, labels, at, sizes)] if np.ndim(array) else array


def _box(
    shape: Sequence[int], labels: Sequence[Label | None], at: Mapping[Label, int], sizes: Mapping[Label, int]
) -> tuple[slice, ...]:  # fmt: skip
    return tuple(
        slice(at[w] * (n // sizes[w]), (at[w] + 1) * (n // sizes[w])) if w in at else slice(0, n)
        for n, w in zip(shape, labels, strict=True)
    )


def local_params(node: Node, c: Correspondence, sizes: Mapping[Label, int]) -> Mapping[str, Any]:
    """The parameters of the same operation on parts."""
    changed: dict[str, Any] = {}
    for name in _SHAPES:
        shape = node.params.get(name)
        if isinstance(shape, tuple) and len(shape) == len(node.shape):
            changed[name] = tuple(n // sizes.get(w, 1) for n, w in zip(shape, c.results[0], strict=True))
    return {**node.params, **changed}
