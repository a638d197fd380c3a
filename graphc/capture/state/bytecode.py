"""Which variables, attributes and elements the code of a function reads: from its bytecode, without running it.

A *chain* is a variable and what is taken from it at once: `self.cfg.scale`, `TABLE["a"][0]`. An attribute of anything
else, of a local variable or of a result, is *loose*: all that is known is its name.

The code is read as bytes, once, by the tables of `dis`: the instructions that `dis` makes of it take ten times as long.
"""

from __future__ import annotations

import dis
import functools
import sys
import textwrap
import warnings
from collections.abc import Iterator
from types import CodeType
from typing import Any, NamedTuple

GLOBAL, CELL, LOCAL, MODULE = "global", "cell", "local", "module"
ATTRIBUTE, ITEM = "attribute", "item"


def _codes(*names: str) -> frozenset[int]:
    """Those of these operations that this Python has."""
    return frozenset(dis.opmap[name] for name in names if name in dis.opmap)


_PAIRS = _codes("LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW", "STORE_FAST_STORE_FAST",
                "STORE_FAST_LOAD_FAST")  # of two variables  # fmt: skip
_ROOTS = {
    **dict.fromkeys(_codes("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"), GLOBAL),
    **dict.fromkeys(_codes("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"), CELL),
    **dict.fromkeys(_codes("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW", "LOAD_FAST_LOAD_FAST",
                           "LOAD_FAST_BORROW_LOAD_FAST_BORROW"), LOCAL),
    **dict.fromkeys(_codes("IMPORT_NAME"), MODULE),
}  # fmt: skip
_STORED_ROOTS = {
    **dict.fromkeys(_codes("STORE_GLOBAL", "DELETE_GLOBAL"), GLOBAL),
    **dict.fromkeys(_codes("STORE_DEREF", "DELETE_DEREF"), CELL),
}
_ASSIGNED = frozenset(code for name, code in dis.opmap.items() if name.startswith(("STORE_FAST", "DELETE_FAST")))
_ATTRIBUTES = _codes("LOAD_ATTR", "LOAD_METHOD", "IMPORT_FROM", "LOAD_SUPER_ATTR", "LOAD_SUPER_METHOD")
_CONSTANTS = _codes("LOAD_CONST", "LOAD_SMALL_INT")
_STORED_ATTRIBUTES = _codes("STORE_ATTR", "DELETE_ATTR")
_STORED_ITEMS = _codes("STORE_SUBSCR", "DELETE_SUBSCR")
_MATCH_CLASS, _COPY, _CALLS = _codes("MATCH_CLASS"), _codes("COPY"), _codes("PRECALL", "CALL")
_BEGINS_STEP = _ATTRIBUTES | _STORED_ATTRIBUTES | _CONSTANTS | _COPY
_JUMPS = frozenset((*dis.hasjabs, *dis.hasjrel))
_WITH_ARGUMENT = frozenset(getattr(dis, "hasarg", range(dis.HAVE_ARGUMENT, 256)))
_VARIABLES = frozenset((*dis.haslocal, *dis.hasfree))
_SMALL = _codes("LOAD_SMALL_INT")  # whose argument is the number
_CACHE, _EXTENDED = dis.opmap["CACHE"], dis.opmap["EXTENDED_ARG"]
# lower bits of the argument that say something else than which name
_FLAGS = dict.fromkeys(_codes("LOAD_GLOBAL"), 1) | dict.fromkeys(_codes("LOAD_SUPER_ATTR"), 2)
if sys.version_info >= (3, 12):
    _FLAGS |= dict.fromkeys(_codes("LOAD_ATTR"), 1)
# `a[b]`: an operation of its own, or a binary one
_SUBSCRIPTS = frozenset(
    (i.opcode, i.arg or 0)
    for i in dis.get_instructions(compile("a[b]", "", "eval"))
    if i.opname == "BINARY_SUBSCR" or (i.opname == "BINARY_OP" and i.argrepr == "[]")
)
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


class Reads(NamedTuple):
    """What a code object reads by itself, and the code objects of the functions and classes defined in it.

    chains     each with where it stands: the instructions, by their place in the code
    loose      names of attributes of values that are not known
    probed     names given to getattr and hasattr: whether they exist matters, too
    reflective whether it reads attributes whose names are not in the code
    assigned   local variables that are assigned to, so that they need not hold the argument any more
    """

    chains: dict[Chain, list[int]]
    loose: frozenset[str]
    probed: frozenset[str]
    strings: frozenset[str]
    reflective: bool
    assigned: frozenset[str]
    inner: tuple[CodeType, ...]


class _Instruction(NamedTuple):
    code: int
    argument: int
    place: int


_END = _Instruction(_CACHE, 0, -1)  # which no code has


def _instructions(code: CodeType) -> list[_Instruction]:
    """The instructions, without the room for caches behind them, whose bytes are 0.

    One with a long argument begins, and may be jumped to, where the first part of the argument stands.
    """
    raw = code.co_code
    found: list[_Instruction] = []
    high = parts = 0
    for place, operation, argument in zip(range(0, len(raw), 2), raw[::2], raw[1::2], strict=True):
        if operation == _EXTENDED:
            high, parts = (high | argument) << 8, parts + 2
        elif operation != _CACHE:
            found.append(_Instruction(operation, high | argument, place - parts))
            high = parts = 0
    return found


