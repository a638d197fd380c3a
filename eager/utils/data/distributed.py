"""DistributedSampler: the share of one of several processes. As `torch.utils.data.distributed`."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sized
from typing import Any

from eager.rng.functions import randperm
from eager.rng.generator import Generator
from eager.utils.data.sampler import Sampler

NO_PROCESS_GROUP = "Default process group has not been initialized, please make sure to call init_process_group."


class DistributedSampler(Sampler[int]):
    """Every `num_replicas`-th index of a shuffled order that all replicas share, from `rank` on.

    The order changes with `set_epoch`. The indices are repeated (with `drop_last`: cut) to give equal shares. Raises
    ValueError for a rank out of range, or if there is neither a process group nor `num_replicas` and `rank`.
    """

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ):
        if num_replicas is None or rank is None:
            distributed: Any = sys.modules.get("eager.distributed")  # without it, there is no process group either
            if not (distributed and distributed.is_available() and distributed.is_initialized()):
                raise ValueError(NO_PROCESS_GROUP)
            num_replicas = distributed.get_world_size() if num_replicas is None else num_replicas
            rank = distributed.get_rank() if rank is None else rank
        assert num_replicas is not None and rank is not None
        if not 0 <= rank < num_replicas:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        self.shuffle = shuffle
        self.seed = seed
        share = len(dataset) // num_replicas if drop_last else math.ceil(len(dataset) / num_replicas)
        self.num_samples = share
        self.total_size = share * num_replicas

    def __iter__(self) -> Iterator[int]:
        count = len(self.dataset)
        order = list(range(count))
        if self.shuffle:
            order = randperm(count, generator=Generator().manual_seed(self.seed + self.epoch)).tolist()
        order = (order * math.ceil(self.total_size / max(count, 1)))[: self.total_size]
        return iter(order[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of the next pass; without it, every pass has the same."""
        self.epoch = epoch

    def state_dict(self) -> dict[str, Any]:
        """The epoch."""
        return {"epoch": self.epoch}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on in the epoch of a `state_dict`."""
        self.epoch = state_dict["epoch"]
