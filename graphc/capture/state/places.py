"""Places: where a Python value is kept, how to read and write it again, and the generated test that nothing changed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from operator import is_
from types import FunctionType
from typing import Any, NamedTuple, final

import numpy as np

from eager.core.tensor import Tensor
from graphc.capture.state.snapshots import MISSING, Elements, change, keep, refill, same
from graphc.capture.state.words import Word, class_of, slot_of, version_of, version_of_class
from graphc.ops import dtypes


class Path(NamedTuple):
    """How a function gets to a value: as Python shows it, and as the name of a tensor ("self.a[0]", "a.0")."""

    shown: str
    name: str

    @property
    def holder(self) -> Path:
        """Of what an attribute is taken from."""
        return Path(self.shown.rpartition(".")[0], self.name.rpartition(".")[0])

    def attribute(self, name: str) -> Path:
        return Path(f"{self.shown}.{name}" if self.shown else name, f"{self.name}.{name}" if self.name else name)

    def item(self, key: Any) -> Path:
        if isinstance(key, Tensor):  # an optimizer's state: the text of a tensor is long, and reads its values
            shown = f"{type(key).__name__}{list(key._d.shape)}"
            return Path(f"{self.shown}[<{shown}>]", f"{self.name}.{shown}" if self.name else shown)
        return Path(f"{self.shown}[{key!r}]", f"{self.name}.{key}" if self.name else str(key))


class Change(NamedTuple):
    """A place whose value differs from what it was. `write(value)` puts a value there; `MISSING` stands for none.

    find  of a container among the arguments, from (args, kwargs); `write` is given that first
    """

    path: str
    before: Any
    after: Any
    write: Callable[..., None]
    find: Callable[[Any], Any] | None = None

    def carry_out(self, value: Any, given: Any) -> None:
        """Put `value` there, in a call with the arguments `given`."""
        if self.find is None:
            self.write(value)
        else:
            self.write(self.find(given), value)


class Place:
    """A place. `before` is its value at first, `kept` a copy of that to compare with.

    guarded   whether a program depends on it; other places are only watched for writes of the function
    """

    __slots__ = ("before", "guarded", "kept", "key", "owner", "path")
    cost = 0  # the test asks the cheapest first

    def __init__(self, owner: Any, key: Any, path: Path, guarded: bool = True):
        self.owner = owner
        self.key = key
        self.path = path
        self.guarded = guarded
        self.before = self.read()
        self.kept = keep(self.before)

    def read(self) -> Any:
        """The value there now, or MISSING."""
        raise NotImplementedError

    def write(self, value: Any) -> None:
        """Put `value` there, or remove what is there if it is MISSING."""
        raise NotImplementedError

    def expression(self, name: Callable[[Any], str]) -> str:
        """Source that reads the value and may raise where there is none; `name` gives an object a name."""
        raise NotImplementedError

    def same(self) -> bool:
        """Whether the value is what it was."""
        return same(self.read(), self.kept)

    def quick(self, name: Callable[[Any], str]) -> str:
        """Source of a condition that is true if the value may have changed; then `same` decides."""
        filled = self.filled(name) if self.before is MISSING else ""
        return filled or f"{self.expression(name)} is not {name(self.before)}"

    def filled(self, name: Callable[[Any], str]) -> str:
        """The same for a place where there was nothing, unless `expression` tells that, too: then ""."""
        return ""

    @property
    def words(self) -> Sequence[Word] | None:
        """The words of memory that change when the value does; None if there are none."""
        return None

    def original(self) -> Any:
        """The value that was there."""
        return self.before

    def now(self) -> Any:
        """What to `write` later, for it to be again as it is now."""
        return self.read()

    def describe(self) -> str:
        """What has happened to the value."""
        return change(self.path.shown, self.read(), self.kept)


@final
class DictItem(Place):
    """An entry of a dict, a namespace or a sequence."""

    __slots__ = ()

    def read(self) -> Any:
        if isinstance(self.owner, dict):
            return dict.get(self.owner, self.key, MISSING)  # a defaultdict would make the entry
        try:
            return self.owner[self.key]
        except (KeyError, IndexError):
            return MISSING

    def write(self, value: Any) -> None:
        if value is not MISSING:
            self.owner[self.key] = value
        elif self.key in self.owner:
            del self.owner[self.key]

    def expression(self, name: Callable[[Any], str]) -> str:
        if hasattr(type(self.owner), "__missing__"):
            return f"{name(self.owner)}.get({self._key(name)}, {name(MISSING)})"
        return f"{name(self.owner)}[{self._key(name)}]"

    @property
    def words(self) -> Sequence[Word] | None:
        return version_of(self.owner) if isinstance(self.owner, dict) else None

    def filled(self, name: Callable[[Any], str]) -> str:
        return f"{self._key(name)} in {name(self.owner)}"

    def _key(self, name: Callable[[Any], str]) -> str:
        return repr(self.key) if isinstance(self.key, (str, int)) else name(self.key)


@final
class Attribute(Place):
    """What `getattr` finds: a slot, or an attribute of a function or a class."""

    __slots__ = ()

    def read(self) -> Any:
        return getattr(self.owner, self.key, MISSING)

    def write(self, value: Any) -> None:
        if value is not MISSING:
            setattr(self.owner, self.key, value)
        elif hasattr(self.owner, self.key):
            delattr(self.owner, self.key)

    def expression(self, name: Callable[[Any], str]) -> str:
        return f"{name(self.owner)}.{self.key}"

    @property
    def words(self) -> Sequence[Word] | None:
        if self.key == "__class__":
            return class_of(self.owner)
        function = isinstance(self.owner, FunctionType)
        return slot_of(self.owner, self.key, self.before) if function else None

    def filled(self, name: Callable[[Any], str]) -> str:
        return f"getattr({name(self.owner)}, {self.key!r}, {name(MISSING)}) is not {name(MISSING)}"


@final
class ClassAttribute(Place):
    """An entry of the namespace of a class; `owner` is the class."""

    __slots__ = ()

    def read(self) -> Any:
        return vars(self.owner).get(self.key, MISSING)

    def write(self, value: Any) -> None:
        if value is not MISSING:
            setattr(self.owner, self.key, value)
        elif self.key in vars(self.owner):
            delattr(self.owner, self.key)

    @property
    def words(self) -> Sequence[Word] | None:
        return version_of_class(self.owner)

    def expression(self, name: Callable[[Any], str]) -> str:
        return f"{name(vars(self.owner))}[{self.key!r}]"

    def filled(self, name: Callable[[Any], str]) -> str:
        return f"{self.key!r} in {name(vars(self.owner))}"


@final
class Cell(Place):
    """A variable of an enclosing function."""

    __slots__ = ()

    def read(self) -> Any:
        try:
            return self.owner.cell_contents
        except ValueError:
            return MISSING

    def write(self, value: Any) -> None:
        if value is not MISSING:
            self.owner.cell_contents = value
        elif self.read() is not MISSING:
            del self.owner.cell_contents

    @property
    def words(self) -> Sequence[Word] | None:
        return None if self.before is MISSING else slot_of(self.owner, "cell_contents", self.before)

    def filled(self, name: Callable[[Any], str]) -> str:
        return "True"

    def expression(self, name: Callable[[Any], str]) -> str:
        return f"{name(self.owner)}.cell_contents"


@final
class Reading(Place):
    """What a function returns, as a context variable's `get`; `owner` is the function, `key` the one that sets it."""

    __slots__ = ()
    cost = 1

    @property
    def words(self) -> Sequence[Word] | None:
        return version_of(dtypes.__dict__) if self.owner is dtypes.default_float else None  # a global variable there

    def read(self) -> Any:
        return self.owner()

    def write(self, value: Any) -> None:
        if value is not MISSING:  # what a context variable has been given, nothing can take away
            self.key(value)

    def expression(self, name: Callable[[Any], str]) -> str:
        return f"{name(self.owner)}()"


