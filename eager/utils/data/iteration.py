"""One pass over a DataLoader: in this process, or by workers that fetch ahead."""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import warnings
import weakref
from collections.abc import Iterator
from itertools import cycle
from multiprocessing import connection
from multiprocessing.reduction import ForkingPickler
from typing import Any

from eager.core.devices import accelerator
from eager.core.pytree import tree_map
from eager.core.runtime import devices
from eager.core.shown import ShownObject
from eager.utils.data.collate import Recipe
from eager.utils.data.resuming import Place, Progress, begin_at, start_of
from eager.utils.data.sampler import drawn_seed
from eager.utils.data.worker import Exhausted, Failure, Resume, Settings, work

JOIN_SECONDS = 5.0
LAST_SECONDS = 0.5  # for what a worker has sent before it died
TOO_LONG = (
    "Length of IterableDataset {dataset} was reported to be {length}(when accessing len(dataloader)), but {seen} "
    "samples have been fetched. "
)
TOO_LONG_WITH_WORKERS = (
    "With several workers, each has its own copy of the dataset: let it yield only the worker's share, see "
    "get_worker_info()."
)


class _SingleProcessDataLoaderIter(ShownObject, Iterator[Any]):
    """The batches of one pass, without workers.

    place  where to begin, if it resumes one of another process
    """

    def __init__(self, loader: Any, place: Place | None = None):
        self.progress = Progress(start_of(loader) if place is None else place.start)
        if place is None:
            self._set_up(loader)
            return
        with begin_at(loader, place.start):
            self._set_up(loader, place)
        self.progress.seen = place.batches

    def _set_up(self, loader: Any, place: Place | None = None) -> None:
        self._loader = loader
        self._workers = loader.num_workers
        self._length = loader._length_given  # if anybody has asked before this pass
        self._recipe = Recipe(loader.dataset, loader._auto_collation, loader.collate_fn, loader.drop_last)
        self._indices = iter(loader._index_sampler)
        self._base_seed = drawn_seed(loader.generator)
        self._pins = loader.pin_memory and bool(devices(accelerator()))
        self._start(place)

    def _start(self, place: Place | None) -> None:
        if self._loader.timeout != 0:
            raise AssertionError("timeout must be 0 without workers: there is nobody to wait for")
        restored = place is not None and place.dataset is not None
        if place is not None and restored:
            self._recipe.dataset.load_state_dict(place.dataset)
        self._fetch = self._recipe.fetcher()
        for _ in range(place.batches if place is not None and not (restored and self._recipe.iterable) else 0):
            index = next(self._indices)
            if self._recipe.iterable:
                self._fetch(index)

    def _next(self) -> Any:
        return self._fetch(next(self._indices))

    def __next__(self) -> Any:
        try:
            batch = self._next()
        except StopIteration:
            self.progress.over = True
            raise
        self.progress.seen = seen = self.progress.seen + 1
        length = self._length
        if self._recipe.iterable and length is not None and seen > length:
            message = TOO_LONG.format(dataset=self._recipe.dataset, length=length, seen=seen)
            warnings.warn(message + (TOO_LONG_WITH_WORKERS if self._workers else ""), stacklevel=2)
        return tree_map(_pinned, batch) if self._pins else batch

    def __len__(self) -> int:
        return len(self._loader._index_sampler)


def _pinned(member: Any) -> Any:
    """A member of a batch in pinned memory, if it can be there."""
    return member.pin_memory() if hasattr(member, "pin_memory") else member


