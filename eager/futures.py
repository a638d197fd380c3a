"""Results that come later. As `torch.futures`."""

from eager.core.futures import Future, collect_all, wait_all
from eager.core.missing import explain

__all__ = ["Future", "collect_all", "wait_all"]
explain(__name__)
