"""`assume`: an array, with the promise of its user that a fact holds for it. The promise is checked where the data are.

A fact is a tuple, its name and its numbers: `("symmetric",)`, `("band", below, above)`, `("range", low, high)`. What it
says, `KINDS` says. Equations between matrices are tested on one vector, as Freivalds tests products: two products of a
matrix and a vector cost less than reading the matrix's transpose, and no matrix of data has that vector in the null
space of what is wrong with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from graphc.ops.aval import Aval
from graphc.ops.dtypes import finfo, is_floating, is_half
from graphc.ops.index_maps import itself
from graphc.ops.samples import Sample
from graphc.ops.spec import Check, Op, Rule, Trait, op

Fact = tuple[Any, ...]
SLACK = 8.0  # roundings, at most, that a matrix which a user has computed is off by: times 8 + the root of its rows


class Kind(NamedTuple):
    """What a fact says.

    text    that an array is, with the fact's numbers in order: "no ... "
    holds   f(xp, x, *numbers): booleans, all of which are true if it holds; nan is none of what is promised
    wrong   f(x, *numbers): how far off each element is, nan where it is; None where no element is to blame alone
    of      "matrices", "square matrices", or "" for any array
    """

    text: str
    holds: Callable[..., Any]
    wrong: Callable[..., np.ndarray] | None
    of: str = ""


def tolerance(x: Any) -> float:
    """What is rounding in an equation between square matrices like `x`, relative to their size."""
    return SLACK * (SLACK + math.sqrt(x.shape[-2])) * float(finfo(x.dtype).eps)


def _probe(xp: Any, n: int, dtype: Any) -> Any:
    """A vector without zeros, of both signs and of no pattern."""
    angles = np.arange(1, n + 1) ** 2 * 0.7548776662466927  # no multiple of a fraction of the circle
    return xp.asarray(((1 + 0.5 * np.sin(3 * angles)) * np.where(np.cos(angles) < 0, -1, 1)).astype(dtype))


def _is_symmetric(xp: Any, x: Any) -> Any:
    if not x.size:
        return True
    v = _probe(xp, x.shape[-1], x.dtype)
    found = x @ v
    return xp.abs(found - v @ x) <= tolerance(x) * xp.max(xp.abs(found), axis=-1, keepdims=True)


def _is_orthogonal(xp: Any, x: Any) -> Any:
    if not x.size:
        return True
    v = _probe(xp, x.shape[-1], x.dtype)
    back = (x @ v)[..., None, :] @ x  # the transpose of x^T (x v), which XLA would copy
    return xp.abs(back[..., 0, :] - v) <= tolerance(x) * xp.max(xp.abs(v))


def _factorizes(xp: Any, x: Any) -> Any:
    """Whether Cholesky's factorization of matrices, of which it reads one triangle, succeeds."""
    try:
        return xp.isfinite(xp.linalg.cholesky(x)[..., -1, -1]) if x.size else True
    except np.linalg.LinAlgError:  # of NumPy alone
        return False


def _is_definite(xp: Any, x: Any) -> Any:
    return xp.all(_is_symmetric(xp, x)) & xp.all(_factorizes(xp, x))


def _is_semidefinite(xp: Any, x: Any) -> Any:
    # what rounding has moved below 0 is moved back
    n = x.shape[-1]
    largest = xp.max(xp.abs(x), axis=(-2, -1), keepdims=True, initial=0)
    shifted = x + xp.eye(n, dtype=x.dtype) * (largest * tolerance(x) + float(finfo(x.dtype).tiny))
    return xp.all(_is_symmetric(xp, x)) & xp.all(_factorizes(xp, shifted))


def _is_banded(xp: Any, x: Any, below: float, above: float) -> Any:
    # what is computed from places needs no mask in memory
    found: Any = True
    if below < x.shape[-2] - 1:
        found = found & xp.all(xp.tril(x, -int(below) - 1) == 0)
    if above < x.shape[-1] - 1:
        found = found & xp.all(xp.triu(x, int(above) + 1) == 0)
    return found


def _outside(x: Any, below: float, above: float) -> np.ndarray:
    """Which places of matrices like `x` are outside of a band."""
    shift = np.arange(x.shape[-1])[None, :] - np.arange(x.shape[-2])[:, None]
    return (shift > above) | (shift < -below)


def _mirrored(x: np.ndarray) -> np.ndarray:
    return np.abs(x - np.swapaxes(x, -1, -2))


def _beyond(x: np.ndarray, low: float, high: float) -> np.ndarray:
    return np.maximum(low - x, x - high)


KINDS: Mapping[str, Kind] = {
    "symmetric": Kind("symmetric", _is_symmetric, _mirrored, "square matrices"),
    "definite": Kind("symmetric and positive definite", _is_definite, None, "square matrices"),
    "semidefinite": Kind("symmetric and positive semidefinite", _is_semidefinite, None, "square matrices"),
    "orthogonal": Kind(
        "a matrix with orthonormal columns", _is_orthogonal,
        lambda x: np.abs(np.swapaxes(x, -1, -2) @ x - np.eye(x.shape[-1])), "matrices"),
    "band": Kind(
        "zero but for {} diagonals below and {} above the main one",
        _is_banded,
        lambda x, below, above: np.where(_outside(x, below, above), np.abs(x), 0), "matrices"),
    "range": Kind(
        "from {} to {}", lambda xp, x, low, high: (x >= low) & (x <= high), _beyond),
    "positive": Kind("positive", lambda xp, x: x > 0, lambda x: -x),
    "finite": Kind("finite", lambda xp, x: xp.isfinite(x), lambda x: np.where(np.isfinite(x), 0, np.inf)),
}  # fmt: skip


