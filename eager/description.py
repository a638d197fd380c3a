"""Objects as a JSON description and named arrays, and back: what is in a file of `eager.save`.

Kept are None, bool, int, float, complex, str, bytes, slice, range, Size, dtype, device, Generator, tuple, list, dict,
OrderedDict, Counter, set, frozenset, ndarray and its scalars, Tensor and Parameter. Lists, dicts, sets and tensors that
appear twice are one object after loading too, and tensors that share memory share it again. Nothing else can be kept,
so that reading a description never runs code.
"""

from __future__ import annotations

import base64
import math
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any, final

import numpy as np

from eager import dtypes
from eager.devices import device
from eager.generator import Generator
from eager.state import storage_of
from eager.tensor import Parameter, Tensor

CANNOT_SAVE = (
    "cannot save an object of type '{kind}' (at {place}): a file holds tensors, arrays, numbers, strings, and lists, "
    "tuples, sets and dicts of them.{remedy}"
)
SAVE_STATE = " Remedy: save `{place}.state_dict()`, and load it into a new object with `load_state_dict`."
DAMAGED = "the description in the file is damaged: {what}"
DTYPES = {t.name: t for t in (*dtypes.BY_NUMPY.values(), dtypes.bfloat16)}
REAL_OF = {"complex64": np.dtype(np.float32), "complex128": np.dtype(np.float64)}  # stored as pairs

Node = Any  # JSON: None, bool, int, finite float and str stand for themselves; all else is {kind: content, ...}
# type -> (kind, content): values without members
PLAIN: dict[type, Callable[[Any], Node]] = {
    complex: lambda x: {"complex": [float.hex(x.real), float.hex(x.imag)]},
    bytes: lambda x: {"bytes": base64.b64encode(x).decode()},
    range: lambda x: {"range": [x.start, x.stop, x.step]},
    dtypes.Size: lambda x: {"size": list(x)},
    dtypes.dtype: lambda x: {"dtype": x.name},
    device: lambda x: {"device": str(x)},
}
READ_PLAIN: dict[str, Callable[[Any], Any]] = {
    "float": float,
    "int": int,
    "complex": lambda parts: complex(*map(float.fromhex, parts)),
    "bytes": base64.b64decode,
    "range": lambda bounds: range(*bounds),
    "size": dtypes.Size,
    "dtype": lambda name: dtypes.of_numpy(dtype_named(name)),
    "device": device,
}
SEQUENCES: dict[type, str] = {list: "list", set: "set"}  # those with an identity
FROZEN: dict[type, str] = {tuple: "tuple", frozenset: "frozenset"}
MAPPINGS: dict[type, str] = {dict: "dict", OrderedDict: "ordered", Counter: "counter"}
READ_FROZEN = {kind: type_ for type_, kind in FROZEN.items()}
READ_MAPPING = {kind: type_ for type_, kind in MAPPINGS.items()}


def dtype_named(name: str) -> np.dtype:
    """The NumPy dtype that a description names. RuntimeError for any other name."""
    if name not in DTYPES:
        raise RuntimeError(DAMAGED.format(what=f"there is no dtype '{name}'"))
    return DTYPES[name].numpy


