"""What a function sees besides its tensor arguments, as it is before a trace, and whether it still is at a later call.

Python values are built into a graph, so all those that the function's code reaches are guarded: numbers, strings and
the like by value, containers and ndarrays by content, tensors, functions and other objects by identity. See
`reachability` for what is reached, and `snapshots` for when two values are the same.

Not guarded: the standard library and installed packages that know nothing of tensors (taken as constant, see
`owners`), and what no copy can tell, such as `random.random()`; `impure` lists those calls.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, final

from graphc.capture.generated import Names
from graphc.capture.number import Number
from graphc.capture.state.append_only import append_only
from graphc.capture.state.executed import ExecutedReachability, can_watch
from graphc.capture.state.lifting import LiftedPlaces, Lifting, goes_on
from graphc.capture.state.outlines import NumberKind, TensorKind
from graphc.capture.state.places import Change, DictItem, Inside, Place, cheapest_first
from graphc.capture.state.reachability import Reachability
from graphc.capture.state.words import Condition, lines_by_words
from graphc.capture.tree import Kept, leaves_of
from graphc.ir import Symbol
from graphc.ops.dims import has_dim

if TYPE_CHECKING:
    from graphc.capture.tracer import Tracer

MOST = 1000  # functions that are followed before it is known which are called


@final
class Environment:
    """The Python state that a call of `fn` with these arguments can read. Made before the call.

    names   id of a tensor that `fn` reaches by itself -> the name by which it knows it
    impure  messages: calls that a trace fixes and no guard can hold
    asks_types  whether `fn` may tell a traced number from a plain one, by its `type`
    lifting the places whose values are read anew at each call
    counters  guarded places with numbers that the function has changed: the next call finds others there. Tensors, too,
              if it has been compiled before: the first call may only have begun, as an optimizer's state does
    holds() whether everything guarded is as it was

    >>> from types import SimpleNamespace
    >>> cfg = SimpleNamespace(scale=1.0)
    >>> environment = Environment(lambda x: x * cfg.scale)
    >>> environment.holds()
    True
    >>> cfg.scale = 2.0
    >>> environment.holds(), environment.broken()
    (False, ['`cfg.scale` changed from 1.0 to 2.0'])
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
        lifted: LiftedPlaces | None = None,
    ):
        walk = Reachability()
        walk.start(fn, kwargs or {}, args)
        if not walk.run(MOST if can_watch() else math.inf):
            walk = ExecutedReachability(lifted or ())
            walk.start(fn, kwargs or {}, args)
            walk.run()
        self._walk = walk
        self.names = walk.names
        self._missed: list[int] = []
        self.counters: list[Place] = []
        lifted = lifted or LiftedPlaces()
        self._again = lifted.again
        self.lifting = Lifting(walk.places, lifted)
        self._found()
        self._append_only = append_only(self._places, walk.places)

    def _found(self) -> None:
        """Take over what the walk has come to."""
        self.__dict__.pop("holds", None)
        self.impure = list(self._walk.impure)
        self.asks_types = self._walk.asks_types
        self._caches = self._walk.caches
        self._places = [place for place in self._walk.places if not self.lifting.covers(place)]
        self._guarded = [*(place for place in self._places if place.guarded), *self.lifting.guards]

    @property
    def places(self) -> Sequence[Place]:
        """All that are known, also those that are read anew."""
        return self._walk.places

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """The function is traced inside the block: what it reaches becomes known at the latest."""
        if not isinstance(self._walk, ExecutedReachability):
            yield
            return
        try:
            with self._walk.watching():
                yield
        finally:
            self._found()

    @functools.cached_property
    def holds(self) -> Callable[[], bool]:
        """Whether every guarded place has the value that it had: a generated function."""
        names = Names()
        return names.bind("holds", ["def holds():", *self.lines(names, "return False"), " return True"])

    def lines(self, names: Names, miss: str, further: Sequence[Condition] = ()) -> list[str]:
        """Statements that do `miss` unless `holds()`, and `further` conditions do."""
        return lines_by_words([*cheapest_first(self._guarded), *further], names, miss)

    def start(self, tracer: Tracer) -> None:
        """The function is traced from now on."""
        self.lifting.start(tracer)
        self._missed = [cache.cache_info().misses for cache in self._caches]
        for container in self._append_only:
            container.start()

    def restore(self) -> None:
        """The function has been traced: put back what was there for the trace alone."""
        changed = [place for place in self._places if not place.same()]
        # what takes something away may do so only once, as a lazy layer that begins
        emptied = [p for p in changed if isinstance(p, Inside) and isinstance(p.owner, (dict, list, set))]
        once = any(len(place.original()) > len(place.owner) for place in emptied)
        kinds = (NumberKind, TensorKind) if self._again else (NumberKind,)
        self.counters = [] if once else [place for place in changed if place.guarded and goes_on(place, kinds)]
        for container in self._append_only:
            container.finish()
        self.lifting.restore()
        for cache, before in itertools.zip_longest(self._caches, self._missed):
            if cache.cache_info().misses != before and _holds_traced(cache):
                cache.cache_clear()

    def existing(self) -> dict[int, Kept]:
        """By id: what stands for each container, which is there before the call, in results."""
        owners = [p.owner for p in self._places if isinstance(p, Inside)]
        found = {id(owner): Kept(functools.partial(_itself, owner)) for owner in owners}
        return found | {owner: Kept(find) for owner, find in self.lifting.existing()}

    def owners(self) -> frozenset[int]:
        """The ids of what holds the places: objects (by themselves or by their namespaces) that are there already."""
        return frozenset(id(place.owner) for place in self._places) | self._walk.met

    def broken_places(self) -> list[Place]:
        """The guarded places that have changed."""
        return [place for place in self._guarded if not place.same()]

    def broken(self) -> list[str]:
        """What has changed, a sentence each: "`self.cfg.scale` changed from 1.0 to 2.0"."""
        return list(dict.fromkeys(place.describe() for place in self.broken_places()))

    def written(self) -> list[Change]:
        """The places whose values differ from what they were. Right after the trace: what the function has written."""
        changed = [p for p in self._places if not (p.same() or any(grown.counts(p) for grown in self._append_only))]
        whole = {id(place.owner) for place in changed if isinstance(place, Inside)}  # whose elements that has, too
        found = [
            Change(place.path.shown, place.original(), place.now(), place.write)
            for place in changed
            if not isinstance(place, DictItem) or id(place.owner) not in whole
        ]
        added = [container.finish() for container in self._append_only]
        return found + self.lifting.written() + [change for change in added if change is not None]


def _holds_traced(cache: Any) -> bool:
    """Whether functools has put what was made for a graph into the cache of a function."""
    held = gc.get_referents(cache)  # results, or (if any number is kept) the dict with them
    found = [value for x in held for value in (x.values() if isinstance(x, dict) else [x])]
    return any(
        has_dim(value) or any(type(leaf) is Number or leaf._d.__class__ is Symbol for leaf in leaves_of(value))
        for value in found
    )


def _itself(owner: Any, given: Any) -> Any:
    return owner
