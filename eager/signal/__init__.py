"""As `torch.signal`."""

from eager.core.missing import explain
from eager.signal import windows

__all__ = ["windows"]
explain(__name__)
