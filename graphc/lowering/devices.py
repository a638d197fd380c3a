"""What JAX has to run programs on."""

from __future__ import annotations

import functools
from typing import Any

from graphc.lowering.loading import jax

_PLATFORMS = {"cuda": "gpu", "xpu": "xpu", "cpu": "cpu"}  # of JAX, by kinds of devices; "xla" is any


def device_named(name: str) -> Any:
    """The device that `name` is: "xla:1" or "cuda:0" as PyTorch counts, or the first one of a platform of JAX."""
    kind, colon, index = name.partition(":")
    if not colon:
        return jax.local_devices(backend=name)[0]
    return devices_of(kind)[int(index)]


@functools.cache
def devices_of(kind: str) -> tuple[Any, ...]:
    """The devices of this process that PyTorch calls `kind`."""
    if kind == "xla":
        return tuple(jax.local_devices())
    platform = _PLATFORMS.get(kind)
    try:
        return tuple(jax.local_devices(backend=platform)) if platform else ()
    except RuntimeError:  # JAX knows no such platform here
        return ()


def devices() -> list[str]:
    """The kinds of devices, the default one first."""
    return list(dict.fromkeys(f"{d.platform}: {d.device_kind}" for d in jax.devices()))


def count() -> int:
    """How many devices of the default kind there are."""
    return len(jax.devices())
