"""`torch.profiler`: which ops, functions, backward nodes and compiled programs run, and how long they take.

While nothing is recorded, nothing is asked for it: a profile swaps timed functions in. Of a compiled program it has the
time of its guards, of the executable (whose results it awaits) and of what is left: effects and results.
"""

from eager.autograd.scheduled_profiler import *  # noqa: F403
from eager.autograd.scheduled_profiler import __all__ as __all__

__path__: list[str] = []  # in PyTorch it has modules: `core/elsewhere.txt`
