"""Eigenvalues that are only summed up, and matrices put together from them, without the eigenvalues.

    sum of f(e) = tr f(S)        V diag(f(e)) V^T = f(S)        S = V diag(e) V^T

f is a sum of powers of the eigenvalues, from e^-4 to e^4, which are products of matrices and inverses; or log e, if S
is definite: of that sum, a determinant. So are gradients of such sums. What reads eigenvalues or vectors is a form of
them (graphc.normal.form); if one reading is none of these, the decomposition stays.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, final

from graphc.facts.bands import leaves_triangle
from graphc.facts.known import Facts
from graphc.ir import Builder, Graph, Node, Symbol
from graphc.ir.matrices import transposes
from graphc.normal.affine import Index, Unsolved, label
from graphc.normal.emit import emit
from graphc.normal.form import Algebra, Factor, Form, Term, atom, tidy
from graphc.normal.lift import is_lifted
from graphc.ops import OPS
from graphc.ops.dtypes import is_floating
from graphc.ops.linalg import swap_last
from graphc.passes.diagonals import identity
from graphc.passes.matrices import is_one_matrix
from graphc.passes.replacing import replaced
from graphc.rewrite.rule import held_number

MOST_POWERS = 4  # two products, or two and an inverse
_EIGH, _ITEM, _WHERE, _EQ, _ADD, _SUB = (OPS[name] for name in ("eigh", "item", "where", "eq", "add", "sub"))
_DIV, _RECIPROCAL, _LOG, _STILL = (OPS[name] for name in ("div", "reciprocal", "log", "stop_gradient"))
VALUES, VECTORS, RECIPROCALS, LOGARITHMS = -1, -2, -3, -4  # atoms of forms, beside those that are nodes


def without_spectra(graph: Graph) -> Graph:
    """`graph` without the decompositions of symmetric matrices of which only such functions are read."""
    for id, node in graph.nodes.items() if _EIGH in graph.ops else ():
        if node.op is _EIGH and is_floating(node.results[1].dtype):
            try:
                graph = _Functions(graph, id).written()
            except Unsolved:
                continue
    return graph


@final
class _Functions:
    """Functions of one matrix in place of its decomposition. Raises Unsolved if that is needed."""

    def __init__(self, graph: Graph, decomposed: int):
        self._graph = graph
        self._decomposed = decomposed
        self._builder = Builder.beside(graph.nodes)
        self._facts = Facts(self._builder.nodes)
        self._algebra = Algebra()
        self._forms: dict[int, Form] = {}  # of what depends on eigenvalues or vectors, as they were
        self._functions: dict[int, Symbol] = {}  # of the matrix, by the atoms that stand for them
        self._masks: set[int] = set()

    def written(self) -> Graph:
        graph = replaced(self._graph, self._builder, self._instead)
        if not self._forms.keys().isdisjoint(graph.outputs):
            raise Unsolved
        return graph

    def _instead(self, node: Node) -> Symbol | None:
        builder = self._builder
        if node.id == self._decomposed:
            x, self._masks = self._taken_from(node.inputs[0])
            self._matrix = self._checked(x, node)
        elif node.op is _ITEM and node.inputs[0] == self._decomposed:
            self._forms[node.id] = atom(VECTORS if node.params["index"] else VALUES, node.shape)
        elif node.op is _WHERE and node.inputs[0] in self._masks:
            return builder.symbol(node.inputs[1])
        elif not self._forms.keys().isdisjoint(node.inputs):
            form = self._closed(self._form(node))
            if form is not None:
                del self._forms[node.id]
                return emit(builder, form, {k: builder.symbol(k) for k in _atoms(form)}, node.dtype)
        return None

    def _taken_from(self, id: int) -> tuple[Symbol, set[int]]:
        """The symmetric matrix that is decomposed, and what asks whether it is finite to let gradients through."""
        builder = self._builder
        x = builder.symbol(id)
        if not is_one_matrix(x):
            raise Unsolved
        for source in self._mirrored(id):
            if self._facts.symmetric(source):
                moved = {k for k, node in builder.nodes.items() if self._is_nothing(node, source)}
                return builder.symbol(source), {
                    k for k, node in builder.nodes.items() if node.op is _EQ and node.inputs[0] in moved
                }
        return x if self._facts.symmetric(id) else x * 0.5 + swap_last(builder.language, x) * 0.5, set()

    def _checked(self, x: Symbol, node: Node) -> Symbol:
        """`x`, which is refused as it was before: with nan in it."""
        F, given = self._builder.language, self._builder.symbol(node.inputs[0])
        if node.check is None:
            return x
        return F.regular(x, F.eq(given, given), message=str(node.check.failure(node.params)))

    def _mirrored(self, id: int) -> Iterator[int]:
        """Of what a matrix is one triangle, mirrored, and nothing is added."""
        nodes = self._builder.nodes
        node = nodes[id]
        if node.op is not _ADD or nodes[node.inputs[0]].op is not _ADD or nodes[node.inputs[1]].op is not _WHERE:
            return
        half, strict = (nodes[i] for i in nodes[node.inputs[0]].inputs)
        strict = nodes[strict.inputs[0]] if transposes(strict) else strict
        if not (half.op is strict.op and leaves_triangle(half)):
            return
        source = self._moving(half.inputs[0])
        moved = nodes[nodes[node.inputs[1]].inputs[1]]
        if source == self._moving(strict.inputs[0]) and self._is_nothing(moved, source):
            yield source

    def _moving(self, id: int) -> int:
        node = self._builder.nodes[id]
        return node.inputs[0] if node.op is _STILL else id

    def _is_nothing(self, node: Node, source: int) -> bool:
        """Whether a node is a matrix less itself."""
        return node.op is _SUB and {source} == {*map(self._moving, node.inputs)}

    def _form(self, node: Node) -> Form:
        """A node that depends on eigenvalues or vectors as sums of products of them."""
        given = [self._operand(i) for i in node.inputs]
        if node.op is _LOG and given[0].terms == atom(VALUES, node.shape).terms:
            if not self._facts.definite(self._matrix.id):
                raise Unsolved
            form = atom(LOGARITHMS, node.shape)
        elif node.op is _RECIPROCAL:
            form = self._inverted(node.inputs[0])
        elif node.op is _DIV:
            form = self._algebra.mul(given[0], self._inverted(node.inputs[1]))
        elif node.op.lifting is not None and is_lifted(node, self._builder.nodes):
            form = node.op.lifting(self._algebra, *given, **node.params)
        else:
            raise Unsolved
        self._forms[node.id] = form
        return form

    def _operand(self, id: int) -> Form:
        if id in self._forms:
            return self._forms[id]
        node = self._builder.nodes[id]
        return self._facts.form(id) or atom(id, node.shape)

    def _inverted(self, id: int) -> Form:
        """One over a multiple of the eigenvalues, or of what has nothing to do with them."""
        form, F = self._operand(id), self._builder.language
        if id not in self._forms:
            number = held_number(id, self._builder.nodes)
            return (
                self._algebra.reciprocal(form) if number else self._operand(F.reciprocal(self._builder.symbol(id)).id)
            )
        (values,) = atom(VALUES, self._matrix.shape[:1]).terms
        if len(form.terms) != 1 or not form.terms[0].coefficient or form.terms[0]._replace(coefficient=1) != values:
            raise Unsolved
        found = atom(RECIPROCALS, self._matrix.shape[:1])
        return self._algebra.scale(found, self._algebra.ratio(1, 1) / form.terms[0].coefficient)

    def _closed(self, form: Form) -> Form | None:
        """With functions of the matrix in place of eigenvalues and vectors; None if some are not summed up."""
        terms = [self._closed_term(t) for t in form.terms]
        known = [t for t in terms if t is not None]
        return Form(form.shape, tuple(known)) if len(known) == len(terms) else None

    def _closed_term(self, term: Term) -> Term | None:
        own = [f for f in term.factors if f.atom < 0]
        factors = [f for f in term.factors if f.atom >= 0]
        elsewhere = {k for p in (*term.places, *[p for f in factors for p in f.places]) for k in p.labels}
        rows = [f.places[0] for f in own if f.atom == VECTORS]
        elsewhere.update([k for p in rows for k in p.labels])
        groups: dict[Index, list[Factor]] = defaultdict(list)
        for f in own:
            groups[f.places[-1]].append(f)
        sizes = list(term.sizes)
        n = self._matrix.shape[0]
        for place, group in groups.items():
            if len(place.steps) != 1 or place != label(place.labels[0]) or sizes[place.labels[0]] != n:
                return None
            (gone,) = place.labels
            if gone in elsewhere:
                return None
            ends = [f.places[0] for f in group if f.atom == VECTORS]
            logs = sum([f.atom == LOGARITHMS for f in group])
            power = sum([{VALUES: 1, RECIPROCALS: -1}.get(f.atom, 0) for f in group])
            if logs:
                if logs > 1 or len(group) > 1:
                    return None
                factors.append(Factor(self._function(LOGARITHMS), ()))
                sizes[gone] = 1
            elif len(ends) not in (0, 2) or not (ends or power) or abs(power) > MOST_POWERS:
                return None
            else:
                which = VALUES if power > 0 else RECIPROCALS if power < 0 else VECTORS
                between = [label(len(sizes) + k) for k in range(abs(power) - 1)]
                first, last = ends or (place, place)
                path = [first, *between, last]
                sizes += [n] * len(between)
                sizes[gone] = 1 if ends else n
                chosen = self._function(which)
                # a symmetric matrix is read along the same rows by the next factor
                ends_of = [(path[k + k % 2], path[k + 1 - k % 2]) for k in range(len(path) - 1)]
                factors += [Factor(chosen, pair) for pair in ends_of]
        return tidy(term.coefficient, factors, term.places, sizes)

    def _function(self, which: int) -> int:
        """What stands for the eigenvalues, their reciprocals, their logarithms, or one in place of each."""
        if which not in self._functions:
            F, x = self._builder.language, self._matrix
            if which == VALUES:
                found = x
            elif which == RECIPROCALS:
                found = F.inv(x, checked=False, asked="inv")
            elif which == LOGARITHMS:
                both: Any = F.slogdet(x)  # of an op with two results
                found = both[1]
            else:
                found = identity(F, x.shape[0], x.dtype)
            self._functions[which] = found
        return self._functions[which].id


def _atoms(form: Form) -> set[int]:
    return {f.atom for t in form.terms for f in t.factors}
