"""As `torch.signal`."""

from eager.signal import windows
from graphc.lazy import listing

__all__ = ["windows"]
__dir__ = listing(__name__)
