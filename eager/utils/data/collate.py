"""Batches: fetched by the indices of a step, and put together by `default_collate` or `default_convert`."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from eager.core import dtypes
from eager.core.tensor import Tensor
from eager.functional.creation import as_tensor, tensor
from eager.functional.joining import stack
from eager.utils.data.dataset import IterableDataset

NOT_COLLATED = "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {kind}"
Table = dict[Any, Callable[..., Any]]
np_str_obj_array_pattern = re.compile(r"[SaUO]")  # kinds of arrays that are not collated: libraries ask it


def _is_text(array: np.ndarray) -> bool:
    return array.dtype.kind in "SUO"


def _arrays(batch: Sequence[np.ndarray], *, collate_fn_map: Table | None = None) -> Any:
    if _is_text(batch[0]):
        raise TypeError(NOT_COLLATED.format(kind=batch[0].dtype))
    return collate([as_tensor(array) for array in batch], collate_fn_map=collate_fn_map)


# type, or tuple of types -> function(batch, collate_fn_map=...); users may add rows
default_collate_fn_map: Table = {
    Tensor: lambda batch, *, collate_fn_map=None: stack(list(batch), 0),
    np.ndarray: _arrays,
    (np.bool_, np.number, np.object_): lambda batch, *, collate_fn_map=None: as_tensor(np.array(batch)),
    float: lambda batch, *, collate_fn_map=None: tensor(batch, dtype=dtypes.float64),
    int: lambda batch, *, collate_fn_map=None: tensor(batch),
    str: lambda batch, *, collate_fn_map=None: batch,
    bytes: lambda batch, *, collate_fn_map=None: batch,
}


def collate(batch: Any, *, collate_fn_map: Table | None = None) -> Any:
    """A batch of samples as one sample of batches; what to do with a type is looked up in `collate_fn_map`.

    Mappings, named tuples and sequences are collated member by member. TypeError for a type that is not in the map,
    RuntimeError for sequences of unequal length.
    """
    first = batch[0]
    table = collate_fn_map or {}
    by_type = table.get(type(first)) or next((f for kind, f in table.items() if isinstance(first, kind)), None)
    if by_type is not None:
        return by_type(batch, collate_fn_map=collate_fn_map)

    def together(samples: Any) -> Any:
        return collate(samples, collate_fn_map=collate_fn_map)

    if isinstance(first, Mapping):
        return _like_mapping(first, {key: together([sample[key] for sample in batch]) for key in first})
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(together(samples) for samples in zip(*batch, strict=False)))
    if isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        members = [together(samples) for samples in zip(*batch, strict=True)]
        return members if isinstance(first, tuple) else _like_sequence(first, members)
    raise TypeError(NOT_COLLATED.format(kind=type(first)))


def _like_mapping(sample: Any, values: dict[Any, Any]) -> Any:
    """`values` in a mapping of the kind of `sample`, with its other attributes; in a dict if that cannot be made."""
    try:
        if isinstance(sample, MutableMapping):
            made = copy.copy(sample)
            made.update(values)
            return made
        return type(sample)(values)
    except TypeError:
        return values


def _like_sequence(sample: Any, values: list[Any]) -> Any:
    """`values` in a sequence of the kind of `sample`, with its other attributes; in a list if that cannot be made."""
    try:
        if isinstance(sample, MutableSequence):
            made = copy.copy(sample)
            for i, value in enumerate(values):
                made[i] = value
            return made
        return type(sample)(values)
    except TypeError:
        return values


def default_collate(batch: Any) -> Any:
    """A list of samples as a batch: tensors, arrays and numbers are stacked along a new first dim.

    As `torch.utils.data.default_collate`: numbers become tensors (float64 for floats), strings stay in a list, tuples
    become lists, mappings and other sequences keep their kind. TypeError for anything else.
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)


def default_convert(data: Any) -> Any:
    """`data` with tensors in place of NumPy arrays and scalars, at any depth. As `torch.utils.data.default_convert`."""
    if isinstance(data, (np.ndarray, np.generic)):
        return data if isinstance(data, np.str_) or _is_text(np.asarray(data)) else as_tensor(np.asarray(data))
    if isinstance(data, Mapping):
        return _like_mapping(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(default_convert(value) for value in data))
    if isinstance(data, tuple):
        return [default_convert(value) for value in data]
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _like_sequence(data, [default_convert(value) for value in data])
    return data


class Recipe(NamedTuple):
    """How a loader makes a batch: all that a worker has to know.

    batched: whether a step's index is a list of indices (and its data a list for `collate_fn`) or a single one
    """

    dataset: Any
    batched: bool
    collate_fn: Callable[[Any], Any]
    drop_last: bool

    @property
    def iterable(self) -> bool:
        return isinstance(self.dataset, IterableDataset)

    def fetcher(self) -> Callable[[Any], Any]:
        """A new function from index to batch. It raises StopIteration when an iterable dataset has ended."""
        return _stream(self) if self.iterable else self._by_index

    def _by_index(self, index: Any) -> Any:
        dataset = self.dataset
        if not self.batched:
            return self.collate_fn(dataset[index])
        fetch = getattr(dataset, "__getitems__", None)
        return self.collate_fn(fetch(index) if fetch else [dataset[i] for i in index])


def _stream(recipe: Recipe) -> Callable[[Any], Any]:
    samples = iter(recipe.dataset)

    def fetch(index: Any) -> Any:
        if not recipe.batched:
            return recipe.collate_fn(next(samples))
        batch = list(islice(samples, len(index)))
        if not batch or (recipe.drop_last and len(batch) < len(index)):
            raise StopIteration
        return recipe.collate_fn(batch)

    return fetch
