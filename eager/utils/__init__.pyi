# Written by `python -m tests.stubs`: change the sources or the tables there, and run it again.
"""What training programs use around tensors: `data` (loaders), `tensorboard` (a log that TensorBoard shows)."""

from eager.utils import benchmark as benchmark, checkpoint as checkpoint, data as data, dlpack as dlpack, flop_counter as flop_counter, hooks as hooks, model_zoo as model_zoo, tensorboard as tensorboard, weak as weak
from eager.utils.swapping import swap_tensors as swap_tensors