@final
class RequiresGrad(Place):
    """Whether gradients are recorded for a tensor."""

    __slots__ = ()

    def read(self) -> Any:
        return self.owner._n is not None

    def write(self, value: Any) -> None:
        if value:
            self.owner.requires_grad_()
        else:
            self.owner._n = None  # a history, too, that it has got since

    @property
    def words(self) -> Sequence[Word] | None:
        return slot_of(self.owner, "_n") if self.before else slot_of(self.owner, "_n", None)

    def quick(self, name: Callable[[Any], str]) -> str:
        return f"{name(self.owner)}._n is {'None' if self.before else 'not None'}"


@final
class ClassOf(Place):
    """The shape and the dtype of a tensor, as text."""

    __slots__ = ("dtype", "shape")

    def __init__(self, owner: Any, key: Any, path: Path, guarded: bool = True):
        super().__init__(owner, key, path, guarded)
        self.shape, self.dtype = tuple(owner._d.shape), owner._dtype()

    def read(self) -> Any:
        return f"{self.owner._dtype()}{[*self.owner._d.shape]}"

    def write(self, value: Any) -> None:
        """Nothing: they come with the data."""

    def quick(self, name: Callable[[Any], str]) -> str:
        return f"{name(self.owner)}._d.shape != {self.shape!r} or {name(self.owner)}._dtype() is not {name(self.dtype)}"


