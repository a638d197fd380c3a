"""What a checkpoint holds. As `torch.distributed.checkpoint.metadata`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from eager.core import dtypes
from eager.core.dtypes import Size


@dataclass
class ChunkStorageMetadata:
    """A block of a tensor: where it begins, and its shape."""

    offsets: Size
    sizes: Size


@dataclass
class TensorProperties:
    """What a tensor has besides its shape."""

    dtype: dtypes.dtype = field(default_factory=lambda: dtypes.float32)


@dataclass
class TensorStorageMetadata:
    """A tensor: its global shape, and the blocks that lie in files."""

    properties: TensorProperties
    size: Size
    chunks: list[ChunkStorageMetadata]


@dataclass
class BytesStorageMetadata:
    """A value that is no tensor."""


@dataclass
class Metadata:
    """The values of a checkpoint by name; `planner_data` has the keys that lead to each, in the nest that was saved."""

    state_dict_metadata: dict[str, TensorStorageMetadata | BytesStorageMetadata]
    planner_data: Any = None
    storage_data: Any = None


@dataclass(frozen=True)
class MetadataIndex:
    """One block of the value named `fqn`: the one that begins at `offset`, which is number `index` of its value."""

    fqn: str
    offset: Sequence[int] | None = None
    index: int | None = field(hash=False, compare=False, default=None)
