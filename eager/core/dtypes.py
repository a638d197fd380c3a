"""`torch.dtype` objects, and `Size`."""

from __future__ import annotations

import builtins
import functools
from typing import Any, SupportsIndex, final, overload

import numpy as np

from eager.core.shown import Shown
from graphc.ops import dims
from graphc.ops import dtypes as d


@final
class dtype(metaclass=Shown):
    """A tensor's element type. One object each: compare with `is` or `==`."""

    __slots__ = ("_numpy", "is_complex", "is_floating_point", "is_signed", "itemsize", "name")
    is_floating_point: builtins.bool
    is_complex: builtins.bool
    is_signed: builtins.bool
    itemsize: builtins.int

    def __init__(
        self, name: str, numpy: np.dtype | None, itemsize: builtins.int = 2, kind: str = "f",
        signed: builtins.bool = True,
    ):  # fmt: skip
        self.name = name
        self._numpy = numpy  # None: an extension of NumPy's, whose package is imported when it is first needed
        kind = kind if numpy is None else numpy.kind
        self.is_floating_point = kind == "f"
        self.is_complex = kind == "c"
        self.is_signed = kind in "fci" and signed
        self.itemsize = itemsize if numpy is None else numpy.itemsize

    @property
    def numpy(self) -> np.dtype:
        """The NumPy dtype. NotImplementedError for a dtype that has a name, but no tensors."""
        if self._numpy is None:
            if self.is_name_only:
                raise NotImplementedError(f"tensors of {self!r} are not supported")
            self._numpy = d.bfloat16()
        return self._numpy

    @property
    def is_name_only(self) -> builtins.bool:
        """Whether there are no tensors of this dtype: programs only ask whether some are."""
        return self._numpy is None and self.name != "bfloat16"

    def extension(self) -> np.dtype:
        """The dtype of that name among the extensions of NumPy."""
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, self.name))

    def to_real(self) -> dtype:
        """The dtype of the parts of a complex dtype; any other dtype itself."""
        return BY_NUMPY[d.real_of(self.numpy)]

    def to_complex(self) -> dtype:
        """The complex dtype whose parts have this floating dtype."""
        return self if self.is_complex else BY_NUMPY[d.complex_of(self.numpy)]

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self):
        return self.name


float16, half = (dtype("float16", d.FLOAT16),) * 2
bfloat16 = dtype("bfloat16", None)
float32 = float = dtype("float32", d.FLOAT32)
float64 = double = dtype("float64", d.FLOAT64)
complex64 = cfloat = dtype("complex64", d.COMPLEX64)
complex128 = cdouble = dtype("complex128", d.COMPLEX128)
uint8 = dtype("uint8", np.dtype(np.uint8))
uint16 = dtype("uint16", np.dtype(np.uint16))
uint32 = dtype("uint32", np.dtype(np.uint32))
uint64 = dtype("uint64", np.dtype(np.uint64))
int8 = dtype("int8", np.dtype(np.int8))
int16 = short = dtype("int16", np.dtype(np.int16))
int32 = int = dtype("int32", d.INT32)
int64 = long = dtype("int64", d.INT64)
bool = dtype("bool", d.BOOL)
float8_e4m3fn = dtype("float8_e4m3fn", None, 1)
float8_e4m3fnuz = dtype("float8_e4m3fnuz", None, 1)
float8_e5m2 = dtype("float8_e5m2", None, 1)
float8_e5m2fnuz = dtype("float8_e5m2fnuz", None, 1)
float8_e8m0fnu = dtype("float8_e8m0fnu", None, 1, signed=False)  # powers of 2
# Without tensors: libraries have tables of them, and ask whether a tensor is of one.
complex32 = chalf = dtype("complex32", None, 4, "c")
quint8, qint8, qint32 = dtype("quint8", None, 1, "u"), dtype("qint8", None, 1, "i"), dtype("qint32", None, 4, "i")
quint4x2, quint2x4 = dtype("quint4x2", None, 1, "u"), dtype("quint2x4", None, 1, "u")
uint1, uint2, uint3, uint4, uint5, uint6, uint7 = (dtype(f"uint{bits}", None, 1, "u") for bits in range(1, 8))
int1, int2, int3, int4, int5, int6, int7 = (dtype(f"int{bits}", None, 1, "i") for bits in range(1, 8))


