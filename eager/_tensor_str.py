"""PyTorch's name of the module that prints tensors: `torch._tensor_str`."""

from __future__ import annotations

from eager.core.tensor import Tensor
from eager.surface.printing import PrintOptions, get_printoptions, printoptions, set_printoptions, shown_text
from eager.surface.printing import options as PRINT_OPTS

__all__ = ["PRINT_OPTS", "PrintOptions", "get_printoptions", "printoptions", "set_printoptions"]


def _tensor_str(self: Tensor, indent: int) -> str:
    """The numbers of a tensor as it prints them, in lines that are moved right by `indent`."""
    return shown_text(self._read(), indent)
