"""A share of what is left of the data. As PyTorch's `ElasticDistributedSampler`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sized

from eager.rng.functions import randperm
from eager.rng.generator import Generator
from eager.utils.data.distributed import DistributedSampler

__all__ = ["ElasticDistributedSampler"]

BEHIND = "Start index {} should be less than dataset size {}"


class ElasticDistributedSampler(DistributedSampler):
    """`DistributedSampler` of the indices from `start_index` on. ValueError if there are none."""

    def __init__(
        self, dataset: Sized, num_replicas: int | None = None, rank: int | None = None, start_index: int = 0
    ):  # fmt: skip
        super().__init__(dataset, num_replicas, rank)
        if start_index >= len(dataset):
            raise ValueError(BEHIND.format(start_index, len(dataset)))
        self.start_index = start_index
        self.num_samples = math.ceil((len(dataset) - start_index) / self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        left = len(self.dataset) - self.start_index
        order = (randperm(left, generator=Generator().manual_seed(self.epoch)) + self.start_index).tolist()
        order += order[: self.total_size - len(order)]
        return iter(order[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples
