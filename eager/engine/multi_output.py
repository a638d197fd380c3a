"""Functions with several outputs: one node for the function, and a light one for each output, which hands on gradients.

The slot of the function's node is a dict {number of the output: gradient}. For pieces of a tensor (`split`, `unbind`)
the gradient is put together in one go, not piece by piece into zeros.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from heapq import heappush
from typing import Any, NamedTuple

import numpy as np

from eager.core import tape
from eager.core.state import grad_enabled, sequence
from eager.core.tensor import Tensor
from eager.core.views import note_piece
from eager.engine.language import E
from eager.engine.node_names import named


class Part(NamedTuple):
    """The gradient of output `number` of a node."""

    number: int
    g: Any


@functools.cache
def part_backward(number: int) -> Callable[..., None]:
    """The backward function of the node of output `number`."""

    def backward(node: tape.Node, g: Any, heap: list[tape.Node]) -> None:
        owner = node[tape.PARENTS]
        slot = owner[tape.SLOT]
        if slot is None:
            owner[tape.SLOT] = {number: g}
            heappush(heap, owner)
        else:
            slot[number] = g

    tape.tensor_rules[backward] = lambda node, g: [(node[tape.PARENTS], Part(number, g))]
    tape.parts[backward] = number
    return backward


def output_nodes(owner: tape.Node, count: int) -> list[tape.Node]:
    """The nodes of the `count` outputs of the function whose node is `owner`."""
    return [[-next(sequence), None, part_backward(k), (), owner] for k in range(count)]


def split_views(x: Tensor, axis: int, edges: tuple[int, ...], name: str) -> tuple[Tensor, ...]:
    """x cut at `edges` along `axis`, as views: the outputs of `name`. `x` is in NumPy's memory."""
    array = x._array()
    lead = (slice(None),) * axis
    pieces = [array[(*lead, slice(a, b))] for a, b in itertools.pairwise(edges)]
    return _outputs(x, pieces, name, _joined, (axis, edges))


def unbind_views(x: Tensor, axis: int) -> tuple[Tensor, ...]:
    """The slices of x along `axis`, without it, as views: the outputs of `unbind`. `x` is in NumPy's memory."""
    array = x._array()
    lead = (slice(None),) * axis
    count = array.shape[axis]
    return _outputs(x, [array[(*lead, i, ...)] for i in range(count)], "Unbind", _stacked, (axis, count))


def _outputs(
    x: Tensor, arrays: list[np.ndarray], name: str, rule: Callable[..., Any], geometry: tuple[Any, ...]
) -> tuple[Tensor, ...]:
    results = tuple(map(Tensor._wrap, arrays))
    for number, result in enumerate(results):
        note_piece(result, x, number, name)
    if x._n is not None and grad_enabled():
        owner: tape.Node = [-next(sequence), None, rule(*geometry, f"{name}Backward0"), (), x._n]
        for result, node in zip(results, output_nodes(owner, len(results)), strict=True):
            result._n = node
    return results


@functools.lru_cache(maxsize=1024)
def _joined(axis: int, edges: tuple[int, ...], name: str) -> Callable[..., None]:
    """The backward function of a split at `edges`."""
    count = len(edges) - 1

    def whole(g: dict[int, Any]) -> tuple[int, ...]:
        shape = list(next(iter(g.values())).shape)
        shape[axis] = edges[-1]
        return tuple(shape)

    def backward(node: tape.Node, g: dict[int, np.ndarray], heap: list[tape.Node]) -> None:
        if len(g) == count:
            joined = np.concatenate([g[k] for k in range(count)], axis)
        else:
            joined = np.zeros(whole(g), next(iter(g.values())).dtype)
            for k, piece in g.items():
                joined[(slice(None),) * axis + (slice(edges[k], edges[k + 1]),)] = piece
        tape.give(node[tape.PARENTS], joined, heap)

    def tensor_shares(node: tape.Node, g: dict[int, Tensor]) -> list[tuple[tape.Node, Tensor]]:
        shape = list(whole(g))
        parts = []
        for k in range(count):
            shape[axis] = edges[k + 1] - edges[k]
            parts.append(g[k] if k in g else _zeros(shape, g))
        return [(node[tape.PARENTS], E.cat(*parts, axis=axis))]

    return _described(backward, tensor_shares, name)


@functools.lru_cache(maxsize=1024)
def _stacked(axis: int, count: int, name: str) -> Callable[..., None]:
    """The backward function of an unbind."""

    def backward(node: tape.Node, g: dict[int, np.ndarray], heap: list[tape.Node]) -> None:
        first = next(iter(g.values()))
        if len(g) == count:
            stacked = np.stack([g[k] for k in range(count)], axis)
        else:
            stacked = np.zeros((*first.shape[:axis], count, *first.shape[axis:]), first.dtype)
            for k, piece in g.items():
                stacked[(slice(None),) * axis + (k,)] = piece
        tape.give(node[tape.PARENTS], stacked, heap)

    def tensor_shares(node: tape.Node, g: dict[int, Tensor]) -> list[tuple[tape.Node, Tensor]]:
        shape = tuple(next(iter(g.values()))._d.shape)
        lifted = (*shape[:axis], 1, *shape[axis:])
        parts = [E.reshape(g[k] if k in g else _zeros(shape, g), shape=lifted) for k in range(count)]
        return [(node[tape.PARENTS], named(E.cat(*parts, axis=axis), "StackBackward0"))]

    return _described(backward, tensor_shares, name)


def _zeros(shape: Any, like: dict[int, Tensor]) -> Tensor:
    return Tensor._wrap(np.zeros(shape, next(iter(like.values()))._dtype()))


def _described(backward: Any, tensor_shares: Any, name: str) -> Callable[..., None]:
    """`backward` with what the tape's tables would say of it, where it is found when the function is dropped."""
    backward.name, backward.tensor_shares = name, tensor_shares
    return backward
