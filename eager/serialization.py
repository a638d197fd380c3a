"""`save` and `load`: objects in files that hold tensors and a description, and no code.

A file is in the safetensors format: each tensor (or memory that several share) under the path of its keys, such as
"model.0.weight", and under "graphc" in the metadata what else there is. Other readers of the format find the tensors;
`load` reads their files too, as a dict of tensors.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

from eager.description import DAMAGED, Reader, Writer, dtype_named
from eager.devices import KINDS, device
from eager.tensor import Tensor
from graphc.errors import require

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
NOT_OURS = "{file} cannot be loaded: {why}"
PICKLE = (
    "it looks like a pickle, as PyTorch's torch.save writes them, and reading one can run code. Remedy: in PyTorch, "
    "save a dict of tensors with safetensors.torch.save_file, and load that file"
)
NUMPY_OF = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I64": "int64", "I32": "int32",
    "I16": "int16", "I8": "int8", "U64": "uint64", "U32": "uint32", "U16": "uint16", "U8": "uint8", "BOOL": "bool",
    "C64": "complex64",
}  # fmt: skip


def _library(module: str, what: str) -> Any:
    return require(module, f"torch.{what}", "safetensors")


def save(
    obj: Any,
    f: Any,
    pickle_module: Any = None,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
) -> None:
    """Write `obj` (tensors, numbers, strings, and nests of them; see `eager.description`) to a path or file object.

    As `torch.save`, but nothing is pickled: the two pickle arguments change nothing. TypeError naming the place of what
    cannot be saved, before the file is touched; a file at a path is replaced when the new one is complete.
    """
    library = _library("safetensors.numpy", "save")
    to_path = isinstance(f, (str, os.PathLike))
    if not to_path and not hasattr(f, "write"):
        raise AttributeError(NOT_A_FILE)
    writer = Writer()
    root = writer.node(obj)
    arrays = writer.arrays()
    metadata = {KEY: json.dumps({"version": VERSION, "object": root})}
    if to_path:
        _replace(os.fspath(f), lambda path: library.save_file(arrays, path, metadata))
    else:
        f.write(library.save(arrays, metadata))


def _replace(path: str, write: Callable[[str], None]) -> None:
    """Let `write` make a file beside `path`, then move it there. RuntimeError if there is no such folder."""
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        raise RuntimeError(f"Parent directory {folder} does not exist.")
    handle, temporary = tempfile.mkstemp(prefix=os.path.basename(path), suffix=".part", dir=folder)
    os.close(handle)
    try:
        write(temporary)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)  # as any new file; a temporary one is for its owner only
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.remove(temporary)
        raise


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

    No code is run, whatever `weights_only` says. map_location: "cpu" or a device, a dict, or a function of tensor and
    "cpu" that gives a tensor or None. With `mmap`, a path's tensors are read when they are used. Raises RuntimeError
    for damaged files, EOFError for an empty one.
    """
    library = _library("safetensors", "load")
    move = _mover(map_location)
    from_path = isinstance(f, (str, os.PathLike))
    if not from_path and not (hasattr(f, "seek") and hasattr(f, "read")):
        raise AttributeError(NOT_SEEKABLE.format(kind=type(f).__name__))
    if mmap and not from_path:
        raise ValueError("f must be a file path in order to use the mmap argument")
    name = f"'{os.fspath(f)}'" if from_path else "the file"
    if mmap:
        arrays, metadata = _mapped(os.fspath(f), name, library)
    else:
        arrays, metadata = _read(f, name, library)
    arrays = {key: move(array) for key, array in arrays.items()}
    if KEY not in metadata:
        return {key: Tensor._wrap(array) for key, array in arrays.items()}
    description = json.loads(metadata[KEY])
    if description.get("version") != VERSION:
        why = f"it was written in version {description.get('version')} of the format, and {VERSION} is known"
        raise RuntimeError(NOT_OURS.format(file=name, why=why))
    try:
        return Reader(arrays).value(description["object"])
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise RuntimeError(NOT_OURS.format(file=name, why=DAMAGED.format(what=repr(error)))) from error


def _read(f: Any, name: str, library: Any) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            data = file.read()
    else:
        data = f.read()
    _check_start(data[:9], name)
    try:
        entries = library.deserialize(data)
    except library.SafetensorError as error:
        raise RuntimeError(NOT_OURS.format(file=name, why=f"it is damaged, or no safetensors file ({error})")) from None
    arrays = {}
    for key, entry in entries:
        arrays[key] = _shaped(entry["data"], entry["dtype"], entry["shape"], name)
    return arrays, _header(data).get("__metadata__", {})


def _mapped(path: str, name: str, library: Any) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    with open(path, "rb") as file:
        _check_start(file.read(9), name)
    try:
        with library.safe_open(path, framework="np"):
            pass  # checks that the header is sound and the file complete
    except library.SafetensorError as error:
        raise RuntimeError(NOT_OURS.format(file=name, why=f"it is damaged, or no safetensors file ({error})")) from None
    memory = np.memmap(path, np.uint8, mode="c")
    header = _header(memory)
    metadata = header.pop("__metadata__", {})
    data = memory[8 + _header_length(memory) :].view(np.ndarray)
    arrays = {}
    for key, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        start, end = entry["data_offsets"]
        arrays[key] = _shaped(data[start:end], entry["dtype"], entry["shape"], name)
    return arrays, metadata


def _shaped(memory: Any, kind: str, shape: list[int], name: str) -> np.ndarray:
    """An array over `memory`, which may be written."""
    if kind not in NUMPY_OF:
        raise RuntimeError(NOT_OURS.format(file=name, why=f"it has tensors of type {kind}"))
    return np.ndarray(shape, dtype_named(NUMPY_OF[kind]), memory)


def _check_start(start: bytes, name: str) -> None:
    if not start:
        raise EOFError(NOT_OURS.format(file=name, why="it is empty"))
    if start[8:] != b"{" and start.startswith((b"PK", b"\x80")):
        raise RuntimeError(NOT_OURS.format(file=name, why=PICKLE))


def _header_length(data: Any) -> int:
    return int.from_bytes(bytes(data[:8]), "little")


def _header(data: Any) -> dict[str, Any]:
    return json.loads(bytes(data[8 : 8 + _header_length(data)]))


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
