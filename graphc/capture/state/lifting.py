"""Places whose values the calls of a function change: they become inputs of its program, read anew at each call.

A guard on such a place would break at each call: a counter, a learning rate that a scheduler sets, a hidden state that
is put into an attribute. So a place whose guard has broken once, and whose value has kept its *outline* (a tensor of
one kind, a number of one type, or a nest of containers with those), is guarded by that alone from then on. It is
*lifted*: what changes in it is read anew at each call, and traced Numbers take the place of the numbers while the
function is traced.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, final

from eager.core.tensor import Tensor
from graphc.capture.number import Number
from graphc.capture.sources import Lifted
from graphc.capture.state.outlines import (
    Branch,
    NumberKind,
    Outline,
    TensorKind,
    Way,
    can_change,
    changing,
    element,
    fits,
    is_branch,
    keys_of,
    outline,
    shown,
)
from graphc.capture.state.places import Change, ClassOf, DictItem, Inside, Path, Place, Reading, RequiresGrad
from graphc.capture.state.snapshots import entries, refill
from graphc.ops.aval import Aval
from graphc.ops.dtypes import FLOAT64, INT64

if TYPE_CHECKING:
    from graphc.capture.tracer import Tracer

NUMBERS = {float: FLOAT64, int: INT64}


class _Lifted(NamedTuple):
    """What is known of a place: its owner, which keeps its id from other use, and the ways to what changes in it."""

    owner: Any
    path: Path
    ways: frozenset[Way]


@final
class LiftedPlaces:
    """The lifted places of one compiled function. `numbers`: whether those with numbers are among them.

    again  whether it has been compiled before: what it puts anew into a place then, it does at each call
    """

    def __init__(self, numbers: bool = True, known: dict[Any, _Lifted] | None = None, again: bool = False):
        self.numbers = numbers
        self.again = again
        self._known: dict[Any, _Lifted] = {} if known is None else known
        self._by_value: set[Any] = set()

    def learn(self, places: Iterable[Place]) -> bool:
        """Take up those of `places`, whose guards have broken, that have kept their outline, and what has changed in
        them: whether any is new."""
        new = False
        for place in places:
            of = outline(place.kept)
            if not isinstance(place, (OutlineKept, Reading)) and can_change(of) and fits(place.read(), of):
                known, ways = self._known.get(_key(place)), _changed(place, of)
                new = new or known is None or not ways <= known.ways
                ways = ways if known is None else ways | known.ways
                self._known[_key(place)] = _Lifted(place.owner, place.path, ways)
        return new

    def fix(self, substituted: Lifting) -> None:
        """Let places with numbers be guarded by value from now on: the function cannot be traced without."""
        self._by_value.update(map(_key, substituted.numbers))

    def __iter__(self) -> Iterator[tuple[type[Place], Any, Any, Path]]:
        """What each place is made of: its class, owner, key and path."""
        return ((kind, known.owner, key, known.path) for (kind, _, key), known in self._known.items())

    def without_numbers(self) -> LiftedPlaces:
        """The same places but for those with numbers."""
        return LiftedPlaces(False, self._known, self.again)

    def chosen(self, places: Iterable[Place]) -> Iterator[tuple[Place, Outline]]:
        """Those of `places` that move, with their outlines."""
        for place in places:
            if (key := _key(place)) in self._known and key not in self._by_value:
                of = outline(place.kept, self._known[key].ways)
                if can_change(of) and (self.numbers or not _has_number(of)):
                    yield place, of


def _changed(place: Place, of: Outline) -> frozenset[Way]:
    """The ways to what has changed in a place; to all that can, if nothing has."""
    before, now = place.kept, place.read()
    ways = [way for way, _ in changing(of)]
    return frozenset([way for way in ways if not _is_same(element(before, way), element(now, way))] or ways)


def _has_number(of: Outline) -> bool:
    return any(isinstance(kind, NumberKind) for _, kind in changing(of))


def _key(place: Place) -> Any:
    return type(place), id(place.owner), place.key


def goes_on(place: Place, kinds: tuple[type, ...]) -> bool:
    """Whether a place that has changed holds others of these kinds, also traced ones: numbers, tensors like before."""
    of = outline(place.kept)
    found = [kind for _, kind in changing(of)] if can_change(of) else []
    return bool(found) and all(isinstance(kind, kinds) for kind in found) and fits(place.read(), of)


@final
class OutlineKept(Place):
    """What stands in the test for a lifted place: that its value has kept its outline. `owner` is the place."""

    __slots__ = ("_outline",)
    cost = 2

    def __init__(self, place: Place, of: Outline):
        self._outline = of
        super().__init__(place, "", place.path)

    def read(self) -> Any:
        return self.owner.read()

    def same(self) -> bool:
        return fits(self.read(), self._outline)

    def write(self, value: Any) -> None:
        self.owner.write(value)

    def quick(self, name: Callable[[Any], str]) -> str:
        return f"not {name(self.same)}()"


@final
class _Container:
    """A container that can change, in a lifted place: what it holds before the trace, and what it is given for it."""

    def __init__(self, container: Any, place: Place, way: Way):
        self.container = container
        self.tracing = False
        self._place = place
        self._way = way
        self._held = entries(container)
        self._given = self._held

    def start(self, given: list[Any]) -> None:
        """Let it hold `given` for the trace."""
        self._given, self.tracing = given, True
        refill(self.container, given)

    def written(self) -> Change | None:
        """What the function has put into it."""
        now = entries(self.container)
        if len(now) == len(self._given) and all(map(_is_same, now, self._given)):
            return None
        kind = dict if isinstance(self.container, dict) else list
        return Change(f"{self._place.path.shown}{shown(self._way)}", kind(self._held), kind(now), self._write)

    def restore(self) -> None:
        """Let it hold again what it held, unless the function has written it."""
        if self.tracing and self.written() is None:
            refill(self.container, self._held)
        self.tracing = False

    def now(self, given: Any = None) -> Any:
        """The container that is in its place."""
        return self.container if self.tracing else element(self._place.read(), self._way)

    def _write(self, value: Any) -> None:
        refill(self.now(), value)


def _is_same(a: Any, b: Any) -> bool:
    """Whether two elements, or entries of a dict, are the same objects."""
    return a is b or (type(a) is type(b) is tuple and len(a) == len(b) == 2 and a[0] is b[0] and a[1] is b[1])


@final
class Lifting:
    """The lifted places among those of one environment, while the function is traced.

    kinds   of the tensors in the places: (how to get it, its shape, dtype, and whether it requires no grad)
    guards  what has to be as it was
    """

    def __init__(self, places: list[Place], lifted: LiftedPlaces):
        chosen = list(lifted.chosen(places))
        holders = {id(c): p for p, of in chosen for c, _ in _containers(p.before, of)}
        chosen = [(p, of) for p, of in chosen if holders.get(id(p.owner), p) is p]  # else it is in another
        # a tensor in two places: which of them is meant cannot be told
        known = {id(p) for p, _ in chosen}
        count = Counter(id(t) for p, of in chosen for t in _tensors(p, of))
        count.update(
            id(p.before) for p in places
            if isinstance(p.before, Tensor) and not isinstance(p, RequiresGrad)
            and id(p) not in known and id(p.owner) not in holders
        )  # fmt: skip
        self._chosen = [(p, of) for p, of in chosen if all(count[id(t)] == 1 for t in _tensors(p, of))]
        self._inside = {id(t) for p, of in self._chosen for t in _tensors(p, of)}
        self._containers = [_Container(c, p, way) for p, of in self._chosen for c, way in _containers(p.before, of)]
        self._owners = {id(c.container) for c in self._containers}
        self._places = {id(p) for p, _ in self._chosen}
        self._proxies: dict[int, Any] = {}
        self.guards: list[Place] = [
            OutlineKept(p, of) for p, of in self._chosen if not isinstance(of, (TensorKind, NumberKind))
        ]
        self.kinds = [
            (_getter(p, way), *kind) for p, of in self._chosen for way, kind in changing(of)
            if isinstance(kind, TensorKind)
        ]  # fmt: skip

    @property
    def numbers(self) -> list[Place]:
        """The places with numbers."""
        return [p for p, of in self._chosen if _has_number(of)]

    def covers(self, place: Place) -> bool:
        """Whether `place` needs no guard of its own."""
        if isinstance(place, (RequiresGrad, ClassOf)):
            return id(place.owner) in self._inside
        if isinstance(place, (Inside, DictItem)) and id(place.owner) in self._owners:
            return True
        return id(place) in self._places

    def existing(self) -> Iterator[tuple[int, Callable[[Any], Any]]]:
        """The ids of the containers in lifted places, and how to find what is there at a later call."""
        return ((id(c.container), c.now) for c in self._containers)

    def start(self, tracer: Tracer) -> None:
        """Let the tracer know the tensors, and put traced numbers in place of the numbers."""
        for place, of in self._chosen:
            proxies = {way: self._reach(tracer, place, way, kind) for way, kind in changing(of)}
            given = self._given(place.before, (), proxies)
            if given is not place.before:
                self._proxies[id(place)] = given
                place.write(given)

    def _reach(self, tracer: Tracer, place: Place, way: Way, kind: TensorKind | NumberKind) -> Any:
        value, at, get = element(place.before, way), place.path.shown + shown(way), _getter(place, way)
        if isinstance(kind, TensorKind):
            tracer.reach(Lifted(at, get, None), value)
            return value
        source = Lifted(at, get, kind.type)
        tracer.reach(source, value)
        name = functools.reduce(Path.item, way, Path("", place.path.name)).name or "number"
        return Number(tracer, tracer.input(name, Aval((), NUMBERS[kind.type]), source))

    def _given(self, value: Any, way: Way, proxies: dict[Way, Any]) -> Any:
        """`value` with the proxies in it; containers that can change are filled with them."""
        if way in proxies:
            return proxies[way]
        if not is_branch(value) or not any(w[: len(way)] == way for w in proxies):
            return value
        keys = keys_of(value)
        found = [self._given(value[key], (*way, key), proxies) for key in keys]
        container = next((c for c in self._containers if c.container is value), None)
        if container is not None:
            container.start(list(zip(keys, found, strict=True)) if isinstance(value, dict) else found)
            return value
        if all(new is value[key] for key, new in zip(keys, found, strict=True)):
            return value
        return type(value)(*found) if hasattr(value, "_fields") else type(value)(found)

    def written(self) -> list[Change]:
        """What the function has written into the lifted places; containers before the places that they are in."""
        changes = [change for c in self._containers if (change := c.written()) is not None]
        places = [p for p, _ in self._chosen if p.read() is not self._proxies.get(id(p), p.before)]
        return changes + [Change(p.path.shown, p.before, p.read(), p.write) for p in places]

    def restore(self) -> None:
        """Put back what the function has not written."""
        for container in self._containers:
            container.restore()
        for place, _ in self._chosen:
            if id(place) in self._proxies and place.read() is self._proxies[id(place)]:
                place.write(place.before)


def _getter(place: Place, way: Way) -> Callable[[], Any]:
    return functools.partial(_read, place, way) if way else place.read


def _read(place: Place, way: Way) -> Any:
    return element(place.read(), way)


def _tensors(place: Place, of: Outline) -> list[Tensor]:
    return [element(place.before, way) for way, kind in changing(of) if isinstance(kind, TensorKind)]


def _containers(value: Any, of: Outline, way: Way = ()) -> Iterator[tuple[Any, Way]]:
    """The containers in `value`, itself among them, that can change; and the way to each."""
    if isinstance(of, Branch):
        for key, child in zip(of.keys, of.children, strict=True):
            yield from _containers(value[key], child, (*way, key))
        if not isinstance(value, tuple):
            yield value, way
