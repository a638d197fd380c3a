"""Where a DataLoader is in its data, to be saved in the middle of a pass and resumed there by another process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from eager.rng.generator import Generator
from eager.rng.state import RandomState

NOT_WHOLE = (
    "{samples:,} samples have been read by {old} replicas in batches of {size}; {new} replicas with batches of {now} "
    "cannot go on from there, which is no whole number of batches for each. Remedy: go on with settings that divide it"
)
_RANDOM = RandomState()


class Start(NamedTuple):
    """What random generators were at the start of a pass: those of the process, and those that the loader was given."""

    random: dict[str, Any]
    given: list[Any]


class Progress:
    """How far a pass is.

    start   what random generators were before it
    seen    how many batches have been given out
    over    whether those were all
    replay  whether to resume takes fetching them again: a worker's dataset has drawn random numbers
    """

    def __init__(self, start: Start):
        self.start, self.seen, self.over, self.replay = start, 0, False, False


class Place(NamedTuple):
    """Where to resume: how many batches of the pass are behind, and whether workers have to fetch them again."""

    batches: int
    start: Start
    replay: bool
    dataset: dict[str, Any] | None


def generators(loader: Any) -> list[Generator]:
    """The generators that a loader and its samplers were given, each once."""
    inner = getattr(loader.batch_sampler, "sampler", None)
    found = [getattr(part, "generator", None) for part in (loader, loader.sampler, loader.batch_sampler, inner)]
    return list({id(g): g for g in found if isinstance(g, Generator)}.values())


def start_of(loader: Any) -> Start:
    """What a pass that begins now will draw from."""
    return Start(_RANDOM.state_dict(), [g.get_state() for g in generators(loader)])


@contextmanager
def begin_at(loader: Any, start: Start) -> Iterator[None]:
    """The generators are as they were at the start of a pass; at the end, those of the process as before."""
    before = _RANDOM.state_dict()
    _RANDOM.load_state_dict(start.random)
    try:
        for generator, state in zip(generators(loader), start.given, strict=True):
            generator.set_state(state)
        yield
    finally:
        _RANDOM.load_state_dict(before)


def _stateful(part: Any) -> bool:
    return hasattr(part, "state_dict") and hasattr(part, "load_state_dict")


def state_of(loader: Any, current: Progress | None) -> dict[str, Any]:
    """The state dict of a loader whose latest pass is `current`; None if it has begun none."""
    if current is not None and current.over:
        current = None
    state: dict[str, Any] = {
        "batches": 0 if current is None else current.seen,
        "batch_size": loader.batch_size or 1,
        "replicas": getattr(loader.sampler, "num_replicas", 1),
        "generators": [g.get_state() for g in generators(loader)],
    }
    if _stateful(loader.sampler):
        state["sampler"] = loader.sampler.state_dict()
    if current is not None:
        state |= {"start": current.start._asdict(), "replay": current.replay}
        if loader.num_workers == 0 and _stateful(loader.dataset):
            state["dataset"] = loader.dataset.state_dict()
    return state


def place_of(loader: Any, state: dict[str, Any]) -> Place | None:
    """Set the samplers of a loader to a saved state; returns the place where its next pass is to begin, None for its
    start. ValueError, before anything is set, if so many samples are no whole number of batches now."""
    size, replicas = loader.batch_size or 1, getattr(loader.sampler, "num_replicas", 1)
    samples = state["batches"] * state["batch_size"] * state["replicas"]
    batches, rest = divmod(samples, size * replicas)
    if rest:
        raise ValueError(NOT_WHOLE.format(
            samples=samples, old=state["replicas"], size=state["batch_size"], new=replicas, now=size
        ))  # fmt: skip
    for generator, saved in zip(generators(loader), state["generators"], strict=True):
        generator.set_state(saved)
    if "sampler" in state and _stateful(loader.sampler):
        loader.sampler.load_state_dict(state["sampler"])
    if "start" not in state:
        return None
    return Place(batches, Start(**state["start"]), state["replay"], state.get("dataset"))