class _ByNumpy(dict[np.dtype, dtype]):
    def __missing__(self, key: np.dtype) -> dtype:
        if key.name == "bfloat16":  # made by the registry, or by the user's ml_dtypes
            return self.setdefault(key, bfloat16)
        raise KeyError(key)


BY_NUMPY = _ByNumpy({
    t.numpy: t
    for t in (
        float16, float32, float64, complex64, complex128, uint8, uint16, uint32, uint64, int8, int16, int32, int64, bool
    )
})  # fmt: skip


def to_numpy(value: Any, name: str = "") -> np.dtype:
    """The NumPy dtype of a torch dtype (or of a Python type: float, int, bool, complex).

    TypeError for anything else, on behalf of the function `name`.
    """
    if isinstance(value, dtype):
        return value.numpy
    try:
        return _PYTHON_TYPES[value]
    except (KeyError, TypeError):
        what = f"{name}(): argument 'dtype'" if name else "dtype"
        raise TypeError(f"{what} must be torch.dtype, not {type(value).__name__}") from None


_PYTHON_TYPES = {
    builtins.float: d.FLOAT64, builtins.int: d.INT64, builtins.bool: d.BOOL, builtins.complex: d.COMPLEX128
}  # fmt: skip


def of_numpy(value: np.dtype) -> dtype:
    """The torch dtype of a NumPy dtype. Raises PyTorch's TypeError for one that it does not have."""
    try:
        return BY_NUMPY[value]
    except KeyError:
        pass
    if not value.isnative:
        raise ValueError(
            "given numpy array has byte order different from the native byte order. Conversion between byte orders is "
            "currently not supported."
        )
    raise TypeError(
        f"can't convert np.ndarray of type {value.type.__module__}.{value.type.__name__}. The only supported types "
        "are: float64, float32, float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, "
        "uint8, and bool."
    )


@final
class Size(tuple[builtins.int, ...], metaclass=Shown):
    """A tensor's shape, printed as `torch.Size([2, 3])`. TypeError for what is no integer."""

    __slots__ = ()

    def __new__(cls, sizes: Any = ()) -> Size:
        return tuple.__new__(cls, [_size(i, n) for i, n in enumerate(sizes)])

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"

    def numel(self) -> builtins.int:
        total = 1
        for n in self:
            total *= n
        return total

    @overload
    def __getitem__(self, index: SupportsIndex) -> builtins.int: ...

    @overload
    def __getitem__(self, index: slice) -> Size: ...

    def __getitem__(self, index: Any) -> Any:
        picked = tuple.__getitem__(self, index)
        return size_of(picked) if isinstance(index, slice) else picked

    def __add__(self, other: tuple[Any, ...]) -> Size:  # type: ignore[override]
        if not isinstance(other, tuple):
            raise TypeError(f"can only concatenate tuple (not {type(other).__name__}) to torch.Size")
        return Size((*self, *other))

    def __radd__(self, other: tuple[Any, ...]) -> Size:
        return Size((*other, *self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, times: Any) -> Size:
        return Size(tuple(self) * times)

    __rmul__ = __mul__

    def __reduce__(self):
        return Size, (tuple(self),)


size_of = functools.partial(tuple.__new__, Size)  # of a shape, which holds integers already


def _size(position: builtins.int, n: Any) -> builtins.int:
    try:
        return dims.index(n)
    except TypeError:
        raise TypeError(f"torch.Size() takes an iterable of 'int' (item {position} is '{type(n).__name__}')") from None


_WRITTEN_IN_C = ("Generator", "Size", "device", "dtype", "layout", "memory_format")  # by PyTorch: with a module


def type_name(x: Any) -> str:
    """The type of `x` as Python's errors name it: with its module, if it is not written in Python."""
    kind = type(x)
    if kind.__name__ in _WRITTEN_IN_C and kind.__module__.partition(".")[0] == "eager":
        return f"torch.{kind.__name__}"
    plain = kind.__module__ == "builtins" or kind.__flags__ & _WRITTEN_IN_PYTHON
    return kind.__name__ if plain else f"{kind.__module__}.{kind.__name__}"


_WRITTEN_IN_PYTHON = 1 << 9  # Py_TPFLAGS_HEAPTYPE
