"""Parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from eager.core.tensor import Tensor
from eager.functional.joining import cat


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All elements of `parameters` in a row; gradients flow back. As `torch.nn.utils.parameters_to_vector`."""
    return cat([parameter.reshape(-1) for parameter in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Give each parameter its slice of `vec`, which they share memory with. As PyTorch's.

    TypeError if `vec` is no Tensor, RuntimeError if it is too short.
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__name__}")
    values: Any = vec
    at = 0
    for parameter in parameters:
        size = parameter.numel()
        parameter.data = values[at : at + size].view(parameter.shape).data
        at += size
