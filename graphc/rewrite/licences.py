"""The licence of an equation, found by machine: both sides on a grid of special numbers, and their errors.

A licence that is found is a bound from one side: the grid shows where the two sides differ, and cannot prove that they
do not elsewhere. So it finds a declared licence too generous, with numbers to show for it; and too modest where both
sides are computed element by element, by kernels that round an element alike wherever it stands.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from graphc.ir import Builder, Graph, Ref
from graphc.ops.aval import Aval
from graphc.ops.dtypes import BOOL, FLOAT32, FLOAT64, is_floating
from graphc.ops.samples import Bools, Counted, Floats, Full, Ints, Picks
from graphc.rewrite.rule import ASSUMES, EXACT, REASSOCIATES, Licence, Pattern, RewriteRule, Var

TINY = float(np.finfo(np.float32).tiny)
# finite numbers whose sums, products and functions neither overflow nor vanish
MODERATE = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 3.0, -2.5, 0.125, 7.0)
SPECIAL = (*MODERATE, np.inf, -np.inf, np.nan, 1e-40, -1e-45, TINY, 1e-20, 1e20, -3e38, 16777217.0)
# that constants may hold
NUMBERS = (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 0.7, -3.0)
EXTREME = (1e-45, 1e-30, 1e30, np.inf, -np.inf, np.nan)
ROUNDS = 24  # of random arrays, of each kind
WORSE = 16  # times the error of the left side, that the right side may make
ULPS = 64  # of the largest number at hand, likewise: sums of a few


class Found(NamedTuple):
    """The best licence that nothing contradicts, and what contradicts a better one: "at x = inf: 0.0, not nan"."""

    licence: Licence
    because: str = ""


Fill = Mapping[str, np.ndarray]  # by the names of inputs


def sides(
    rule: RewriteRule, example: Mapping[str, Any] | None = None, dtype: np.dtype = FLOAT64, numbers: Any = FLOAT64
) -> tuple[Graph, Graph] | None:
    """The two sides of `rule` as graphs, on `example` (by default the declared one); None where its condition fails.

    dtype    of the floats among the operands
    numbers  a dtype to which those that stand in the example are rounded first
    """
    given = rule.example if example is None else example
    graphs: list[Graph] = []
    for side in (rule.source, rule.right):
        builder = Builder()
        values = [operand(builder, name, spec, dtype, numbers) for name, spec in given.items()]
        if rule.when is not None and not rule.when(*values):
            return None
        result = side(builder.language, *values)
        symbol = result if hasattr(result, "id") else builder.constant(result, dtype)
        graphs.append(builder.graph("side", Ref(symbol.id)).check())
    return graphs[0], graphs[1]


def operand(builder: Builder, name: str, spec: Any, dtype: np.dtype = FLOAT64, numbers: Any = FLOAT64) -> Any:
    """An operand or a parameter, as an example of a rule has it. dtype: of floats"""
    if isinstance(spec, Full):
        own = BOOL if type(spec.value) is bool else dtype
        value = own.type(np.dtype(numbers).type(spec.value) if own is not BOOL else spec.value).item()
        return builder.language.full(shape=spec.shape, value=value, dtype=own)
    if isinstance(spec, Counted):
        return builder.constant(np.arange(spec.shape[0]))
    if isinstance(spec, Picks):
        return builder.constant(spec.matrix(dtype))
    if isinstance(spec, (Floats, Bools, Ints)):
        own = {Floats: dtype, Bools: BOOL, Ints: np.dtype(np.int64)}[type(spec)]
        return builder.input(name, Aval(spec.shape, own))
    return dtype if isinstance(spec, np.dtype) and is_floating(spec) else spec


def licence_of(rule: RewriteRule, allowed: Callable[[str, np.ndarray], np.ndarray] | None = None) -> Found:
    """The licence that the sides of `rule` have, with each number that its constants may hold.

    allowed  of the numbers that an operand may be made of, those that it is
    """
    worst = Found(EXACT)
    for example, moderate in _examples(rule):
        both, wide = sides(rule, example, FLOAT32, FLOAT32), sides(rule, example, FLOAT64, FLOAT32)
        if both is None:
            continue
        exact = None if wide is None else wide[0]
        found = compared(*both, exact, _highs(rule), allowed, moderate)
        worst = max(worst, found, key=lambda f: f.licence)
        if worst.licence is ASSUMES:
            break
    return worst


Fact = tuple[str, Callable[[np.ndarray], np.ndarray]]
# from weak to strong
FACTS: tuple[Fact, ...] = (
    ("is no -0.0", lambda x: (x != 0) | ~np.signbit(x)),
    ("is not 0", lambda x: x != 0),
    ("is finite", np.isfinite),
    ("is finite and no -0.0", lambda x: np.isfinite(x) & ((x != 0) | ~np.signbit(x))),
    ("is finite and not 0", lambda x: np.isfinite(x) & (x != 0)),
    ("is not negative", lambda x: (x >= 0) & ~np.signbit(x)),
    ("is finite and not negative", lambda x: (x >= 0) & ~np.signbit(x) & np.isfinite(x)),
    ("is positive", lambda x: x > 0),
    ("is finite and positive", lambda x: (x > 0) & np.isfinite(x)),
)


def contradiction(rule: RewriteRule, allowed: Callable[[str, np.ndarray], np.ndarray] | None = None) -> str:
    """Numbers, not only moderate ones, at which one side is nan or infinite and the other is not, in float32; "" if
    there are none on the grid. A nan or an infinity that overflow has made is left out: float64 has none there."""
    both, wide = sides(rule, dtype=FLOAT32), sides(rule, dtype=FLOAT64)
    assert both is not None and wide is not None
    avals = dict(zip(both[0].input_names, both[0].input_avals(), strict=True))
    with np.errstate(all="ignore"):
        for _, fill in fills(avals, SPECIAL, {}, allowed or (lambda name, numbers: numbers)):
            a, b = (np.asarray(_run(g, {n: _wide(v) for n, v in fill.items()})) for g in wide)
            wrong = (np.isnan(a) != np.isnan(b)) | (np.isinf(a) != np.isinf(b))
            if wrong.any():
                return shown(fill, a[0], b[0], wrong[0])
    return ""


def fact_for(rule: RewriteRule) -> str:
    """What would have to be known of an operand, or of all, for the sides of `rule` to agree but for rounding, the
    weakest of `FACTS`: "x is not 0"; "" if none of them is enough. If they do anyway: for them to agree bit for bit."""
    enough = EXACT if licence_of(rule).licence < ASSUMES and not contradiction(rule) else REASSOCIATES
    names = [name for name, spec in rule.example.items() if isinstance(spec, Floats)]
    for text, holds in FACTS:
        for chosen in dict.fromkeys([*((name,) for name in names), tuple(names)]):

            def allowed(name: str, numbers: np.ndarray, of: Any = chosen, holds: Any = holds) -> np.ndarray:
                return numbers[holds(numbers)] if name in of else numbers

            if licence_of(rule, allowed).licence <= enough and not contradiction(rule, allowed):
                return " and ".join(f"{name} {text}" for name in chosen)
    return ""


def _examples(rule: RewriteRule) -> Iterator[tuple[Mapping[str, Any], bool]]:
    """The rule's example with other numbers for its constants; and whether these are moderate."""
    constants = constants_of(rule.left)
    given = {n: Floats(s.shape) if isinstance(s, Full) and n not in constants else s for n, s in rule.example.items()}
    swept = [n for n in constants if isinstance(s := given[n], Full) and type(s.value) is not bool]
    yield given, True
    for values in itertools.product((*NUMBERS, *EXTREME), repeat=len(swept)):
        if swept:
            new = {n: Full(given[n].shape, v) for n, v in zip(swept, values, strict=True)}
            yield {**given, **new}, all(v in NUMBERS for v in values)


