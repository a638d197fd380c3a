"""Tensors as instances of a subclass of Tensor. What ops make of them, its `__torch_function__` says."""

from __future__ import annotations

from typing import Any

from eager.core import tape
from eager.core.dtypes import type_name
from eager.core.overriding import DisableTorchFunctionSubclass
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
    with DisableTorchFunctionSubclass():
        view: Any = view_as(self, self)
        if isinstance(view._n, list):
            tape.rename(view._n, "AliasBackward0")
    return shown_as(view, cls)


def shown_as(tensor: Tensor, cls: type[Tensor]) -> Any:
    """A `cls` in the place of `tensor`, which nobody else holds."""
    made = object.__new__(cls)
    for slot in ("_d", "_n", "_v", "_g"):  # another layout than Tensor's: an assignment to __class__ is refused
        if hasattr(tensor, slot):
            setattr(made, slot, getattr(tensor, slot))
    return made
