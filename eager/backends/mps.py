"""`torch.backends.mps` without Metal."""


def is_available() -> bool:
    """False: there is no Metal device."""
    return False


def is_built() -> bool:
    """False: there is no Metal device."""
    return False


def is_macos_or_newer(major: int, minor: int) -> bool:
    """False: there is no Metal device."""
    return False
