"""What tells apart calls that need different programs: the structure of the arguments, avals, and Python values."""

from __future__ import annotations

import dataclasses
import itertools
import math
import reprlib
import weakref
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePath
from typing import Any, NamedTuple, final

import numpy as np

from eager.core.autocast import AutocastState, autocast_state
from eager.core.devices import device
from eager.core.parameter import Parameter
from eager.core.placed import Placed, is_placed
from eager.core.sparse import Sparse, is_sparse
from eager.core.state import grad_enabled, made_in_inference
from eager.core.tensor import Tensor
from eager.functional.buffers import is_of_elsewhere
from graphc.capture.elsewhere import OfElsewhere
from graphc.capture.state.argument_containers import is_told_by_content
from graphc.capture.state.lifted_numbers import LiftedNumber, Positions, Where
from graphc.capture.state.lifting import NUMBERS
from graphc.capture.state.snapshots import CONTAINERS
from graphc.capture.tree import children, is_immutable
from graphc.ops.dtypes import default_float

_SCALARS = (bool, int, float, complex, str, bytes, type(None))
ANY = ...  # in place of a number that varies
OTHER_ARGUMENTS = "new shapes, dtypes or values of arguments"
VARIES = "a number among the arguments varies: from now on it is an input"
TAKEN = "Python decides by a number among the arguments: this program is for {value} alone"
_BY_VALUE = (device, range, Fraction, Decimal, PurePath)  # those that never change and can be hashed


class Located(NamedTuple):
    """The dtype of a tensor that is on a device, and that."""

    dtype: np.dtype
    device: device

    def __str__(self) -> str:
        return f"{self.dtype} on {self.device}"


def located(data: Any) -> np.dtype | Located:
    """The dtype of data that are no ndarray, with their device if that is not the CPU."""
    return Located(data.numpy_dtype, data.device) if data.__class__ is Placed else data.numpy_dtype


@final
class Identities:
    """A number for each object that is told apart by identity; it is never given to another object.

    An object is not kept alive, unless it cannot be referred to weakly.
    """

    def __init__(self):
        self._known: dict[int, tuple[Any, int]] = {}
        self._numbers = itertools.count()

    def __call__(self, value: Any) -> int:
        """The number of `value`."""
        found = self._known.get(id(value))
        if found is not None:
            return found[1]
        number, key = next(self._numbers), id(value)
        try:
            held: Any = weakref.ref(value, lambda _: self._known.pop(key, None))
        except TypeError:
            held = value
        self._known[key] = (held, number)
        return number


