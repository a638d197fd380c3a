"""`save` and `load`: objects in files that hold tensors.

A `.pt` file is as PyTorch writes it (`eager.checkpoints.writing`), and is read by a reader that runs nothing
(`eager.checkpoints.pt_files`) unless the user trusts it (`eager.checkpoints.trusted`). Names that end in `.safetensors`
and `.npz` are files of those formats: the first holds each tensor (or memory that several share) under the path of its
keys, such as "model.0.weight", and under "graphc" in the metadata what else there is; the second a dict of arrays.
`load` tells formats apart by their content.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import re
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import FunctionType, ModuleType
from typing import IO, Any

import numpy as np

from eager.checkpoints import npz_files, pt_files, trusted, writing
from eager.checkpoints.description import DAMAGED, LIMITS, Reader, Writer
from eager.checkpoints.mapped_arrays import NOT_BOOL
from eager.checkpoints.safe_globals import add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals
from eager.checkpoints.safetensors_files import header, mapped, read
from eager.core.devices import CPU, KNOWN, check_device, device
from eager.core.placed import Placed, is_elsewhere, put
from eager.core.runtime import devices
from eager.core.state import storage_of
from eager.core.tensor import Tensor
from eager.storage import UntypedStorage, address
from graphc.errors import EmptyFileError, TensorFileError, require
from graphc.files import json_text, zipped
from graphc.files.contents import Refuse, printable
from graphc.files.schema import Anything, Record, Whole
from graphc.files.writing import draft

__all__ = ["add_safe_globals", "clear_safe_globals", "get_safe_globals", "load", "safe_globals", "save"]

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
NO_LOCATION = "don't know how to restore data location of torch.storage.UntypedStorage (tagged with {where})"
NO_PICKLE_MODULE = "Can not safely load weights when explicit pickle_module is specified"
UNUSED = "pickle_load_args only works if `weights_only=False`."
TOO_MUCH = "cannot save an object that could not be loaded: {problem}. Remedy: keep numbers in tensors"
_DESCRIPTION = Record({"version": Whole(0), "object": Anything()})
_NESTED = "lists and dicts are too deep in each other"


def save(
    obj: Any,
    f: Any,
    pickle_module: Any = pickle,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Write `obj` (tensors, numbers, strings, nests of them) to a path or file object. As `torch.save`.

    `load` reads files of values without running code, here and in PyTorch. Any other object, such as a module, an
    optimizer or one of a user's class, is kept by the name of its class and its state, as `pickle` does, with PyTorch's
    names: such files are for `load(weights_only=False)` here and in PyTorch. The two pickle arguments change nothing.

    Raises what `pickle` raises for what it cannot keep, with a note of its place, TypeError for what could not be
    loaded again, and RuntimeError for memory that is shown in two dtypes, before the file is touched; a file at a path
    is replaced when the new one is complete.
    """
    to_path = isinstance(f, (str, os.PathLike))
    if not to_path and not hasattr(f, "write"):
        raise AttributeError(NOT_A_FILE)
    path = Path(f) if to_path else Path("archive.pt")
    write = _writer(obj, path, _use_new_zipfile_serialization)
    if not to_path:
        write(f)
        return
    if not path.parent.is_dir():
        raise RuntimeError(f"Parent directory {path.parent} does not exist.")
    with draft(f) as name, open(name, "wb") as file:
        write(file)


def _writer(obj: Any, path: Path, zipped_format: bool) -> Callable[[Any], None]:
    """What writes `obj` to a file object in the format of the name, once it is known that it can be saved."""
    try:
        if path.suffix == ".safetensors":
            data = _safetensors(obj)
            return lambda file: file.write(data)
        if path.suffix == ".npz":
            members = npz_files.contents_of(obj)
            return lambda file: zipped.write(file, members, np.lib.format.ARRAY_ALIGN)
        made = writing.Pickle(obj, legacy=not zipped_format)
    except RecursionError:
        raise _too_much(_NESTED) from None
    except ValueError as error:
        raise _too_much(str(error)) from None
    if zipped_format:
        folder = path.stem if re.fullmatch(r"\w[\w .-]*", path.stem) else "archive"
        return lambda file: writing.write_zip(made, file, folder)
    return lambda file: writing.write_legacy(made, file)


def _safetensors(obj: Any) -> bytes:
    library = require("safetensors.numpy", "torch.save", "safetensors")
    writer = Writer()
    root = writer.node(obj)
    arrays = writer.arrays()
    text = json.dumps({"version": VERSION, "object": root})
    json_text.check(text, LIMITS, _too_much)
    data = library.save(arrays, {KEY: text})
    header(b"", io.BytesIO(data), _too_much)
    return data


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
    """Read what `save`, or PyTorch's `torch.save`, wrote, or the tensors of a safetensors or `.npz` file. As
    `torch.load`.

    f             a path or a seekable file object
    map_location  "cpu" or a device, a dict from the locations in the file to others, or a function of a storage and its
                  location that gives a storage or None
    weights_only  unless it is False, no code of the file is run, and memory and time are in proportion to the file.
                  False reads any object by `pickle` (or `pickle_module`, with `pickle_load_args`): the file can run
                  any code, so ask for it only if you trust who wrote the file
    mmap          a path's tensors are read when they are used; the file must stay as it is until then

    Raises TensorFileError, a RuntimeError that names the file and the place in it, for damaged files; WeightsError, a
    kind of it that is a pickle.UnpicklingError, too, for pickles that ask for more than values; for an empty file an
    EOFError.
    """
    if pickle_module is not None and weights_only is not False:
        raise RuntimeError(NO_PICKLE_MODULE)
    if pickle_load_args and weights_only is not False:
        warnings.warn(UNUSED, UserWarning, stacklevel=2)
    from_path = isinstance(f, (str, os.PathLike))
    if not from_path and not (hasattr(f, "seek") and hasattr(f, "read")):
        raise AttributeError(NOT_SEEKABLE.format(kind=type(f).__name__))
    if mmap and not from_path:
        raise ValueError("f must be a file path in order to use the mmap argument")
    name = f"'{os.fspath(f)}'" if from_path else "the file"
    trust = None
    if weights_only is False:
        trust = trusted.Trust(pickle_module or pickle, {"encoding": "utf-8", **pickle_load_args})
    homes: dict[int, tuple[np.ndarray, device]] = {}
    move = _mover(map_location, TensorFileError.of(name), homes)
    with open(f, "rb") if from_path else nullcontext(f) as file:
        found = _loaded(file, move, name, bool(mmap), trust)
    return found if not homes else _brought_home(found, homes, {}, {})


