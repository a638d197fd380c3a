"""Number: a Python number that is not known until the program runs, such as `loss.item()`.

Arithmetic and comparisons stay in the graph, in float64 or int64, which is what Python computes in. Whatever needs the
number itself (`if`, `range`, `float(n)`) fixes it: the program then holds on the path with that value only.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any, cast, final

import numpy as np

from eager.core.tensor import Tensor
from graphc.capture.display_only import is_only_shown
from graphc.ir import Builder, Symbol
from graphc.ops import OPS, Op
from graphc.ops.dims import is_dim
from graphc.ops.dtypes import BOOL, FLOAT64, INT64, category, default_float, of_scalar
from graphc.ops.interpret import operand_dtype

if TYPE_CHECKING:
    from graphc.capture.tracer import Tracer

_KINDS = {BOOL: bool, INT64: int, FLOAT64: float}
_STOP, _CAST = OPS["stop_gradient"], OPS["cast"]
_BINARY = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "lt": operator.lt, "le": operator.le,
    "gt": operator.gt, "ge": operator.ge, "eq": operator.eq, "ne": operator.ne,
}  # fmt: skip


_BEYOND = 1 << 63  # the first integer that int64 does not hold

_WHOLE = {"floor_divide": operator.floordiv, "remainder": operator.mod}


@final
class Number:
    """See above. `isinstance` takes it for the float, int or bool that it stands for.

    of_numpy  whether that is NumPy's float64, as what functions of NumPy give
    """

    __slots__ = ("_known", "_symbol", "_tracer", "of_numpy")

    def __init__(self, tracer: Tracer, symbol: Symbol, of_numpy: bool = False):
        self._tracer = tracer
        self._symbol = symbol
        self._known: Any = None
        self.of_numpy = of_numpy

    @staticmethod
    def of(tracer: Tracer, symbol: Symbol) -> Any:
        """The number that is the only element of `symbol`. A complex one is fixed at once."""
        builder = tracer.builder
        if symbol.shape:
            symbol = builder.apply(OPS["reshape"], (symbol,), {"shape": ()})
        kind = category(symbol.dtype)
        if symbol.dtype.kind == "c":
            return tracer.concretization.known_number(symbol)
        wide = BOOL if symbol.dtype == BOOL else FLOAT64 if kind >= category(FLOAT64) else INT64
        stopped = builder.emit(_STOP, (symbol,), {})
        return Number(tracer, stopped if symbol.dtype == wide else builder.emit(_CAST, (stopped,), {"dtype": wide}))

    @property
    def symbol(self) -> Symbol:
        """The value in the graph."""
        return self._symbol

    @property
    def __class__(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return np.float64 if self.of_numpy else _KINDS[self._symbol.dtype]

    @property
    def tracer(self) -> Tracer:
        """The trace that it belongs to."""
        return self._tracer

    def tensor(self) -> Any:
        """The number as a tensor of the dtype that PyTorch gives it."""
        dtype = default_float() if self._symbol.dtype == FLOAT64 else self._symbol.dtype
        symbol = self._tracer.builder.emit(_CAST, (self._symbol,), {"dtype": dtype})  # a new one, that may be written
        return self._tracer.wrap(symbol, False)

    def known(self) -> Any:
        """The Python number; the program depends on it from now on."""
        if self._known is None:
            self._symbol.check_open(self._tracer.builder)
            known = self._tracer.concretization.known_number(self._symbol)
            self._known = np.float64(known) if self.of_numpy else known
        return self._known

    def concrete(self) -> Any:
        """The Python number in the call that is being traced, for showing it."""
        return self._tracer.concretization.value_of(self._symbol).item()

    @staticmethod
    def as_operands(builder: Builder, op: Op, operands: Sequence[Any]) -> list[Any]:
        """`operands` with each Number as a Symbol of the dtype in which `op` takes a Python number."""
        dtype = operand_dtype(op, [_rank(x) for x in operands])
        assert dtype is not None
        return [
            builder.emit(_CAST, (x._symbol,), {"dtype": dtype}) if type(x) is Number else x for x in operands
        ]  # fmt: skip

    def _made(self, name: str, *operands: Any) -> Any:
        """The result of op `name`, of Symbols; numbers are taken in float64."""
        symbols = [x if isinstance(x, Symbol) else self._cast(self._wide(x), FLOAT64) for x in operands]
        made = self._tracer.builder.apply(OPS[name], symbols, {})
        of_numpy = any(type(x) is Number and x.of_numpy for x in operands)
        return Number(self._tracer, made, of_numpy and made.dtype == FLOAT64)

    def _cast(self, symbol: Symbol, dtype: np.dtype) -> Symbol:
        return symbol if symbol.dtype == dtype else self._tracer.builder.emit(_CAST, (symbol,), {"dtype": dtype})

    def _binary(self, name: str, other: Any, reflected: bool = False) -> Any:
        if type(other) is not Number and not isinstance(other, (bool, int, float, np.generic)):
            return NotImplemented
        self._symbol.check_open(self._tracer.builder)
        if name in ("add", "sub", "mul") and type(other) is int and abs(other) >> 62:
            return _BINARY[name](*((other, self.known()) if reflected else (self.known(), other)))
        a, b = self._wide(self), self._wide(other)
        if a.dtype != b.dtype or (a.dtype == BOOL and name in ("add", "sub", "mul")):
            wide = FLOAT64 if FLOAT64 in (a.dtype, b.dtype) else INT64
            a, b = self._cast(a, wide), self._cast(b, wide)
        made = self._made(name, *((b, a) if reflected else (a, b)))
        made.of_numpy = made.symbol.dtype == FLOAT64 and any(isinstance(x, np.generic) for x in (self, other))
        return made

    def _wide(self, x: Any) -> Symbol:
        if type(x) is Number:
            return x._symbol
        kind = BOOL if isinstance(x, (bool, np.bool_)) else INT64 if isinstance(x, (int, np.integer)) else FLOAT64
        if is_dim(x):
            return self._tracer.builder.size(cast(Any, x), kind)
        if kind is INT64 and not -_BEYOND <= x < _BEYOND:
            kind = FLOAT64  # to be compared with
        return self._tracer.builder.constant(np.asarray(x, kind))

    def _divided(self, other: Any, reflected: bool) -> Any:
        if type(other) is not Number and not isinstance(other, (bool, int, float, np.generic)):
            return NotImplemented
        divisor = self if reflected else other
        if not divisor:  # fixes only whether it is zero
            raise ZeroDivisionError("float division by zero")
        return self._made("div", *((other, self) if reflected else (self, other)))

    def _whole(self, name: str, other: Any) -> Any:
        """`//` or `%` by a number that is known; anything else is fixed."""
        known = (type(other) is int or type(other) is float) and 0 < abs(other) < _BEYOND
        if not known or self._symbol.dtype == BOOL or (self._symbol.dtype == FLOAT64 and not self.is_finite()):
            return _WHOLE[name](self.known(), other.known() if type(other) is Number else other)
        return self._binary(name, other)

    def __floordiv__(self, other: Any) -> Any:
        return self._whole("floor_divide", other)

    def __mod__(self, other: Any) -> Any:
        return self._whole("remainder", other)

    def __truediv__(self, other: Any) -> Any:
        return self._divided(other, False)

    def __rtruediv__(self, other: Any) -> Any:
        return self._divided(other, True)

    def __pow__(self, exponent: Any, modulus: Any = None) -> Any:
        known = modulus is None and isinstance(exponent, (int, float)) and type(exponent) is not Number
        if not known or (self._symbol.dtype != FLOAT64 and isinstance(exponent, int) and exponent >= 0):
            return _power(self, exponent, modulus)  # of integers: it may be larger than int64
        if not float(exponent).is_integer() and not self._binary("gt", 0):  # fixes only whether it is positive
            return self.known() ** exponent
        if exponent < 0 and not self:
            raise ZeroDivisionError("0.0 cannot be raised to a negative power")
        return self._made("pow", self, float(exponent))

    def __rpow__(self, base: Any) -> Any:
        if type(base) is Number or not isinstance(base, (int, float)) or base <= 0:
            return base ** self.known()
        if isinstance(base, int) and self._symbol.dtype != FLOAT64:
            return base ** self.known()  # a negative exponent would make it a float
        return self._made("pow", float(base), self)

    def __neg__(self) -> Any:
        return self._binary("mul", -1)

    def __pos__(self) -> Any:
        return self._binary("mul", 1)

    def __abs__(self) -> Any:
        number = self if self._symbol.dtype != BOOL else self._binary("mul", 1)
        return self._made("abs", number._symbol)

    def as_of_numpy(self) -> Any:
        """The same as NumPy's float64."""
        return Number(self._tracer, self._symbol, True)

    @staticmethod
    def made(op: Op, operands: Sequence[Any]) -> Any:
        """The float that `op` makes of numbers, of which one at least is traced."""
        return next(x for x in operands if type(x) is Number)._made(op.name, *operands)

    def is_finite(self) -> bool:
        """Whether it is: the program depends on that from now on."""
        return bool(self._made("isfinite", self))

    def _rounded(self, name: str) -> Any:
        """The integer that op `name` gives of it; of one that int64 does not hold, the number itself."""
        if self._symbol.dtype != FLOAT64:
            return self._binary("mul", 1)
        if not abs(self) < _BEYOND >> 1:
            return getattr(self.known(), f"__{name}__")()
        return Number(self._tracer, self._cast(self._made(name, self)._symbol, INT64))

    def __round__(self, digits: int | None = None) -> Any:
        return self._rounded("round") if digits is None else round(self.known(), digits)

    def __bool__(self) -> bool:
        if self._symbol.dtype == BOOL:
            return self.known()
        return bool(self._binary("ne", 0))

    def __hash__(self) -> int:
        return hash(self.known())

    __array_ufunc__: Callable[..., Any]  # both of `number_functions`
    __array_function__: Callable[..., Any]

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.asarray(self.known(), dtype)

    def __getattr__(self, name: str) -> Any:
        if not hasattr(kind := self.__class__, name):  # as `_d`, which only tensors have
            raise AttributeError(f"'{kind.__name__}' object has no attribute '{name}'")
        return getattr(self.known(), name)

    def __complex__(self) -> complex:
        return complex(self.known())

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __reduce__(self) -> Any:
        return self.__class__, (self.known(),)

    def __repr__(self) -> str:
        return repr(self._shown())

    def __format__(self, spec: str) -> str:
        return format(self._shown(), spec)

    def _shown(self) -> Any:
        """The Python number, for a text on which the program depends unless it is only shown."""
        return self.concrete() if self._symbol.builder.closed or is_only_shown() else self.known()