def constants_of(pattern: Pattern) -> dict[str, None]:
    """The variables that stand for one number, in order."""
    found: dict[str, None] = {}
    for part in pattern.operands:
        if isinstance(part, Pattern):
            found |= constants_of(part)
        elif isinstance(part, Var) and part.number:
            found[part.name] = None
    return found


def _highs(rule: RewriteRule) -> dict[str, int]:
    return {name: spec.high for name, spec in rule.example.items() if isinstance(spec, Ints)}


def compared(
    left: Graph, right: Graph, exact: Graph | None = None, highs: Mapping[str, int] | None = None,
    allowed: Callable[[str, np.ndarray], np.ndarray] | None = None, moderate: bool = True,
) -> Found:  # fmt: skip
    """The licence with which `right` may stand for `left`, a graph of the same inputs.

    exact  the left side in float64, to judge errors by
    highs  of inputs that are integers: the least number that they do not take
    moderate  whether nothing overflows for moderate arguments; else only EXACT can be refuted
    """
    avals = dict(zip(left.input_names, left.input_avals(), strict=True))
    choose = allowed or (lambda name, numbers: numbers)
    differ = ""
    level = _Level()
    with np.errstate(all="ignore"):
        for near, fill in fills(avals, MODERATE, highs or {}, choose):
            a, b = _run(left, fill), _run(right, fill)
            if a is None or b is None:
                continue
            e = a if exact is None else _run(exact, {n: _wide(v) for n, v in fill.items()}) or a
            for one, other, true in zip(a, b, e, strict=True):
                wrong = _misjudged(one, other, true, fill)
                if moderate and wrong.any():
                    return Found(ASSUMES, shown(fill, one, other, wrong))
                differ = differ or _shown_difference(fill, one, other)
                if near:
                    level.add(one, other, true)
        if moderate and level.rises:
            return Found(ASSUMES, "numbers that are nearly equal lose their digits, which they had not lost")
        if not differ:
            for _, fill in fills(avals, SPECIAL, highs or {}, choose):
                a, b = _run(left, fill), _run(right, fill)
                for one, other in zip(a or (), b or (), strict=True):
                    differ = differ or _shown_difference(fill, one, other)
                if differ:
                    break
    return Found(REASSOCIATES, differ) if differ else Found(EXACT)


