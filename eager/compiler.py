"""`torch.compile` and `torch.compiler`, by `graphc.compile`: one XLA program for each signature of the arguments."""

from eager.compiling.compiled import *  # noqa: F403
from eager.compiling.compiled import __all__ as __all__
