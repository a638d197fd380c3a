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

from eager.checkpoints.mapped_arrays import address, check_bools, memory_of, over
from eager.core import dtypes
from eager.core.devices import device
from eager.core.parameter import Parameter
from eager.core.state import storage_of
from eager.core.tensor import Tensor
from eager.rng.generator import Generator
from graphc.errors import FileError
from graphc.files.contents import Refuse, check_keys
from graphc.files.json_text import Limits
from graphc.files.schema import EXPECTED, Anything, Flag, OneOf, Record, Row, Schema, Text, Tuple, Whole, shown

CANNOT_SAVE = (
    "cannot save an object of type '{kind}' (at {place}): a file holds tensors, arrays, numbers, strings, and lists, "
    "tuples, sets and dicts of them.{remedy}"
)
SAVE_STATE = " Remedy: save `{place}.state_dict()`, and load it into a new object with `load_state_dict`."
DAMAGED = "the description in the file is damaged: {what}"
METADATA = "__metadata__"  # what no tensor in a file can be named
LIMITS = Limits(2**26, 256, 4_000_000)  # of a description: 128 lists in each other
DECIMAL = 13_000  # bits: larger integers are hexadecimal, which takes linear time
DTYPES = {t.name: t for t in (*dtypes.BY_NUMPY.values(), dtypes.bfloat16)}
REAL_OF = {"complex64": np.dtype(np.float32), "complex128": np.dtype(np.float64)}  # stored as pairs

Node = Any  # JSON: None, bool, int, finite float and str stand for themselves; all else is {kind: content, ...}
# type -> (kind, content): values without members
PLAIN: dict[type, Callable[[Any], Node]] = {
    complex: lambda x: {"complex": [float.hex(x.real), float.hex(x.imag)]},
    bytes: lambda x: {"bytes": base64.b64encode(x).decode()},
    dtypes.Size: lambda x: {"size": list(x)},
    dtypes.dtype: lambda x: {"dtype": x.name},
    device: lambda x: {"device": str(x)},
}
READ_PLAIN: dict[str, Callable[[Any], Any]] = {
    "float": float,
    "int": lambda text: int(text, 16 if "x" in text else 10),
    "complex": lambda parts: complex(*map(float.fromhex, parts)),
    "bytes": lambda text: base64.b64decode(text, validate=True),
    "size": dtypes.Size,
    "dtype": lambda name: dtypes.of_numpy(DTYPES[name].numpy),
    "device": device,
}
SEQUENCES: dict[type, str] = {list: "list", set: "set"}  # those with an identity
FROZEN: dict[type, str] = {tuple: "tuple", frozenset: "frozenset"}
MAPPINGS: dict[type, str] = {dict: "dict", OrderedDict: "ordered", Counter: "counter"}
TENSORS = ("tensor", "parameter")  # with a second entry: whether they require grad
_ANY, _FLAG, _EXTENTS = Anything(), Flag(), Row(Whole(0), most=64)
_HEX = Text(r"[-+.0-9a-z]{3,40}", "the hexadecimal text of a float")
_MEMBERS, _ITEMS = Row(_ANY, most=LIMITS.values), Row(Tuple((_ANY, _ANY)), most=LIMITS.values)
_STORED = Record(
    {"dtype": OneOf(tuple(DTYPES)), "in": Text(most=LIMITS.size)},
    {"shape": _EXTENTS, "strides": _EXTENTS, "offset": Whole(0)},
)
# kind -> what its content may be
KINDS: dict[str, Schema] = {
    "float": OneOf(("inf", "-inf", "nan")),
    "int": Text(r"-?([0-9]{1,4300}|0x[0-9a-f]+)", "the text of an integer", LIMITS.size),
    "complex": Tuple((_HEX, _HEX)),
    "bytes": Text(about="base64", most=LIMITS.size),
    "size": Row(Whole()),
    "dtype": OneOf(tuple(DTYPES)),
    "device": Text(most=100),
    "range": Tuple((_ANY,) * 3),
    "slice": Tuple((_ANY,) * 3),
    "again": Whole(0),
    **dict.fromkeys((*SEQUENCES.values(), *FROZEN.values()), _MEMBERS),
    **dict.fromkeys(MAPPINGS.values(), _ITEMS),
    **dict.fromkeys(("scalar", "array", "generator", *TENSORS), _STORED),
}
READ_FROZEN = {kind: type_ for type_, kind in FROZEN.items()}
READ_MAPPING = {kind: type_ for type_, kind in MAPPINGS.items()}


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
            if abs(value) < 2**53:
                return value
            return {"int": str(value) if value.bit_length() < DECIMAL else hex(value)}
        if kind is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if kind in PLAIN:
            return PLAIN[kind](value)
        if kind in FROZEN:
            return {FROZEN[kind]: self._members(value, place, name)}
        if kind in (slice, range):
            return {kind.__name__: self._members((value.start, value.stop, value.step), place, name)}
        if isinstance(value, np.generic) and value.dtype.name in DTYPES:
            return {"scalar": self._array(np.asarray(value), name)}
        if not (kind in SEQUENCES or kind in MAPPINGS or isinstance(value, (Tensor, Generator)) or kind is np.ndarray):
            raise TypeError(CANNOT_SAVE.format(kind=kind.__qualname__, place=place, remedy=remedy(value, place)))
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
        return {what: self._array(value._read(), name), "grad": value.requires_grad}

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
            name = name.encode("utf-8", "replace").decode()
            while name in stored or name == METADATA:
                name += "_"
            if first.flags.c_contiguous and all(_same_view(array, first) for array, _, _ in members):
                stored[name] = _as_real(first)
                for _, node, _ in members:
                    node["in"] = name
                continue
            stored[name] = memory_of([array for array, _, _ in members])
            start = address(stored[name])
            for array, node, _ in members:
                offset = address(array) - start
                node |= {"in": name, "shape": array.shape, "strides": array.strides, "offset": offset}
        return stored