def fills(
    avals: Mapping[str, Aval], numbers: Sequence[float], highs: Mapping[str, int],
    choose: Callable[[str, np.ndarray], np.ndarray],
) -> Iterator[tuple[bool, Fill]]:  # fmt: skip
    """Arrays for inputs: all pairs of `numbers`, one among usual ones, usual ones; and, True, nearly equal ones."""
    rng = np.random.default_rng(0)
    pool = {n: choose(n, np.array(numbers, a.dtype)) for n, a in avals.items() if is_floating(a.dtype)}
    if any(not len(p) for p in pool.values()):
        return
    grid = list(itertools.product(*[range(len(p)) for p in pool.values()])) if len(pool) <= 2 else []
    most = max([a.size for n, a in avals.items() if n in pool], default=1)

    def other(name: str, aval: Aval) -> np.ndarray:
        if aval.dtype == bool:
            return rng.random(aval.shape) < 0.5
        if aval.dtype.kind in "iu":
            return rng.integers(0, highs.get(name, 2), aval.shape).astype(aval.dtype)
        return rng.uniform(0.3, 2.0, aval.shape).astype(aval.dtype)

    for start in range(0, len(grid), max(most, 1)):
        chosen = (grid[start : start + most] * most)[:most]
        made = {n: other(n, a) for n, a in avals.items()}
        for k, (name, own) in enumerate(pool.items()):
            size = avals[name].size
            made[name] = own[[row[k] for row in chosen[:size]]].reshape(avals[name].shape)
        yield False, made
    for kind in range(3 * ROUNDS):
        made = {n: other(n, a) for n, a in avals.items()}
        near = rng.uniform(0.5, 2.0)
        for name, own in pool.items():
            array, aval = made[name], avals[name]
            if kind % 3 == 0:
                array = rng.choice(own, aval.shape)
            elif kind % 3 == 1 and array.size:
                array.flat[rng.integers(array.size)] = rng.choice(own)
            elif kind % 6 == 5:
                array = (near * (1 + 1e-4 * rng.standard_normal(aval.shape))).astype(aval.dtype)
            kept = choose(name, array.ravel())
            made[name] = array if len(kept) == array.size else rng.choice(own, aval.shape)
        yield kind % 6 == 5, made


