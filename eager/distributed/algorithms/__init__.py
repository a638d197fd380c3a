"""What goes on beside the training: joining, and how gradients are sent. As `torch.distributed.algorithms`."""

from eager.core.missing import explain
from eager.processes.joining import Join, Joinable, JoinHook

__all__ = ["Join", "JoinHook", "Joinable"]
explain(__name__)
