"""Tensors as instances of a subclass of Tensor. What ops give is a Tensor: there is no `__torch_function__` here."""

from __future__ import annotations

from typing import Any

from eager.core.dtypes import type_name
from eager.core.tensor import Tensor
from eager.functional.shapes import view_as

NO_TENSOR = (
    "Creating a Tensor subclass from a class that does not inherit from Tensor is not possible. Make sure your class "
    "inherits from Tensor."
)


def as_subclass(self: Tensor, cls: type[Tensor]) -> Tensor:
    """A view of `self` that is a `cls`, a subclass of Tensor; gradients flow. As `torch.Tensor.as_subclass`.

    No method of `cls` is called. TypeError for what is no subclass of Tensor.
    """
    if not isinstance(cls, type):
        raise TypeError(f"cls must be a type (got {type_name(cls)})")
    if not issubclass(cls, Tensor):
        raise TypeError(NO_TENSOR)
    view: Any = view_as(self, self)
    if cls is Tensor:
        return view
    made = object.__new__(cls)
    for slot in ("_d", "_n", "_v"):  # another layout than Tensor's: an assignment to __class__ is refused
        if hasattr(view, slot):
            setattr(made, slot, getattr(view, slot))
    return made
