"""`torch.utils.dlpack`: tensors of other libraries, without a copy."""

from eager.functional.buffers import from_dlpack, to_dlpack

__all__ = ["from_dlpack", "to_dlpack"]
