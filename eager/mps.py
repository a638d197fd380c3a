"""`torch.mps` of a machine without Metal: queries answer, and what would only tidy up does nothing."""

from __future__ import annotations

from typing import Any, NoReturn

from eager.core.devices import MISSING


def is_available() -> bool:
    """False: there is no Metal device."""
    return False


def device_count() -> int:
    """0: there is no Metal device."""
    return 0


def manual_seed(seed: int) -> None:
    """Does nothing: there is no device generator to seed."""


def empty_cache() -> None:
    """Does nothing: there is no device memory."""


def current_allocated_memory() -> int:
    """0: there is no device memory."""
    return 0


driver_allocated_memory = recommended_max_memory = current_allocated_memory


def _needs_metal(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises RuntimeError: there is no Metal device."""
    raise MISSING["mps"]


synchronize = get_rng_state = set_rng_state = _needs_metal
