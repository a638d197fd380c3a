"""Results that are not there yet. As `torch.futures`."""

from eager.processes.futures import Future, collect_all, wait_all

__all__ = ["Future", "collect_all", "wait_all"]
