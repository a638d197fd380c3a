"""Pickles from outside, without `pickle`: a reader of a closed list of opcodes, which calls what it is given only.

The list is that in which protocols 2 to 5 write data; CPython's Lib/pickletools.py describes it. What may stand for a
global, what may be called and what may be built is for the caller to say. Memory and time are in proportion to the
data: each value costs a part of a budget, so that two bytes cannot copy a million values.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, final

from graphc.errors import FileError
from graphc.files.contents import ONE_HASH, SAME_HASH, Refuse

ENDS = "it ends early"
UNDERFLOW = "its stack is empty, or ends at a mark"
NO_OPCODE = "Unsupported operand {code}"
NO_KEY = "a key of type {kind}, or one that is made of too much"
TOO_MUCH = "more values than are read of such a file"
NOT_CALLED = "Trying to call reduce for unrecognized function {what}"
PROTOCOLS = 2, 3, 4, 5
_NAME = 300  # characters of a global's module, and of its name
_KEY_PARTS, _KEY_BITS = 1000, 20_000  # of one key: hashing takes time in proportion
_SLACK = 1_000_000  # bytes that calls may copy besides those of the file


@final
@dataclass(frozen=True, eq=False)
class Function:
    """What a pickle may call: `make(*arguments)`, which checks them, and raises TypeError or ValueError.

    new: what makes an object that is then built, if that is another.
    """

    name: str
    make: Callable[..., Any]
    new: Callable[..., Any] | None = None


class Meaning(NamedTuple):
    """What a pickle's instructions mean.

    named   the value, or the Function, that a module and a name stand for
    stored  what a persistent id stands for
    build   gives an object its state, in place
    All raise TypeError, ValueError or FileError for what they do not take.
    """

    named: Callable[[str, str], Any]
    stored: Callable[[Any], Any]
    build: Callable[[Any, Any], None]


def key_is_fit(key: Any) -> bool:
    """Whether a key can be hashed in little time: a tuple of tuples may be exponentially larger than its pickle."""
    left, pending = _KEY_PARTS, [key]
    while pending:
        part = pending.pop()
        if isinstance(part, tuple):
            left -= 1 + len(part)  # type: ignore[reportUnknownArgumentType]
            if left < 0:
                return False
            pending += part
        elif type(part).__hash__ is None or (isinstance(part, int) and part.bit_length() > _KEY_BITS):
            return False
    return True


def admit(keys: Iterable[Any], found: Counter[int]) -> None:
    """Count in `found` how many keys have which hash. ValueError for what cannot be hashed in little time, or would
    make a dict or set slow."""
    for key in keys:
        if isinstance(key, (str, bytes)) or (type(key) is int and -_SAFE < key < _SAFE):
            continue  # hashes of texts are secret, those of small integers distinct
        if not key_is_fit(key):
            raise ValueError(NO_KEY.format(kind=type(key).__name__))
        found[number := hash(key)] += 1
        if found[number] > SAME_HASH:
            raise ValueError(ONE_HASH)


@final
class Unpickler:
    """Reads pickles that follow each other in `data`. `at` is where the next one starts.

    refuse  makes the error of (problem, place)
    budget  how many values there may be
    """

    def __init__(self, data: bytes, meaning: Meaning, refuse: Refuse, budget: int):
        self.at = 0
        self._data, self._meaning, self._refuse = data, meaning, refuse
        self._values, self._bytes = budget, 4 * len(data) + _SLACK  # that are left
        self._stack: list[Any] = []
        self._marks: list[list[Any]] = []
        self._memo: dict[int, Any] = {}
        self._hashes: dict[int, tuple[Any, Counter[int]]] = {}  # id -> a container, and how many keys have which hash

    def load(self) -> Any:
        """The object of the next pickle. Raises what `refuse` makes if it has other opcodes, or is damaged."""
        self._stack, self._marks, self._memo = [], [], {}
        start = self.at
        try:
            while (code := self._take(1)[0]) != _STOP:
                start = self.at - 1
                self._spend(1)
                action = _ACTIONS.get(code)
                if action is None:
                    raise ValueError(NO_OPCODE.format(code=code))
                action(self)
            return self._pop()
        except FileError:
            raise
        # what the values' constructors raise, and the meaning
        except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
            raise self._refuse(str(error) or type(error).__name__, f"byte {start}") from None

    def _take(self, count: int) -> bytes:
        at = self.at
        if not 0 <= count <= len(self._data) - at:
            raise ValueError(ENDS)
        self.at = at + count
        return self._data[at : at + count]

    def _number(self, form: str) -> Any:
        return struct.unpack(form, self._take(struct.calcsize(form)))[0]

    def _line(self) -> str:
        end = self._data.find(b"\n", self.at, self.at + _NAME)
        if end < 0:
            raise ValueError("a global without a name")
        line = self._take(end + 1 - self.at)
        return line[:-1].decode()

    def _spend(self, values: int) -> None:
        self._values -= values
        if self._values < 0:
            raise ValueError(TOO_MUCH)

    def _spend_on(self, parts: Iterable[Any]) -> None:
        """Pay for a call that may copy its arguments."""
        for part in parts:
            if isinstance(part, (str, bytes, bytearray)):
                self._bytes -= len(part)
            elif isinstance(part, (list, tuple, dict, set, frozenset)):
                self._spend(len(part))  # type: ignore[reportUnknownArgumentType]
        if self._bytes < 0:
            raise ValueError(TOO_MUCH)

    def _top(self) -> Any:
        if not self._stack:
            raise ValueError(UNDERFLOW)
        return self._stack[-1]

    def _pop(self) -> Any:
        self._top()
        return self._stack.pop()

    def _pop_mark(self) -> list[Any]:
        if not self._marks:
            raise ValueError(UNDERFLOW)
        items, self._stack = self._stack, self._marks.pop()
        return items

    def _admit(self, container: Any, keys: Iterable[Any]) -> None:
        """ValueError unless `keys` can be added to a dict or set in little time."""
        _, found = self._hashes.get(id(container)) or (None, Counter[int]())
        admit(keys, found)
        if found:
            self._hashes[id(container)] = container, found  # alive, so that no id is given away

    def _mark(self) -> None:
        self._marks.append(self._stack)
        self._stack = []

    def _tuple(self) -> None:
        items = self._pop_mark()  # which is another stack's
        self._stack.append(tuple(items))

    def _tuple_of(self, count: int) -> None:
        if len(self._stack) < count:
            raise ValueError(UNDERFLOW)
        self._stack[-count:] = [tuple(self._stack[-count:])]

    def _append(self, items: list[Any]) -> None:
        target = self._top()
        if type(target) is not list:
            raise TypeError(f"Can only append to lists, but got {type(target)}")
        target += items

    def _add(self) -> None:
        items = self._pop_mark()
        target = self._top()
        if type(target) is not set:
            raise TypeError(f"Can only add to sets, but got {type(target)}")
        self._admit(target, items)
        target.update(items)

    def _set(self, items: list[Any]) -> None:
        target = self._top()
        if not isinstance(target, dict):
            raise TypeError(f"Can only set items of dicts, but got {type(target)}")
        keys = items[::2]
        if len(items) % 2:
            raise ValueError("a key without a value")
        self._admit(target, keys)
        for key, value in zip(keys, items[1::2], strict=True):  # a Counter's `update` would count
            target[key] = value

    def _set_one(self) -> None:
        value, key = self._pop(), self._pop()
        self._set([key, value])

    def _frozen(self) -> None:
        items = self._pop_mark()
        self._admit(items, items)
        self._stack.append(frozenset(items))

    def _call(self, new: bool = False) -> None:
        arguments, function = self._pop(), self._pop()
        if not isinstance(function, Function) or type(arguments) is not tuple:
            raise TypeError(NOT_CALLED.format(what=type(function).__name__))
        self._spend(10)
        self._spend_on(arguments)  # type: ignore[reportUnknownArgumentType]
        try:
            self._stack.append(((new and function.new) or function.make)(*arguments))
        except FileError:
            raise
        except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
            raise ValueError(f"{function.name}: {error}") from None

    def _build(self) -> None:
        state = self._pop()
        self._spend(10)
        self._spend_on(state if type(state) is tuple else [state])  # type: ignore[reportUnknownArgumentType]
        self._meaning.build(self._top(), state)

    def _get(self, form: str) -> None:
        if (number := self._number(form)) not in self._memo:
            raise ValueError(f"Memo value not found at index {number}")
        self._stack.append(self._memo[number])

    def _put(self, form: str) -> None:
        self._memo[self._number(form)] = self._top()

    def _memoize(self) -> None:
        self._memo[len(self._memo)] = self._top()

    def _stack_global(self) -> None:
        name, module = self._pop(), self._pop()
        if type(name) is not str or type(module) is not str or max(len(name), len(module)) > _NAME:
            raise TypeError("a global without a name")
        self._stack.append(self._meaning.named(module, name))

    def _protocol(self) -> None:
        if (version := self._take(1)[0]) not in PROTOCOLS:
            raise ValueError(f"pickle protocol {version}, known are 2 to 5")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


def _whole(data: bytes) -> int:
    return int.from_bytes(data, "little", signed=True)


_SAFE = 2**60
_STOP = ord(".")
_Action = Callable[[Unpickler], Any]
_CONSTANTS: dict[bytes, Any] = {b"N": None, b"\x88": True, b"\x89": False, b")": ()}
_NUMBERS = {b"J": "<i", b"K": "B", b"M": "<H", b"G": ">d"}
_COUNTED: dict[bytes, tuple[str, Callable[[bytes], Any]]] = {
    b"X": ("<I", _text), b"\x8c": ("B", _text), b"\x8d": ("<Q", _text), b"T": ("<i", _text), b"U": ("B", _text),
    b"B": ("<I", bytes), b"C": ("B", bytes), b"\x8e": ("<Q", bytes), b"\x96": ("<Q", bytearray),
    b"\x8a": ("B", _whole), b"\x8b": ("<i", _whole),
}  # fmt: skip


def _pushing(value: Any) -> _Action:
    return lambda reader: reader._stack.append(value)


def _numbered(form: str) -> _Action:
    return lambda reader: reader._stack.append(reader._number(form))


def _counted(form: str, made: Callable[[bytes], Any]) -> _Action:
    return lambda reader: reader._stack.append(made(reader._take(reader._number(form))))


_NAMED: dict[bytes, _Action] = {
    b"]": lambda r: r._stack.append([]),
    b"}": lambda r: (r._spend(1), r._stack.append({})),
    b"\x8f": lambda r: (r._spend(4), r._stack.append(set())),
    b"(": Unpickler._mark,
    b"t": Unpickler._tuple,
    b"\x85": lambda r: r._tuple_of(1),
    b"\x86": lambda r: r._tuple_of(2),
    b"\x87": lambda r: r._tuple_of(3),
    b"a": lambda r: r._append([r._pop()]),
    b"e": lambda r: r._append(r._pop_mark()),
    b"s": Unpickler._set_one,
    b"u": lambda r: r._set(r._pop_mark()),
    b"\x90": Unpickler._add,
    b"\x91": Unpickler._frozen,
    b"R": Unpickler._call,
    b"\x81": lambda r: r._call(new=True),
    b"b": Unpickler._build,
    b"Q": lambda r: r._stack.append(r._meaning.stored(r._pop())),
    b"h": lambda r: r._get("B"),
    b"j": lambda r: r._get("<I"),
    b"q": lambda r: r._put("B"),
    b"r": lambda r: r._put("<I"),
    b"\x94": Unpickler._memoize,
    b"c": lambda r: r._stack.append(r._meaning.named(r._line(), r._line())),
    b"\x93": Unpickler._stack_global,
    b"\x80": Unpickler._protocol,
    b"\x95": lambda r: r._take(8),  # a frame says how much is to be read ahead
    b"0": Unpickler._pop,
    b"1": Unpickler._pop_mark,
    b"2": lambda r: r._stack.append(r._top()),
}
_ACTIONS: dict[int, _Action] = {
    code[0]: action
    for code, action in (
        *((code, _pushing(value)) for code, value in _CONSTANTS.items()),
        *((code, _numbered(form)) for code, form in _NUMBERS.items()),
        *((code, _counted(*parts)) for code, parts in _COUNTED.items()),
        *_NAMED.items(),
    )
}
