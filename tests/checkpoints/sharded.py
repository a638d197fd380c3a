"""A tensor of which each rank holds a part: PyTorch's protocol for checkpoints, and nothing else."""

from __future__ import annotations

from typing import Any

import eager as torch
from eager.distributed.checkpoint.metadata import ChunkStorageMetadata


class Sharded:
    """Rows `low` to `high` of a tensor of `shape`."""

    def __init__(self, local: torch.Tensor, low: int, shape: tuple[int, ...]):
        self.local, self.low, self.shape, self.dtype = local, low, torch.Size(shape), local.dtype

    @classmethod
    def part(cls, whole: torch.Tensor, rank: int, size: int) -> Sharded:
        """The part of `whole`, of which it is a view, that a rank holds; the last rank has what is left."""
        rows = -(-whole.shape[0] // size)
        low, high = (min(k * rows, whole.shape[0]) for k in (rank, rank + 1))
        return cls(whole[low:high], low, whole.shape)

    def __create_chunk_list__(self) -> list[ChunkStorageMetadata]:
        if not self.local.shape[0]:
            return []
        offsets = (self.low, *(0,) * (len(self.shape) - 1))
        return [ChunkStorageMetadata(torch.Size(offsets), self.local.shape)]

    def __get_tensor_shard__(self, index: Any) -> torch.Tensor:
        return self.local


class ShardedState:
    """The state of a module or an optimizer of which a rank saves and restores its part alone."""

    def __init__(self, of: Any, rank: int, size: int):
        self.of, self.rank, self.size = of, rank, size

    def state_dict(self) -> dict[str, Any]:
        def cut(value: Any) -> Any:
            if isinstance(value, dict):
                return {key: cut(member) for key, member in value.items()}
            if isinstance(value, torch.Tensor) and value.ndim:
                return Sharded.part(value.detach(), self.rank, self.size)
            return value

        return cut(self.of.state_dict())

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if not any(isinstance(leaf, Sharded) for leaf in _leaves(state)):  # else it has been written into
            self.of.load_state_dict(state)


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for member in value.values() for leaf in _leaves(member)]
    return [value]
