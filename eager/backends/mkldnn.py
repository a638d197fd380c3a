"""`torch.backends.mkldnn`: not used here; its switches change nothing."""

from eager.backends.switches import flags_of

enabled, deterministic, allow_tf32 = True, False, True
flags = flags_of(globals())


def is_available() -> bool:
    """False: NumPy computes."""
    return False
