"""As `torch.distributed.nn.functional`."""

from eager.processes.recorded import *  # noqa: F403
from eager.processes.recorded import __all__ as __all__