def remedy(value: Any, place: str) -> str:
    """What to do about a value that cannot be saved."""
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


@final
class Reader:
    """Turns descriptions back into objects.

    arrays  what is stored, by name
    refuse  makes the error of (problem, place in the description)
    """

    def __init__(self, arrays: dict[str, np.ndarray], refuse: Refuse):
        self._arrays, self._refuse = arrays, refuse
        self._objects: list[Any] = []  # those with an identity, in the order of appearance
        self._place: list[str | int] = []  # of what is being read

    def value(self, node: Node) -> Any:
        """The object that `node` describes. Raises what `refuse` makes if the description is damaged."""
        try:
            return self._value(node)
        except FileError:
            raise
        # what the constructors raise, whose arguments have the right types
        except (ArithmeticError, RuntimeError, TypeError, ValueError) as error:
            raise self._damaged(f"{type(error).__name__}: {error}") from error

    def _damaged(self, what: str, within: str = "") -> Exception:
        """The error about what is being read, or the part `within` it."""
        place = "object" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in self._place)
        return self._refuse(DAMAGED.format(what=what), place + within)

    def _value(self, node: Node) -> Any:
        if isinstance(node, list) or (isinstance(node, float) and not math.isfinite(node)):
            raise self._damaged(EXPECTED.format(found=shown(node), expected="a value or its description"))
        if not isinstance(node, dict):
            return node
        kind = next(iter(node), "")
        entries = {kind, "grad"} if kind in TENSORS else {kind}
        if kind not in KINDS or node.keys() != entries:
            raise self._damaged(f"it has an entry of unknown kind {shown(kind)}, or with unknown entries")
        self._place.append(kind)
        KINDS[kind].check(content := node[kind], "", self._damaged)
        made = self._made(kind, content, node)
        self._place.pop()
        return made

    def _made(self, kind: str, content: Any, node: Node) -> Any:
        if kind in READ_PLAIN:
            return READ_PLAIN[kind](content)
        if kind in READ_FROZEN:
            return self._distinct(READ_FROZEN[kind], self._members(content))
        if kind in ("slice", "range"):
            return {"slice": slice, "range": range}[kind](*self._members(content))
        if kind == "scalar":
            if (array := self._array(content)).ndim:
                raise self._damaged("a scalar with dims")
            return array[()]
        if kind == "again":
            if content >= len(self._objects):
                raise self._damaged(f"there is no object {content} before")
            return self._objects[content]
        if kind == "list":
            made: Any = self._kept([])  # before its members: one of them may be the container itself
            made += self._members(content)
        elif kind == "set":
            made = self._kept(set())
            made |= self._distinct(set, self._members(content))
        elif kind in READ_MAPPING:
            made = self._kept(READ_MAPPING[kind]())
            items = self._members([part for pair in content for part in pair])
            keys = items[::2]
            check_keys(keys, "", self._damaged)
            for key, value in zip(keys, items[1::2], strict=True):
                made[key] = value
            self._check_distinct(made, keys)
        else:
            made = self._kept(self._leaf(kind, content, node))
        return made

    def _members(self, content: list[Node]) -> list[Any]:
        found: list[Any] = []
        self._place.append(0)
        for k, member in enumerate(content):
            self._place[-1] = k
            found.append(self._value(member))
        self._place.pop()
        return found

    def _distinct(self, kind: type, members: list[Any]) -> Any:
        if kind is tuple:
            return tuple(members)
        check_keys(members, "", self._damaged)
        made = kind(members)
        self._check_distinct(made, members)
        return made

    def _check_distinct(self, made: Any, keys: list[Any]) -> None:
        if len(made) != len(keys):
            raise self._damaged("two entries that are equal")

    def _kept(self, made: Any) -> Any:
        self._objects.append(made)
        return made

    def _leaf(self, kind: str, content: Node, node: Node) -> Any:
        if kind == "array":
            return self._array(content)
        if kind == "generator":
            return Generator().set_state(Tensor._wrap(self._array(content)))
        tensor = Tensor._wrap(self._array(content))
        _FLAG.check(grad := node["grad"], "", self._damaged)
        if kind == "parameter":
            return Parameter(tensor, grad)
        return tensor.requires_grad_() if grad else tensor

    def _array(self, node: Node) -> np.ndarray:
        dtype = DTYPES[node["dtype"]].numpy
        stored = self._arrays.get(node["in"])
        if stored is None:
            raise self._damaged(f"the file has no tensor {shown(node['in'])}")
        if "strides" not in node:
            if "shape" in node or "offset" in node:
                raise self._damaged("a tensor with a shape or an offset, and no strides")
            return self._whole(stored, dtype)
        if "shape" not in node or "offset" not in node:
            raise self._damaged("a tensor with strides, and no shape or offset")
        memory = stored.reshape(-1).view(np.uint8)
        shape, strides, offset = tuple(node["shape"]), tuple(node["strides"]), node["offset"]
        array = over(memory, dtype, shape, strides, offset)
        check_bools(array, memory)
        return array

    def _whole(self, stored: np.ndarray, dtype: np.dtype) -> np.ndarray:
        real = REAL_OF.get(dtype.name)
        if stored.dtype != (real or dtype) or (real is not None and (not stored.ndim or stored.shape[-1] != 2)):
            raise self._damaged(f"what is stored is {stored.dtype}{list(stored.shape)}, which is no {dtype}")
        return stored.view(dtype)[..., 0] if real is not None else stored
