"""Fetchers: what turns the indices of one step into a batch. The same in the main process and in a worker."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any, NamedTuple

from eager.utils.data.dataset import IterableDataset


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
