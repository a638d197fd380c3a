"""The seed and the state of the default generator. As `torch.random`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from eager.core.tensor import Tensor
from eager.rng.generator import Generator
from eager.rng.sampling import default_generator, seed_devices

__all__ = [
    "default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state",
]  # fmt: skip


def manual_seed(seed: Any) -> Generator:
    """Seed the default generators of the CPU and of all devices, and return that of the CPU. As `torch.manual_seed`."""
    seed_devices(int(seed))
    return default_generator.manual_seed(int(seed))


def seed() -> int:
    """Seed the default generator from the operating system; returns the seed."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed of the default generator."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The state of the default generator as a uint8 tensor."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Continue the default generator from `new_state`."""
    default_generator.set_state(new_state)


@contextmanager
def fork_rng(devices: Iterable[Any] | None = None, enabled: bool = True, **ignored: Any) -> Iterator[None]:
    """A context that restores the state of the default generator at its end. As `torch.random.fork_rng`."""
    if not enabled:
        yield
        return
    with default_generator.forked():
        yield