@final
class Inside(Place):
    """What a container, or an ndarray, holds. `owner` is the container."""

    __slots__ = ()
    cost = 2

    def read(self) -> Any:
        return self.owner

    def same(self) -> bool:
        if isinstance(self.kept, Elements):
            return self.kept.same(self.owner)
        return self.kept.same(self.owner, set())

    def write(self, value: Any) -> None:
        owner = self.owner
        if isinstance(owner, np.ndarray):
            owner[...] = value
            return
        refill(owner, value)

    @property
    def words(self) -> Sequence[Word] | None:
        return _version_with_order(self.owner)

    def quick(self, name: Callable[[Any], str]) -> str:
        owner = name(self.owner)
        if isinstance(self.kept, Elements):
            return "True"
        items = self.kept.items
        if not items:
            return owner
        same_items = f"len({owner}) == {len(items)} and "
        if self.kept.keys is None:
            same_items += f"all({name(map)}({name(is_)}, {owner}, {name(items)}))"
        else:
            same_items += f"all({name(map)}({name(is_)}, {owner}, {name(self.kept.keys)})) and "
            same_items += f"all({name(map)}({name(is_)}, {owner}.values(), {name(items)}))"
        return f"not ({same_items})"

    def original(self) -> Any:
        """A container like it with what it held."""
        return self.kept.original()

    def now(self) -> Any:
        """A container of a builtin type with what it holds."""
        owner = self.owner
        if isinstance(owner, np.ndarray):
            return owner.copy()
        return dict(owner) if isinstance(owner, dict) else list(owner)


class Table(Place):
    """A dict with names for keys, whose entries have places of their own: which names, in which order.

    What is put there is a dict with the entries that are added: those of the names that it had are put in their places.
    """

    __slots__ = ()
    cost = 1
    ordered = True

    def read(self) -> Any:
        return list(self.owner)

    def write(self, value: Any) -> None:
        for name in [name for name in self.owner if name not in self.before and name not in value]:
            del self.owner[name]
        self.owner.update(value)

    def original(self) -> Any:
        return {}

    def now(self) -> Any:
        return {name: value for name, value in self.owner.items() if name not in self.before}

    @property
    def words(self) -> Sequence[Word] | None:
        return _version_with_order(self.owner) if self.ordered else version_of(self.owner)

    def quick(self, name: Callable[[Any], str]) -> str:
        if not self.before:
            return name(self.owner)
        if not self.ordered or len(self.before) == 1:
            return f"len({name(self.owner)}) != {len(self.before)}"
        return f"[*{name(self.owner)}] != {name(self.before)}"

    def describe(self) -> str:
        before, after = set(self.before), set(self.owner)
        lost = [f"`{self.path.attribute(n).shown}` was deleted" for n in self.before if n not in after]
        new = [f"`{self.path.attribute(n).shown}` was added" for n in self.owner if n not in before]
        return "; ".join(lost + new) or f"`{self.path.shown}` has its children in another order"


@final
class Size(Table):
    """A dict whose order does not matter: which names, given that its entries have places of their own."""

    __slots__ = ()
    ordered = False

    def same(self) -> bool:
        return len(self.owner) == len(self.before)


@final
class Missing(Place):
    """Names that the namespace of an object does not have; `key` is a tuple of them.

    They are looked for only if the size of the namespace has changed, which an attribute that appears just when another
    disappears gets around: for modules, whose hooks and `forward` appear alone.
    """

    __slots__ = ("size",)

    def __init__(self, owner: Any, key: Any, path: Path, guarded: bool = True):
        super().__init__(owner, key, path, guarded)
        self.size = len(owner)

    def read(self) -> Any:
        return tuple(name for name in self.key if name in self.owner)

    def write(self, value: Any) -> None:
        for name in self.read():
            if name not in value:
                del self.owner[name]

    @property
    def words(self) -> Sequence[Word] | None:
        return version_of(self.owner)

    def quick(self, name: Callable[[Any], str]) -> str:
        return f"len({name(self.owner)}) != {self.size}"

    def describe(self) -> str:
        return "; ".join(f"`{self.path.attribute(name).shown}` was added" for name in self.read())


def _version_with_order(owner: Any) -> list[Word] | None:
    """That of a dict, if the order of its keys is in it: that of an OrderedDict is beside it."""
    beside = isinstance(owner, OrderedDict) and len(owner) > 1
    return version_of(owner) if isinstance(owner, dict) and not beside else None


def cheapest_first(places: Iterable[Place]) -> list[Place]:
    """In the order in which a test asks them."""

    def rank(place: Place) -> tuple[int, bool]:
        return place.cost, isinstance(place.before, (Tensor, type)) or callable(place.before)

    return sorted(places, key=rank)
