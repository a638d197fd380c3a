"""Pointwise ops with bool or integer results: comparisons, logic, bits, tests for special values."""

from __future__ import annotations

from graphc.ops import scalars
from graphc.ops.references import Each
from graphc.ops.rules import integral, logical, pointwise_bool, predicate, shift
from graphc.ops.spec import Trait, op

_TRAITS = {
    **dict.fromkeys(("eq", "ne"), Trait.COMMUTATIVE),
    **dict.fromkeys(("lt", "le", "gt", "ge"), Trait.ORDERS),
}

for _name, _impl in {
    "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal",
}.items():  # fmt: skip
    op(_name, "input other", impl=_impl, rule=pointwise_bool, ref=f"operator.{_name}",
       traits=_TRAITS.get(_name, Trait.NONE))  # fmt: skip

for _name, _truth in {
    "logical_and": lambda x, y: bool(x) and bool(y),
    "logical_or": lambda x, y: bool(x) or bool(y),
    "logical_xor": lambda x, y: bool(x) is not bool(y),
}.items():
    op(_name, "input other", impl=_name, rule=logical, ref=Each(_truth), traits=Trait.COMMUTATIVE)

for _name, _test in {
    "isnan": lambda x: x != x,
    "isinf": lambda x: scalars.INF in (abs(x.real), abs(x.imag)),
    "isfinite": lambda x: x - x == 0,
    "logical_not": lambda x: not x,
}.items():
    op(_name, "input", impl=_name, rule=predicate, ref=Each(_test))

for _name, _operator in {"bitwise_and": "and_", "bitwise_or": "or_", "bitwise_xor": "xor"}.items():
    op(_name, "input other", impl=_name, rule=integral, traits=Trait.COMMUTATIVE, ref=f"operator.{_operator}")
op(
    "bitwise_left_shift",
    "input other",
    impl="left_shift",
    cpu_name="lshift_cpu",
    rule=shift,
    ref=Each(scalars.moved_bits(True)),
    domain=(0, 4),
)
op(
    "bitwise_right_shift",
    "input other",
    impl="right_shift",
    cpu_name="rshift_cpu",
    rule=shift,
    ref=Each(scalars.moved_bits(False)),
    domain=(0, 4),
)
op(
    "bitwise_not",
    "input",
    impl="invert",
    rule=integral,
    ref=Each(lambda x: not x if x is True or x is False else -x - 1),
)
