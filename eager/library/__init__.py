"""`torch.library`: operations of one's own. Those that need an op of the registry: `graphc.ops.op`."""

from eager.autograd.custom_ops import CustomOpDef, custom_op, register_autograd, register_fake, register_kernel
from eager.library.checks import opcheck
from eager.library.libraries import Library, define, impl, infer_schema

__all__ = [
    "CustomOpDef", "Library", "custom_op", "define", "impl", "impl_abstract", "infer_schema", "opcheck",
    "register_autograd", "register_fake", "register_kernel",
]  # fmt: skip
impl_abstract = register_fake  # the older spelling
