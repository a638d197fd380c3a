"""Pointwise ops with bool or integer results: comparisons, logic, bits, tests for special values."""

from __future__ import annotations

from graphc.ops.rules import integral, logical, pointwise_bool, predicate, shift
from graphc.ops.spec import Trait, op

_TRAITS = {
    **dict.fromkeys(("eq", "ne"), Trait.COMMUTATIVE),
    **dict.fromkeys(("lt", "le", "gt", "ge"), Trait.ORDERS),
}

for _name, _impl in {
    "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal",
}.items():  # fmt: skip
    op(_name, "input other", impl=_impl, rule=pointwise_bool, ref=f"numpy.{_impl}",
       traits=_TRAITS.get(_name, Trait.NONE))  # fmt: skip

for _name in ("logical_and", "logical_or", "logical_xor"):
    op(_name, "input other", impl=_name, rule=logical, ref=f"numpy.{_name}", traits=Trait.COMMUTATIVE)

for _name in ("isnan", "isinf", "isfinite", "logical_not"):
    op(_name, "input", impl=_name, rule=predicate, ref=f"numpy.{_name}")

for _name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
    op(_name, "input other", impl=_name, rule=integral, traits=Trait.COMMUTATIVE, ref=f"numpy.{_name}")
op("bitwise_left_shift", "input other", impl="left_shift", rule=shift, ref="numpy.left_shift", domain=(0, 4))
op("bitwise_right_shift", "input other", impl="right_shift", rule=shift, ref="numpy.right_shift", domain=(0, 4))
op("bitwise_not", "input", impl="invert", rule=integral, ref="numpy.invert")
