"""Inputs for the tests derived from the registry: an op's own samples, or pointwise ones over its domain."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

from graphc.ops import OPS, Op, Trait
from graphc.ops.dtypes import FLOAT64
from graphc.ops.rules import integral, pointwise_bool
from graphc.ops.samples import Bools, Floats, Ints, Sample
from tests.ops.parts import every_part

PARAMETERS: dict[str, dict[str, Any]] = {"cast": {"dtype": FLOAT64}}  # of pointwise ops, which declare no samples
# one shape an operand, for one, two and three operands
SHAPES: dict[int, dict[str, tuple[tuple[int, ...], ...]]] = {
    1: {"plain": ((3, 4),), "scalar": ((),), "empty": ((0, 3),)},
    2: {
        "plain": ((3, 4), (3, 4)),
        "broadcast": ((2, 1, 3), (4, 1)),
        "row": ((2, 3), (3,)),
        "scalar": ((2, 3), ()),
        "scalars": ((), ()),
        "empty": ((0, 3), (1, 3)),
    },
    3: {"plain": ((3, 4), (3, 4), (3, 4)), "broadcast": ((3, 1), (2, 1, 4), ()), "empty": ((0,), (1,), ())},
}


class Case(NamedTuple):
    """One call of an op. `strided` asks for operands that are not contiguous."""

    op: Op
    label: str
    sample: Sample
    strided: bool = False

    def arrays(self, rng: np.random.Generator, dtype: Any = FLOAT64) -> list[np.ndarray]:
        """The operands: floats in `dtype`, uniform over the op's domain."""
        drawn = self.sample.arrays(rng, self.op.domain, dtype)
        return [_strided(a) for a in drawn] if self.strided else drawn

    @property
    def id(self) -> str:
        return f"{self.op.name}-{self.label}"


def _strided(array: np.ndarray) -> np.ndarray:
    """The same values in memory with gaps and in reverse order."""
    if not array.ndim:
        return array
    wide = np.zeros((*array.shape[:-1], array.shape[-1] * 2), array.dtype)
    view = wide[..., ::-2]
    view[...] = array
    return view


def _operand(op: Op, index: int, shape: tuple[int, ...]) -> Any:
    if op.rule.infer is integral.infer:
        low, high = op.domain or (-8, 8)
        return Ints(shape, high, low)
    return Bools(shape) if index < op.rule.first else Floats(shape)


def cases_of(op: Op) -> Iterator[Case]:
    """Every case of `op`."""
    if op.samples:
        for sample in op.samples:
            yield Case(op, repr(sample), sample)
        return
    params = PARAMETERS.get(op.name, {})
    for label, shapes in SHAPES[len(op.args)].items():
        yield Case(op, label, Sample(*(_operand(op, i, s) for i, s in enumerate(shapes)), **params))
    plain = SHAPES[len(op.args)]["plain"]
    sample = Sample(*(_operand(op, i, s) for i, s in enumerate(plain)), **params)
    yield Case(op, "strided", sample, strided=True)
    if op.rule.infer is pointwise_bool.infer and len(op.args) == 2:
        yield Case(op, "ties", Sample(*(Ints(s, 2) for s in plain)))


def _has_derivative(op: Op) -> bool:
    return op.differentiable and Trait.SURROGATE not in op.traits


def every_case(*, differentiable: bool = False, by_part: bool = False) -> list[Case]:
    """The cases of every op.

    by_part  each result of an op with several is an op of its own
    """
    plain = [op for op in OPS.values() if not op.structured]  # the others have tests/control
    return [
        case
        for op in (every_part() if by_part else plain)
        if _has_derivative(op) or not differentiable
        for case in cases_of(op)
    ]


def by_op(cases: Iterable[Case], deep: Collection[str] = ()) -> list[Any]:
    """Pytest parameters, named after ops: the list of the cases of each, for tests that compile them together.

    deep  ops that only the deep suite looks at
    """
    found: dict[str, list[Case]] = {}
    for case in cases:
        found.setdefault(case.op.name, []).append(case)
    marks = dict.fromkeys(deep, pytest.mark.deep)
    return [pytest.param(several, id=name, marks=marks.get(name, ())) for name, several in found.items()]


@contextlib.contextmanager
def noting(text: str) -> Iterator[None]:
    """An error says `text` as well: which of several things that one test looks at was wrong."""
    try:
        yield
    except Exception as error:
        error.add_note(text)
        raise


def each_case(cases: Iterable[Case]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorate a test of one `case`: it is a test of each op, which goes through the op's cases.

    A failure names its case, and each case has an `rng` of its own. What pytest does around a test costs more than most
    of these take.
    """

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def of_each(cases: list[Case], **fixtures: Any) -> None:
            generators = fixtures["rng"].spawn(len(cases)) if "rng" in fixtures else cases
            for case, generator in zip(cases, generators, strict=True):
                own = {"rng": generator} if "rng" in fixtures else {}
                with noting(f"in the case {case.id}"):
                    test(case=case, **{**fixtures, **own})

        parameters = inspect.signature(test).parameters.values()
        asked = [p.replace(name="cases", annotation=list[Case]) if p.name == "case" else p for p in parameters]
        of_each.__signature__ = inspect.Signature(asked)  # type: ignore[attr-defined]
        return pytest.mark.parametrize("cases", by_op(cases))(of_each)

    return decorate
