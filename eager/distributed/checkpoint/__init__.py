"""Checkpoints that any number of processes save and load. As `torch.distributed.checkpoint`; see docs/checkpoints.md.

Each process writes the parts that it has, as a safetensors file; an index that says where each part lies, with
checksums, is written last, in one step. A checkpoint is loaded into whatever sharding is there.
"""

from eager.distributed.checkpoint.api import CheckpointException, DamagedCheckpointError
from eager.distributed.checkpoint.default_planner import DefaultLoadPlanner, DefaultSavePlanner
from eager.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
from eager.distributed.checkpoint.manager import CheckpointManager
from eager.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    TensorStorageMetadata,
)
from eager.distributed.checkpoint.state_dict_loader import load
from eager.distributed.checkpoint.state_dict_saver import async_save, save
from eager.distributed.checkpoint.stateful import Stateful

__all__ = [
    "BytesStorageMetadata", "CheckpointException", "CheckpointManager", "ChunkStorageMetadata",
    "DamagedCheckpointError", "DefaultLoadPlanner", "DefaultSavePlanner", "FileSystemReader", "FileSystemWriter",
    "Metadata", "Stateful", "TensorStorageMetadata", "async_save", "load", "save",
]  # fmt: skip
