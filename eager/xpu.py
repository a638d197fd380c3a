"""`torch.xpu` of a build without it: queries answer, everything that needs a device raises AssertionError."""

from __future__ import annotations

from typing import Any, NoReturn

from eager.core.devices import MISSING


def is_available() -> bool:
    """False: there is no XPU."""
    return False


def device_count() -> int:
    """0: there is no XPU."""
    return 0


def manual_seed(seed: int) -> None:
    """Does nothing: there is no device generator to seed."""


manual_seed_all = manual_seed


def empty_cache() -> None:
    """Does nothing: there is no device memory."""


def _needs_xpu(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises AssertionError: there is no XPU."""
    raise MISSING["xpu"]


current_device = synchronize = set_device = get_device_name = get_device_properties = _needs_xpu
