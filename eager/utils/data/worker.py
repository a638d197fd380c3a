"""What runs in a worker process of a DataLoader."""

from __future__ import annotations

import queue
import random
import traceback
from collections.abc import Callable
from multiprocessing import parent_process
from multiprocessing.reduction import ForkingPickler
from typing import Any, NamedTuple, NoReturn

import numpy as np

from eager.random import get_rng_state, manual_seed
from eager.utils.data.collate import Recipe

LOOK_UP_SECONDS = 5.0  # how often a process that waits looks whether the other side still lives


class WorkerInfo(NamedTuple):
    """Which worker this is: `id` of `num_workers`, its `seed`, and its own copy of the `dataset`."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """The worker of a DataLoader that this process is; None in the main process. As PyTorch's."""
    return _info


class Failure(NamedTuple):
    """An exception of a worker, to be raised again in the main process."""

    kind: type[BaseException]
    text: str
    names_message: bool  # whether the exception has an attribute `message`, which its class then takes as argument

    @classmethod
    def of(cls, error: BaseException, worker: int) -> Failure:
        trace = "".join(traceback.format_exception(error))
        text = f"Caught {type(error).__name__} in DataLoader worker process {worker}.\nOriginal {trace}"
        return cls(type(error), text, hasattr(error, "message"))

    def reraise(self) -> NoReturn:
        """Raise the worker's type of exception with its traceback as message; RuntimeError if it takes no message."""
        text: str = _Verbatim(self.text) if self.kind is KeyError else self.text
        try:
            make: Any = self.kind
            error = make(message=text) if self.names_message else make(text)
        except Exception:
            raise RuntimeError(text) from None
        raise error


class _Verbatim(str):
    """A string that prints as itself where its repr is asked for, as KeyError does."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class Exhausted(NamedTuple):
    """Sent in place of a batch: the worker's iterable dataset has ended."""

    worker: int


class Resume(NamedTuple):
    """Sent to a worker to start another pass over the dataset, and back when it is ready."""


class Settings(NamedTuple):
    """One worker of a loader."""

    id: int
    num_workers: int
    base_seed: int
    init_fn: Callable[[int], Any] | None


def seed_everything(base_seed: int, worker: int) -> None:
    """Give `random`, `numpy.random` and the default generator seeds of this worker's own."""
    random.seed(base_seed + worker)
    manual_seed(base_seed + worker)
    words = [worker, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    np.random.seed(np.random.SeedSequence(words).generate_state(4))


class Draws:
    """Whether random numbers have been drawn in this process since this was made."""

    def __init__(self) -> None:
        self._before: Any = self._states()

    @staticmethod
    def _states() -> tuple[Any, ...]:
        numpy: Any = np.random.get_state(legacy=False)["state"]
        return random.getstate(), numpy["pos"], numpy["key"].tobytes(), get_rng_state()._array().tobytes()

    def __bool__(self) -> bool:
        if self._before is not None and self._states() != self._before:
            self._before = None
        return self._before is None


def packed(item: tuple[Any, Any, bool], worker: int) -> bytes:
    """`item` pickled here, where an error can be reported; queues pickle in a thread that only prints it."""
    try:
        return bytes(ForkingPickler.dumps(item))
    except Exception as error:
        return bytes(ForkingPickler.dumps((item[0], Failure.of(error, worker), item[2])))


def work(recipe: Recipe, settings: Settings, tasks: Any, results: Any, stopping: Any) -> None:
    """For each (number, index) in `tasks`, put (number, batch, whether random numbers have been drawn) into `results`,
    until None comes."""
    global _info
    worker = settings.id
    results.cancel_join_thread()  # batches that nobody reads must not keep the process alive
    seed_everything(settings.base_seed, worker)
    _info = WorkerInfo(worker, settings.num_workers, settings.base_seed + worker, recipe.dataset)
    draws = Draws()
    fetch, failure = _started(recipe, settings)
    ended = False
    try:
        while (task := _next_task(tasks)) is not None:
            if isinstance(task, Resume):
                ended = False
                results.put(packed((task, None, False), worker))
                fetch, failure = _started(recipe, settings._replace(init_fn=None))
                continue
            number, index = task
            if stopping.is_set() or ended:
                continue
            if failure is not None:
                result, failure = failure, None
            else:
                result = _fetched(fetch, index, recipe, worker)
                ended = isinstance(result, Exhausted)
            results.put(packed((number, result, bool(draws)), worker))
    except KeyboardInterrupt:
        pass  # the main process gets it too, and raises it
    finally:
        results.close()


def _started(recipe: Recipe, settings: Settings) -> tuple[Any, Failure | None]:
    try:
        if settings.init_fn is not None:
            settings.init_fn(settings.id)
        return recipe.fetcher(), None
    except Exception as error:
        return None, Failure.of(error, settings.id)


def _fetched(fetch: Callable[[Any], Any], index: Any, recipe: Recipe, worker: int) -> Any:
    try:
        return fetch(index)
    except StopIteration as error:
        return Exhausted(worker) if recipe.iterable else Failure.of(error, worker)
    except Exception as error:
        return Failure.of(error, worker)


def _next_task(tasks: Any) -> Any:
    """The next task; None, the sign to stop, also if the main process is gone."""
    while True:
        try:
            return tasks.get(timeout=LOOK_UP_SECONDS)
        except queue.Empty:
            parent = parent_process()
            if parent is None or not parent.is_alive():
                return None
