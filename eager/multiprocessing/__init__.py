"""Python's `multiprocessing`, and `spawn`. As `torch.multiprocessing`, but tensors that are sent are copied."""

from __future__ import annotations

import multiprocessing
from typing import Any

from eager.multiprocessing.spawning import (
    ProcessContext,
    ProcessException,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

__all__ = [
    "ProcessContext", "ProcessException", "ProcessExitedException", "ProcessRaisedException", "SpawnContext",
    "get_all_sharing_strategies", "get_sharing_strategy", "set_sharing_strategy", "spawn", "start_processes",
]  # fmt: skip

_STRATEGIES = {"file_descriptor", "file_system"}


def get_all_sharing_strategies() -> set[str]:
    """The names that PyTorch has for ways of sharing memory, of which nothing depends here."""
    return set(_STRATEGIES)


def get_sharing_strategy() -> str:
    """PyTorch's default."""
    return "file_descriptor"


def set_sharing_strategy(new_strategy: str) -> None:
    """Has no effect: what is sent to another process is copied. ValueError for a name that PyTorch does not have."""
    if new_strategy not in _STRATEGIES:
        raise ValueError(f"sharing strategy must be one of {sorted(_STRATEGIES)}, got {new_strategy!r}")


def __getattr__(name: str) -> Any:
    if name in multiprocessing.__all__:  # type: ignore[attr-defined]
        return getattr(multiprocessing, name)
    raise AttributeError(name)


def __dir__() -> list[str]:
    return sorted({*__all__, *multiprocessing.__all__})  # type: ignore[attr-defined]
