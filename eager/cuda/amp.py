"""`torch.cuda.amp`: deprecated names, and disabled, as there is no CUDA."""

from __future__ import annotations

from eager.amp.autocast_mode import custom_bwd as _custom_bwd
from eager.amp.autocast_mode import custom_fwd as _custom_fwd
from eager.amp.deprecated import autocast_of, custom_of, grad_scaler_of
from eager.core.dtypes import float16

__all__ = ["GradScaler", "amp_definitely_not_available", "autocast", "custom_bwd", "custom_fwd"]

autocast, GradScaler = autocast_of("cuda", float16), grad_scaler_of("cuda")
custom_fwd, custom_bwd = custom_of("custom_fwd", _custom_fwd), custom_of("custom_bwd", _custom_bwd)


def amp_definitely_not_available() -> bool:
    """True: there is no CUDA."""
    return True
