"""Datasets: what has samples by index or yields them one by one, and the ways to combine and split them."""

from __future__ import annotations

import math
import warnings
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Generic, TypeVar

from eager.core.shown import ShownObject
from eager.core.tensor import Tensor
from eager.rng.functions import randperm
from eager.rng.generator import Generator

T = TypeVar("T")


class Dataset(ShownObject, Generic[T]):
    """Base of datasets with samples by index: a subclass defines `__getitem__`, and `__len__` for most uses."""

    def __getitem__(self, index: Any) -> T:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[T]) -> ConcatDataset[T]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T], Iterable[T]):
    """Base of datasets that yield their samples: a subclass defines `__iter__`."""

    def __add__(self, other: Dataset[T]) -> ChainDataset[T]:  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """The tuples of the slices of `tensors` along their first dim. AssertionError if its size differs."""

    tensors: tuple[Any, ...]

    def __init__(self, *tensors: Tensor):
        if any(tensor.shape[0] != tensors[0].shape[0] for tensor in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].shape[0]


class StackDataset(Dataset[Any]):
    """Samples of several datasets side by side: tuples of `StackDataset(a, b)`, dicts of `StackDataset(x=a, y=b)`.

    Raises ValueError for datasets of different lengths, for none, or for both forms at once.
    """

    datasets: tuple[Any, ...] | dict[str, Any]

    def __init__(self, *args: Any, **kwargs: Any):
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or``dict``- (via ``kwargs``) like input/output, but both "
                "types are given."
            )
        members = list(args or kwargs.values())
        if not members:
            raise ValueError("At least one dataset should be passed")
        self._length = len(members[0])
        if any(len(member) != self._length for member in members):
            raise ValueError("Size mismatch between datasets")
        self.datasets = args or kwargs

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: dataset[index] for name, dataset in self.datasets.items()}
        return tuple(dataset[index] for dataset in self.datasets)

    def __getitems__(self, indices: list[int]) -> list[Any]:
        if isinstance(self.datasets, dict):
            columns = [samples_of(dataset, indices) for dataset in self.datasets.values()]
            return [dict(zip(self.datasets, row, strict=True)) for row in zip(*columns, strict=True)]
        return list(zip(*(samples_of(dataset, indices) for dataset in self.datasets), strict=True))

    def __len__(self) -> int:
        return self._length


def samples_of(dataset: Any, indices: Sequence[int]) -> list[Any]:
    """The samples at `indices`, by `__getitems__` if the dataset has it. ValueError if it gives another number."""
    fetch = getattr(dataset, "__getitems__", None)
    if not callable(fetch):
        return [dataset[i] for i in indices]
    samples: Any = fetch(indices)
    if len(samples) != len(indices):
        raise ValueError(f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(samples)}")
    return samples


class ConcatDataset(Dataset[T]):
    """The samples of one dataset after the other. AssertionError for none and for an IterableDataset."""

    def __init__(self, datasets: Iterable[Dataset[T] | Sequence[T]]):
        self.datasets: list[Any] = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = list(accumulate(len(dataset) for dataset in self.datasets))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx: int) -> T:
        if idx < 0:
            idx += len(self)
            if idx < 0:
                raise ValueError("absolute value of index should not exceed dataset length")
        which = bisect_right(self.cumulative_sizes, idx)
        return self.datasets[which][idx - (self.cumulative_sizes[which - 1] if which else 0)]


class ChainDataset(IterableDataset[T]):
    """What one IterableDataset yields after the other."""

    def __init__(self, datasets: Iterable[Dataset[T]]):
        self.datasets = datasets

    def _members(self) -> Iterator[Any]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield dataset

    def __iter__(self) -> Iterator[T]:
        for dataset in self._members():
            yield from dataset

    def __len__(self) -> int:
        return sum(len(dataset) for dataset in self._members())


class Subset(Dataset[T]):
    """The samples of `dataset` at `indices`."""

    def __init__(self, dataset: Dataset[T] | Sequence[T], indices: Sequence[int]):
        overridden = type(self).__getitem__ is not Subset.__getitem__
        if overridden and type(self).__getitems__ is Subset.__getitems__:
            raise NotImplementedError(
                "When subclassing Subset and overriding `__getitem__`, `__getitems__` must be overridden too, "
                "because a DataLoader calls it"
            )
        self.dataset: Any = dataset
        self.indices = indices

    def __getitem__(self, idx: Any) -> T:
        if isinstance(idx, list):
            return self.dataset[[self.indices[i] for i in idx]]
        return self.dataset[self.indices[idx]]

    def __getitems__(self, indices: list[int]) -> list[T]:
        return samples_of(self.dataset, [self.indices[i] for i in indices])

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Dataset[T] | Sequence[T], lengths: Sequence[float], generator: Generator | None = None
) -> list[Subset[T]]:
    """Random subsets without overlap, of the given lengths or fractions. As `torch.utils.data.random_split`.

    Fractions add up to 1; each length is rounded down, and what is left over goes to the first subsets. Raises
    ValueError if lengths do not add up to the length of the dataset, or for a fraction outside [0, 1].
    """
    count = len(dataset)  # type: ignore[arg-type]  # a dataset need not have a length, but for this
    total = sum(lengths)
    if math.isclose(total, 1) and total <= 1:
        for i, fraction in enumerate(lengths):
            if not 0 <= fraction <= 1:
                raise ValueError(f"Fraction at index {i} is not between 0 and 1")
        sizes = [math.floor(count * fraction) for fraction in lengths]
        for i in range(count - sum(sizes)):
            sizes[i % len(sizes)] += 1
        for i, size in enumerate(sizes):
            if size == 0:
                warnings.warn(
                    f"Length of split at index {i} is 0. This might result in an empty dataset.", stacklevel=2
                )
    else:
        sizes = list(lengths)
    if sum(sizes) != count:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = randperm(count, generator=generator).tolist()
    return [
        Subset(dataset, order[end - int(size) : int(end)])
        for end, size in zip(accumulate(map(int, sizes)), sizes, strict=True)
    ]
