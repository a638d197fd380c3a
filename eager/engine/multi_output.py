"""The pieces of a tensor (`split`, `unbind`): outputs of one function, whose gradients are put together in one go."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from eager.core import tape
from eager.core.layouts import dims_in_order
from eager.core.state import grad_enabled
from eager.core.tensor import Tensor
from eager.core.views import note_pieces
from eager.engine.language import E, by_rule, zeros
from eager.engine.node_names import named


def split_views(x: Tensor, axis: int, edges: tuple[int, ...], name: str) -> tuple[Tensor, ...]:
    """x cut at `edges` along `axis`, as views: the outputs of `name`. `x` is in NumPy's memory."""
    array = x._array()
    lead = (slice(None),) * axis
    pieces = [array[(*lead, slice(a, b))] for a, b in itertools.pairwise(edges)]
    return _outputs(x, pieces, name, _JOINED, [axis, edges, _order(array)])


def unbind_views(x: Tensor, axis: int) -> tuple[Tensor, ...]:
    """The slices of x along `axis`, without it, as views: the outputs of `unbind`. `x` is in NumPy's memory."""
    array = x._array()
    lead = (slice(None),) * axis
    count = array.shape[axis]
    return _outputs(x, [array[(*lead, i, ...)] for i in range(count)], "Unbind", _STACKED, [axis, _order(array)])


def _outputs(
    x: Tensor, arrays: list[np.ndarray], name: str, about: tape.Backward, geometry: list[Any]
) -> tuple[Tensor, ...]:
    results = tuple(map(Tensor._wrap, arrays))
    note_pieces(results, x, name)
    if x._n is not None and grad_enabled():
        owner = tape.new_node(about.renamed(f"{name}Backward0"), geometry, x._n)
        for result, node in zip(results, tape.output_nodes(owner, len(results)), strict=True):
            result._n = node
    return results


def _order(array: np.ndarray) -> list[int] | None:
    """The dims of a view as they lie in memory; None for those that lie in order."""
    return None if array.flags.c_contiguous else dims_in_order(array.shape, array.strides)


def _together(F: Any, pieces: Sequence[Any], axis: int, order: list[int] | None) -> Any:
    """The pieces, joined. Arrays are laid out as what was cut is: permutes and reshapes before it are then undone
    without a copy.
    """
    if F is E or order is None:
        return F.cat(*pieces, axis=axis)
    shape = list(pieces[0].shape)
    shape[axis] = sum(piece.shape[axis] for piece in pieces)
    result = np.empty([shape[i] for i in order], pieces[0].dtype).transpose(np.argsort(order))
    return np.concatenate(pieces, axis, result)


def _joined(F: Any, node: tape.Node, g: Any) -> list[Any]:
    axis, edges, order = node[tape.SAVED]
    pieces = tape.by_output(g)
    present = [d for d in pieces if d is not None]
    if len(present) < len(pieces):
        like = present[0]
        before, after = tuple(like.shape[:axis]), tuple(like.shape[axis + 1 :])
        pieces = [
            zeros(F, like, (*before, stop - start, *after)) if d is None else d
            for d, (start, stop) in zip(pieces, itertools.pairwise(edges), strict=True)
        ]
    return [_together(F, pieces, axis, order)]


def _stacked(F: Any, node: tape.Node, g: Any) -> list[Any]:
    axis, order = node[tape.SAVED]
    slices = tape.by_output(g)
    like = next(d for d in slices if d is not None)
    lifted = (*like.shape[:axis], 1, *like.shape[axis:])
    missing = zeros(F, like, lifted) if any(d is None for d in slices) else None
    pieces = [missing if d is None else F.reshape(d, shape=lifted) for d in slices]
    stacked = _together(F, pieces, axis, order)
    return [named(stacked, "StackBackward0") if F is E else stacked]


_JOINED = by_rule("SplitBackward0", _joined)
_STACKED = by_rule("UnbindBackward0", _stacked)
