"""`torch.backends.cudnn` without cuDNN: its switches change nothing."""

from __future__ import annotations

from eager.backends.switches import flags_of

enabled = True
benchmark = False
benchmark_limit = 10
deterministic = False
allow_tf32 = True


def is_available() -> bool:
    """False: there is no cuDNN."""
    return False


def version() -> int | None:
    """None: there is no cuDNN."""
    return None


flags = flags_of(globals())
