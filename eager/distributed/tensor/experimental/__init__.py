"""What is experimental in PyTorch. As `torch.distributed.tensor.experimental`."""

from __future__ import annotations

from contextlib import AbstractContextManager

from eager.core.placed import implicit_replication as _allowed
from eager.distributed.tensor.experimental._attention import context_parallel
from eager.distributed.tensor.experimental.local_map import local_map
from graphc.scoped import variable

__all__ = ["context_parallel", "implicit_replication", "local_map"]


def implicit_replication() -> AbstractContextManager[None]:
    """A context in which plain tensors that meet DTensors count as replicated."""
    return variable(_allowed, True)
