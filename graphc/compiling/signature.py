"""What tells apart calls that need different programs: the structure of the arguments, avals, and Python values."""

from __future__ import annotations

import dataclasses
import itertools
import weakref
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePath
from typing import Any, final

import numpy as np

from eager.devices import device
from eager.state import grad_enabled, made_in_inference
from eager.tensor import Parameter, Tensor
from graphc.capture.tree import children, is_immutable
from graphc.ops.dtypes import default_float

_SCALARS = (bool, int, float, complex, str, bytes, type(None))
_BY_VALUE = (device, range, Fraction, Decimal, PurePath)  # those that never change and can be hashed


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


@final
class Signatures:
    """The signatures of the calls of one function."""

    def __init__(self):
        self._identities = Identities()

    def of(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, list[Tensor]]:
        """(signature, the tensors among the arguments)."""
        key: list[Any] = [grad_enabled(), default_float(), made_in_inference() is None]
        tensors: list[Tensor] = []
        containers: list[int] = []
        for a in args:
            c = a.__class__
            if c is Tensor or c is Parameter:
                d = a._d
                key += (c, d.shape, d.dtype if d.__class__ is np.ndarray else d.numpy_dtype, a._n is None)
                tensors.append(a)
            else:
                self._add(a, key, tensors, containers)
        if kwargs:
            for name in kwargs:
                key.append(name)
                self._add(kwargs[name], key, tensors, containers)
        if len(containers) > 1 and len(set(containers)) != len(containers):
            key.append(tuple([containers.index(c) for c in containers]))  # the same container twice
        if len(tensors) > 1 and len(different := {id(t): k for k, t in enumerate(tensors)}) != len(tensors):
            key.append(tuple([different[id(t)] for t in tensors]))  # the same tensor twice
        return tuple(key), tensors

    def _add(self, value: Any, key: list[Any], tensors: list[Tensor], containers: list[int]) -> None:
        """Append to `key` what tells `value` apart."""
        if isinstance(value, Tensor):
            key += (type(value), value._d.shape, value._dtype(), value._n is None)
            tensors.append(value)
        elif isinstance(value, _SCALARS):
            key += (type(value), value, str(value)) if isinstance(value, (float, complex)) else (type(value), value)
        elif (inside := children(value)) is not None:
            key += (type(value), len(inside))
            if isinstance(value, dict):
                key += value
            elif dataclasses.is_dataclass(value):
                key += [name for name, _ in inside]
            if not is_immutable(value):
                containers.append(id(value))
            for _, item in inside:
                self._add(item, key, tensors, containers)
        elif isinstance(value, np.generic):
            key += (type(value), value.tobytes())
        elif isinstance(value, _BY_VALUE):
            key += (type(value), value)
        elif isinstance(value, slice):
            key.append(slice)
            self._add((value.start, value.stop, value.step), key, tensors, containers)
        else:
            key += (type(value), self._identities(value))
