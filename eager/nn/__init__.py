"""Neural networks: modules, layers, losses, initializers. As `torch.nn`."""

from eager.core.parameter import Parameter
from eager.nn import attention, functional, init, modules, parallel, parameter, utils
from eager.nn.module import Module
from eager.nn.modules import *  # noqa: F403
from eager.nn.parallel import DataParallel
from eager.nn.parameter import Buffer, UninitializedBuffer, UninitializedParameter

__all__ = [
    "Buffer", "DataParallel", "Module", "Parameter", "UninitializedBuffer", "UninitializedParameter", "attention",
    "functional", "init", "modules", "parallel", "parameter", "utils",
]  # fmt: skip
__all__ += modules.__all__
