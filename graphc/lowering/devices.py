"""What JAX has to run programs on."""

from __future__ import annotations

from graphc.lowering.loading import jax


def devices() -> list[str]:
    """The kinds of devices, the default one first."""
    return list(dict.fromkeys(f"{d.platform}: {d.device_kind}" for d in jax.devices()))


def count() -> int:
    """How many devices of the default kind there are."""
    return len(jax.devices())
