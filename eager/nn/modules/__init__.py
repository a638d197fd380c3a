"""The modules under the path they have in PyTorch: `torch.nn.modules`."""

from eager.nn.modules import module

__all__ = ["module"]
