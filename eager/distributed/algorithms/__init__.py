"""What goes on beside the training: joining, and how gradients are sent. As `torch.distributed.algorithms`."""

from eager.processes.joining import Join, Joinable, JoinHook

__all__ = ["Join", "JoinHook", "Joinable"]
