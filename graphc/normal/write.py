"""A region written anew, with some of its nodes as atoms; and what nodes cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, final

from graphc.ir import Builder, Node, Symbol
from graphc.normal.affine import Unsolved
from graphc.normal.emit import emit
from graphc.normal.factor import factored
from graphc.normal.find import Region
from graphc.normal.form import Factor, Form, Term, oriented
from graphc.normal.gate import adds_up, copies, multiplies
from graphc.normal.lift import WRITABLE, forms_of, is_lifted
from graphc.normal.merge import merged
from graphc.normal.plan import Memory
from graphc.rewrite.cost import node_cost, work

SHARED = 1.05  # times what a node cost may be spent on a form with a product that others need


@final
class Writer:
    """Appends the forms of a region's nodes, each once, when they are asked for."""

    def __init__(
        self,
        builder: Builder,
        nodes: Mapping[int, Node],
        region: Region,
        atoms: frozenset[int],
        new: Mapping[int, int],
        users: Mapping[int, list[int]],
        memory: Memory,
    ):
        self._users = users
        self._builder = builder
        self._new = new  # nodes that are others now
        self._nodes = nodes
        self._members = frozenset(region.members)
        self._atoms = atoms
        some = {id: nodes[id] for id in (*lifted_below(region, nodes), *region.members)}
        self._forms = forms_of(some, nodes, atoms, memory.forms, memory.charge, to_write=True)
        self._symbols: dict[int, Symbol] = {}
        self._kept: dict[int, int] = {}  # members as they were, on what is below now
        self._brackets: dict[Form, int] = {}  # atoms that stand for sums
        self._inside: dict[int, Form] = {}  # those sums
        self._memory = memory
        memory.begin(self._terms(region.roots))

    def _terms(self, roots: Sequence[int]) -> Iterator[tuple[Sequence[Factor], frozenset[int], Sequence[int]]]:
        """The factors, labels of the result, and sizes, of the terms that will be written, as far as is known."""
        stack, seen = list(roots), set(roots)
        while stack:
            id = stack.pop()
            form = self._merged(id)
            for t in () if form is None else form.terms:
                yield _of(t)
                names = {f.atom for f in t.factors}
                # of an atom that is computed here as well, as a quotient of sums, what it reads is written
                below = names.union(self._nodes[id].inputs if id in names else ()) & self._members - seen
                seen |= below
                stack += below

    def _merged(self, id: int) -> Form | None:
        """The form of a node, with as few terms as it can have, and as few reversals."""
        form = self._forms.get(id)
        if form is None:
            return None
        form = merged(form, self._bracket)
        return Form(form.shape, tuple([oriented(t) for t in form.terms]))

    def symbol(self, id: int) -> Symbol:
        """What the node is now."""
        if id not in self._symbols:
            self._symbols[id] = (
                self._written(id) if id in self._members else self._builder.symbol(self._new.get(id, id))
            )
        return self._symbols[id]

    def _written(self, id: int) -> Symbol:
        builder, node = self._builder, self._nodes[id]
        form = self._merged(id)
        names = set() if form is None else {f.atom for t in form.terms for f in t.factors}
        if form is not None and id not in names and len(form.terms) <= WRITABLE:
            for k in names:
                if k not in self._inside:
                    self.symbol(k)
            builder.where, builder.scope = node.where, node.scope
            mark, made = builder.next_id, dict(self._memory.made)
            try:
                result = self._emitted(form, node.dtype)
            except Unsolved:
                result = None
            if result is not None and result.aval == node.aval:
                cost, before = self._cost(mark, result.id), self._before(id)
                if cost < before or (cost < before * SHARED and self._is_shared(form)):
                    return result
            builder.rollback(mark)
            self._memory.made = made
        return self._as_it_was(id)

    def _is_shared(self, form: Form) -> bool:
        """Whether others may need what a form computes on the way."""
        return any(self._memory.is_shared(*_of(t)) for t in form.terms)

    def _as_it_was(self, id: int) -> Symbol:
        """A node on what its operands are now, from the next atoms up."""
        if id not in self._kept:
            builder, node = self._builder, self._nodes[id]
            form = self._forms.get(id)
            # what has no form, as a quotient of arrays, is an atom to others, and what it reads may have a better one
            alone = form is None or any(f.atom == id for t in form.terms for f in t.factors)
            operands = tuple(
                [(self._as_it_was(i) if not alone and self._is_inside(i) else self.symbol(i)).id for i in node.inputs]
            )
            builder.where, builder.scope = node.where, node.scope
            same = operands == node.inputs
            self._kept[id] = id if same else builder.append(node.op, operands, node.params, node.results)
        return self._builder.symbol(self._kept[id])

    def _is_inside(self, id: int) -> bool:
        return id in self._members and id not in self._atoms

    def _cost(self, mark: int, result: int) -> float:
        """What nodes from `mark` on cost that a result needs."""
        nodes = self._builder.nodes
        needed = {result}
        for id in range(result, mark - 1, -1):
            if id in needed:
                needed.update(nodes[id].inputs)
        some = {id: nodes[id] for id in range(mark, result + 1) if id in needed}
        users: dict[int, list[int]] = {}
        for id, node in some.items():
            for i in node.inputs:
                users.setdefault(i, []).append(id)
        return sum(costs_of(some, nodes, users).values())

    def _before(self, root: int) -> float:
        """What a node cost as it was, from the next atoms up, without what is there already."""
        found: set[int] = set()
        stack = [root]
        while stack:
            id = stack.pop()
            if id not in found and id not in self._kept:
                found.add(id)
                stack += [i for i in self._nodes[id].inputs if i in self._members and i not in self._atoms]
        return sum(costs_of({id: self._nodes[id] for id in found}, self._nodes, self._users).values())

    def _emitted(self, form: Form, dtype: Any) -> Symbol:
        """A form, with common factors before brackets. Raises Unsolved."""
        form = factored(form, self._bracket, self._memory.charge)
        self._memory.note([_of(t) for t in form.terms if any(f.atom in self._inside for f in t.factors)])
        atoms = {f.atom for t in form.terms for f in t.factors}
        given = {k: self.symbol(k) if k >= 0 else self._emitted(self._inside[k], dtype) for k in atoms}
        return emit(self._builder, form, given, dtype, self._memory)

    def _bracket(self, inner: Form) -> int:
        """The atom that stands for a sum."""
        number = self._brackets.setdefault(inner, -2 - len(self._brackets))
        self._inside[number] = inner
        return number


