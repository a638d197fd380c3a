"""The handle that removes a hook. As `torch.utils.hooks`."""

from eager.nn.hooks import RemovableHandle

__all__ = ["RemovableHandle"]
