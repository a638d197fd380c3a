"""`torch.amp`: automatic mixed precision. Products in 16 bits, sums that need more in float32."""

from __future__ import annotations

from eager.amp import autocast_mode, grad_scaler
from eager.amp.autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from eager.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "autocast_mode", "custom_bwd", "custom_fwd", "grad_scaler",
           "is_autocast_available"]  # fmt: skip
