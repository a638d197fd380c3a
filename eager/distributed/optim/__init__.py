"""Optimizers over several processes. As `torch.distributed.optim`."""

from eager.distributed.optim.zero_redundancy_optimizer import ZeroRedundancyOptimizer

__all__ = ["ZeroRedundancyOptimizer"]
