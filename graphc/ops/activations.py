"""Piecewise functions as one kernel each: as compositions they spend most of their time choosing.

Graphs hold the definitions.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphc.ops import choosing
from graphc.ops.references import Each
from graphc.ops.rounding import Rounding
from graphc.ops.rules import accepting, same_float
from graphc.ops.samples import Sample
from graphc.ops.spec import either_zero, op


def _leaky_relu(xp: Any, x: Any, slope: float) -> Any:
    below = x * x.dtype.type(slope)
    # inf * 0 is nan, which would be the larger
    return np.maximum(x, below) if 0 < slope <= 1 else choosing.where(x > 0, x, below)


def _hardsigmoid(xp: Any, x: Any) -> Any:
    result = np.clip(x + x.dtype.type(3), 0, 6)
    return np.divide(result, 6, out=result if result.ndim else None)


def _hardswish(xp: Any, x: Any) -> Any:
    result = x * np.clip(x + x.dtype.type(3), 0, 6)
    return np.divide(result, 6, out=result if result.ndim else None)


def _huber(xp: Any, x: Any, delta: float) -> Any:
    distance = np.abs(x)
    near = choosing.at_most(distance, x.dtype.type(delta))
    distance -= near * x.dtype.type(0.5)
    distance *= near
    return distance


def _elu(xp: Any, x: Any, alpha: float, scale: float, rate: float) -> Any:
    kind = x.dtype.type
    below = np.minimum(0, x)  # of equals NumPy takes the second: zeros keep their sign
    below = np.expm1(below if rate == 1 else below * kind(rate)) * kind(alpha * scale)
    above = np.maximum(-0.0, x)
    return below + (above if scale == 1 else above * kind(scale))  # one of the two is 0


def _elu_definition(F: Any, x: Any, alpha: float, scale: float, rate: float) -> Any:
    positive = x > 0
    # expm1 sees no positive number: its overflow would turn the gradient that `where` drops into 0 * inf
    below = F.where(positive, 0, x)
    negative = F.expm1(below if rate == 1 else below * rate) * (alpha * scale)
    return F.where(positive, x if scale == 1 else x * scale, negative)


def _elu_vjp(F: Any, g: Any, input: Any, alpha: float, scale: float, rate: float) -> Any:
    """Of the input alone: the result may be written. nan is no negative number, as PyTorch has it."""
    negative = input <= 0
    steepness = F.exp(F.where(negative, input, 0) * rate) * (alpha * scale * rate)
    return F.where(negative, g * steepness, g * scale)


def _hardsigmoid_definition(F: Any, x: Any) -> Any:
    moved = x + 3.0
    # nan stays, with gradient 0
    capped = F.where(moved < 6.0, moved, F.stop_gradient(F.where(moved >= 6.0, 6.0, moved)))
    return F.where(capped <= 0.0, 0.0, capped) / 6.0


def _huber_definition(F: Any, x: Any, delta: float) -> Any:
    distance = F.abs(x)
    far = distance >= delta  # nan is not, and stays
    # an infinite distance is not squared: the gradient that `where` drops would be 0 * inf
    return F.where(far, (distance - 0.5 * delta) * delta, F.square(F.where(far, 0, distance)) * 0.5)


def _real(kernel: str) -> Any:
    return same_float._replace(accepts=accepting("f", f"\"{kernel}\" not implemented for '{{dtype}}'"))


leaky_relu = op(
    "leaky_relu", "input", params={"slope": 0.01}, impl=_leaky_relu, rule=_real("leaky_relu_cpu"),
    definition=lambda F, x, slope: F.where(x > 0, x, x * slope),
    doc="input where positive, else slope * input.",
    ref=Each(lambda x, slope: x if x > 0 else x * slope), rounding=Rounding(1.0),
    samples=tuple(Sample((3, 4), slope=s) for s in (0.25, 0.0, -0.5, 2.0)),
    slopes=dict(input=Each(lambda g, x, slope: g if x > 0 else g * slope)),
    vjp=dict(input=lambda F, g, input, slope: F.where(input > 0, g, g * slope)),
)  # fmt: skip
hardsigmoid = op(
    "hardsigmoid", "input", impl=_hardsigmoid, rule=_real("hardsigmoid_cpu"), definition=_hardsigmoid_definition,
    doc="input / 6 + 1 / 2, limited to [0, 1].",
    ref=Each(lambda x: x if x != x else min(max(x + 3, 0.0), 6.0) / 6),
    rounding=Rounding(2.0, terms=lambda r, x: 3.0 + 0 * r),
    slopes=dict(input=Each(lambda g, x: g / 6 if -3 < x < 3 else 0.0)),
    vjp=dict(input=lambda F, g, input: F.where((input > -3) & (input < 3), g, 0) / 6),
)  # fmt: skip
hardswish = op(
    "hardswish", "input", impl=_hardswish, rule=_real("hardswish_cpu"),
    definition=lambda F, x: x * F.hard_least(F.hard_most(x + 3.0, 6.0), 0.0) / 6.0,
    doc="input * hardsigmoid(input).",
    ref=Each(lambda x: x if x != x else x * min(max(x + 3, 0.0), 6.0) / 6),
    rounding=Rounding(3.0, terms=lambda r, x: 3.0 * np.abs(x)),
    slopes=dict(input=Each(lambda g, x: g if x >= 3 else 0.0 if x <= -3 else g * (2 * x + 3) / 6)),
    vjp=dict(input=lambda F, g, input: F.where(
        input >= 3, g, F.where(input <= -3, 0, g * (2 * input + 3) / 6))),
)  # fmt: skip
huber = op(
    "huber", "input", params={"delta": 1.0}, impl=_huber, rule=_real("huber_cpu"), definition=_huber_definition,
    doc="input^2 / 2 up to a size of delta, from there on linear.",
    ref=Each(lambda x, delta: x * x / 2 if abs(x) < delta else delta * (abs(x) - delta / 2)), rounding=Rounding(3.0),
    samples=tuple(Sample((3, 4), delta=d) for d in (1.0, 0.3)),
    slopes=dict(input=Each(lambda g, x, delta: g * min(max(x, -delta), delta) if x == x else x)),
    vjp=dict(input=lambda F, g, input, delta: g * F.hard_least(F.hard_most(input, delta), -delta)),
)  # fmt: skip
elu = op(
    "elu", "input", params={"alpha": 1.0, "scale": 1.0, "rate": 1.0}, impl=_elu, rule=_real("elu_cpu"),
    definition=_elu_definition, doc="scale * input where positive, else alpha * scale * (exp(rate * input) - 1).",
    ref=Each(lambda x, alpha, scale, rate: (x if x > 0 else alpha * math.expm1(rate * x)) * scale),
    rounding=Rounding(8.0), nearest=either_zero,
    samples=(Sample((3, 4), alpha=0.5, scale=1.0, rate=1.0), Sample((3, 4), alpha=1.5, scale=1.25, rate=2.0)),
    slopes=dict(input=Each(
        lambda g, x, alpha, scale, rate: g * scale * (alpha * rate * math.exp(rate * x) if x <= 0 else 1))),
    vjp=dict(input=_elu_vjp),
)  # fmt: skip