@final
class Numbers:
    """The numbers of one trace; those of the trace around it become inputs of this one."""

    def __init__(self, tracer: Tracer):
        self._tracer = tracer
        self._lifted: dict[int, tuple[Number, Number, Tensor]] = {}

    def as_symbols(self, op: Op, operands: list[Any]) -> list[Any]:
        """`operands` with each number as a Symbol of the dtype that it would be converted to."""
        for x in operands:
            if type(x) is Number:
                own = [self._own(x) if type(x) is Number else x for x in operands]
                return Number.as_operands(self._tracer.builder, op, own)
        return operands

    def tensor_of(self, number: Any) -> Tensor | None:
        """See `eager.core.interpreter.Interpreter`."""
        return self._tracer.wrap(self._own(number).symbol, False) if type(number) is Number else None

    def _own(self, number: Number) -> Number:
        """A traced number, of the trace around this one perhaps, in this trace."""
        if self._tracer.state.outer is None or number.tracer is self._tracer:
            return number
        if id(number) not in self._lifted:
            outer = number.tracer.wrap(number.symbol, False)
            self._lifted[id(number)] = number, Number(self._tracer, self._tracer.read(outer)), outer
        return self._lifted[id(number)][1]


def fix_numbers(fn: Any) -> None:
    """Put the Python numbers in place of those that a function, and the functions that it calls, are closed over."""
    for cell in getattr(fn, "__closure__", None) or ():
        if type(cell.cell_contents) is Number:
            cell.cell_contents = cell.cell_contents.known()
        elif isinstance(cell.cell_contents, FunctionType):
            fix_numbers(cell.cell_contents)


