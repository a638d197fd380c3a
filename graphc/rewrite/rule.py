"""A rewrite rule is an equation: two expressions in the op language, and a licence for how far they agree."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Any, final

import numpy as np

from graphc.errors import RuleError
from graphc.ir import Node
from graphc.ops import OPS, Op
from graphc.ops.operators import OperatorMixin
from graphc.ops.samples import Floats


class Licence(enum.IntEnum):
    """In what sense the two sides of a rule are equal."""

    EXACT = 0  # the same bits, also on +-0, inf, nan and empty arrays
    REASSOCIATES = 1  # another rounding, the same error level
    ASSUMES = 2  # equal only under a fact that must be proven or opted into


EXACT, REASSOCIATES, ASSUMES = Licence


class Var(OperatorMixin):
    """A variable of a pattern: it stands for any operand, or, where it is used as a parameter, for any value.

    With `number` it stands only for operands that are known to hold one number in every place.
    """

    __slots__ = ("name", "number")

    def __init__(self, name: str, number: bool = False):
        self.name = name
        self.number = number

    def _apply(self, name: str, *operands: Any) -> Pattern:
        return Pattern(OPS[name], operands, {})

    @property
    def shape(self) -> Any:
        raise RuleError(f"the left side of a rule cannot look at the shape of '{self.name}'; use when=")

    dtype = shape


class Pattern(OperatorMixin):
    """An operation in a pattern. Parameters that are left out match any value.

    `steps` are the operands with their places, what fails soonest first: numbers, operations, variables.
    """

    __slots__ = ("op", "operands", "params", "steps")

    def __init__(self, op: Op, operands: tuple[Any, ...], params: Mapping[str, Any]):
        self.op = op
        self.operands = operands
        self.params = params
        self.steps = sorted(enumerate(operands), key=lambda step: {Pattern: 1, Var: 2}.get(type(step[1]), 0))

    def _apply(self, name: str, *operands: Any) -> Pattern:
        return Pattern(OPS[name], operands, {})


class _PatternLanguage:
    def __getattr__(self, name: str) -> Callable[..., Pattern]:
        op = OPS.get(name)
        if op is None:
            raise RuleError(f"no op named '{name}'")

        def build(*operands: Any, **params: Any) -> Pattern:
            return Pattern(op, operands, params)

        return build


@final
class RewriteRule:
    """The equation `left = right`.

    name     unique
    licence  how equal the sides are
    left     the traced left side, a Pattern
    right    `right(F, *variables)` builds the right side
    numbers  the variables that stand for constants only (`scalar_value` gives their number)
    when     `when(*variables)` must hold: operands are Symbols, parameters are values
    worth    operations for each element of the result that the right side may cost more, because it is right where the
             left side is not
    example  for each variable, a sample operand (graphc.ops.samples) or parameter: what the derived tests run on
    """

    __slots__ = ("example", "left", "licence", "name", "right", "source", "variables", "when", "worth")

    def __init__(
        self,
        name: str,
        licence: Licence,
        left: Callable[..., Any],
        right: Callable[..., Any],
        *,
        numbers: str = "",
        when: Callable[..., bool] | None = None,
        worth: float = 0.0,
        example: Mapping[str, Any] | None = None,
    ):
        self.name = name
        self.licence = licence
        self.variables = left.__code__.co_varnames[1 : left.__code__.co_argcount]
        if right.__code__.co_varnames[1 : right.__code__.co_argcount] != self.variables:
            raise RuleError(f"rule '{name}': the two sides have different variables")
        pattern = left(_PatternLanguage(), *(Var(v, v in numbers.split()) for v in self.variables))
        if not isinstance(pattern, Pattern):
            raise RuleError(f"rule '{name}': the left side must be an operation")
        self.left = pattern
        self.source = left
        self.right = right
        self.when = when
        self.worth = worth
        self.example = {v: (example or {}).get(v, Floats((3, 4))) for v in self.variables}

    def __repr__(self) -> str:
        return f"<rule {self.name}, {self.licence.name}>"


def number(x: Any) -> Any:
    """The value of a Symbol that a variable declared in `numbers` is bound to."""
    value = scalar_value(x)
    if value is None:
        raise RuleError(f"{x} is not known to hold one number")
    return value


def scalar_value(x: Any) -> float | int | bool | complex | None:
    """The value of a Symbol that is known to hold one number in every place, or None."""
    return held_number(x.id, x.builder.nodes)


def held_number(id: int, nodes: Mapping[int, Node]) -> float | int | bool | complex | None:
    """As `scalar_value`, for a node."""
    node = nodes[id]
    while node.op is _BROADCAST_TO:
        node = nodes[node.inputs[0]]
    if node.op is _FULL:
        return np.asarray(node.params["value"], node.aval.dtype).item()
    return node.params["value"].number if node.op is _CONSTANT else None


def held_array(x: Any) -> np.ndarray | None:
    """The array of a Symbol that is a constant, or None."""
    node = x.builder.nodes[x.id]
    return node.params["value"].array if node.op is _CONSTANT else None


HOLDERS = _BROADCAST_TO, _FULL, _CONSTANT = OPS["broadcast_to"], OPS["full"], OPS["constant"]  # of one number
