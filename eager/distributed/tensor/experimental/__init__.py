"""What is experimental in PyTorch. As `torch.distributed.tensor.experimental`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from eager.core.placed import implicit_replication as _allowed
from eager.distributed.tensor.experimental._attention import context_parallel
from eager.distributed.tensor.experimental.local_map import local_map

__all__ = ["context_parallel", "implicit_replication", "local_map"]


@contextmanager
def implicit_replication() -> Iterator[None]:
    """A context in which plain tensors that meet DTensors count as replicated."""
    token = _allowed.set(True)
    try:
        yield
    finally:
        _allowed.reset(token)
