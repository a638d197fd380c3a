"""`torch.distributed`, as in a PyTorch that was built without it: programs ask `is_available()`, and do without."""

from eager.core.missing import explain

__all__ = ["is_available"]
explain(__name__)


def is_available() -> bool:
    """Whether processes can exchange tensors: no."""
    return False
