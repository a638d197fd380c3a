"""Functions in results, as a function that makes another one returns it: each call returns its own.

A function that is made inside a call has variables of its own in the cells of its closure. A program keeps such a
function as a pattern, whose own cells hold an `Own`; a call makes a function of it, with new cells. Cells from before
the call, as those of variables around the traced function, are shared with what is there.
"""

from __future__ import annotations

from collections.abc import Collection
from types import CellType, FunctionType
from typing import Any, NamedTuple

from graphc.capture.state.objects import namespace
from graphc.capture.state.snapshots import MISSING
from graphc.capture.tree import Opened


class Own(NamedTuple):
    """What a cell of a pattern holds: the call makes the cell, with these contents."""

    contents: Any


def parts(function: FunctionType) -> list[tuple[str, Any]]:
    """(name, value) of what a function keeps in itself: defaults, attributes, and its variables of functions around."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    held = [(name, _contents(cell)) for name, cell in cells]
    return _settable(function) + [(name, value.contents if type(value) is Own else value) for name, value in held]


def is_made(function: FunctionType, there: Collection[int] | None) -> bool:
    """Whether a function has cells of its own (see `opened`)."""
    return any(_is_own(cell, there) for cell in function.__closure__ or ())


def opened(function: FunctionType, known: dict[int, Any], there: Collection[int] | None) -> Opened:
    """A function like `function` with nothing in its own cells, and what is to be put there, and into the function.

    known   by id: what cells have become
    there   ids of the cells that are not of their own, if this makes a pattern; None if it makes a function of one
    """
    filled: list[tuple[Any, str, Any]] = []

    def moved(cell: CellType) -> CellType:
        if not _is_own(cell, there):
            return cell
        if id(cell) not in known:
            known[id(cell)] = new = CellType()
            contents = _contents(cell)
            value = contents.contents if type(contents) is Own else Own(contents)
            if value is not MISSING:
                filled.append((new, "cell_contents", value))
        return known[id(cell)]

    cells = function.__closure__ and tuple(map(moved, function.__closure__))
    made = FunctionType(function.__code__, function.__globals__, function.__name__, None, cells)
    for name in ("__qualname__", "__module__", "__doc__", "__annotations__"):
        setattr(made, name, getattr(function, name))
    return made, [*((made, *entry) for entry in _settable(function)), *filled]


def _settable(function: FunctionType) -> list[tuple[str, Any]]:
    """(name, value) of what can be put into a function that has been made: defaults and attributes."""
    return [("__defaults__", function.__defaults__), ("__kwdefaults__", function.__kwdefaults__),
            *namespace(function).items()]  # fmt: skip


def _is_own(cell: CellType, there: Collection[int] | None) -> bool:
    return type(_contents(cell)) is Own or (there is not None and id(cell) not in there)


def _contents(cell: CellType) -> Any:
    """What a cell holds; MISSING if its variable has no value."""
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING
