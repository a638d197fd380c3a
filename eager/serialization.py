"""`save` and `load`: objects in files that hold tensors and a description, and no code.

A file is in the safetensors format: each tensor (or memory that several share) under the path of its keys, such as
"model.0.weight", and under "graphc" in the metadata what else there is. Other readers of the format find the tensors;
`load` reads their files too, as a dict of tensors.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np

from eager.core.devices import KINDS, device
from eager.core.tensor import Tensor
from eager.surface.description import DAMAGED, LIMITS, NOT_BOOL, Reader, Writer
from eager.surface.safetensors_files import header, mapped, read
from graphc.errors import EmptyFileError, TensorFileError, require
from graphc.files import json_text, writing
from graphc.files.contents import Refuse
from graphc.files.schema import Anything, Record, Whole

__all__ = ["load", "save"]

KEY = "graphc"  # in the metadata
VERSION = 1
NOT_A_FILE = "expected 'f' to be string, path, or a file-like object with a 'write' attribute"
NOT_SEEKABLE = (
    "'{kind}' object has no attribute 'seek'. You can only torch.load from a file that is seekable. Please pre-load "
    "the data into a buffer like io.BytesIO and try to load from it instead."
)
NO_CUDA = (
    "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are running on a "
    "CPU-only machine, please use torch.load with map_location=torch.device('cpu') to map your storages to the CPU."
)
TOO_MUCH = "cannot save an object that could not be loaded: {problem}. Remedy: keep numbers in tensors"
PICKLE = (
    "it looks like a pickle, as PyTorch's torch.save writes them, and reading one can run code. Remedy: in PyTorch, "
    "save a dict of tensors with safetensors.torch.save_file, and load that file"
)
_DESCRIPTION = Record({"version": Whole(0), "object": Anything()})


def _library(module: str, what: str) -> Any:
    return require(module, f"torch.{what}", "safetensors")


def save(
    obj: Any,
    f: Any,
    pickle_module: Any = None,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
) -> None:
    """Write `obj` (tensors, numbers, strings, nests of them; see `eager.surface.description`) to a path or file object.

    As `torch.save`, but nothing is pickled: the two pickle arguments change nothing. TypeError naming the place of what
    cannot be saved, or loaded again, before the file is touched; a file at a path is replaced when the new one is
    complete.
    """
    library = _library("safetensors.numpy", "save")
    to_path = isinstance(f, (str, os.PathLike))
    if not to_path and not hasattr(f, "write"):
        raise AttributeError(NOT_A_FILE)
    writer = Writer()
    try:
        root = writer.node(obj)
        arrays = writer.arrays()
        text = json.dumps({"version": VERSION, "object": root})
    except RecursionError:
        raise _too_much("lists and dicts are too deep in each other") from None
    json_text.check(text, LIMITS, _too_much)
    metadata = {KEY: text}
    if not to_path:
        data = library.save(arrays, metadata)
        header(b"", io.BytesIO(data), _too_much)
        f.write(data)
        return
    folder = os.path.dirname(os.fspath(f)) or "."
    if not os.path.isdir(folder):
        raise RuntimeError(f"Parent directory {folder} does not exist.")
    with writing.draft(f) as name:
        library.save_file(arrays, name, metadata)
        with open(name, "rb") as file:
            header(b"", file, _too_much)


def _too_much(problem: str, place: str = "") -> TypeError:
    return TypeError(TOO_MUCH.format(problem=problem))


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Read what `save` wrote, or the tensors of any safetensors file, from a path or a file object. As `torch.load`.

    No code is run, whatever `weights_only` says, and memory and time are in proportion to the file. map_location: "cpu"
    or a device, a dict, or a function of tensor and "cpu" that gives a tensor or None. With `mmap`, a path's tensors
    are read when they are used; the file must stay as it is until then. Raises TensorFileError, a RuntimeError that
    names the file and the place in it, for damaged files; for an empty one it is an EOFError, too.
    """
    move = _mover(map_location)
    from_path = isinstance(f, (str, os.PathLike))
    if not from_path and not (hasattr(f, "seek") and hasattr(f, "read")):
        raise AttributeError(NOT_SEEKABLE.format(kind=type(f).__name__))
    if mmap and not from_path:
        raise ValueError("f must be a file path in order to use the mmap argument")
    name = f"'{os.fspath(f)}'" if from_path else "the file"
    refuse = TensorFileError.of(name)
    with open(f, "rb") if from_path else nullcontext(f) as file:
        start = file.read(9)
        if not start:
            raise EmptyFileError("it is empty", file=name)
        if start[8:] != b"{" and start.startswith((b"PK", b"\x80")):
            raise refuse(PICKLE, "")
        entries, metadata = header(start, file, refuse)
        arrays = (mapped if mmap else read)(file, entries, refuse)
    for key, array in arrays.items():
        if array.dtype.kind == "b" and array.size and array.view(np.uint8).max() > 1:
            raise refuse(NOT_BOOL, key)
    arrays = {key: move(array) for key, array in arrays.items()}
    if KEY not in metadata:
        return {key: Tensor._wrap(array) for key, array in arrays.items()}
    return _described(metadata[KEY], arrays, refuse)


def _described(text: str, arrays: dict[str, np.ndarray], refuse: Refuse) -> Any:
    """The object that the description `text` makes of what is stored."""

    def damaged(problem: str, place: str) -> Exception:
        return refuse(DAMAGED.format(what=problem), place)

    description = json_text.parsed(text, LIMITS, damaged)
    version = description.get("version") if isinstance(description, dict) else None
    if type(version) is int and version != VERSION:
        raise refuse(f"it was written in version {version} of the format, and {VERSION} is known", "version")
    _DESCRIPTION.check(description, "", damaged)
    return Reader(arrays, refuse).value(description["object"])


def _mover(where: Any) -> Callable[[np.ndarray], np.ndarray]:
    """What `map_location` does to an array: nothing, if it is the CPU. RuntimeError for any other device."""
    if where is None:
        return lambda array: array
    if isinstance(where, dict):
        return _mover(where.get("cpu"))
    if isinstance(where, (str, device)):
        kind = str(where).partition(":")[0]
        if kind == "cuda":
            raise RuntimeError(NO_CUDA)
        if kind not in KINDS or device(where).type != "cpu":
            raise RuntimeError(f"don't know how to restore data location of a tensor (tagged with {where})")
        return lambda array: array
    if not callable(where):
        raise TypeError(f"'{type(where).__name__}' object is not callable")

    def moved(array: np.ndarray) -> np.ndarray:
        found: Any = where(Tensor._wrap(array), "cpu")
        return array if found is None else found._array()

    return moved
