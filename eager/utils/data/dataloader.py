"""DataLoader: batches of a dataset, in the order of a sampler."""

from __future__ import annotations

import math
import multiprocessing
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import repeat
from multiprocessing.context import BaseContext
from typing import Any, Generic, TypeVar

from eager.core.devices import accelerator
from eager.core.runtime import devices
from eager.core.shown import ShownObject
from eager.rng.generator import Generator
from eager.utils.data.collate import default_collate, default_convert
from eager.utils.data.dataset import Dataset, IterableDataset
from eager.utils.data.iteration import _MultiProcessingDataLoaderIter, _SingleProcessDataLoaderIter
from eager.utils.data.resuming import Place, Progress, place_of, state_of
from eager.utils.data.sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

T = TypeVar("T")
FIXED = frozenset(("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"))
ITERABLE_TAKES_NO = "DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}"
NO_PINNING = (
    "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be used."
)
TOO_MANY_WORKERS = (
    "This DataLoader will create {workers} worker processes in total. Our suggested max number of worker in current "
    "system is {cores}{unchecked}, which is smaller than what this DataLoader is going to create. Please be aware that "
    "excessive worker creation might get DataLoader running slow or even freeze, lower the worker number to avoid "
    "potential slowness/freeze if necessary."
)

_BaseDataLoaderIter = _SingleProcessDataLoaderIter  # names that libraries take
_collate_fn_t = Callable[[list[T]], Any]


class _DatasetKind:
    """How samples are fetched: by index, or as they come."""

    Map, Iterable = range(2)


class _Forever(Sampler[None]):
    """The sampler of an iterable dataset, which chooses its samples itself."""

    def __iter__(self) -> Iterator[None]:
        return repeat(None)


class DataLoader(ShownObject, Generic[T]):
    """Iterates over `dataset` in batches. As `torch.utils.data.DataLoader`.

    For a seed, the samples come in PyTorch's order. Each pass draws a base seed from `generator` (the default one);
    worker i is seeded with base seed + i. Workers are processes, started as `multiprocessing_context` says or else as
    is usual on the platform. ValueError for settings that contradict each other.

    Unlike PyTorch's it has a `state_dict`, as torchdata's StatefulDataLoader: in the middle of a pass, too.
    """

    _settled = False
    _length_given: int | None = None  # what __len__ last said of an iterable dataset
    _iterator: _MultiProcessingDataLoaderIter | None = None
    _progress: Progress | None = None  # of the pass that was begun last
    _loaded: dict[str, Any] | None = None  # a state that no pass has begun from yet
    _place: Place | None = None  # where the next pass begins, if another process has been in the middle of one

    def __init__(
        self,
        dataset: Dataset[T] | Sequence[T],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Any] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[T]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ):
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        self.dataset: Any = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        iterable = isinstance(dataset, IterableDataset)
        if iterable:
            _check_iterable(shuffle, sampler, batch_sampler)
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
                )
            batch_size = None
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        if sampler is None:
            sampler = (
                _Forever() if iterable
                else RandomSampler(self.dataset, generator=generator) if shuffle
                else SequentialSampler(self.dataset)
            )  # fmt: skip
        if batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        self.collate_fn = collate_fn or (default_collate if self._auto_collation else default_convert)
        self.persistent_workers = persistent_workers
        self._settled = True
        self._warn_of_many_workers()

    def __setattr__(self, name: str, value: Any) -> None:
        if self._settled and name in FIXED:
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    @property
    def multiprocessing_context(self) -> BaseContext | None:
        """How workers are started; None for the platform's usual way. May be set to the name of a start method."""
        return self._context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        if context is not None:
            if self.num_workers == 0:
                raise ValueError(
                    "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got "
                    f"num_workers={self.num_workers}"
                )
            if isinstance(context, str):
                methods = multiprocessing.get_all_start_methods()
                if context not in methods:
                    raise ValueError(
                        f"multiprocessing_context option should specify a valid start method in {methods!r}, but got "
                        f"multiprocessing_context={context!r}"
                    )
                context = multiprocessing.get_context(context)
            if not isinstance(context, BaseContext):
                raise TypeError(
                    "multiprocessing_context option should be a valid context object or a string specifying the start "
                    f"method, but got multiprocessing_context={context}"
                )
        self._context: BaseContext | None = context

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    def __iter__(self) -> Iterator[Any]:
        if self.pin_memory and not devices(accelerator()):
            warnings.warn(NO_PINNING, stacklevel=2)
        made = self._pass()
        self._progress, self._place, self._loaded = made.progress, None, None
        return made

    def _pass(self) -> _SingleProcessDataLoaderIter:
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self, self._place)
        self._warn_of_many_workers()
        if not self.persistent_workers:
            return _MultiProcessingDataLoaderIter(self, self._place)
        if self._iterator is None or self._place is not None:
            self._iterator = _MultiProcessingDataLoaderIter(self, self._place)
        else:
            self._iterator.restart()
        return self._iterator

    def state_dict(self) -> dict[str, Any]:
        """Where the pass that was begun last is, as the batches that it has given out say; for `load_state_dict`.

        Tensors, numbers and dicts of them. Exact for samplers and datasets that draw random numbers when a pass begins,
        from generators that they or the loader were given, or in worker processes. A sampler, or a dataset without
        workers, that has `state_dict` and `load_state_dict` itself is asked for its state.
        """
        if self._loaded is not None:
            return self._loaded
        return state_of(self, self._progress)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Let the next pass begin where the state says. Nothing is fetched for it that is behind, unless the dataset is
        iterable, or has drawn random numbers in workers.

        With a DistributedSampler, the number of replicas, and so the batch size, may be another one: ValueError, before
        anything is changed, unless what has been read is a whole number of batches for each replica.
        """
        self._place = place_of(self, state_dict)
        self._progress, self._loaded = None, state_dict

    def __len__(self) -> int:
        if not isinstance(self.dataset, IterableDataset):
            return len(self._index_sampler)
        length: int = len(self.dataset)  # type: ignore[arg-type]
        self._length_given = length
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else math.ceil(length / self.batch_size)

    def _warn_of_many_workers(self) -> None:
        if not self.num_workers:
            return
        known = hasattr(os, "sched_getaffinity")
        cores = len(os.sched_getaffinity(0)) if known else os.cpu_count() or 1
        if self.num_workers > cores:
            unchecked = "" if known else " (`cpuset` is not taken into account)"
            message = TOO_MANY_WORKERS.format(workers=self.num_workers, cores=cores, unchecked=unchecked)
            warnings.warn(message, stacklevel=3)


def _check_workers(workers: int, timeout: float, prefetch_factor: int | None, persistent: bool) -> None:
    if workers < 0:
        raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing."
            "let num_workers > 0 to enable multiprocessing, otherwise set prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent and workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _check_iterable(shuffle: bool | None, sampler: Any, batch_sampler: Any) -> None:
    for name, value in (("shuffle", shuffle or None), ("sampler", sampler), ("batch_sampler", batch_sampler)):
        if value is not None:
            raise ValueError(ITERABLE_TAKES_NO.format(name=name, value=value))
