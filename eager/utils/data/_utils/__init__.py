"""The places where PyTorch's loader has its parts, for code that imports them from there."""

from eager.utils.data import worker
from eager.utils.data._utils import collate

__all__ = ["collate", "worker"]
