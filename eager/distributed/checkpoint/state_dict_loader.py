"""Load a checkpoint into values that are there, in whatever blocks they lie. As
`torch.distributed.checkpoint.state_dict_loader`."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from eager.core.dtypes import Size
from eager.distributed.checkpoint import nested
from eager.distributed.checkpoint.api import CheckpointException, DamagedCheckpointError
from eager.distributed.checkpoint.blocks import is_array, regions_needed, restored
from eager.distributed.checkpoint.default_planner import DefaultLoadPlanner
from eager.distributed.checkpoint.filesystem import Blocks, FileSystemReader
from eager.distributed.checkpoint.index import INDEX, Entry, Index
from eager.distributed.checkpoint.peers import peers
from eager.distributed.checkpoint.state_dict_saver import NO_PLACE, NO_PLANNER
from eager.distributed.checkpoint.stateful import Stateful
from graphc.files.contents import Refuse

MISSING_KEY = "Missing key in checkpoint state_dict: {name}."  # PyTorch's, like the next
OTHER_SIZE = "Size mismatch between saved {saved} and current: {found} for {name}"


def load(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_reader: FileSystemReader | None = None,
    planner: DefaultLoadPlanner | None = None,
    process_group: Any = None,
    no_dist: bool = False,
) -> None:
    """Load what `state_dict` has from the checkpoint in a folder. As PyTorch's.

    Tensors and arrays of NumPy are written into; a `jax.Array` is replaced by one of the same sharding; all other
    values are replaced. Objects with a `state_dict` give theirs, and get it back with `load_state_dict`. Each rank
    reads the files that have the blocks it needs, whatever the number of ranks and the sharding was that saved them.

    Raises, before anything is changed, CheckpointException for a value that the checkpoint has not (unless the planner
    has `allow_partial_load`) or has in another shape, and DamagedCheckpointError, a kind of it, that names the file.
    """
    reader = _reader(storage_reader, checkpoint_id)
    if planner is not None and not isinstance(planner, DefaultLoadPlanner):
        raise TypeError(NO_PLANNER.format(kind="load", found=type(planner).__name__))
    partial = planner is not None and planner.allow_partial_load
    others = peers(process_group, no_dist)
    trees: dict[str, Any] = {}
    with others.agreeing("loading"):
        trees = {key: v.state_dict() if isinstance(v, Stateful) else v for key, v in state_dict.items()}
        index = reader.read_index()
        leaves = nested.flatten(trees)
        _check_keys(leaves, index, partial)
        plan = planned(reader, index, {name: index.entries[name] for name in leaves if name in index.entries}, leaves)
    with others.agreeing("loading"):
        trees = nested.replaced(trees, plan.values())
        for key, value in state_dict.items():
            if isinstance(value, Stateful):
                value.load_state_dict(trees[key])
            else:
                state_dict[key] = trees[key]


def _reader(reader: FileSystemReader | None, checkpoint_id: Any) -> FileSystemReader:
    if reader is None and checkpoint_id is None:
        raise RuntimeError(NO_PLACE.format(kind="reader"))
    return FileSystemReader(checkpoint_id) if reader is None or checkpoint_id is not None else reader


def _check_keys(leaves: dict[str, nested.Leaf], index: Index, partial: bool) -> None:
    for name, (_, value) in leaves.items():
        empty = isinstance(value, (dict, list, tuple)) and not value
        if name not in index.entries and not partial and not empty:
            raise CheckpointException(MISSING_KEY.format(name=name))


class Plan(NamedTuple):
    """What is to be read. like: the arrays that say by name how those of the checkpoint come back"""

    blocks: Blocks
    entries: dict[str, Entry]
    like: dict[str, Any]
    refuse: Refuse

    def values(self) -> dict[str, Any]:
        """The values by name; arrays that can be written into are changed."""
        found: dict[str, Any] = {}
        for name, entry in self.entries.items():
            read = lambda region, name=name, entry=entry: self.blocks.read(name, entry, region)
            template = self.like.get(name)
            found[name] = restored(template, entry.kind, entry.shape, read) if entry.kind else entry.value(self.refuse)
        return found

    def tree(self) -> dict[str, Any]:
        """The values as the nest that was saved."""
        found = self.values()
        try:
            return nested.unflatten(nested.Leaf(entry.path, found[name]) for name, entry in self.entries.items())
        except ValueError as error:
            raise self.refuse(str(error), "") from None


def planned(
    reader: FileSystemReader, index: Index, entries: dict[str, Entry], templates: dict[str, nested.Leaf]
) -> Plan:
    """The plan to read `entries`, in the form of those of `templates` that have the same name.

    All is checked: the shapes of templates, and the checksum of each block that is needed.
    """
    like = {name: leaf.value for name, leaf in templates.items() if is_array(leaf.value)}
    blocks = reader.open(index)
    refuse = DamagedCheckpointError.of(f"'{reader.path / INDEX}'")
    arrays = {name: entry for name, entry in entries.items() if entry.kind}
    for name, entry in arrays.items():
        shape = tuple(like[name].shape) if hasattr(like.get(name), "shape") else entry.shape
        if shape != entry.shape:
            saved, found = Size(entry.shape), Size(shape)
            raise CheckpointException(OTHER_SIZE.format(saved=saved, found=found, name=name))
    for name, entry in arrays.items():
        blocks.check(name, entry, regions_needed(like.get(name), entry.shape))
    return Plan(blocks, entries, like, refuse)


def read_tree(reader: FileSystemReader) -> dict[str, Any]:
    """All of a checkpoint, as the nest that was saved."""
    index = reader.read_index()
    return planned(reader, index, index.entries, {}).tree()
