"""`finfo` and `iinfo`: the limits of the floating and the integer dtypes."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from eager.core import dtypes
from eager.core.shown import Shown
from graphc.ops.dtypes import default_float, is_floating, kind, real_of
from graphc.ops.dtypes import finfo as limits_of

WRONG_KIND = "torch.{0}() requires a{1} input type. Use torch.{2} to handle 'torch.{0}'"


class _Limits(metaclass=Shown):
    """The attributes in the order of the text."""

    __slots__ = ("bits", "dtype", "max", "min")
    shown: tuple[str, ...] = ()

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={_short(getattr(self, name))}" for name in self.shown)
        return f"{type(self).__name__}({values})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.dtype == self.dtype

    def __hash__(self) -> int:
        return hash((type(self), self.dtype))


def _short(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"


@final
class finfo(_Limits):
    """What a floating dtype can hold, of a complex one its parts; the default dtype's if None. As `torch.finfo`.

    bits; eps: the distance from 1 to the next number; max; min; tiny, smallest_normal: the smallest normal number;
    resolution: the unit of the last decimal digit that is always right. TypeError for another dtype.
    """

    __slots__ = ("eps", "resolution", "smallest_normal", "tiny")
    shown = ("resolution", "min", "max", "eps", "smallest_normal", "tiny", "dtype")

    def __init__(self, type: Any = None):
        named = type if isinstance(type, dtypes.dtype) and type.is_name_only else None
        if named is not None:
            dtype = named.extension()
        else:
            dtype = real_of(default_float() if type is None else dtypes.to_numpy(type, "finfo"))
        if named is None and not is_floating(dtype):
            raise TypeError(WRONG_KIND.format("finfo", " floating point", "iinfo"))
        limits = limits_of(dtype)
        self.bits = dtype.itemsize * 8
        self.eps, self.max, self.min = float(limits.eps), float(limits.max), float(limits.min)
        self.tiny = self.smallest_normal = float(limits.tiny)
        self.resolution = 1.0 if named else 10.0 ** -int(limits.precision)
        self.dtype = named.name if named else dtypes.BY_NUMPY[dtype].name


@final
class iinfo(_Limits):
    """The bits, max and min of an integer dtype. As `torch.iinfo`. TypeError for another dtype."""

    __slots__ = ()
    shown = ("min", "max", "dtype")

    def __init__(self, *type: Any):
        if len(type) != 1:
            raise TypeError('iinfo() missing 1 required positional arguments: "type"')
        dtype = dtypes.to_numpy(type[0], "iinfo")
        if kind(dtype) in "fc":
            raise TypeError(WRONG_KIND.format("iinfo", "n integer", "finfo"))
        if kind(dtype) == "b":
            raise TypeError(f"{dtypes.BY_NUMPY[dtype]} is not supported by torch.iinfo")
        limits = np.iinfo(dtype)
        self.bits, self.max, self.min = limits.bits, int(limits.max), int(limits.min)
        self.dtype = dtypes.BY_NUMPY[dtype].name