class Call(NamedTuple):
    """A call of a compiled function.

    signature  what tells it apart from calls that need other programs
    tensors    those among the arguments, and the numbers that are lifted
    """

    signature: Any
    tensors: list[Tensor]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    @property
    def given(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments."""
        return self.args, self.kwargs


@final
class Signatures:
    """The signatures of the calls of one function."""

    def __init__(self):
        self._identities = Identities()
        self._positions = Positions()

    def of(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """The call with these arguments. OfElsewhere if one is an array of another library."""
        key: list[Any] = [grad_enabled(), default_float(), made_in_inference() is None, autocast_state()]
        tensors: list[Tensor] = []
        described = _Described(key, tensors, [], {})
        for i, a in enumerate(args):
            c = a.__class__
            if (c is Tensor or c is Parameter) and (d := a._d).__class__ is not Sparse and not a.__dict__:
                key += (c, d.shape, d.dtype if d.__class__ is np.ndarray else located(d), a._n is None)
                tensors.append(a)
            else:
                self._add(a, described, (i,))
        if kwargs:
            for name in kwargs:
                key.append(name)
                self._add(kwargs[name], described, (name,))
        containers = described.containers
        if len(containers) > 1 and len(set(containers)) != len(containers):
            key.append(tuple([containers.index(c) for c in containers]))  # the same container twice
        if len(tensors) > 1 and len(different := {id(t): k for k, t in enumerate(tensors)}) != len(tensors):
            key.append(tuple([different[id(t)] for t in tensors]))  # the same tensor twice
        return Call(tuple(key), tensors, args, kwargs)

    def _told_apart(self, value: Any) -> Any:
        """What tells apart a value that a tensor has as an attribute: a program is for that one."""
        return (type(value), _itself(value)) if isinstance(value, _SCALARS) else self._identities(value)

    def _add(self, value: Any, described: _Described, where: Where | None) -> None:
        """Append to what is `described` what tells `value` apart; `where` it is, if numbers there may vary."""
        key, tensors, containers, numbers = described
        if isinstance(value, Tensor) and is_sparse(value):
            key += (Sparse, value._d.layout, value._d.coalesced, value._d.shape)
            for part in value._d.parts:
                self._add(part, described, None)
        elif isinstance(value, Tensor):
            data = value._d
            key += (type(value), data.shape, located(data) if is_placed(value) else value._dtype(), value._n is None)
            tensors.append(value)
            if own := vars(value):
                key.append(Attributes([(name, self._told_apart(each)) for name, each in own.items()]))
        elif isinstance(value, _SCALARS):
            position = self._positions.lifted(value, where) if where and type(value) in NUMBERS else None
            if position is not None:
                key += (float, ANY, ANY) if isinstance(value, float) else (int, ANY)  # as many as for a value
                tensors.append(LiftedNumber.of(value, position, numbers, len(tensors)))
            else:
                inexact = isinstance(value, (float, complex))
                key += (type(value), _itself(value), str(value)) if inexact else (type(value), value)
        elif (inside := children(value)) is not None:
            key += (type(value), len(inside))
            if isinstance(value, dict):
                key += value
            elif dataclasses.is_dataclass(value):
                key += [name for name, _ in inside]
            if not is_immutable(value):
                containers.append(id(value))
            ordered = where is not None and not isinstance(value, (set, frozenset))
            for i, (_, item) in enumerate(inside):
                self._add(item, described, (*where, i) if where and ordered else None)
        elif isinstance(value, np.generic):
            key += (type(value), value.tobytes())
        elif is_told_by_content(value):
            key += (np.ndarray, value.dtype, value.shape, value.tobytes())
            containers.append(id(value))
        elif isinstance(value, _BY_VALUE):
            key += (type(value), value)
        elif isinstance(value, slice):
            key.append(slice)
            self._add((value.start, value.stop, value.step), described, None)
        elif is_of_elsewhere(value):
            raise OfElsewhere
        else:
            key += (type(value), self._identities(value))


@final
class Attributes(tuple[Any, ...]):
    """The attributes that a user has given to a tensor: (name, what tells its values apart)."""

    __slots__ = ()


def without_numbers(signature: tuple[Any, ...]) -> tuple[Any, ...]:
    """The signature without the values of numbers among the arguments."""
    found = list(signature)
    for k, kind in enumerate(signature):
        if kind is float:
            found[k + 1 : k + 3] = ANY, ANY
        elif kind is int:
            found[k + 1] = ANY
    return tuple(found)


def difference(signature: tuple[Any, ...], known: Iterable[tuple[Any, ...]]) -> str:
    """How a signature differs from that of the `known` ones which is most like it, in words."""
    alike = [other for other in known if len(other) == len(signature)]
    if not alike:
        return OTHER_ARGUMENTS
    nearest = min(alike, key=lambda other: sum(map(_differ, signature, other)))
    at = next(i for i, (a, b) in enumerate(zip(signature, nearest, strict=True)) if _differ(a, b))
    now, before, kind = signature[at], nearest[at], signature[at - 1] if at else None
    if now is ANY or before is ANY:
        return VARIES if now is ANY else TAKEN.format(value=reprlib.repr(now))
    if isinstance(now, AutocastState):
        return "autocast is in another state"
    if isinstance(now, Located) or isinstance(before, Located):
        return f"an argument has dtype {now}, not {before}"
    if isinstance(now, Attributes) and isinstance(before, Attributes):
        changed = {name for name, _ in {*now} ^ {*before}}
        return f"attributes of a tensor changed: {', '.join(sorted(changed))}"
    if isinstance(now, tuple) and isinstance(before, tuple):
        return f"an argument has shape {now}, not {before}"
    if isinstance(now, np.dtype) and isinstance(before, np.dtype):
        return f"an argument has dtype {now}, not {before}"
    if type(now) is type(before) is int and isinstance(kind, type) and not issubclass(kind, int):
        # the length of a container, or the number of an object that is told apart by identity
        is_container = issubclass(kind, CONTAINERS) or dataclasses.is_dataclass(kind)
        has = f"has {now} elements, not {before}" if is_container else "is another one"
        return f"an argument of type {kind.__qualname__} {has}"
    shown = (*_SCALARS, *_BY_VALUE)
    if type(now) is type(before) and isinstance(now, shown) and not isinstance(now, (bool, bytes)):
        return f"an argument changed from {reprlib.repr(before)} to {reprlib.repr(now)}"
    return OTHER_ARGUMENTS


def _differ(a: Any, b: Any) -> bool:
    return a is not b and (type(a) is not type(b) or a != b)


def _itself(value: Any) -> Any:
    """A number that equals itself: all nans are one."""
    return value if value == value else math.nan if isinstance(value, float) else str(value)


class _Described(NamedTuple):
    """What is known of a call so far. `containers`: their ids; `numbers`: those that vary, by place in `tensors`."""

    key: list[Any]
    tensors: list[Tensor]
    containers: list[int]
    numbers: dict[int, Any]
