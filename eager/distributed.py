"""`torch.distributed`, as in a PyTorch that was built without it: programs ask `is_available()`, and do without."""

__all__ = ["is_available"]


def is_available() -> bool:
    """Whether processes can exchange tensors: no."""
    return False
