"""Checkpoints in folders from and to files of `torch.save`. As `torch.distributed.checkpoint.format_utils`."""

from __future__ import annotations

import os
from typing import Any

from eager.distributed.checkpoint.filesystem import FileSystemReader
from eager.distributed.checkpoint.state_dict_loader import read_tree
from eager.distributed.checkpoint.state_dict_saver import save
from eager.serialization import load
from eager.serialization import save as save_file


def dcp_to_torch_save(dcp_checkpoint_dir: str | os.PathLike[str], torch_save_path: str | os.PathLike[str]) -> None:
    """Write the checkpoint in a folder as one file, for `torch.load`."""
    save_file(read_tree(FileSystemReader(dcp_checkpoint_dir)), torch_save_path)


def torch_save_to_dcp(torch_save_path: str | os.PathLike[str], dcp_checkpoint_dir: str | os.PathLike[str]) -> None:
    """Save the dict in a file of `torch.save` as a checkpoint in a folder."""
    tree: Any = load(torch_save_path)
    save(tree, checkpoint_id=dcp_checkpoint_dir, no_dist=True)
