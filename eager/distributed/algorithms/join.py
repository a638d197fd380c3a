"""Processes with different numbers of inputs. As `torch.distributed.algorithms.join`."""

from eager.processes.joining import Join, Joinable, JoinHook

__all__ = ["Join", "JoinHook", "Joinable"]
