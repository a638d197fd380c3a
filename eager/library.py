"""`torch.library`: operations of one's own. Those that need an op of the registry: `graphc.ops.op`."""

from eager.autograd.custom_ops import CustomOpDef, custom_op, register_autograd, register_fake, register_kernel
from eager.core.missing import explain

__all__ = ["CustomOpDef", "custom_op", "register_autograd", "register_fake", "register_kernel"]
explain(__name__)
