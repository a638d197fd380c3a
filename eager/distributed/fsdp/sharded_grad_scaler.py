"""A scaler of gradients that lie in parts. As `torch.distributed.fsdp.sharded_grad_scaler`."""

from __future__ import annotations

from typing import Any

from eager.amp.grad_scaler import GradScaler

__all__ = ["ShardedGradScaler"]


class ShardedGradScaler(GradScaler):
    """GradScaler: what it asks of a gradient in parts is asked of all parts. `process_group` changes nothing."""

    def __init__(
        self, device: str = "cuda", init_scale: float = 2.0**16, backoff_factor: float = 0.5,
        growth_factor: float = 2.0, growth_interval: int = 2000, enabled: bool = True, process_group: Any = None,
    ):  # fmt: skip
        super().__init__(device, init_scale, growth_factor, backoff_factor, growth_interval, enabled)
