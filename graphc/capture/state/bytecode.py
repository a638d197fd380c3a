"""Which variables, attributes and elements the code of a function reads: from its bytecode, without running it.

A *chain* is a variable and what is taken from it at once: `self.cfg.scale`, `TABLE["a"][0]`. An attribute of anything
else, of a local variable or of a result, is *loose*: all that is known is its name.
"""

from __future__ import annotations

import dis
import functools
from collections.abc import Iterator
from types import CodeType
from typing import Any, NamedTuple

GLOBAL, CELL, LOCAL, MODULE = "global", "cell", "local", "module"
ATTRIBUTE, ITEM = "attribute", "item"

_ROOTS = {
    "LOAD_GLOBAL": GLOBAL, "LOAD_NAME": GLOBAL, "LOAD_DEREF": CELL, "LOAD_CLASSDEREF": CELL, "LOAD_FAST": LOCAL,
    "LOAD_FAST_CHECK": LOCAL, "LOAD_FAST_BORROW": LOCAL, "LOAD_FAST_LOAD_FAST": LOCAL,
    "LOAD_FAST_BORROW_LOAD_FAST_BORROW": LOCAL, "IMPORT_NAME": MODULE,
}  # fmt: skip
_ATTRIBUTES = frozenset(("LOAD_ATTR", "LOAD_METHOD", "IMPORT_FROM", "LOAD_SUPER_ATTR", "LOAD_SUPER_METHOD"))
_CONSTANTS = frozenset(("LOAD_CONST", "LOAD_SMALL_INT"))
_STORED_ATTRIBUTES = frozenset(("STORE_ATTR", "DELETE_ATTR"))
_STORED_ITEMS = frozenset(("STORE_SUBSCR", "DELETE_SUBSCR"))
_STORED_ROOTS = {"STORE_GLOBAL": GLOBAL, "DELETE_GLOBAL": GLOBAL, "STORE_DEREF": CELL, "DELETE_DEREF": CELL}
_PROBES = frozenset(("getattr", "hasattr", "setattr", "delattr"))
# functions that read attributes whose names the code does not show
_REFLECTIVE = frozenset(
    ("vars", "dir", "attrgetter", "methodcaller", "asdict", "astuple", "deepcopy", "getmembers", "getattr_static",
     "__dict__", "__getattribute__", "__slots__")
)  # fmt: skip
_REFLECTIVE_ALONE = _REFLECTIVE | {"replace", "fields", "copy"}  # names of methods, too
_REFLECTIVE_MODULES = frozenset(("copy", "dataclasses", "inspect"))


class Step(NamedTuple):
    """An attribute or an element that is taken from a value."""

    kind: str
    key: Any


class Chain(NamedTuple):
    """A variable and what is taken from it. `stored`: the last step (or the variable) is written, not read."""

    root: str
    name: str
    steps: tuple[Step, ...]
    stored: bool
    line: int


class Reads(NamedTuple):
    """What a code object reads by itself, and the code objects of the functions and classes defined in it.

    loose      names of attributes of values that are not known
    probed     names given to getattr and hasattr: whether they exist matters, too
    reflective whether it reads attributes whose names are not in the code
    assigned   local variables that are assigned to, so that they need not hold the argument any more
    """

    chains: tuple[Chain, ...]
    loose: frozenset[str]
    probed: frozenset[str]
    strings: frozenset[str]
    reflective: bool
    assigned: frozenset[str]
    inner: tuple[CodeType, ...]


@functools.lru_cache(maxsize=4096)
def reads_of(code: CodeType) -> Reads:
    """What `code` reads."""
    return _Scan(code).result()


