"""The processes that save or load a checkpoint together: those of a process group, or else this one alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from eager import distributed
from eager.distributed.checkpoint.api import CheckpointException


class Peers(NamedTuple):
    """This process is `rank` of `size`. group: the process group; `connected` is False if there is none to ask."""

    rank: int
    size: int
    group: Any = None
    connected: bool = False

    def gather(self, value: Any) -> list[Any]:
        """What each rank gives, in their order; without a process group, the value alone."""
        if not self.connected:
            return [value]
        found: list[Any] = [None] * self.size
        distributed.all_gather_object(found, value, group=self.group)
        return found

    def agree(self, error: BaseException | None, what: str) -> None:
        """Raise, on each rank, if there is an error on any. An error of this rank alone is raised as it is."""
        texts = self.gather(None if error is None else f"{type(error).__name__}: {error}")  # some cannot be pickled
        failures = {rank: text for rank, text in enumerate(texts) if text is not None}
        if error is not None and len(failures) == 1:
            raise error
        if failures:
            raise CheckpointException(f"{what} failed", failures)

    @contextmanager
    def agreeing(self, what: str) -> Iterator[None]:
        """Context: what goes wrong inside of it on any rank is raised on each, when all have come to its end."""
        error = None
        try:
            yield
        except Exception as problem:
            error = problem
        self.agree(error, what)


def peers(group: Any, no_dist: bool, rank: int = 0, size: int = 1) -> Peers:
    """Those of `group`, or of the default process group if there is one; else `rank` and `size` as given."""
    if no_dist or not (distributed.is_available() and distributed.is_initialized()):
        return Peers(rank, size)
    return Peers(distributed.get_rank(group), distributed.get_world_size(group), group, connected=True)
