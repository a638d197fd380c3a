"""Numbers among the arguments that the calls change, as `lr` of `step(x, lr)`: inputs of the program, not guards.

The number in a position that has held two different ones is *lifted* from then on: a 0-d tensor to the program, and a
traced Number to the function. Where Python needs the number itself, as `range(n)` does, there has to be a program for
each value: the position is then taken by value again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, final

import numpy as np

from eager.core.overriding import disabled
from eager.core.tensor import Tensor
from graphc.capture.state.lifting import NUMBERS
from graphc.capture.state.outlines import is_number
from graphc.capture.tree import children, is_immutable, rebuilt

MOST = 256  # positions that are watched
Where = tuple[Any, ...]  # the way to a number: the number or name of the argument, then numbers of children


@final
class Position:
    """A place for a number in the arguments. `taken`: a function has asked for the number itself."""

    __slots__ = ("_first", "taken", "varies", "where")

    def __init__(self, where: Where, first: Any):
        self.where = where
        self.varies = self.taken = False
        self._first = repr(first)

    def sees(self, value: Any) -> bool:
        """Whether `value`, which a call has here, is to be an input."""
        self.varies = self.varies or repr(value) != self._first
        return self.varies and not self.taken


@final
class Positions:
    """The positions of one compiled function."""

    def __init__(self) -> None:
        self._known: dict[Where, Position] = {}

    def lifted(self, value: Any, where: Where) -> Position | None:
        """The position of the number `value`, if it varies."""
        found = self._known.get(where)
        if found is None:
            if len(self._known) < MOST:
                self._known[where] = Position(where, value)
            return None
        return found if is_number(value) and found.sees(value) else None


@final
class LiftedNumber(Tensor):
    """The number of a call in a position that varies.

    numbers   those of the same call, by the place among the tensors
    by_value  whether the program is to be for this number alone
    """

    __slots__ = ("by_value", "numbers", "position")
    __torch_function__: Any = staticmethod(disabled)

    position: Position
    numbers: dict[int, Any]
    by_value: bool

    @staticmethod
    def of(value: Any, position: Position, numbers: dict[int, Any], place: int) -> LiftedNumber:
        """The number `value`, tensor `place` of its call."""
        t = object.__new__(LiftedNumber)
        t._d, t._n = np.asarray(value, NUMBERS[type(value)]), None
        t.position, t.numbers, t.by_value = position, numbers, False
        numbers[place] = value
        return t


def with_lifted(tensors: Iterable[Tensor], args: tuple[Any, ...], kwargs: dict[str, Any], by_value: bool) -> Any:
    """(args, kwargs) of a call with the LiftedNumbers among its `tensors` in their positions."""
    found = {t.position.where: t for t in lifted_of(tensors)}
    if not found:
        return args, kwargs
    for t in lifted_of(tensors):
        t.by_value = by_value or t.position.taken
    known: dict[int, Any] = {}
    return (
        tuple(_replaced(a, (i,), found, known) for i, a in enumerate(args)),
        {name: _replaced(a, (name,), found, known) for name, a in kwargs.items()},
    )


def lifted_of(tensors: Iterable[Tensor]) -> list[LiftedNumber]:
    """The numbers among `tensors`."""
    return [t for t in tensors if isinstance(t, LiftedNumber)]


def take_by_value(tensors: Iterable[Tensor]) -> None:
    """Let the numbers of a call be taken by value from now on."""
    for t in lifted_of(tensors):
        t.position.taken = True


def _replaced(tree: Any, where: Where, found: dict[Where, LiftedNumber], known: dict[int, Any]) -> Any:
    if where in found:
        return found[where]
    inside = None if isinstance(tree, Tensor) else children(tree)
    if inside is None:
        return tree
    if id(tree) in known:
        return known[id(tree)]
    values = [_replaced(value, (*where, i), found, known) for i, (_, value) in enumerate(inside)]
    changed = any(new is not old for new, (_, old) in zip(values, inside, strict=True))
    new = rebuilt(tree, values) if changed else tree
    if not is_immutable(tree):
        known[id(tree)] = new
    return new
