"""Facts about the nodes of a graph, found when they are asked for: forms, bands, symmetry, signs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

from graphc.facts.bands import Band, band_of, whole
from graphc.ir import Node
from graphc.normal.affine import Unsolved
from graphc.normal.find import MOST_NODES
from graphc.normal.form import Factor, Form, Term, number, tidy
from graphc.normal.gate import multiplies
from graphc.normal.lift import forms_of, is_lifted
from graphc.ops.dtypes import is_floating


@final
class Facts:
    """Of nodes, which may become more. What is said holds for finite numbers."""

    def __init__(self, nodes: Mapping[int, Node]):
        self._nodes = nodes
        self._forms: dict[int, Form | None] = {}
        self._bands: dict[int, Band] = {}
        self._symmetric: dict[int, bool] = {}
        self._nonnegative: dict[int, bool] = {}

    def form(self, id: int) -> Form | None:
        """A node as a sum of products, at most one of which is a product of nodes: those of others are atoms."""
        if id not in self._forms:
            self._forms[id] = self._formed(id)
        return self._forms[id]

    def _formed(self, id: int, deep: bool = False) -> Form | None:
        """deep: products of products are one, as far as there are few"""
        nodes = self._nodes
        found: set[int] = set()
        atoms: set[int] = set()
        stack = [(id, False)]
        while stack:
            k, inside = stack.pop()
            node = nodes[k]
            if k in found or not is_lifted(node, nodes):
                continue
            found.add(k)
            if inside and multiplies(node) and not (deep and len(found) < MOST_NODES):
                atoms.add(k)  # what is below is of no interest
                continue
            stack += [(i, inside or multiplies(node)) for i in node.inputs]
        if id not in found:
            return None
        some = {k: nodes[k] for k in sorted(found)}
        try:
            form = forms_of(some, nodes, atoms).get(id)
        except Unsolved:
            return None
        alone = form is not None and any(f.atom == id for t in form.terms for f in t.factors)
        return None if alone else form

    # --- where zeros are

    def band(self, id: int) -> Band:
        """Of a matrix."""
        if id not in self._bands:
            node = self._nodes[id]
            least = whole(node.shape)
            self._bands[id] = least
            if node.op.band is not None:
                given = [self.band(i) if self._nodes[i].aval.ndim == 2 else None for i in node.inputs]
                least = Band(*map(min, least, node.op.band(node.shape, node.params, *given)))
            form = self.form(id)
            if form is not None:
                least = Band(*map(min, least, band_of(form, self._band_of_atom)))
            self._bands[id] = least
        return self._bands[id]

    def _band_of_atom(self, id: int) -> Band | None:
        return self.band(id) if self._nodes[id].aval.ndim == 2 else None

    # --- symmetry

    def symmetric(self, id: int) -> bool:
        """Whether a matrix is its transpose, but for rounding."""
        if id not in self._symmetric:
            self._symmetric[id] = False
            self._symmetric[id] = self._is_symmetric(id)
        return self._symmetric[id]

    def _is_symmetric(self, id: int) -> bool:
        node, nodes = self._nodes[id], self._nodes
        m, n = node.shape
        if m != n:
            return False
        form = self._formed(id, deep=True)
        if form is not None:
            own = {self._canonical(t) for t in form.terms}
            return own == {self._canonical(t._replace(places=t.places[::-1])) for t in form.terms}
        if not (node.op.pointwise or node.op.symmetric) or not node.inputs:
            return False
        operands = [nodes[i] for i in node.inputs]
        return all(x.size == 1 or (x.shape == node.shape and self.symmetric(x.id)) for x in operands)

    def _canonical(self, term: Term) -> Term | None:
        """The term with labels by their first use: equal ones become alike."""
        found: Term | None = term
        for _ in range(3):
            if found is None:
                return None
            factors = sorted([self._turned(f) for f in found.factors])
            found = tidy(found.coefficient, factors, found.places, found.sizes)
        return found

    def _turned(self, factor: Factor) -> Factor:
        """A factor of a symmetric matrix with its places in order."""
        if len(factor.places) == 2 and self._nodes[factor.atom].aval.ndim == 2 and self.symmetric(factor.atom):
            return Factor(factor.atom, tuple(sorted(factor.places)))
        return factor

    # --- signs

    def nonnegative(self, id: int) -> bool:
        """Whether no element is less than 0."""
        if id not in self._nonnegative:
            self._nonnegative[id] = False
            node = self._nodes[id]
            form = self.form(id)
            below = node.op.image is not None and node.op.image[0] >= 0 and is_floating(node.dtype)
            self._nonnegative[id] = below or (form is not None and all(map(self._adds_up, form.terms)))
        return self._nonnegative[id]

    def positive(self, id: int) -> bool:
        """Whether every element is at least some number greater than 0."""
        form = self.form(id)
        if form is None or not is_floating(self._nodes[id].dtype) or not all(map(self._adds_up, form.terms)):
            return False
        everywhere = number(1, form.shape).terms
        return any(t.coefficient > 0 and t._replace(coefficient=1) in everywhere for t in form.terms)

    def _adds_up(self, term: Term) -> bool:
        """Whether a term is never negative: a number that is not, times squares and factors that are not."""
        if isinstance(term.coefficient, complex) or term.coefficient < 0:
            return False
        odd: set[Factor] = set()
        for factor in term.factors:
            odd ^= {factor}
        return all(self.nonnegative(factor.atom) for factor in odd)
