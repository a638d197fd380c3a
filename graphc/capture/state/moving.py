"""Places whose values the calls of a function change: they become inputs of its program, read anew at each call.

A guard on such a place would break at each call: a counter, a learning rate that a scheduler sets, a hidden state that
is put into an attribute. So a place whose guard has broken once, and that had a number, a tuple of numbers (the betas
of Adam) or a tensor before and after, is no longer guarded: traced Numbers take the place of the numbers while the
function is traced.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, final

from eager.tensor import Tensor
from graphc.capture.number import Number
from graphc.capture.sources import Reached
from graphc.capture.state.places import Change, Place, RequiresGrad
from graphc.ops.aval import Aval
from graphc.ops.dtypes import FLOAT64, INT64

if TYPE_CHECKING:
    from graphc.capture.tracer import Tracer

_NUMBERS = {float: FLOAT64, int: INT64}
_WIDEST = 1 << 62  # of an integer that can be added to in int64


@final
class Moving:
    """The moving places of one compiled function."""

    def __init__(self):
        self._known: dict[Any, Any] = {}  # key -> owner, which keeps its id from being used again

    def learn(self, places: Iterable[Place]) -> None:
        """Take up those of `places`, whose guards have broken, that hold a number or tensor as before."""
        for place in places:
            if _alike(place.before, place.read()):
                self._known[_key(place)] = place.owner

    def __contains__(self, place: Place) -> bool:
        return _key(place) in self._known and (isinstance(place.before, Tensor) or _numbers_in(place.before) != ())


def _key(place: Place) -> Any:
    return type(place), id(place.owner), place.key


def _is_number(value: Any) -> bool:
    return type(value) is float or (type(value) is int and abs(value) < _WIDEST)


def _numbers_in(value: Any) -> tuple[Any, ...]:
    """The number that `value` is, or those that it is a tuple of; none for anything else."""
    found: tuple[Any, ...] = value if type(value) is tuple else (value,)
    return found if all(map(_is_number, found)) else ()


def _read_number(place: Place, count: int | None, k: int) -> Any:
    """The number in a place, or number `k` of `count` in a tuple there; None if there is something else."""
    value = place.read()
    if count is None:
        return value
    return value[k] if type(value) is tuple and len(value) == count else None


def _kind_of(tensor: Tensor) -> tuple[Any, Any, bool]:
    return tuple(tensor._d.shape), tensor._dtype(), tensor._n is None


def _alike(a: Any, b: Any) -> bool:
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return _kind_of(a) == _kind_of(b)
    kinds = [tuple(map(type, _numbers_in(x))) for x in (a, b)]
    return type(a) is type(b) and kinds[0] == kinds[1] != ()


@final
class Substituted:
    """The moving places among those of one environment, while the function is traced.

    kinds  of those with tensors: (how to get it, its shape, dtype, and whether it requires no grad)
    """

    def __init__(self, places: list[Place], moving: Moving):
        tensors = [p for p in places if isinstance(p.before, Tensor) and p in moving]
        ids = [id(p.before) for p in places if isinstance(p.before, Tensor) and not isinstance(p, RequiresGrad)]
        # a tensor in two places: which of them is meant cannot be told
        self._tensors = [p for p in tensors if ids.count(id(p.before)) == 1]
        self.kinds = [(p.read, *_kind_of(p.before)) for p in self._tensors]
        self._numbers = [p for p in places if p.guarded and _numbers_in(p.before) and p in moving]
        self._proxies: dict[int, Any] = {}

    def covers(self, place: Place) -> bool:
        """Whether `place` needs no guard."""
        if isinstance(place, RequiresGrad):
            return any(place.owner is p.before for p in self._tensors)
        return any(place is p for p in (*self._tensors, *self._numbers))

    def start(self, tracer: Tracer) -> None:
        """Let the tracer know the tensors, and put traced numbers in place of the numbers."""
        for place in self._tensors:
            tracer.reach(Reached(place.path.shown, place.read, None), place.before)
        for place in self._numbers:
            count = len(place.before) if type(place.before) is tuple else None
            proxies = tuple(self._number(tracer, place, count, k) for k in range(1 if count is None else count))
            proxy = self._proxies[id(place)] = proxies[0] if count is None else proxies
            place.write(proxy)

    def _number(self, tracer: Tracer, place: Place, count: int | None, k: int) -> Number:
        value, at = _numbers_in(place.before)[k], "" if count is None else f"[{k}]"
        kind = type(value)
        source = Reached(place.path.shown + at, functools.partial(_read_number, place, count, k), kind)
        tracer.reach(source, value)
        name = place.path.name or "number"
        symbol = tracer.input(name if count is None else f"{name}_{k}", Aval((), _NUMBERS[kind]), source)
        return Number(tracer, symbol)

    def written(self) -> list[Change]:
        """The moving places that the function has written."""
        found = [p for p in self._tensors if p.read() is not p.before]
        found += [p for p in self._numbers if p.read() is not self._proxies.get(id(p))]
        return [Change(p.path.shown, p.before, p.read(), p.write) for p in found]

    def restore(self) -> None:
        """Put the numbers back that the function has not written."""
        for place in self._numbers:
            if id(place) in self._proxies and place.read() is self._proxies[id(place)]:
                place.write(place.before)
