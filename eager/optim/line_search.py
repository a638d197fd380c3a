"""A line search for the strong Wolfe conditions: Nocedal and Wright, Numerical Optimization, algorithms 3.5 and 3.6."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

SUFFICIENT_DECREASE = 1e-4
CURVATURE = 0.9
LEAST_CHANGE = 1e-9
MARGIN = 0.1  # of the bracket: trial points keep this far from its ends after a step of little progress


class Point(NamedTuple):
    """A step length, and the loss, gradient and slope along the direction there."""

    length: Any
    loss: float
    gradient: Any
    slope: Any


def strong_wolfe(probe: Callable[[Any], tuple[float, Any]], length: Any, loss: float, gradient: Any, slope: Any,
                 direction: Any, most_calls: int) -> tuple[float, Any, Any, int]:  # fmt: skip
    """The loss and gradient at a step that satisfies the conditions, its length, and the number of calls of `probe`.

    probe: from a step length to loss and gradient; `loss`, `gradient` and `slope` are those at length zero. After
    `most_calls` the best step so far is returned.
    """
    start = Point(0, loss, gradient.clone(), slope)

    def at(length: Any) -> Point:
        loss, gradient = probe(length)
        return Point(length, loss, gradient, gradient.dot(direction))

    def too_high(point: Point) -> bool:
        return point.loss > start.loss + SUFFICIENT_DECREASE * point.length * start.slope

    def flat(point: Point) -> bool:
        return abs(point.slope) <= -CURVATURE * start.slope

    before, here = start, at(length)
    tried = 0  # besides the first
    bracket: list[Point] = []
    while tried < most_calls:
        if too_high(here) or (tried > 1 and here.loss >= before.loss):
            bracket = [before, here]
            break
        if flat(here):
            return here.loss, here.gradient, here.length, tried + 1
        if here.slope >= 0:
            bracket = [before, here]
            break
        bounds = here.length + 0.01 * (here.length - before.length), here.length * 10
        before, here = here, at(_interpolated(before, here, bounds))
        tried += 1
    if tried == most_calls:
        bracket = [start, here]
    low, high = _ordered(bracket)
    width = direction.abs().max()
    stuck = False
    while tried < most_calls and abs(bracket[1].length - bracket[0].length) * width >= LEAST_CHANGE:
        length, stuck = _trial(bracket, stuck)
        here = at(length)
        tried += 1
        if too_high(here) or here.loss >= bracket[low].loss:
            bracket[high] = here
            low, high = _ordered(bracket)
            continue
        done = flat(here)
        if not done and here.slope * (bracket[high].length - bracket[low].length) >= 0:
            bracket[high] = bracket[low]
        bracket[low] = here
        if done:
            break
    best = bracket[low]
    return best.loss, best.gradient, best.length, tried + 1


def _ordered(bracket: list[Point]) -> tuple[int, int]:
    """Which end has the lower loss, and which the higher."""
    return (0, 1) if bracket[0].loss <= bracket[1].loss else (1, 0)


def _trial(bracket: list[Point], stuck: bool) -> tuple[Any, bool]:
    """The next length to try, moved off the ends if it is near one for the second time; and whether it was near."""
    first, last = sorted(point.length for point in bracket)
    length = _interpolated(bracket[0], bracket[1], (first, last))
    margin = MARGIN * (last - first)
    if min(last - length, length - first) >= margin:
        return length, False
    if not (stuck or length >= last or length <= first):
        return length, True
    return (last - margin if abs(length - last) < abs(length - first) else first + margin), False


def _interpolated(a: Point, b: Point, bounds: tuple[Any, Any]) -> Any:
    """The minimum of the cubic through both points, kept within `bounds`; their middle if there is none.

    d1 = a' + b' - 3 (fa - fb) / (a - b);  d2 = sqrt(d1^2 - a' b');  b - (b - a) (b' + d2 - d1) / (b' - a' + 2 d2)
    """
    if a.length > b.length:
        a, b = b, a
    slope = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.length - b.length)
    squared = slope**2 - a.slope * b.slope
    if not squared >= 0:
        return (bounds[0] + bounds[1]) / 2.0
    root = squared.sqrt()
    place = b.length - (b.length - a.length) * ((b.slope + root - slope) / (b.slope - a.slope + 2 * root))
    return min(max(place, bounds[0]), bounds[1])
