"""`.pt` files, written: pickles of protocol 2 and storages, as PyTorch writes them, by no pickler.

Tensors, parameters, numbers, texts and nests of them are written so that PyTorch reads them with
`weights_only=True`; frozen sets, slices, ranges, NumPy's arrays and generators as `torch.save` of PyTorch writes them.
"""

from __future__ import annotations

import struct
import sys
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from eager.checkpoints.description import DTYPES
from eager.checkpoints.mapped_arrays import address, memory_of
from eager.checkpoints.objects import Call, Global, call_of
from eager.checkpoints.pickle_globals import STORAGES
from eager.checkpoints.pt_files import MAGIC, PICKLE_SIZE, PROTOCOL, VALUES
from eager.core import dtypes, homes
from eager.core.devices import device
from eager.core.parameter import Parameter
from eager.core.placed import is_placed
from eager.core.sparse import is_sparse
from eager.core.state import storage_of
from eager.core.tensor import Tensor
from eager.rng.generator import Generator
from graphc.files import zipped
from graphc.ops.strides import row_major

TWO_TYPES = "Cannot save multiple tensors or storages that view the same data as different types"
TOO_LARGE = "it has more values than are read again"
TOO_DEEP = "lists and dicts are too deep in each other"
ALIGNMENT = 64  # bytes, of the start of a storage in a file
DEPTH = 128  # of what is written; a little less than what is read
_KEPT = 32  # characters of a text that is written once: what loading copies stays in proportion to the file
_COST = 50  # of a call, in the reader's values


@final
@dataclass(frozen=True)
class Stored:
    """A storage: of the memory of an array, or the part of it that it shows."""

    array: np.ndarray


def _of_dtype(x: np.dtype) -> Call:
    return Call("numpy dtype", (x.str[1:], False, True), state=(3, x.str[0], None, None, None, -1, -1, 0))


def _of_array(x: np.ndarray) -> Call:
    made = (Global("numpy ndarray"), (0,), b"b")
    return Call("numpy._core.multiarray _reconstruct", made, state=(1, x.shape, _of_dtype(x.dtype), False, x.tobytes()))


