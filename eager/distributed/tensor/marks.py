"""What has been said of the placement of tensors: beside them, where users see no attribute of it, nor do copies."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import NamedTuple

from eager.core.tensor import Tensor
from eager.distributed.device_mesh import DeviceMesh
from eager.distributed.tensor.placements import Placement


class Mark(NamedTuple):
    """How a tensor is held between calls.

    gathered  whether computation gathers it first (FSDP), in place of computing with its parts
    state     whether this is of the optimizer's state of the tensor, not of the tensor itself
    """

    mesh: DeviceMesh
    placements: tuple[Placement, ...]
    gathered: bool = False
    state: bool = False


_marks: dict[int, tuple[weakref.ref[Tensor], tuple[Mark, ...]]] = {}


def of(tensor: Tensor) -> tuple[Mark, ...]:
    """The marks of a tensor: of several, each is on dims of the mesh of its own."""
    found = _marks.get(id(tensor))
    return () if found is None or found[0]() is not tensor else found[1]


def add(tensor: Tensor, *marks: Mark) -> None:
    """Mark a tensor. What an earlier mark has said of the same mesh is forgotten."""
    number = id(tensor)
    known = [m for m in of(tensor) if not any(m.mesh == new.mesh and m.state is new.state for new in marks)]
    _marks[number] = weakref.ref(tensor, lambda _: _marks.pop(number, None)), (*known, *marks)


def marked(tensors: Sequence[Tensor]) -> bool:
    """Whether any of `tensors` is marked."""
    return any(of(t) for t in tensors)
