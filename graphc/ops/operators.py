"""Python's operators as ops: one table, for Tensors, Symbols, pattern variables and gradient expressions alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

# dunder -> op; the reflected form swaps the operands
BINARY = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "pow": "pow", "floordiv": "floor_divide",
    "mod": "remainder", "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift",
}  # fmt: skip
COMPARISON = {"eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge"}
UNARY = {"neg": "neg", "abs": "abs", "invert": "bitwise_not"}


class OperatorMixin:
    """Gives a class every operator of the tables; the class supplies `_apply(op_name, *operands)`."""

    __slots__ = ()
    __hash__ = object.__hash__

    def _apply(self, name: str, *operands: Any) -> Any:
        raise NotImplementedError

    if TYPE_CHECKING:  # what _install adds, as far as our own code uses it

        def __add__(self, other: Any) -> Any: ...
        def __mul__(self, other: Any) -> Any: ...
        def __sub__(self, other: Any) -> Any: ...
        def __matmul__(self, other: Any) -> Any: ...
        def __and__(self, other: Any) -> Any: ...
        def __lt__(self, other: Any) -> Any: ...
        def __gt__(self, other: Any) -> Any: ...
        def __ge__(self, other: Any) -> Any: ...


def _install() -> None:
    def forward(name: str):
        return lambda self, other: self._apply(name, self, other)

    def reflected(name: str):
        return lambda self, other: self._apply(name, other, self)

    def unary(name: str):
        return lambda self: self._apply(name, self)

    for dunder, name in BINARY.items():
        setattr(OperatorMixin, f"__{dunder}__", forward(name))
        setattr(OperatorMixin, f"__r{dunder}__", reflected(name))
    for dunder, name in COMPARISON.items():
        setattr(OperatorMixin, f"__{dunder}__", forward(name))
    for dunder, name in UNARY.items():
        setattr(OperatorMixin, f"__{dunder}__", unary(name))


_install()