@final
class Writer:
    """Turns one object into its description. `arrays()` then gives the arrays that it refers to, by name."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}  # id -> number of an object with an identity, in the order of appearance
        self._alive: list[Any] = []  # so that no id is given away
        self._memory: dict[int, list[tuple[np.ndarray, Node, str]]] = {}  # id(storage) -> its arrays

    def node(self, value: Any, place: str = "obj", name: str = "") -> Node:
        """The description of `value`; `place` says in messages where it is, `name` in the file.

        Raises TypeError for what cannot be kept.
        """
        kind = type(value)
        if value is None or kind is bool or kind is str:
            return value
        if kind is int:
            return value if abs(value) < 2**53 else {"int": str(value)}
        if kind is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if kind in PLAIN:
            return PLAIN[kind](value)
        if kind in FROZEN:
            return {FROZEN[kind]: self._members(value, place, name)}
        if kind is slice:
            return {"slice": self._members((value.start, value.stop, value.step), place, name)}
        if isinstance(value, np.generic) and value.dtype.name in DTYPES:
            return {"scalar": self._array(np.asarray(value), name)}
        if not (kind in SEQUENCES or kind in MAPPINGS or isinstance(value, (Tensor, Generator)) or kind is np.ndarray):
            raise TypeError(CANNOT_SAVE.format(kind=kind.__qualname__, place=place, remedy=_remedy(value, place)))
        if id(value) in self._numbers:
            return {"again": self._numbers[id(value)]}
        self._numbers[id(value)] = len(self._numbers)
        self._alive.append(value)
        if kind in SEQUENCES:
            return {SEQUENCES[kind]: self._members(value, place, name)}
        if kind in MAPPINGS:
            return {MAPPINGS[kind]: self._items(value, place, name)}
        if isinstance(value, Generator):
            return {"generator": self._array(value.get_state()._array(), name)}
        if isinstance(value, np.ndarray):
            if value.dtype.name not in DTYPES:
                kind_text = f"ndarray of {value.dtype}"
                raise TypeError(CANNOT_SAVE.format(kind=kind_text, place=place, remedy=""))
            return {"array": self._array(value, name)}
        what = "parameter" if isinstance(value, Parameter) else "tensor"
        return {what: self._array(value._array(), name), "grad": value.requires_grad}

    def _members(self, values: Any, place: str, name: str) -> list[Node]:
        return [self.node(v, f"{place}[{i}]", _joined(name, i)) for i, v in enumerate(values)]

    def _items(self, mapping: Any, place: str, name: str) -> list[Node]:
        return [
            [self.node(key, f"{place}[{key!r}] (the key)", name), self.node(value, f"{place}[{key!r}]",
             _joined(name, key))] for key, value in mapping.items()
        ]  # fmt: skip

    def _array(self, array: np.ndarray, name: str) -> Node:
        """A description of `array` that `arrays` completes, when it is known what else shares its memory."""
        node: dict[str, Any] = {"dtype": array.dtype.name}
        owner = storage_of(array)
        self._alive.append(owner)
        self._memory.setdefault(id(owner), []).append((array, node, name or "tensor"))
        return node

    def arrays(self) -> dict[str, np.ndarray]:
        """What is to be stored, all contiguous: an array by itself, or the memory that several share."""
        stored: dict[str, np.ndarray] = {}
        for members in self._memory.values():
            first, _, name = members[0]
            while name in stored:
                name += "_"
            if first.flags.c_contiguous and all(_same_view(array, first) for array, _, _ in members):
                stored[name] = _as_real(first)
                for _, node, _ in members:
                    node["in"] = name
                continue
            stored[name], start = _memory_of([array for array, _, _ in members])
            for array, node, _ in members:
                offset = array.__array_interface__["data"][0] - start
                node |= {"in": name, "shape": array.shape, "strides": array.strides, "offset": offset}
        return stored


def _remedy(value: Any, place: str) -> str:
    if hasattr(value, "state_dict"):
        return SAVE_STATE.format(place=place)
    return " Remedy: save the values it is made of." if hasattr(value, "__dict__") else ""


def _joined(name: str, key: Any) -> str:
    return f"{name}.{key}" if name else str(key)


def _same_view(a: np.ndarray, b: np.ndarray) -> bool:
    return (a.__array_interface__["data"][0], a.shape, a.strides, a.dtype) == (
        b.__array_interface__["data"][0], b.shape, b.strides, b.dtype
    )  # fmt: skip


def _as_real(array: np.ndarray) -> np.ndarray:
    """Complex numbers as pairs along a new last dim: the file format has none."""
    real = REAL_OF.get(array.dtype.name)
    return array if real is None else array[..., None].view(real)


class _Memory:
    """The bytes from `start` to `end`, as NumPy takes them."""

    def __init__(self, start: int, end: int):
        self.__array_interface__ = {"data": (start, True), "shape": (end - start,), "typestr": "|u1", "version": 3}


def _memory_of(arrays: list[np.ndarray]) -> tuple[np.ndarray, int]:
    """A copy of the memory that the arrays lie in, and the address of its first byte."""
    bounds = [np.lib.array_utils.byte_bounds(array) for array in arrays]
    start, end = min(low for low, _ in bounds), max(high for _, high in bounds)
    return np.array(_Memory(start, end)), start


@final
class Reader:
    """Turns descriptions back into objects. `arrays`: what is stored, by name."""

    def __init__(self, arrays: dict[str, np.ndarray]):
        self._arrays = arrays
        self._objects: list[Any] = []  # those with an identity, in the order of appearance

    def value(self, node: Node) -> Any:
        """The object that `node` describes. RuntimeError if the description is damaged."""
        if not isinstance(node, dict):
            return node
        if not node:
            raise RuntimeError(DAMAGED.format(what="an entry is empty"))
        kind, content = next(iter(node.items()))
        if kind in READ_PLAIN:
            return READ_PLAIN[kind](content)
        if kind in READ_FROZEN:
            return READ_FROZEN[kind](map(self.value, content))
        if kind == "slice":
            return slice(*map(self.value, content))
        if kind == "scalar":
            return self._array(content)[()]
        if kind == "again":
            return self._objects[content]
        if kind in ("list", "set"):
            return self._filled([] if kind == "list" else set(), content)
        if kind in READ_MAPPING:
            made: Any = READ_MAPPING[kind]()
            self._objects.append(made)
            for key, value in content:
                key = self.value(key)
                made[key] = self.value(value)
            return made
        return self._kept(self._leaf(kind, content, node))

    def _filled(self, made: Any, content: list[Node]) -> Any:
        self._objects.append(made)  # before its members: one of them may be the container itself
        add = made.append if isinstance(made, list) else made.add
        for member in content:
            add(self.value(member))
        return made

    def _kept(self, made: Any) -> Any:
        self._objects.append(made)
        return made

    def _leaf(self, kind: str, content: Node, node: Node) -> Any:
        if kind == "array":
            return self._array(content)
        if kind == "generator":
            return Generator().set_state(Tensor._wrap(self._array(content)))
        if kind not in ("tensor", "parameter"):
            raise RuntimeError(DAMAGED.format(what=f"it has an entry of unknown kind '{kind}'"))
        tensor = Tensor._wrap(self._array(content))
        if kind == "parameter":
            return Parameter(tensor, bool(node["grad"]))
        return tensor.requires_grad_() if node["grad"] else tensor

    def _array(self, node: Node) -> np.ndarray:
        dtype = dtype_named(node["dtype"])
        stored = self._arrays.get(node["in"])
        if stored is None:
            raise RuntimeError(DAMAGED.format(what=f"the file has no tensor '{node['in']}'"))
        if "strides" not in node:
            return stored.view(dtype)[..., 0] if dtype.kind == "c" else stored
        memory = stored.reshape(-1).view(np.uint8)
        shape, strides, offset = tuple(node["shape"]), tuple(node["strides"]), node["offset"]
        last = offset + sum(step * (size - 1) for size, step in zip(shape, strides, strict=True)) + dtype.itemsize
        if math.prod(shape) and (offset < 0 or min(strides, default=0) < 0 or last > memory.size):
            raise RuntimeError(DAMAGED.format(what=f"a tensor in '{node['in']}' reaches beyond its memory"))
        return np.ndarray(shape, dtype, memory, offset if math.prod(shape) else 0, strides)
