"""The errors of checkpoints. As `torch.distributed.checkpoint.api`."""

from __future__ import annotations

from collections.abc import Mapping

from graphc.errors import FileError


class CheckpointException(RuntimeError):
    """A checkpoint could not be saved or loaded. `failures` has the text of the error of each rank that failed.

    Unlike PyTorch's it is an Exception: `except Exception` catches it.
    """

    def __init__(self, msg: str, failures: Mapping[int, str] | None = None):
        self.failures = dict(failures or {})
        ranks = "".join(f"\n(rank {rank}) {text}" for rank, text in self.failures.items())
        super().__init__(msg + ranks)


class DamagedCheckpointError(FileError, CheckpointException):
    """A file of a checkpoint is damaged, or missing. `file` says which, `place` which value in it."""

    wording = "{file} cannot be loaded: {problem}"
