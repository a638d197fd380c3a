"""Sums of Kronecker products of two symmetric matrices and identities, by the eigenvectors of the small matrices.

A x B + c I, as a covariance on a grid with noise, and I x A + B x I, as a Laplacian or Lyapunov's equation, have the
eigenvectors U x V, where A = U diag(a) U^T and B = V diag(b) V^T. Their eigenvalues are a_i b_j + c, and a_i + b_j.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from graphc.facts.definite import covers
from graphc.facts.known import Facts
from graphc.ir import Builder, Symbol
from graphc.normal.form import Form, Term
from graphc.passes.kronecker import kronecker, product
from graphc.passes.matrices import transposed

WORTH = 20  # times as much as two small cubes, the cube of all rows has to be


class Spectrum(NamedTuple):
    """The eigenvalues of a symmetric matrix, and its eigenvectors as columns."""

    values: Symbol
    vectors: Symbol


class _Part(NamedTuple):
    """One term: a number times the Kronecker product of two matrices; None: an identity."""

    number: Any  # of Python, or a symbol
    matrices: tuple[Symbol | None, Symbol | None]
    sizes: tuple[int, int] | None


def spectrum(form: Form | None, builder: Builder, facts: Facts) -> Spectrum | None:
    """The spectrum of a matrix with this form, if it is such a sum of two terms or more."""
    if form is None or len(form.terms) < 2:
        return None
    parts = [_part(t, form.shape, builder) for t in form.terms]
    known = [p for p in parts if p is not None]
    sizes = {p.sizes for p in known if p.sizes is not None}
    matrices = [{x.id for p in known if (x := p.matrices[k]) is not None} for k in (0, 1)]
    if len(known) < len(parts) or len(sizes) != 1 or [*map(len, matrices)] != [1, 1]:
        return None
    ((n, m),) = sizes
    small = [builder.symbol(id) for own in matrices for id in own]
    if WORTH * (n**3 + m**3) > (n * m) ** 3 or not all(facts.symmetric(x.id) for x in small):
        return None
    F = builder.language
    values, vectors = zip(*[F.eigh(x) for x in small], strict=True)
    spread = [F.reshape(values[0], shape=(n, 1)), F.reshape(values[1], shape=(1, m))]
    terms: list[Symbol] = []
    for p in known:
        factors = [own for own, x in zip(spread, p.matrices, strict=True) if x is not None]
        terms.append(functools.reduce(lambda a, b: a * b, factors, p.number))
    total = functools.reduce(lambda a, b: a + b, terms)
    return Spectrum(F.reshape(total, shape=(n * m,)), product(F, vectors, small[0].dtype))


def _part(term: Term, shape: tuple[int, ...], builder: Builder) -> _Part | None:
    numbers = [f for f in term.factors if not any(p.steps for p in f.places)]
    if isinstance(term.coefficient, complex) or any(builder.nodes[f.atom].size != 1 for f in numbers):
        return None
    number: Any = float(term.coefficient)
    for f in numbers:
        number = number * builder.language.reshape(builder.symbol(f.atom), shape=())
    rest = term._replace(coefficient=1, factors=tuple([f for f in term.factors if f not in numbers]))
    if not rest.factors and rest.places[0] == rest.places[1] and covers(rest.places[0], rest.sizes, shape[0]):
        return _Part(number, (None, None), None)
    found = kronecker(Form(shape, (rest,)), builder)
    if found is None or len(found.parts) != 2:
        return None
    first, second = [transposed(p) or p if isinstance(p, Symbol) else None for p in found.parts]
    n, m = [p.shape[0] if isinstance(p, Symbol) else p for p in found.parts]
    return _Part(number, (first, second), (n, m))