def without_numbers(params: Any) -> Any:
    """The parameters of an op with Python numbers in place of traced ones, and of tensors that stand for a number.

    A graph is for one value of each.
    """
    return {name: _plain(value) for name, value in params.items()} if any(map(_has, params.values())) else params


def _has(value: Any) -> bool:
    return type(value) is Number or isinstance(value, Tensor) or (isinstance(value, tuple) and any(map(_has, value)))


def _plain(value: Any) -> Any:
    if isinstance(value, Tensor):
        value = value.item()
    if type(value) is Number:
        return value.known()
    return tuple(map(_plain, value)) if isinstance(value, tuple) and _has(value) else value


def _rank(x: Any) -> tuple[np.dtype, int]:
    if isinstance(x, Symbol):
        return x.aval.dtype, 2 if x.aval.shape else 1
    return of_scalar(x if type(x) is not Number else _KINDS[x.symbol.dtype](0)), 0


def _install() -> None:
    for name in _BINARY:

        def method(self: Number, other: Any, name: str = name) -> Any:
            return self._binary(name, other)

        setattr(Number, f"__{name}__", method)
        if name in ("add", "sub", "mul"):

            def reflected(self: Number, other: Any, name: str = name) -> Any:
                return self._binary(name, other, True)

            setattr(Number, f"__r{name}__", reflected)
    for name in ("trunc", "floor", "ceil"):

        def rounded(self: Number, name: str = name) -> Any:
            return self._rounded(name)

        setattr(Number, f"__{name}__", rounded)
    for name in ("int", "float", "index", "rmod",
                 "rfloordiv", "divmod", "rdivmod", "and", "rand", "or", "ror", "xor", "rxor", "invert",
                 "lshift", "rlshift", "rshift", "rrshift"):  # fmt: skip
        setattr(Number, f"__{name}__", _fixing(f"__{name}__"))


def _fixing(name: str) -> Callable[..., Any]:
    """A method that needs the number itself."""

    def method(self: Number, *args: Any) -> Any:
        if not all(
            type(a) is Number or a is None or isinstance(a, (bool, int, float, complex, np.generic)) for a in args
        ):
            return NotImplemented  # a tensor knows what to do
        known = self.known()
        if not hasattr(known, name):
            if args:
                return NotImplemented
            raise TypeError(f"'{type(known).__name__}' object cannot be interpreted as an integer")
        return getattr(known, name)(*(a.known() if type(a) is Number else a for a in args))

    return method


_power = _fixing("__pow__")
_install()
