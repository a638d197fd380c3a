"""`torch.cpu.amp`: deprecated names of what `torch.amp` has."""

from __future__ import annotations

from eager.amp.deprecated import autocast_of, grad_scaler_of
from eager.core.dtypes import bfloat16

__all__ = ["GradScaler", "autocast"]

autocast, GradScaler = autocast_of("cpu", bfloat16), grad_scaler_of("cpu")
