"""`torch.backends.openmp`: not used here."""


def is_available() -> bool:
    """False: NumPy computes."""
    return False
