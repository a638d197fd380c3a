"""Wrong gradient rules: what people get wrong when they write them, done to the rules that are there."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import numpy as np

from compare.selftest.fault import Expected, Fault
from compare.selftest.planting import Plant, attribute, declared, with_rule
from compare.selftest.trials import numbers, program, samples
from eager.engine.language import E
from graphc.ops import OPS, Op, gradient
from graphc.ops.movement import sum_to
from graphc.ops.spec import Vjp

LAYER = "gradient rules"
Mutation = Callable[[Op, str], Vjp]


def _changed(change: Callable[[Any, Any], Any]) -> Mutation:
    """A rule with `change(F, gradient)` for its gradient."""

    def mutate(op: Op, argument: str) -> Vjp:
        rule = op.vjp[argument]
        return Vjp(lambda F, *values: change(F, rule.fn(F, *values)), rule.names)

    return mutate


def _given(change: Callable[[str, Any], Any]) -> Mutation:
    """A rule that is given `change(name, value)` for what it asks for."""

    def mutate(op: Op, argument: str) -> Vjp:
        rule = op.vjp[argument]
        return Vjp(lambda F, *values: rule.fn(F, *map(change, rule.names, values)), rule.names)

    return mutate


def _with(**params: Any) -> Mutation:
    return _given(lambda name, value: params.get(name, value))


def _of_other(op: Op, argument: str) -> Vjp:
    """The rule of the next argument."""
    live = list(op.vjp)
    return op.vjp[live[(live.index(argument) + 1) % len(live)]]


def _confused(before: str, after: str) -> Mutation:
    """A rule that asks for one thing in place of another."""

    def mutate(op: Op, argument: str) -> Vjp:
        rule = op.vjp[argument]
        assert before in rule.names, f"the gradient rule of {op.name} does not ask for '{before}'"
        return Vjp(rule.fn, tuple(after if name == before else name for name in rule.names))

    return mutate


scaled = _changed(lambda F, d: d * 1.01)
negated = _changed(lambda F, d: F.neg(d))
dropped = _changed(lambda F, d: d * 0)
conjugated = _changed(lambda F, d: F.conj(d))
reversed_ = _changed(lambda F, d: F.flip(d, axis=(0,)))
narrowly = _changed(lambda F, d: d * 1.01 if np.dtype(getattr(d.dtype, "numpy", d.dtype)) == np.float32 else d)
forgetting = _given(lambda name, value: value * 0 + 1 if name == "g" else value)


def _complex(*shape: int) -> Any:
    return numbers(*shape, seed=1) + 1j * numbers(*shape, seed=2)


# (what is wrong, how, the rules that it is done to)
_TABLE: tuple[tuple[str, Mutation, tuple[str, ...]], ...] = (
    ("a wrong constant", scaled, ("sin.input", "exp2.input", "erf.input", "log1p.input", "digamma.input",
                                  "conv2d.weight", "fft.input", "logsumexp.input", "standardize.input")),
    ("a wrong sign", negated, ("cos.input", "sub.other", "matmul.other", "rsqrt.input", "solve.other", "erfc.input")),
    ("the cotangent forgotten", forgetting, ("tanh.input", "sqrt.input", "softplus.input", "atan.input")),
    ("a term dropped", dropped, ("mul.other", "addmm.mat1", "index_put.values", "with_row.row", "hypot.other",
                               "complex.imag")),
    ("the rules of two operands swapped", _of_other, ("div.input", "atan2.other", "where.input", "maximum.input",
                                                     "pow.input", "xlogy.other")),
    ("elements in reverse order", reversed_, ("cumsum.input", "gather.input", "diagonal.input", "pad_zeros.input")),
    ("the operand taken for the result", _confused("r", "input"), ("sigmoid.input", "exp.input", "tan.input")),
    ("the axis forgotten", _with(axis=0), ("softmax.input", "log_softmax.input", "logcumsumexp.input")),
    ("the correction forgotten", _with(correction=0), ("var.input",)),
    ("wrong in float32 only", narrowly, ("sigmoid.input", "matmul.input")),
    ("the diagonal forgotten", _with(diagonal=0), ("tril.input", "triu.input")),
)  # fmt: skip


def _fault(what: str, mutation: Mutation, place: str) -> Fault:
    name, _, argument = place.partition(".")
    op = OPS[name]
    plant: Plant = lambda: declared(op, vjp=with_rule(op, argument, mutation(op, argument)))
    expected = Expected(name, "gradient rule")
    return Fault(f"gradient of {place}: {what}", LAYER, plant, expected, samples(name), name)


def _unconjugated(name: str) -> Fault:
    op = OPS[name]
    plant: Plant = lambda: declared(op, vjp=MappingProxyType({arg: conjugated(op, arg) for arg in op.vjp}))
    trials = program(getattr(E, name), *(_complex(3) for _ in op.args))
    return Fault(f"gradient of {name}: not conjugated", LAYER, plant, Expected(name, "gradient rule"), trials, name)


FAULTS: tuple[Fault, ...] = (
    *(_fault(what, mutation, place) for what, mutation, places in _TABLE for place in places),
    *map(_unconjugated, ("mul", "exp", "sin")),
    Fault("gradients of broadcast operands: a mean for the sum", LAYER, lambda: attribute(gradient, "sum_to",
        lambda language, d, shape: sum_to(language, d, shape) * (math.prod(shape) / math.prod(d.shape))),
          Expected("mul", "gradient rule"), program(lambda x, b: (x * b).sum(), numbers(4, 3), numbers(3, seed=6)),
          "mul"),
)  # fmt: skip