class _Scan:
    def __init__(self, code: CodeType):
        self._code = code
        self._list = list(dis.get_instructions(code))
        self._chains: list[Chain] = []
        self._loose: set[str] = set()
        self._probed: set[str] = set()
        self._assigned: set[str] = set()
        self._reflective = False
        self._line = code.co_firstlineno

    def result(self) -> Reads:
        constants = self._code.co_consts
        position = 0
        while position < len(self._list):
            position = self._scan(position)
        return Reads(
            tuple(self._chains), frozenset(self._loose), frozenset(self._probed),
            frozenset(c for c in constants if isinstance(c, str)), self._reflective, frozenset(self._assigned),
            tuple(c for c in constants if isinstance(c, CodeType)),
        )  # fmt: skip

    def _scan(self, position: int) -> int:
        """Take in the instruction at `position`; the position of the next."""
        instruction = self._list[position]
        name = instruction.opname
        positions = instruction.positions
        if positions is not None and positions.lineno is not None:
            self._line = positions.lineno
        if name in _ROOTS:
            return self._chain(position)
        if name in _ATTRIBUTES:
            self._take_loose(instruction.argval)
        elif name in _STORED_ROOTS:
            self._chains.append(Chain(_STORED_ROOTS[name], instruction.argval, (), True, self._line))
        elif name.startswith("STORE_FAST") or name == "DELETE_FAST":
            values = instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)
            self._assigned.update(values)
        elif name == "MATCH_CLASS":
            self._reflective = True  # positional patterns name attributes in the class's __match_args__
        return position + 1

    def _chain(self, position: int) -> int:
        first = self._list[position]
        names = first.argval if isinstance(first.argval, tuple) else (first.argval,)
        root = _ROOTS[first.opname]
        for other in names[:-1]:
            self._chains.append(Chain(root, other, (), False, self._line))
        steps: list[Step] = []
        stored = False
        position += 1
        while True:
            taken, is_store, length = self._step(position)
            if taken is None:
                break
            if taken.key in _REFLECTIVE:
                self._reflective = True
                break
            steps.append(taken)
            position += length
            if is_store:
                stored = True
                break
        name = names[-1]
        self._chains.append(Chain(root, name, tuple(steps), stored, self._line))
        if root == GLOBAL:
            alone = not steps
            if name in (_REFLECTIVE_ALONE if alone else _REFLECTIVE_MODULES):
                self._reflective = True
            elif alone and name in _PROBES:
                self._probe(position)
        return position

    def _step(self, position: int) -> tuple[Step | None, bool, int]:
        """The step at `position`, whether it is written, and how many instructions it takes."""
        ahead = list(self._ahead(position))
        names = [i.opname for i in ahead]
        if not ahead or ahead[0].is_jump_target:
            return None, False, 0
        skipped = 0
        while names and names[0] == "COPY" and ahead[0].arg == 1:  # the object of `a.b += 1`, kept for the write
            names, ahead, skipped = names[1:], ahead[1:], skipped + 1
        if not names:
            return None, False, 0
        if names[0] in _ATTRIBUTES:
            return Step(ATTRIBUTE, ahead[0].argval), False, skipped + 1
        if names[0] in _STORED_ATTRIBUTES and not skipped:
            return Step(ATTRIBUTE, ahead[0].argval), True, 1
        if names[0] in _CONSTANTS and len(ahead) > 1 and not skipped:
            step = Step(ITEM, ahead[0].argval)
            if _is_subscript(ahead[1]):
                return step, False, 2
            if names[1] in _STORED_ITEMS:
                return step, True, 2
            if names[1:3] == ["COPY", "COPY"] and len(ahead) > 3 and _is_subscript(ahead[3]):  # a["b"] += 1
                return step, False, 4
        return None, False, 0

    def _ahead(self, position: int) -> Iterator[dis.Instruction]:
        return iter(self._list[position : position + 5])

    def _take_loose(self, name: str) -> None:
        if name in _REFLECTIVE:
            self._reflective = True
        else:
            self._loose.add(name)

    def _probe(self, position: int) -> None:
        """The name that getattr or hasattr, loaded before `position`, looks for: its second argument, if constant."""
        depth = 0  # of the stack, above the function
        name = None
        for instruction in self._list[position:]:
            kind = instruction.opname
            if kind in ("PRECALL", "CALL") and instruction.arg == depth:
                break
            jumps = instruction.opcode in dis.hasjabs or instruction.opcode in dis.hasjrel
            if jumps or (name is not None and depth <= 1):
                name = None
                break
            before = depth
            depth += dis.stack_effect(instruction.opcode, instruction.arg)
            if before == 1 and depth == 2:
                name = instruction.argval if kind in _CONSTANTS else None
            elif depth == 2:
                name = None  # made by an operation
        if isinstance(name, str):
            self._probed.add(name)
        else:
            self._reflective = True


def _is_subscript(instruction: dis.Instruction) -> bool:
    return instruction.opname == "BINARY_SUBSCR" or (instruction.opname == "BINARY_OP" and instruction.argrepr == "[]")


def all_codes(code: CodeType) -> Iterator[CodeType]:
    """`code` and every code object in it, at any depth."""
    yield code
    for inner in reads_of(code).inner:
        yield from all_codes(inner)
