"""Losses of logits that are split along their classes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from eager.distributed.tensor.experimental import implicit_replication

__all__ = ["loss_parallel"]


@contextmanager
def loss_parallel() -> Iterator[None]:
    """A context in which the targets of `cross_entropy` may be plain tensors. As PyTorch's.

    Nothing else changes: XLA computes each op of the loss where its operands lie, so that logits which are split along
    their classes are not gathered. All reductions and meshes are supported.
    """
    with implicit_replication():
        yield
