"""Pointwise ops with bool or integer results: comparisons, logic, bits, tests for special values."""

from __future__ import annotations

from graphc.ops import scalars
from graphc.ops.references import Each
from graphc.ops.rules import integral, logical, pointwise_bool, predicate, shift
from graphc.ops.spec import Trait, op

_TRAITS = {**dict.fromkeys(("eq", "ne"), Trait.COMMUTATIVE), **dict.fromkeys(("lt", "le", "gt", "ge"), Trait.ORDERS)}

for _name, _sign, _impl in (
    ("eq", "==", "equal"), ("ne", "!=", "not_equal"), ("lt", "<", "less"), ("le", "<=", "less_equal"),
    ("gt", ">", "greater"), ("ge", ">=", "greater_equal"),
):  # fmt: skip
    op(_name, "input other", doc=f"Whether input {_sign} other.",
       impl=_impl, rule=pointwise_bool, ref=f"operator.{_name}",
       traits=_TRAITS.get(_name, Trait.NONE))  # fmt: skip

for _name, _truth in {
    "logical_and": lambda x, y: bool(x) and bool(y),
    "logical_or": lambda x, y: bool(x) or bool(y),
    "logical_xor": lambda x, y: bool(x) is not bool(y),
}.items():
    op(
        _name, "input other", doc=f"input {_name[8:]} other, of what is not 0.", impl=_name, rule=logical,
        ref=Each(_truth), traits=Trait.COMMUTATIVE,
    )  # fmt: skip

for _name, _doc, _test in (
    ("isnan", "is nan", lambda x: x != x),
    ("isinf", "is inf or -inf", lambda x: scalars.INF in (abs(x.real), abs(x.imag))),
    ("isfinite", "is neither inf, -inf nor nan", lambda x: x - x == 0),
    ("logical_not", "is 0", lambda x: not x),
):
    op(_name, "input", doc=f"Whether each element {_doc}.", impl=_name, rule=predicate, ref=Each(_test))

for _name, _operator in {"bitwise_and": "and_", "bitwise_or": "or_", "bitwise_xor": "xor"}.items():
    op(
        _name, "input other", doc=f"input {_name[8:]} other, bit by bit.", impl=_name, rule=integral,
        traits=Trait.COMMUTATIVE, ref=f"operator.{_operator}",
    )  # fmt: skip
for _side, _where in (("left", "up"), ("right", "down")):
    op(f"bitwise_{_side}_shift", "input other", doc=f"The bits of `input`, `other` places {_where}.",
       impl=f"{_side}_shift", cpu_name=f"{_side[0]}shift_cpu", rule=shift, domain=(0, 4),
       ref=Each(scalars.moved_bits(_side == "left")))  # fmt: skip
op(
    "bitwise_not", "input", doc="Each bit inverted; of bools, the logical not.", impl="invert", rule=integral,
    ref=Each(lambda x: not x if x is True or x is False else -x - 1),
)  # fmt: skip