def _wide(array: np.ndarray) -> np.ndarray:
    return array.astype(FLOAT64) if is_floating(array.dtype) else array


def _run(graph: Graph, fill: Fill) -> list[np.ndarray] | None:
    """The outputs; None where the program refuses its arguments."""
    try:
        values = graph.evaluate(*[fill[name] for name in graph.input_names])
    except (RuntimeError, ArithmeticError, IndexError, ValueError):
        return None
    return [np.asarray(values[id]) for id in graph.outputs]


def same_bits(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Where two arrays are equal bit for bit; any nan equals any nan."""
    if not is_floating(a.dtype):
        return np.asarray(a == b)
    return ((a == b) & (np.signbit(a) == np.signbit(b))) | (np.isnan(a) & np.isnan(b))


def _misjudged(a: np.ndarray, b: np.ndarray, true: np.ndarray, fill: Fill) -> np.ndarray:
    """Where `b` is no number that `a` is: of another kind, or further from the truth."""
    if not is_floating(a.dtype):
        return np.asarray(a != b)
    kinds = (np.isnan(a) != np.isnan(b)) | ((np.isinf(a) | np.isinf(b)) & ~np.isnan(a) & (a != b))
    finite = np.isfinite(a) & np.isfinite(b) & np.isfinite(true)
    eps = float(np.finfo(a.dtype).eps)
    largest = max([1.0, *(float(np.abs(v).max()) for v in fill.values() if v.size and v.dtype.kind == "f")])
    wide, right = _wide(a), _wide(b)
    bound = WORSE * np.abs(wide - true) + ULPS * eps * np.abs(true) + ULPS * eps * eps * largest
    if a.size != max([v.size for v in fill.values()], default=a.size):  # sums: of numbers of any sign
        bound = bound + ULPS * eps * largest
    return kinds | (finite & ~(np.abs(right - true) <= bound))


class _Level:
    """The errors of both sides on operands that are nearly equal: where one adds, the other may cancel."""

    def __init__(self) -> None:
        self._left = self._right = self._size = 0.0

    def add(self, a: np.ndarray, b: np.ndarray, true: np.ndarray) -> None:
        if is_floating(a.dtype) and np.isfinite(a).all() and np.isfinite(b).all() and np.isfinite(true).all():
            self._left += float(np.square(_wide(a) - true).sum())
            self._right += float(np.square(_wide(b) - true).sum())
            self._size += float(np.square(float(np.finfo(a.dtype).eps) * true).sum())

    @property
    def rises(self) -> bool:
        """Whether the right side is further off."""
        return self._right > WORSE**2 * (self._left + self._size)


def _shown_difference(fill: Fill, a: np.ndarray, b: np.ndarray) -> str:
    unequal = ~same_bits(a, b)
    return shown(fill, a, b, unequal) if unequal.any() else ""


def shown(fill: Fill, a: np.ndarray, b: np.ndarray, where: np.ndarray) -> str:
    """The operands and results at the first of some places: "at x = inf: 0.0, not nan"."""
    flat = int(np.flatnonzero(where)[0])
    parts = [f"{n} = {v.flat[flat]}" for n, v in fill.items() if v.shape == a.shape and v.dtype.kind == "f"]
    at = f"at {', '.join(parts)}: " if parts else ""
    return f"{at}{b.flat[flat]}, not {a.flat[flat]}"
