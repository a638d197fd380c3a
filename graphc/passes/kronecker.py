"""Kronecker products of square matrices, whose inverses and determinants are those of the matrices.

(A x B)^-1 = A^-1 x B^-1            log |A x B| = m log |A| + n log |B|,  A n by n, B m by m
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

from graphc.facts.definite import covers
from graphc.ir import Builder, Symbol
from graphc.normal.affine import Index
from graphc.normal.form import Form
from graphc.passes.diagonals import identity


class Kronecker(NamedTuple):
    """coefficient * the Kronecker product of `parts`: matrices, or the sizes of identities."""

    parts: tuple[Symbol | int, ...]
    coefficient: float


def kronecker(form: Form | None, builder: Builder) -> Kronecker | None:
    """The Kronecker product of two matrices or more that a form of a square matrix is; None for other forms."""
    if form is None or len(form.terms) != 1:
        return None
    (term,) = form.terms
    row, column = term.places
    n = form.shape[0]
    if isinstance(term.coefficient, complex) or not term.coefficient or len(row.steps) < 2:
        return None
    if not covers(row, term.sizes, n) or not covers(column, term.sizes, n) or len(row.steps) != len(column.steps):
        return None
    factors = list(term.factors)
    parts: list[Symbol | int] = []
    for (i, _), (j, _) in zip(row.steps, column.steps, strict=True):
        size = term.sizes[i]
        if size != term.sizes[j]:
            return None
        if i == j:
            parts.append(size)
            continue
        found = next((f for f in factors if f.places in (_at(i, j), _at(j, i))), None)
        if found is None or builder.nodes[found.atom].shape != (size, size):
            return None
        factors.remove(found)
        matrix = builder.symbol(found.atom)
        parts.append(matrix if found.places == _at(i, j) else builder.language.permute(matrix, dims=(1, 0)))
    matrices = [p for p in parts if isinstance(p, Symbol)]
    return Kronecker(tuple(parts), float(term.coefficient)) if matrices and not factors else None


def _at(i: int, j: int) -> tuple[Index, Index]:
    return Index(0, ((i, 1),)), Index(0, ((j, 1),))


def product(F: Any, parts: Sequence[Symbol | int], dtype: Any) -> Symbol:
    """The Kronecker product of square matrices, or identities of these sizes."""

    def both(a: Symbol, b: Symbol) -> Symbol:
        n, m = a.shape[0], b.shape[0]
        return F.reshape(F.reshape(a, shape=(n, 1, n, 1)) * F.reshape(b, shape=(1, m, 1, m)), shape=(n * m, n * m))

    return functools.reduce(both, [p if isinstance(p, Symbol) else identity(F, p, dtype) for p in parts])
