"""How DistributedDataParallel sends gradients. As `torch.distributed.algorithms.ddp_comm_hooks`."""

from eager.distributed.algorithms.ddp_comm_hooks import default_hooks

__all__ = ["default_hooks"]