class _MultiProcessingDataLoaderIter(_SingleProcessDataLoaderIter):
    """The batches of one pass, fetched ahead by worker processes.

    Tasks are numbered in the order of the sampler and go round the workers; batches are given out in that order
    (unless the loader has `in_order=False`), whichever is ready first.
    """

    def _start(self, place: Place | None) -> None:
        loader = self._loader
        if loader.prefetch_factor <= 0:
            raise AssertionError("prefetch_factor must be greater than 0 for MultiProcessingDataLoaderIter")
        context: Any = loader.multiprocessing_context or multiprocessing
        self._results = context.Queue()
        self._stopping = context.Event()
        self._queues: list[Any] = []
        self._processes: list[Any] = []
        for worker in range(self._workers):
            tasks = context.Queue()
            tasks.cancel_join_thread()
            settings = Settings(worker, self._workers, self._base_seed, loader.worker_init_fn)
            arguments = (self._recipe, settings, tasks, self._results, self._stopping)
            process = context.Process(target=work, args=arguments, daemon=True)
            with warnings.catch_warnings():  # what JAX says of forks, which a worker that never calls it may ignore
                warnings.filterwarnings("ignore", r"os\.fork\(\) was called.*JAX", RuntimeWarning)
                process.start()
            self._queues.append(tasks)
            self._processes.append(process)
        self._stop = weakref.finalize(
            self, _stop, os.getpid(), self._processes, self._queues, self._results, self._stopping
        )
        behind = 0 if place is None else place.batches
        if place is not None and not place.replay and not self._recipe.iterable:
            for _ in range(behind):
                next(self._indices)
            self._begin(behind)
            return
        self._begin()
        for _ in range(behind):
            self._next()

    def _begin(self, behind: int = 0) -> None:
        """Send the first tasks, as if so many had been sent before."""
        self._sent = self._due = 0  # the numbers of the next task, and of the next batch
        self._owner: dict[int, int] = {}  # number of a task that is not given out yet -> its worker
        self._ready: dict[int, Any] = {}  # number -> batch that came before its turn
        self._active = [True] * self._workers
        self._load = [0] * self._workers  # tasks that a worker has not answered
        self._round = cycle(range(self._workers))
        for _ in range(behind % self._workers):  # so that each worker goes on with its own share
            next(self._round)
        for _ in range(self._loader.prefetch_factor * self._workers):
            self._send()

    def restart(self) -> None:
        """Begin another pass with the same workers."""
        self.progress = Progress(start_of(self._loader))
        self._indices = iter(self._loader._index_sampler)
        for tasks in self._queues:
            tasks.put(Resume())
        waiting = self._workers
        while waiting:
            waiting -= isinstance(self._receive()[0], Resume)  # what a pass that was left early asked for is dropped
        self._begin()

    def _send(self) -> None:
        """Give the next index to the next worker that may have it."""
        index = next(self._indices, self)
        if index is self:
            return
        for _ in range(self._workers):
            worker = next(self._round)
            share = self._loader.prefetch_factor * self._workers // max(sum(self._active), 1)
            if self._active[worker] and (self._loader.in_order or self._load[worker] < share):
                break
        else:
            return
        self._queues[worker].put((self._sent, index))
        self._owner[self._sent] = worker
        self._load[worker] += 1
        self._sent += 1

    def _next(self) -> Any:
        while True:
            # a worker whose dataset has ended answers nothing any more
            while self._due < self._sent and self._due not in self._ready:
                owner = self._owner.get(self._due)
                if owner is not None and self._active[owner]:
                    break
                self._owner.pop(self._due, None)
                self._due += 1
            if self._due >= self._sent:
                if not self._loader.persistent_workers:
                    self._stop()
                raise StopIteration
            if self._due in self._ready:
                number, batch = self._due, self._ready.pop(self._due)
            else:
                number, batch = self._receive()
                self._load[self._owner[number]] -= 1
                if isinstance(batch, Exhausted):
                    self._active[batch.worker] = False
                    self._send()
                    continue
                if number != self._due and self._loader.in_order:
                    self._ready[number] = batch
                    continue
            del self._owner[number]
            self._due += number == self._due
            self._send()
            if isinstance(batch, Failure):
                batch.reraise()
            return batch

    def _receive(self) -> tuple[Any, Any]:
        """The next answer of any worker. RuntimeError if one has died, or after the loader's `timeout`."""
        limit = self._loader.timeout
        working = [process for process, active in zip(self._processes, self._active, strict=True) if active]
        ready = connection.wait([self._results._reader, *(p.sentinel for p in working)], limit or None)
        try:
            # a worker that has died may have answered before
            number, batch, drew = ForkingPickler.loads(self._results.get(timeout=limit if not ready else LAST_SECONDS))
        except queue.Empty:
            dead = [process for process in working if not process.is_alive()]
            if not dead:
                raise RuntimeError(f"DataLoader timed out after {limit} seconds") from None
            pids = ", ".join(str(process.pid) for process in dead)
            how = ", ".join(f"worker {self._processes.index(p)} {_end(p.exitcode)}" for p in dead)
            raise RuntimeError(f"DataLoader worker (pid(s) {pids}) exited unexpectedly: {how}") from None
        self.progress.replay = self.progress.replay or drew
        return number, batch


def _end(code: int) -> str:
    """How a process has ended."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


def _stop(owner: int, processes: list[Any], queues: list[Any], results: Any, stopping: Any) -> None:
    """End the workers: politely, then by force. Only their parent may; a fork of it may hold them too."""
    if os.getpid() != owner:
        return
    stopping.set()
    for tasks in queues:
        tasks.put(None)
    for process in processes:
        process.join(timeout=JOIN_SECONDS)
        if process.is_alive():
            process.terminate()
            process.join()
    for each in (*queues, results):
        each.close()
