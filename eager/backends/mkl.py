"""`torch.backends.mkl`: not used here."""


def is_available() -> bool:
    """False: NumPy computes."""
    return False
