"""What is tried to find a fault: an op's samples, a program, a session, random programs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from compare.checking.equivalence import check
from compare.declared.operations import check_sample, extremes_of, long_of, samples_of
from compare.selftest.fault import Trial, Trials
from compare.selftest.replay import Session, replay
from eager.core.tensor import Tensor
from eager.engine.language import E
from graphc.ops import OPS, Op
from graphc.ops.dtypes import FLOAT32, FLOAT64
from graphc.ops.samples import Sample


def samples(name: str) -> Trials:
    """`check` of op `name` on the samples that it declares, in float32 and float64."""

    return _checked(OPS[name], samples_of, FLOAT32, FLOAT64)


def extremes(name: str) -> Trials:
    """`check` of op `name` at special places of its samples."""
    return _checked(OPS[name], extremes_of)


def lengths(name: str) -> Trials:
    """`check` of op `name` on long operands."""
    return _checked(OPS[name], long_of)


def _checked(op: Op, samples: Callable[[Op], Iterator[Sample]], *dtypes: np.dtype) -> Trials:
    def trials() -> Iterator[Trial]:
        for dtype, sample in itertools.product(dtypes or (FLOAT32,), samples(op)):
            yield Trial(f"sample {sample!r} in {dtype}", check_sample(op, sample, dtype=dtype))

    return trials


def program(fn: Callable[..., Any], *args: Any, modes: Sequence[str] | None = None) -> Trials:
    """`check` of a function on `args`: ndarrays, which become new tensors, or others.

    Once with all floating tensors requiring grad, and once without: some rules apply where no gradient reads along.
    """

    def trials() -> Iterator[Trial]:
        yield Trial("program with gradients", check(fn, *(_given(a, True) for a in args), modes=modes))
        yield Trial("program", check(fn, *(_given(a, False) for a in args), modes=modes))

    return trials


def call(name: str, *arrays: Any, **params: Any) -> Trials:
    """`program` of one call of the op `name`."""
    return program(lambda *operands: getattr(E, name)(*operands, **params), *arrays)


def session(fn: Session) -> Trials:
    """`replay` of a session."""

    def trials() -> Iterator[Trial]:
        yield Trial("session", replay(fn))

    return trials


def calls(fn: Callable[..., Any], *several: tuple[Any, ...]) -> Trials:
    """A session that calls `fn` with one tuple of arguments after the other."""

    def calling(compile: Any) -> Iterator[Any]:
        f = compile(fn)
        for args in several:
            yield f(*args)

    return session(calling)


def in_turn(*several: Trials) -> Trials:
    """One after the other."""
    return lambda: itertools.chain.from_iterable(trials() for trials in several)


def _given(value: Any, grad: bool) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    return Tensor._wrap(value.copy()).requires_grad_(grad and value.dtype.kind in "fc")


def tensor(*shape: int, seed: int = 5) -> Any:
    """A new tensor of `numbers`."""
    return Tensor._wrap(numbers(*shape, seed=seed))


def numbers(*shape: int, low: float = 0.5, high: float = 1.5, dtype: Any = FLOAT32, seed: int = 5) -> np.ndarray:
    """Random numbers, the same for the same seed."""
    return np.random.default_rng(seed).uniform(low, high, shape).astype(dtype)