def _typed(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    (x,), (name, *numbers) = avals, params["fact"] or ("",)
    kind = KINDS.get(name)
    if kind is None or len(numbers) != kind.text.count("{}") or any(isinstance(n, str) or n != n for n in numbers):
        raise ValueError(f"assume: {params['fact']!r} is no fact")
    if kind.of:
        if len(x.shape) < 2 or (kind.of.startswith("square") and x.shape[-1] != x.shape[-2]):
            raise ValueError(f"assume: only {kind.of} can be {name}, got {x}")
        if not is_floating(x.dtype) or is_half(x.dtype):
            raise TypeError(f"assume: matrices of float32 and float64 only can be {name}, got {x}")
    elif x.dtype.kind not in "fiu" and not is_floating(x.dtype):
        raise TypeError(f"assume: only real numbers can be {name}, got {x}")
    return x


_TRIANGLES: Mapping[Fact, str] = {
    ("band", math.inf, 0): "lower triangular", ("band", 0, math.inf): "upper triangular", ("band", 0, 0): "diagonal",
}  # fmt: skip


def described(fact: Fact) -> str:
    """A fact in words: that an array "is ..."."""
    if fact in _TRIANGLES:
        return _TRIANGLES[fact]
    return KINDS[fact[0]].text.format(*[f"{n:g}" for n in fact[1:]])


def _worst(x: np.ndarray, fact: Fact) -> str:
    """Where a fact fails most, as the end of a sentence."""
    wrong = KINDS[fact[0]].wrong
    if wrong is None:
        if not np.isfinite(x).all():
            return f"an element is {x[~np.isfinite(x)][0]}"
        if not np.all(_is_symmetric(np, x)):
            return _worst(x, ("symmetric",))
        return f"an eigenvalue is {np.linalg.eigvalsh(x).min():.6g}"
    off = np.asarray(wrong(x, *fact[1:]), np.float64)
    at = tuple(map(int, np.unravel_index(np.argmax(np.where(np.isnan(off), np.inf, off)), off.shape)))
    if fact[0] == "orthogonal":
        return f"columns {at[-2]} and {at[-1]} are off by {off[at]:.6g}"
    here = f"element {at} is {x[at]:.6g}" if at else f"it is {x[at]:.6g}"
    if fact[0] != "symmetric":
        return here
    there = (*at[:-2], at[-1], at[-2])
    return f"{here}, element {there} is {x[there]:.6g}"


def _holds(xp: Any, x: Any, fact: Fact) -> Any:
    with np.errstate(all="ignore"):  # nan and what overflows are no promise kept
        return xp.all(KINDS[fact[0]].holds(xp, x, *fact[1:]))


def _np_assume(x: np.ndarray, fact: Fact) -> np.ndarray:
    if not _holds(np, x, fact):
        raise ValueError(described(fact))  # the check says the rest
    return x.copy()


assume = op(
    "assume", "x", params={"fact": ()}, impl=lambda xp, x, fact: x, numpy=_np_assume,
    rule=Rule(_typed), ref=itself, passes=True,
    traits=Trait.MOVES | Trait.IMPURE,  # what is promised is checked, whatever is read
    # of a matrix that is promised to be symmetric too: what is promised is its value, not what it depends on
    vjp=dict(x=lambda F, g: g),
    claims=lambda params, result: (params["fact"],),
    check=Check(_holds, ValueError, lambda params: f"assume: this is not {described(params['fact'])}",
                detail=lambda x, fact: _worst(x, fact)),
    samples=(Sample((3, 2), fact=("range", -2.5, 2.5)), Sample((4,), fact=("finite",))),  # which hold beside as well
)  # fmt: skip


_WORDS: Mapping[str, Fact] = {
    "symmetric": ("symmetric",), "spd": ("definite",), "positive_definite": ("definite",), "psd": ("semidefinite",),
    "positive_semidefinite": ("semidefinite",), "orthogonal": ("orthogonal",), "lower": ("band", math.inf, 0),
    "upper": ("band", 0, math.inf), "diagonal": ("band", 0, 0), "tridiagonal": ("band", 1, 1),
    "positive": ("positive",), "nonnegative": ("range", 0.0, math.inf), "nonpositive": ("range", -math.inf, 0.0),
    "finite": ("finite",),
}  # fmt: skip


def read(word: Any) -> Fact:
    """The fact that a user means: a word, a range (low, high), or ("band", below, above). ValueError for another."""
    if isinstance(word, str) and word in _WORDS:
        return _WORDS[word]
    if isinstance(word, (tuple, list)):
        parts = tuple(word)
        numbers = parts[1:] if parts[:1] == ("band",) else parts
        if len(numbers) == 2 and all(isinstance(n, (int, float)) and n == n for n in numbers):
            if parts[0] == "band":
                return ("band", *[n if n == math.inf else int(n) for n in numbers])
            if numbers[0] <= numbers[1]:
                return ("range", *map(float, numbers))
    raise ValueError(
        f"assume: {word!r} is no fact; facts are {', '.join(map(repr, _WORDS))}, a range (low, high), and "
        "('band', below, above)"
    )