def _loaded(file: IO[bytes], move: pt_files.Move, name: str, mmap: bool, trust: trusted.Trust | None) -> Any:
    refuse = TensorFileError.of(name)
    begin = file.tell()
    start = file.read(9)
    if not start:
        raise EmptyFileError("it is empty", file=name)
    if zipped.is_zipped(start):
        members = zipped.members(file, refuse)
        if not npz_files.is_npz(members):
            return pt_files.load_zip(file, members, move, name, mmap, trust)
        return _tensors(npz_files.read(file, members, refuse), move)
    if start[8:] != b"{":
        file.seek(begin)
        return pt_files.load_legacy(file, move, name, mmap, trust)
    entries, metadata = header(start, file, refuse)
    arrays = (mapped if mmap else read)(file, entries, refuse)
    for key, array in arrays.items():
        if array.dtype.kind == "b" and array.size and array.view(np.uint8).max() > 1:
            raise refuse(NOT_BOOL, key)
    if KEY not in metadata:
        return _tensors(arrays, move)
    return _described(metadata[KEY], {key: _moved(array, move) for key, array in arrays.items()}, refuse)


def _tensors(arrays: dict[str, np.ndarray], move: pt_files.Move) -> dict[str, Tensor]:
    return {key: Tensor._wrap(_moved(array, move)) for key, array in arrays.items()}


def _moved(array: np.ndarray, move: pt_files.Move) -> np.ndarray:
    order = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
    memory = move(array.reshape(-1, order=order).view(np.uint8), "cpu")
    return memory.view(array.dtype).reshape(array.shape, order=order)


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


def _brought_home(value: Any, homes: dict[int, tuple[np.ndarray, device]], seen: dict[int, Any],
                  made: dict[Any, Placed]) -> Any:  # fmt: skip
    """`value`, what a file held, with its tensors on the devices that `homes` gives by the owner of their memory."""
    if isinstance(value, Tensor):
        owner = None if is_elsewhere(value) else storage_of(value._array())
        if id(owner) in homes:
            array = value._array()
            shown = address(array), array.shape, array.strides, array.dtype
            if shown not in made:
                made[shown] = put(array, homes[id(owner)][1])
            value._d = made[shown]
        return value
    if id(value) in seen or isinstance(value, (type, FunctionType, ModuleType)):
        return value
    seen[id(value)] = value
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple, set)) else ()
    for member in [*inside, *getattr(value, "__dict__", {}).values()]:
        _brought_home(member, homes, seen, made)
    return value


def _mover(where: Any, refuse: Refuse, homes: dict[int, tuple[np.ndarray, device]]) -> pt_files.Move:
    """What `map_location` does to the memory of a storage. RuntimeError for a device that there is not, and what
    `refuse` makes where the file asks for one. `homes` gets what is for another device than the CPU."""

    def kept(memory: np.ndarray, location: Any) -> np.ndarray:
        if (home := check_device(location)) is not CPU:
            owner = storage_of(memory)
            homes[id(owner)] = owner, home
        return memory

    if isinstance(where, bytes):
        where = where.decode("latin1")
    if isinstance(where, (str, device)):
        if problem := _elsewhere(where):
            raise RuntimeError(problem)
        return lambda memory, location: kept(memory, where)
    if not (where is None or isinstance(where, dict) or callable(where)):
        raise TypeError(f"'{type(where).__name__}' object is not callable")

    def moved(memory: np.ndarray, location: str) -> np.ndarray:
        if isinstance(where, dict):
            location = where.get(location, location)
        elif where is not None:
            found: Any = where(UntypedStorage(memory), location)
            if found is not None:
                owner = found._owner if isinstance(found, UntypedStorage) else found._array()
                return owner.reshape(-1).view(np.uint8)
        if problem := _elsewhere(location):
            raise refuse(problem, "")
        return kept(memory, location)

    return moved


def _elsewhere(location: Any) -> str:
    """What is wrong with a location that is not the CPU."""
    kind = str(location).partition(":")[0]
    if kind in KNOWN and devices(kind):
        return ""
    if kind == "cuda":
        return NO_CUDA
    return "" if str(location) in ("cpu", "cpu:0") else NO_LOCATION.format(where=printable(str(location)))


DEFAULT_PROTOCOL = 2  # of pickles
MAP_LOCATION = Callable[[Any, str], Any] | device | str | dict[str, str] | None  # for annotations
