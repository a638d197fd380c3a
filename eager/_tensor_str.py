"""PyTorch's name of the module that prints tensors: `torch._tensor_str`."""

from eager.surface.printing import PrintOptions, get_printoptions, printoptions, set_printoptions

__all__ = ["PrintOptions", "get_printoptions", "printoptions", "set_printoptions"]
