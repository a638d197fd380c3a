"""How DistributedDataParallel sends gradients. As `torch.distributed.algorithms.ddp_comm_hooks`."""

from eager.core.missing import explain
from eager.distributed.algorithms.ddp_comm_hooks import default_hooks

__all__ = ["default_hooks"]
explain(__name__)
