"""Places whose values the calls of a function change: they become inputs of its program, read anew at each call.

A guard on such a place would break at each call: a counter, a learning rate that a scheduler sets, a hidden state that
is put into an attribute. So a place whose guard has broken once, and that had a number or a tensor before and after, is
no longer guarded: a traced Number takes the place of the number while the function is traced.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, final

from eager.tensor import Tensor
from graphc.capture.number import Number
from graphc.capture.places import Change, Place, RequiresGrad
from graphc.capture.sources import Reached
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
        return _key(place) in self._known and (isinstance(place.before, Tensor) or _is_number(place.before))


def _key(place: Place) -> Any:
    return type(place), id(place.owner), place.key


def _is_number(value: Any) -> bool:
    return type(value) is float or (type(value) is int and abs(value) < _WIDEST)


def _kind_of(tensor: Tensor) -> tuple[Any, Any, bool]:
    return tuple(tensor._d.shape), tensor._dtype(), tensor._n is None


def _alike(a: Any, b: Any) -> bool:
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return _kind_of(a) == _kind_of(b)
    return type(a) is type(b) and _is_number(a) and _is_number(b)


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
        self._numbers = [p for p in places if p.guarded and _is_number(p.before) and p in moving]
        self._proxies: dict[int, Number] = {}

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
            kind = type(place.before)
            source = Reached(place.path.shown, place.read, kind)
            tracer.reach(source, place.before)
            symbol = tracer.input(place.path.name or "number", Aval((), _NUMBERS[kind]), source)
            proxy = self._proxies[id(place)] = Number(tracer, symbol)
            place.write(proxy)

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
