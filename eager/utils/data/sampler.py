"""Samplers: the order in which the samples of a dataset are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from itertools import islice
from typing import Any, Generic, TypeVar

from eager.core import dtypes
from eager.core.shown import ShownObject
from eager.functional.creation import as_tensor, empty
from eager.rng.functions import multinomial, randint, randperm
from eager.rng.generator import Generator

T_co = TypeVar("T_co", covariant=True)
DRAWN_AT_ONCE = 32  # by RandomSampler with replacement: part of the stream of random numbers


def drawn_seed(generator: Generator | None = None) -> int:
    """A 63-bit seed, drawn from `generator` (the default one)."""
    return int(empty((), dtype=dtypes.int64).random_(generator=generator).item())


def is_count(value: Any) -> bool:
    """Whether `value` is a positive int."""
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


class Sampler(ShownObject, Generic[T_co]):
    """Base of samplers: a subclass defines `__iter__`, and `__len__` if it is known."""

    def __init__(self, data_source: Any = None):
        pass

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError


class SequentialSampler(Sampler[int]):
    """The indices of `data_source` in order."""

    def __init__(self, data_source: Sized):
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """The indices of `data_source` in random order, or `num_samples` of them drawn with `replacement`.

    Without a `generator`, each pass draws a seed from the default one. TypeError or ValueError for bad settings.
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ):
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        if not isinstance(self.num_samples, int) or self.num_samples <= 0:
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={self.num_samples}")

    @property
    def num_samples(self) -> int:
        """How many indices a pass yields: as many as there are samples now, unless it was given."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        source = self.generator
        if source is None:
            source = Generator().manual_seed(drawn_seed())
        n, count = len(self.data_source), self.num_samples
        if self.replacement:
            for start in range(0, count, DRAWN_AT_ONCE):
                size = min(DRAWN_AT_ONCE, count - start)
                yield from randint(high=n, size=(size,), generator=source).tolist()
            return
        # A permutation is drawn for the last part even if that part is empty: PyTorch's stream of numbers.
        for _ in range(count // n):
            yield from randperm(n, generator=source).tolist()
        yield from randperm(n, generator=source).tolist()[: count % n]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[Any]):
    """The members of `indices` in random order."""

    def __init__(self, indices: Sequence[Any], generator: Generator | None = None):
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[Any]:
        return (self.indices[i] for i in randperm(len(self.indices), generator=self.generator).tolist())

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """`num_samples` indices with probabilities in proportion to `weights`. ValueError for bad settings."""

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ):
        if not is_count(num_samples):
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={num_samples}")
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.weights = as_tensor(weights, dtype=dtypes.float64)
        if self.weights.ndim != 1:
            raise ValueError(
                f"weights should be a 1d sequence but given weights have shape {tuple(self.weights.shape)}"
            )
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        yield from multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator).tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of `batch_size` indices of `sampler`; with `drop_last`, a shorter last one is left out."""

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool):
        if not is_count(batch_size):
            raise ValueError(f"batch_size should be a positive integer value, but got batch_size={batch_size}")
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(islice(indices, self.batch_size)):
            if len(batch) < self.batch_size and self.drop_last:
                return
            yield batch

    def __len__(self) -> int:
        whole, rest = divmod(len(self.sampler), self.batch_size)  # type: ignore[arg-type]
        return whole + (rest > 0 and not self.drop_last)
