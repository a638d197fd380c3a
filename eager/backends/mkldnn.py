"""`torch.backends.mkldnn`: not used here."""


def is_available() -> bool:
    """False: NumPy computes."""
    return False
