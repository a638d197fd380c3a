"""The pieces of a tensor (`split`, `unbind`): outputs of one function, whose gradients are put together in one go."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from eager.core import tape
from eager.core.state import grad_enabled
from eager.core.tensor import Tensor
from eager.core.views import note_piece
from eager.engine.language import E, by_rule, zeros
from eager.engine.node_names import named


def split_views(x: Tensor, axis: int, edges: tuple[int, ...], name: str) -> tuple[Tensor, ...]:
    """x cut at `edges` along `axis`, as views: the outputs of `name`. `x` is in NumPy's memory."""
    array = x._array()
    lead = (slice(None),) * axis
    pieces = [array[(*lead, slice(a, b))] for a, b in itertools.pairwise(edges)]
    return _outputs(x, pieces, name, _JOINED, [axis, edges])


def unbind_views(x: Tensor, axis: int) -> tuple[Tensor, ...]:
    """The slices of x along `axis`, without it, as views: the outputs of `unbind`. `x` is in NumPy's memory."""
    array = x._array()
    lead = (slice(None),) * axis
    count = array.shape[axis]
    return _outputs(x, [array[(*lead, i, ...)] for i in range(count)], "Unbind", _STACKED, [axis, count])


def _outputs(
    x: Tensor, arrays: list[np.ndarray], name: str, about: tape.Backward, geometry: list[Any]
) -> tuple[Tensor, ...]:
    results = tuple(map(Tensor._wrap, arrays))
    for number, result in enumerate(results):
        note_piece(result, x, number, name)
    if x._n is not None and grad_enabled():
        owner = tape.new_node(about.renamed(f"{name}Backward0"), geometry, x._n)
        for result, node in zip(results, tape.output_nodes(owner, len(results)), strict=True):
            result._n = node
    return results


def _joined(F: Any, node: tape.Node, g: Any) -> list[Any]:
    axis, edges = node[tape.SAVED]
    arrived = tape.arrived(g)
    like = next(iter(arrived.values()))
    before, after = tuple(like.shape[:axis]), tuple(like.shape[axis + 1 :])
    pieces = [
        arrived[k] if k in arrived else zeros(F, like, (*before, stop - start, *after))
        for k, (start, stop) in enumerate(itertools.pairwise(edges))
    ]
    return [F.cat(*pieces, axis=axis)]


def _stacked(F: Any, node: tape.Node, g: Any) -> list[Any]:
    axis, count = node[tape.SAVED]
    arrived = tape.arrived(g)
    like = next(iter(arrived.values()))
    lifted = (*like.shape[:axis], 1, *like.shape[axis:])
    missing = zeros(F, like, lifted) if len(arrived) < count else None
    slices = [F.reshape(arrived[k], shape=lifted) if k in arrived else missing for k in range(count)]
    stacked = F.cat(*slices, axis=axis)
    return [named(stacked, "StackBackward0") if F is E else stacked]


_JOINED = by_rule("SplitBackward0", _joined)
_STACKED = by_rule("UnbindBackward0", _stacked)
