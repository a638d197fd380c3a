"""How `eager.random.multinomial` draws: PyTorch's two algorithms on the CPU, on arrays; and in ops, for a trace."""

from __future__ import annotations

from typing import Any

import numpy as np

from eager.core.interpreter import on_arrays
from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.functional.joining import stack
from eager.functional.lines import arange
from eager.functional.reductions import argmax, cumsum
from eager.functional.reductions import sum as total
from eager.rng.generator import Generator
from graphc.ops.dtypes import FLOAT32, FLOAT64, INT64, is_floating, is_half
from graphc.ops.rules import torch_name

MOST_CATEGORIES = 2**24  # a float32 counts no further
NEAR_ONE = 1e-5  # sums this close to one are taken for one


def draw(p: Tensor, count: int, replacement: bool, source: Generator) -> Tensor:
    """See `eager.random.multinomial`. Without replacement, or for one sample: a race of exponential clocks."""
    _check(p, count, replacement)
    if not on_arrays(p):
        return _searched_in_ops(p, count, source) if replacement and count > 1 else _raced_in_ops(p, count, source)
    array = p._array()
    _check_values(array, replacement and count > 1)
    if replacement and count > 1:
        return Tensor._wrap(_searched(array, count, source))
    with np.errstate(divide="ignore", invalid="ignore"):
        speed = array / _clocks(p, source)._array()
    speed = speed.astype(FLOAT32) if is_half(speed.dtype) else speed
    if count == 1:
        return Tensor._wrap(np.argmax(speed, -1, keepdims=True))
    return Tensor._wrap(np.argsort(-speed, -1, kind="stable")[..., :count].astype(INT64))


def _check(p: Tensor, count: int, replacement: bool) -> None:
    if p.ndim not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if not is_floating(p._dtype()):
        raise RuntimeError(f"multinomial only supports floating-point dtypes for input, got: {torch_name(p._dtype())}")
    if count <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and count > p.shape[-1]:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    if p.shape[-1] > MOST_CATEGORIES:
        raise RuntimeError("number of categories cannot exceed 2^24")


def _check_values(p: np.ndarray, by_search: bool) -> None:
    if not np.all((p >= 0) & (p < np.inf)):
        if not by_search:
            raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
        first = p[~((p >= 0) & (p < np.inf))].flat[0]
        what = "probability entry = infinity or NaN" if first > 0 else "probability entry < 0"
        raise RuntimeError(f"invalid multinomial distribution (encountering {what})")
    if p.size and not np.all(p.sum(-1) > 0):
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")


def _searched(p: np.ndarray, count: int, source: Generator) -> np.ndarray:
    """For each uniform number, the first category whose cumulative probability reaches it."""
    rows = p.reshape(-1, p.shape[-1])
    found = np.empty((len(rows), count), INT64)
    uniform = source.uniform(found.shape, FLOAT64)
    for i, row in enumerate(rows):
        reached = np.cumsum(row, dtype=FLOAT32 if is_half(row.dtype) else row.dtype)
        if abs(reached[-1] - 1) > NEAR_ONE:
            reached /= reached[-1]
        reached[-1] = 1
        found[i] = np.searchsorted(reached, uniform[i])
    return found.reshape(*p.shape[:-1], count)


def _searched_in_ops(p: Tensor, count: int, source: Generator) -> Tensor:
    from eager.rng.sampling import sample

    shape = (*p.shape[:-1], count)
    uniform: Any = sample(lambda shape: source.uniform(shape, FLOAT64), shape, FLOAT64, source, p)
    reached: Any = cumsum(p.detach(), -1)
    reached = E.div(reached, reached[..., -1:])
    return total(E.lt(reached[..., None, :-1], uniform[..., None]), -1)


def _clocks(p: Tensor, source: Generator) -> Tensor:
    from eager.rng.sampling import sample_like

    kind = p._dtype()
    return sample_like(lambda shape: source.exponential(shape, kind, 1.0), p, kind, source)


def _raced_in_ops(p: Tensor, count: int, source: Generator) -> Tensor:
    speed = E.div(p.detach(), _clocks(p, source))
    winners: list[Any] = []
    places = arange(p._d.shape[-1])
    for _ in range(count):
        winners.append(argmax(speed, -1))
        speed = E.where(E.eq(places, winners[-1][..., None]), -1.0, speed)
    return stack(winners, -1)
