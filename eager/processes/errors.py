"""PyTorch's exceptions of `torch.distributed`."""

from __future__ import annotations


class DistError(RuntimeError):
    """Something went wrong between processes."""


class DistBackendError(DistError):
    """A collective failed, or a process did not take part in it in time."""


class DistNetworkError(DistError):
    """A process cannot be reached."""


class DistStoreError(DistError):
    """A store did not answer, or a key did not come in time."""


class QueueEmptyError(DistStoreError):
    """A queue of a store is empty."""


for _error in (DistError, DistBackendError, DistNetworkError, DistStoreError, QueueEmptyError):
    _error.__module__ = "torch.distributed"
