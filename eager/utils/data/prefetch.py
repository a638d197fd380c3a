"""A loader whose next batches are ready: a thread fetches them, and brings them to a device."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

T = TypeVar("T")
_LOOK_SECONDS = 0.05  # how often a thread that nobody reads from looks whether it is still wanted


class Prefetcher(Generic[T]):
    """Iterates over a loader, `depth` batches ahead.

    transfer  called in the thread with each batch; what it returns is given out: `lambda batch: batch.to(device)`

    An error of the loader, or of `transfer`, is raised where its batch would have come. The first batch is fetched by
    the caller's thread, so that the random numbers that a sampler draws are those of a loader alone; a dataset that
    draws some for each sample should do so in workers. `state_dict` and `load_state_dict` are about the batches that
    have been given out. ValueError for a depth below 1.
    """

    def __init__(self, loader: Any, transfer: Callable[[Any], T] | None = None, depth: int = 2):
        if depth < 1:
            raise ValueError(f"depth should be at least 1, got {depth}")
        self.loader, self.transfer, self.depth = loader, transfer, depth
        self._state: dict[str, Any] | None = None

    def __len__(self) -> int:
        return len(self.loader)

    def state_dict(self) -> dict[str, Any]:
        """That of the loader, as of the last batch given out."""
        return self.loader.state_dict() if self._state is None else self._state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Let the loader's next pass begin where the state says."""
        self._state = None
        self.loader.load_state_dict(state_dict)

    def __iter__(self) -> Iterator[T]:
        batches = iter(self.loader)
        ready: queue.Queue[Any] = queue.Queue(self.depth)
        stop = threading.Event()
        first = self._next(batches)  # in this thread

        def fetch() -> None:
            item = first
            while not stop.is_set():
                try:
                    ready.put(item, timeout=_LOOK_SECONDS)
                except queue.Full:
                    continue
                if item[0] is not None:
                    return
                item = self._next(batches)

        thread = threading.Thread(target=fetch, name="prefetch", daemon=True)
        thread.start()
        try:
            while True:
                error, batch, state = ready.get()
                self._state = state
                if isinstance(error, StopIteration):
                    return
                if error is not None:
                    raise error
                yield batch
        finally:
            stop.set()
            thread.join()

    def _next(self, batches: Iterator[Any]) -> tuple[BaseException | None, Any, Any]:
        """The next batch and the loader's state after it; or why there is none."""
        save = getattr(self.loader, "state_dict", dict)
        try:
            batch = next(batches)
            return None, batch if self.transfer is None else self.transfer(batch), save()
        except BaseException as error:
            return error, None, save()