class _Scan:
    def __init__(self, code: CodeType):
        self._code = code
        self._list = _instructions(code)
        self._targets = frozenset[int]()
        if not _JUMPS.isdisjoint(code.co_code[::2]):
            self._targets = frozenset(dis.findlabels(code.co_code))  # type: ignore[arg-type]  # it takes bytes
        cells = tuple(name for name in code.co_cellvars if name not in code.co_varnames)
        self._variables = (*code.co_varnames, *cells, *code.co_freevars)
        self._chains: dict[Chain, list[int]] = {}
        self._loose: set[str] = set()
        self._probed: set[str] = set()
        self._assigned: set[str] = set()
        self._reflective = False

    def result(self) -> Reads:
        constants = self._code.co_consts
        position = 0
        while position < len(self._list):
            position = self._scan(position)
        return Reads(
            self._chains, frozenset(self._loose), frozenset(self._probed),
            frozenset(c for c in constants if isinstance(c, str)), self._reflective, frozenset(self._assigned),
            tuple(c for c in constants if isinstance(c, CodeType)),
        )  # fmt: skip

    def _names(self, instruction: _Instruction) -> tuple[str, ...]:
        """The names of the variables, or of the attribute, that an instruction is about."""
        code, argument, _ = instruction
        if code in _PAIRS:
            return self._variables[argument >> 4], self._variables[argument & 15]
        if code in _VARIABLES:
            return (self._variables[argument],)
        return (self._code.co_names[argument >> _FLAGS.get(code, 0)],)

    def _constant(self, instruction: _Instruction) -> Any:
        return instruction.argument if instruction.code in _SMALL else self._code.co_consts[instruction.argument]

    def _add(self, chain: Chain, instruction: _Instruction) -> None:
        self._chains.setdefault(chain, []).append(instruction.place)

    def _scan(self, position: int) -> int:
        """Take in the instruction at `position`; the position of the next."""
        instruction = self._list[position]
        code = instruction.code
        if code in _ROOTS:
            return self._chain(position)
        if code in _ASSIGNED:
            self._assigned.update(self._names(instruction))
        elif code in _ATTRIBUTES:
            self._take_loose(*self._names(instruction))
        elif code in _STORED_ROOTS:
            self._add(Chain(_STORED_ROOTS[code], self._names(instruction)[0], (), True), instruction)
        elif code in _MATCH_CLASS:
            self._reflective = True  # positional patterns name attributes in the class's __match_args__
        return position + 1

    def _chain(self, position: int) -> int:
        first = self._list[position]
        *others, name = self._names(first)
        root = _ROOTS[first.code]
        for other in others:
            self._add(Chain(root, other, (), False), first)
        steps: list[Step] = []
        stored = False
        position += 1
        while not stored:
            taken, stored, length = self._step(position)
            if taken is None:
                break
            if taken.key in _REFLECTIVE:
                self._reflective, stored = True, False
                break
            steps.append(taken)
            position += length
        self._add(Chain(root, name, tuple(steps), stored), first)
        if root == GLOBAL:
            alone = not steps
            if name in (_REFLECTIVE_ALONE if alone else _REFLECTIVE_MODULES):
                self._reflective = True
            elif alone and name in _PROBES:
                self._probe(position)
        return position

    def _step(self, position: int) -> tuple[Step | None, bool, int]:
        """The step at `position`, whether it is written, and how many instructions it takes."""
        ahead = self._list[position : position + 5]
        if not ahead or ahead[0].code not in _BEGINS_STEP or ahead[0].place in self._targets:
            return None, False, 0
        skipped = 0
        while ahead and ahead[0].code in _COPY and ahead[0].argument == 1:  # the object of `a.b += 1`, kept to write it
            ahead, skipped = ahead[1:], skipped + 1
        first, second, third, fourth, *_ = [*ahead, _END, _END, _END, _END]
        if first.code in _ATTRIBUTES:
            return Step(ATTRIBUTE, *self._names(first)), False, skipped + 1
        if first.code in _STORED_ATTRIBUTES and not skipped:
            return Step(ATTRIBUTE, *self._names(first)), True, 1
        if first.code in _CONSTANTS and not skipped:
            step = Step(ITEM, self._constant(first))
            if _is_subscript(second):
                return step, False, 2
            if second.code in _STORED_ITEMS:
                return step, True, 2
            if second.code in _COPY and third.code in _COPY and _is_subscript(fourth):  # a["b"] += 1
                return step, False, 4
        return None, False, 0

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
            code, argument, _ = instruction
            if code in _CALLS and argument == depth:
                break
            if code in _JUMPS or (name is not None and depth <= 1):
                name = None
                break
            before = depth
            depth += dis.stack_effect(code, argument if code in _WITH_ARGUMENT else None)
            if before == 1 and depth == 2:
                name = self._constant(instruction) if code in _CONSTANTS else None
            elif depth == 2:
                name = None  # made by an operation
        if isinstance(name, str):
            self._probed.add(name)
        else:
            self._reflective = True


def _is_subscript(instruction: _Instruction) -> bool:
    return (instruction.code, instruction.argument) in _SUBSCRIPTS


@functools.lru_cache(maxsize=4096)
def reads_of(code: CodeType) -> Reads:
    """What `code` reads."""
    return _Scan(code).result()


def code_of_text(text: str) -> CodeType | None:
    """The code that `eval` or `exec` would make of a text, as that of a function; None if it is not Python."""
    for source in (f"lambda: ({text}\n)", "def _():\n" + textwrap.indent(text, " ")):
        try:
            with warnings.catch_warnings(action="ignore"):
                made = compile(source, "<string>", "exec")
        except (SyntaxError, ValueError):
            continue
        return next(code for code in made.co_consts if isinstance(code, CodeType))
    return None


def all_codes(code: CodeType) -> Iterator[CodeType]:
    """`code` and every code object in it, at any depth."""
    yield code
    for inner in reads_of(code).inner:
        yield from all_codes(inner)
