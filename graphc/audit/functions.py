"""Operations on matrices that are several ops, in the op language."""

from __future__ import annotations

from typing import Any


def diagonal(F: Any, a: Any) -> Any:
    """The diagonal of a square matrix."""
    n = a.shape[0]
    return F.slice(F.reshape(a, shape=(n * a.shape[1],)), start=(0,), stop=(n * n,), step=(n + 1,))


def diag(F: Any, d: Any) -> Any:
    """The diagonal matrix of a vector."""
    (n,) = d.shape
    return F.reshape(F.pad_zeros(d, low=(0,), high=(0,), interior=(n,)), shape=(n, n))


def outer(F: Any, x: Any, y: Any) -> Any:
    """The outer product of two vectors."""
    ((n,), (_,)) = x.shape, y.shape
    return F.mul(F.reshape(x, shape=(n, 1)), y)


def trace(F: Any, a: Any) -> Any:
    """The sum of the diagonal of a square matrix."""
    return F.sum(diagonal(F, a), axis=(0,), keepdims=False)


def rows(F: Any, a: Any) -> Any:
    """The sum of each row of a matrix."""
    return F.sum(a, axis=(1,), keepdims=False)


def columns(F: Any, a: Any) -> Any:
    """The sum of each column of a matrix."""
    return F.sum(a, axis=(0,), keepdims=False)


def total(F: Any, a: Any) -> Any:
    """The sum of all elements of an array that has axes."""
    if not a.shape:
        raise ValueError("there is nothing to add up")
    return F.sum(a, axis=tuple(range(len(a.shape))), keepdims=False)
