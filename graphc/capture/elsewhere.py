"""Arguments that are arrays of other libraries, such as JAX and PyTorch: functions get them as tensors."""

from __future__ import annotations

from typing import Any

from eager.core.tensor import Tensor
from eager.functional.buffers import from_elsewhere, is_of_elsewhere
from graphc.capture.tree import children, is_leaf, rebuilt


class OfElsewhere(Exception):
    """An array of another library is among the arguments of a call."""


def with_tensors(tree: Any, known: dict[int, Tensor] | None = None) -> Any:
    """A nest of arguments with tensors in place of arrays of other libraries, in their memory if it may be written.

    Containers without such arrays stay the very ones. BufferError for an array that requires grad.
    """
    known = {} if known is None else known  # an array that comes twice is one tensor
    if is_leaf(tree):
        return tree
    if is_of_elsewhere(tree):
        if id(tree) not in known:
            known[id(tree)] = from_elsewhere(tree)
        return known[id(tree)]
    inside = children(tree)
    if not inside:
        return tree
    values = [with_tensors(value, known) for _, value in inside]
    same = all(new is old for new, (_, old) in zip(values, inside, strict=True))
    return tree if same else rebuilt(tree, values)