def _of_tensor(x: Tensor) -> Call:
    if is_sparse(x):
        data = x._d
        about = (dtypes.Size(data.shape), *((data.coalesced,) if len(data.parts) == 2 else ()))
        layout = Call("torch.serialization _get_layout", (f"torch.{data.layout}",))
        parts = tuple(part.detach() for part in data.parts)
        return Call("torch._utils _rebuild_sparse_tensor", (layout, (*parts, *about)))
    array, memory = _storage(x._array())
    unit = array.itemsize
    offset = (address(array) - address(memory)) // unit
    kind = dtypes.of_numpy(array.dtype)
    steps = tuple(step // unit for step in array.strides) if array.size else row_major(array.shape)
    place = (Stored(array), offset if array.size else 0, array.shape, steps)
    if kind.name in _STORAGE_OF:
        return Call("torch._utils _rebuild_tensor_v2", (*place, x.requires_grad, OrderedDict()))
    return Call("torch._utils _rebuild_tensor_v3", (*place, x.requires_grad, OrderedDict(), kind))


def _of_plain(x: Tensor) -> Call | Global:
    """A tensor, with the attributes that it has been given."""
    return _of_subclass(x) if vars(x) else _of_tensor(x)


def _of_parameter(x: Parameter) -> Call:
    state = (dict(vars(x)),) if vars(x) else ()
    function = "_rebuild_parameter_with_state" if state else "_rebuild_parameter"
    return Call(f"torch._utils {function}", (x.detach(), x.requires_grad, OrderedDict(), *state))


_STORAGE_OF = {dtype: f"torch {name}Storage" for name, dtype in STORAGES.items()}
# type -> what makes such a value
REDUCED: dict[type, Callable[[Any], Call | Global]] = {
    complex: lambda x: Call("__builtin__ complex", (x.real, x.imag)),
    bytes: lambda x: Call("_codecs encode", (x.decode("latin1"), "latin1")),
    bytearray: lambda x: Call("__builtin__ bytearray", (bytes(x),)),
    set: lambda x: Call("__builtin__ set", (list(x),)),
    frozenset: lambda x: Call("__builtin__ frozenset", (list(x),)),
    slice: lambda x: Call("__builtin__ slice", (x.start, x.stop, x.step)),
    range: lambda x: Call("__builtin__ xrange", (x.start, x.stop, x.step)),
    OrderedDict: lambda x: Call("collections OrderedDict", (), x.items(), vars(x) or None),
    Counter: lambda x: Call("collections Counter", (dict(x),)),
    dtypes.Size: lambda x: Call("torch Size", (tuple(x),)),
    dtypes.dtype: lambda x: Global(f"torch {x.name}"),
    device: lambda x: Call("torch device", (x.type,) if x.index is None else (x.type, x.index)),
    np.ndarray: _of_array,
    Parameter: _of_parameter,
    Tensor: _of_plain,
    Generator: lambda x: Call("torch._C Generator", (x.device,), state=(x.initial_seed(), None, x.get_state())),
}
_BASES = (Parameter, Tensor, Generator)  # whose subclasses here are kept as them


@final
class Pickle:
    """One object as a pickle, `data`, and its `storages` by key: flat arrays of bytes.

    legacy  whether persistent ids are those of the format of before
    """

    def __init__(self, value: Any, legacy: bool = False):
        """TypeError that names the place of what cannot be saved, or ValueError for what could not be loaded again."""
        self.data = bytearray(b"\x80\x02")
        self.storages: dict[str, np.ndarray] = {}
        self.kinds: dict[str, dtypes.dtype] = {}
        self._legacy = legacy
        self._numbers: dict[Any, int] = {}  # id of an object, or a text or Global itself -> its number in the memo
        self._alive: list[Any] = []  # so that no id is given away
        self._keys: dict[int, str] = {}  # id of a storage's owner -> its key
        self._hosts: dict[int, np.ndarray] = {}  # id of the memory of tensors on a device -> its values
        self._locations: dict[int, str] = {}  # id of the owner of memory -> where it was, if that was not the CPU
        self._cost = self._deepest = 0
        self._plain = True  # whether there are values only, which are read again without `pickle`
        self._emit(value, "obj", 0)
        self.data += b"."
        if self._plain and self._deepest > DEPTH:
            raise ValueError(TOO_DEEP)
        if self._plain and (self._cost > VALUES or len(self.data) > PICKLE_SIZE):
            raise ValueError(TOO_LARGE)

    def _emit(self, value: Any, place: str, depth: int) -> None:
        self._deepest = max(self._deepest, depth)
        self._cost += 2
        kind = type(value)
        if kind in _PLAIN:
            self.data += _PLAIN[kind](value)
        elif kind is str and len(value) > _KEPT:
            self.data += _text(value)
        elif kind is str or kind is Global:
            if not self._again(value):
                self.data += _text(value) if kind is str else f"c{value.name.replace(' ', chr(10))}\n".encode()
                self._put(value)
        elif kind is Stored:
            self._emit(self._persistent_id(value.array), place, depth)
            self.data += b"Q"
        elif kind is tuple:
            self._tuple(value, place, depth)
        elif not self._again(id(value)):
            if kind is list:
                self._list(value, place, depth)
            elif kind is dict:
                self.data += b"}"
                self._put(id(value), value)
                self._items(value.items(), place, depth)
            else:
                self._reduced(value, place, depth)

    def _again(self, key: Any) -> bool:
        number = self._numbers.get(key)
        if number is not None:
            self.data += b"h%c" % number if number < 256 else b"j" + struct.pack("<I", number)
        return number is not None

    def _put(self, key: Any, value: Any = None) -> None:
        self._numbers[key] = number = len(self._numbers)
        self._alive.append(value)
        self.data += b"q%c" % number if number < 256 else b"r" + struct.pack("<I", number)

    def _tuple(self, value: tuple[Any, ...], place: str, depth: int) -> None:
        if len(value) > 3:
            self.data += b"("
        for k, member in enumerate(value):
            self._emit(member, f"{place}[{k}]", depth + 1)
        self.data += (b")", b"\x85", b"\x86", b"\x87")[len(value)] if len(value) <= 3 else b"t"

    def _list(self, value: list[Any], place: str, depth: int) -> None:
        self.data += b"]"
        self._put(id(value), value)
        self._members(value, place, depth)

    def _members(self, members: Iterable[Any], place: str, depth: int) -> None:
        if members := list(members):
            self.data += b"("
            for k, member in enumerate(members):
                self._emit(member, f"{place}[{k}]", depth + 1)
            self.data += b"e"

    def _items(self, items: Iterable[tuple[Any, Any]], place: str, depth: int) -> None:
        items = list(items)
        if not items:
            return
        self.data += b"("
        for key, value in items:
            inside = f"{place}[{key!r}]" if isinstance(key, (str, int)) else f"{place}[{type(key).__name__}]"
            self._emit(key, f"{inside} (the key)", depth + 1)
            self._emit(value, inside, depth + 1)
        self.data += b"u"

    def _reduced(self, value: Any, place: str, depth: int) -> None:
        call = self._call(self._at_hand(value), place)
        if isinstance(call, Global):
            self._emit(call, place, depth)
            return
        self._cost += _COST
        self._emit(Global(call.function) if isinstance(call.function, str) else call.function, place, depth)
        self._tuple(call.arguments, place, depth - 1)
        self.data += b"\x81" if call.new else b"R"
        if id(value) in self._numbers:  # its arguments have led to itself: what they have made is the one
            self.data += b"0"
            self._again(id(value))
            return
        self._put(id(value), value)
        self._members(call.members, place, depth)
        self._items(call.items, place, depth)
        if call.state is not None:
            self._emit(call.state, place, depth)
            self.data += b"b"

    def _at_hand(self, value: Any) -> Any:
        """A tensor on a device as one on the CPU, in the same memory as others that share it there."""
        if type(value) is not Tensor or not is_placed(value):
            return value
        memory = value._d.memory
        if id(memory) not in self._hosts:
            self._hosts[id(memory)] = whole = value._d.hosted_whole()
            self._alive += [memory, whole]
            self._locations[id(storage_of(whole))] = str(value.device)
        found = Tensor._wrap(value._d.hosted(self._hosts[id(memory)]))
        return found.requires_grad_() if value.requires_grad else found

    def _persistent_id(self, array: np.ndarray) -> tuple[Any, ...]:
        owner, memory = storage_of(array), _storage(array)[1]
        kind = dtypes.of_numpy(array.dtype)
        if id(owner) not in self._keys:
            self._keys[id(owner)] = key = str(len(self._keys))
            self._alive.append(owner)
            self.storages[key], self.kinds[key] = memory, kind
        key = self._keys[id(owner)]
        if self.kinds[key] is not kind:
            raise RuntimeError(TWO_TYPES)
        known = kind.name in _STORAGE_OF
        count = memory.size // kind.itemsize if known else memory.size
        untyped = "torch ByteStorage" if self._legacy else "torch.storage UntypedStorage"
        name = _STORAGE_OF.get(kind.name, untyped)
        location = self._locations.get(id(owner), "cpu")
        return ("storage", Global(name), key, location, count) + ((None,) if self._legacy else ())

    def _call(self, value: Any, place: str) -> Call | Global:
        if type(value) is Call:
            return value
        if (known := _known(value)) is not None:
            return known
        self._plain = False
        try:
            return _of_subclass(value) if _is_of_subclass(value) else call_of(value)
        except Exception as error:
            error.add_note(f"It is at {place}, the object that is to be saved.")
            raise


def _known(value: Any) -> Call | Global | None:
    """What makes a value that files without code hold. None for all others."""
    kind = type(value)
    if isinstance(value, np.generic) and value.dtype.name in DTYPES and value.dtype.kind != "V":
        return Call("numpy._core.multiarray scalar", (_of_dtype(value.dtype), value.tobytes()))
    if kind is np.ndarray and (value.dtype.name not in DTYPES or value.dtype.kind == "V"):
        return None
    made = REDUCED.get(kind)
    if made is None and homes.is_ours(kind.__module__):
        bases = (base for base in _BASES if isinstance(value, base) and kind.__reduce__ is base.__reduce__)
        made = next((REDUCED[base] for base in bases), None)
    return None if made is None else made(value)


def _of_subclass(x: Tensor) -> Call | Global:
    """A tensor of a user's class, with its attributes. As `torch._tensor._rebuild_from_type_v2` takes it."""
    made: Any = REDUCED[Tensor](Tensor._wrap(x._d).requires_grad_(x.requires_grad))
    kind = Global("torch Tensor") if type(x) is Tensor else type(x)
    return Call("torch._tensor _rebuild_from_type_v2", (Global(made.function), kind, made.arguments, dict(vars(x))))


def _is_of_subclass(value: Any) -> bool:
    """Whether a value is a tensor, and of a class that does not say itself how it is kept."""
    return isinstance(value, Tensor) and type(value).__reduce__ is Tensor.__reduce__


def _storage(array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The array, and all the memory that its owner has; a copy of it, if it lies there as no tensor of PyTorch can."""
    unit = array.itemsize
    memory = memory_of([storage_of(array)])
    offset = address(array) - address(memory)
    if array.size and (offset % unit or any(step % unit or step < 0 for step in array.strides)):
        array = array.copy()
        memory = memory_of([array])
    return array, memory[: memory.size // unit * unit]


def _text(value: str) -> bytes:
    data = value.encode("utf-8", "surrogatepass")
    return b"X" + struct.pack("<I", len(data)) + data


def _whole(value: int) -> bytes:
    if 0 <= value < 256:
        return b"K%c" % value
    if 0 <= value < 65536:
        return b"M" + struct.pack("<H", value)
    if -(2**31) <= value < 2**31:
        return b"J" + struct.pack("<i", value)
    data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return (b"\x8a%c" % len(data) if len(data) < 256 else b"\x8b" + struct.pack("<i", len(data))) + data


_PLAIN: dict[type, Callable[[Any], bytes]] = {
    type(None): lambda x: b"N",
    bool: lambda x: b"\x88" if x else b"\x89",
    int: _whole,
    float: lambda x: b"G" + struct.pack(">d", x),
}


def write_zip(made: Pickle, file: Any, name: str) -> None:
    """Write a zip file as PyTorch does. `name` is that of the folder inside."""
    contents: list[tuple[str, Any]] = [
        ("data.pkl", made.data), ("byteorder", sys.byteorder.encode()),
        *((f"data/{key}", memory) for key, memory in made.storages.items()), ("version", b"3\n"),
    ]  # fmt: skip
    zipped.write(file, ((f"{name}/{member}", data) for member, data in contents), ALIGNMENT)


def write_legacy(made: Pickle, file: Any) -> None:
    """Write a file as PyTorch does with `_use_new_zipfile_serialization=False`."""
    sizes = {"protocol_version": PROTOCOL, "little_endian": sys.byteorder == "little",
             "type_sizes": {"short": 2, "int": 4, "long": 4}}  # fmt: skip
    for head in (MAGIC, PROTOCOL, sizes):
        file.write(bytes(Pickle(head).data))
    file.write(bytes(made.data))
    keys = sorted(made.storages)
    file.write(bytes(Pickle(keys).data))
    for key in keys:
        memory, kind = made.storages[key], made.kinds[key]
        count = memory.size // (kind.itemsize if kind.name in _STORAGE_OF else 1)
        file.write(count.to_bytes(8, "little"))
        file.write(memory)
