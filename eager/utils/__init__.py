"""What training programs use around tensors: `data` (loaders), `tensorboard` (a log that TensorBoard shows)."""

from eager.utils import data
from graphc.lazy import lazy

__all__ = ["data"]

MODULES = ("_pytree", "benchmark", "checkpoint", "dlpack", "flop_counter", "hooks", "model_zoo", "tensorboard", "weak")
__getattr__, __dir__ = lazy(__name__, {"swap_tensors": "eager.utils.swapping"}, MODULES)