def _of(t: Term) -> tuple[Sequence[Factor], frozenset[int], Sequence[int]]:
    """The factors of a term, the labels of the result, and their sizes: what is planned."""
    return t.factors, frozenset([k for place in t.places for k in place.labels]), t.sizes


def lifted_below(region: Region, nodes: Mapping[int, Node]) -> list[int]:
    """The numbers that a region reads, and the views of its atoms: they are lifted with it. In order."""
    found: set[int] = set()
    members = frozenset(region.members)
    stack = [i for id in region.members for i in nodes[id].inputs if i not in members]
    while stack:
        id = stack.pop()
        if id not in found and is_lifted(nodes[id], nodes) and (nodes[id].op.view or not nodes[id].inputs):
            found.add(id)
            stack += nodes[id].inputs
    return [id for id in nodes if id in found] if found else []


def costs_of(some: Mapping[int, Node], nodes: Mapping[int, Node], users: Mapping[int, list[int]]) -> dict[int, float]:
    """The costs of `some` nodes. What is computed on the way, in the loops that read it, is not written."""
    inside = Inside(nodes, users)
    return {id: (work if id in inside else node_cost)(node, nodes) for id, node in some.items()}


@final
class Inside:
    """The nodes that are computed in the loops that read them, and never written. users: of those that are asked for"""

    def __init__(self, nodes: Mapping[int, Node], users: Mapping[int, list[int]]):
        self._nodes, self._users = nodes, users

    def __contains__(self, id: int) -> bool:
        return self._nodes[id].op.pointwise and self._read_in_loops(id)

    def _read_in_loops(self, id: int) -> bool:
        users = self._users.get(id)
        return bool(users) and all(map(self._is_loop, users))

    def _is_loop(self, id: int) -> bool:
        node = self._nodes[id]
        if node.op.view:
            return self._read_in_loops(id)
        return node.op.pointwise or copies(node) or (adds_up(node) and not multiplies(node))
