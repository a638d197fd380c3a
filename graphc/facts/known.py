"""Facts about the nodes of a graph, found when they are asked for: forms, bands, symmetry, definiteness, ranges.

They follow from how values are made, and from what their users have assumed of them (`Op.claims`).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Mapping
from typing import final

import numpy as np

from graphc.facts.axes import may_mirror
from graphc.facts.bands import Band, band_of, both, nonzeros, whole
from graphc.facts.definite import Asked, centers, covers, semidefinite
from graphc.facts.held import Held
from graphc.facts.mirrors import mirror
from graphc.facts.ranges import ANYTHING, Range, range_of
from graphc.ir import INPUT, Node
from graphc.normal.affine import Unsolved
from graphc.normal.bounds import Exhausted
from graphc.normal.find import MOST_NODES
from graphc.normal.form import Form, Term
from graphc.normal.gate import multiplies
from graphc.normal.lift import Known, forms_of, is_lifted
from graphc.ops import OPS, Trait
from graphc.ops.assumptions import Fact
from graphc.ops.dtypes import finfo, is_floating
from graphc.rewrite.rule import held_number

_ITEM, _WHERE = OPS["item"], OPS["where"]
LEAST = math.nextafter(0.0, 1.0)  # of what is positive
SYMMETRIC, DEFINITE, SEMIDEFINITE = ("symmetric",), ("definite",), ("semidefinite",)


DEEPEST = 3  # forms of forms, of which ranges are made
WORK = 10_000  # units of `graphc.normal.bounds` for a form, beside one for each element: little for what is small


def _operands_first(found: set[int], nodes: Mapping[int, Node]) -> list[int]:
    """Nodes after those that they read: ids do not say, where a pass has put new nodes before old ones."""
    order: dict[int, None] = {}
    for id in sorted(found):
        stack = [id]
        while stack:
            k = stack[-1]
            left = [i for i in nodes[k].inputs if i in found and i not in order] if k not in order else []
            if left:
                stack += left
            else:
                order[stack.pop()] = None
    return [*order]


@final
class Facts:
    """Of nodes, which may become more. What is said holds for finite numbers."""

    def __init__(self, nodes: Mapping[int, Node]):
        self._nodes = nodes
        self._forms: dict[int, Form | None] = {}
        self._deep: dict[int, Form | None] = {}
        self._bands: dict[int, Band] = {}
        self._mirrors: dict[int, int] = {}
        self._definite: dict[int, bool] = {}
        self._semidefinite: dict[int, bool] = {}
        self._ranges: dict[int, Range] = {}
        self._known: Known = {}
        self.held = Held(nodes)
        self._depth = 0  # of what is asked for its range

    def claims(self, id: int) -> Collection[Fact]:
        """What is declared of a node, by its op or its user."""
        node, result = self._nodes[id], 0
        if node.op is _ITEM:
            node, result = self._nodes[node.inputs[0]], node.params["index"]
        return () if node.op.claims is None else node.op.claims(node.params, result)

    def _passed(self, node: Node) -> int | None:
        """The node whose value a node has."""
        return node.inputs[0] if node.op.passes else None

    def holds(self, id: int, fact: Fact) -> bool:
        """Whether a fact (graphc.ops.assumptions) is known of a node."""
        name, *numbers = fact
        match name:
            case "symmetric" | "semidefinite" | "definite":
                return self._nodes[id].aval.ndim == 2 and getattr(self, name)(id)
            case "band":
                found = self.band(id) if self._nodes[id].aval.ndim == 2 else None
                return found is not None and found.below <= numbers[0] and found.above <= numbers[1]
            case "range":
                found = self.range(id)
                return found.low >= numbers[0] and found.high <= numbers[1] and self.finite(id)  # nan is in no range
            case "positive":
                return self.positive(id) and self.finite(id)
            case _:
                return getattr(self, name)(id)

    def form(self, id: int) -> Form | None:
        """A node as a sum of products, at most one of which is a product of nodes: those of others are atoms."""
        if id not in self._forms:
            self._forms[id] = self._formed(id)
        return self._forms[id]

    def deep_form(self, id: int) -> Form | None:
        """As `form`, with products of products as one, as far as there are few."""
        if id not in self._deep:
            self._deep[id] = self._formed(id, deep=True)
        return self._deep[id]

    def _mirrored_form(self, id: int) -> Form | None:
        """As `deep_form`, if that may be of a matrix that is its transpose."""
        return self.deep_form(id) if self._nodes[id].aval.ndim > 2 or may_mirror(id, self._nodes) else None

    def near_form(self, id: int, most: int) -> Form | None:
        """As `form`, of the `most` nodes next to it."""
        return self._formed(id, most=most)

    def _formed(self, id: int, deep: bool = False, most: int = MOST_NODES) -> Form | None:
        """deep: products of products are one"""
        nodes = self._nodes
        found: set[int] = set()
        atoms: set[int] = set()
        queue = deque([(id, False)])
        while queue:
            k, inside = queue.popleft()
            node = nodes[k]
            if k in found or not is_lifted(node, nodes):
                continue
            found.add(k)
            if len(found) > most or (inside and multiplies(node) and not deep):
                atoms.add(k)  # what is below is of no interest
                continue
            queue += [(i, inside or multiplies(node)) for i in node.inputs]
        return self._form_of(id, found, atoms)

    def product(self, id: int) -> Form | None:
        """A node as a product of atoms, among them sums and parts of arrays, element by element."""
        nodes = self._nodes
        found: set[int] = set()
        atoms: set[int] = set()
        stack = [id]
        while stack:
            k = stack.pop()
            node = nodes[k]
            if k in found or not is_lifted(node, nodes):
                continue
            found.add(k)
            one = node.op.traits & (Trait.MOVES | Trait.BILINEAR | Trait.LINEAR) and not multiplies(node)
            one = one and len(found) <= MOST_NODES
            if not node.inputs or (one and all(node.size >= nodes[i].size for i in node.inputs)):
                stack += node.inputs
            else:
                atoms.add(k)
        return None if id in atoms else self._form_of(id, found, atoms)

    def outer_form(self, id: int, share: float = 1) -> Form | None:
        """A node as a form of what is smaller than it is, or than a share of it, and of numbers."""
        nodes, found, stack = self._nodes, set[int](), [id]
        while stack:
            k = stack.pop()
            large = nodes[k].size >= share * nodes[id].size or not nodes[k].inputs or nodes[k].op.view
            if k not in found and large and len(found) <= MOST_NODES and is_lifted(nodes[k], nodes):
                found.add(k)
                stack += nodes[k].inputs
        return self._form_of(id, found, set())

    def _form_of(self, id: int, found: set[int], atoms: set[int]) -> Form | None:
        """The form of a node, of nodes that are `found` to matter; None if it takes too much work."""
        nodes = self._nodes
        if id not in found:
            return None
        some = {k: nodes[k] for k in _operands_first(found, nodes)}
        left = WORK + nodes[id].size

        def charge(work: int) -> None:
            nonlocal left
            left -= work
            if left < 0:
                raise Exhausted

        try:
            form = forms_of(some, nodes, atoms, self._known, charge).get(id)
        except (Unsolved, Exhausted):
            return None
        alone = form is not None and any(f.atom == id for t in form.terms for f in t.factors)
        return None if alone else form

    def band(self, id: int) -> Band:
        """Of a matrix; of a stack of matrices nothing is known."""
        if id not in self._bands:
            node = self._nodes[id]
            least = whole(node.shape)
            self._bands[id] = least
            if len(node.shape) > 2:
                return least
            passed = self._passed(node)
            if passed is not None:
                least = self.band(passed)
            for name, *numbers in self.claims(id):
                if name == "band":
                    least = Band(*map(min, least, numbers))
            if node.op.band is not None:
                given = [self.band(i) if self._nodes[i].aval.ndim == 2 else None for i in node.inputs]
                least = Band(*map(min, least, node.op.band(node.shape, node.params, *given)))
            least = both(least, self._chosen(node))
            form = self.form(id)
            if form is not None:
                least = Band(*map(min, least, band_of(form, self._band_of_atom)))
            self._bands[id] = least
        return self._bands[id]

    def _chosen(self, node: Node) -> Band:
        """Of what a mask that no input changes chooses from a matrix and zeros, or is itself."""
        least = whole(node.shape)
        if node.op is _WHERE:
            condition, *rest = node.inputs
            mask = self.held.value(condition)
            if mask is not None:
                for k, wanted in ((1, True), (0, False)):
                    if held_number(rest[k], self._nodes) == 0:
                        chosen = rest[1 - k]
                        own = self.band(chosen) if self._nodes[chosen].shape == node.shape else least
                        least = both(both(least, own), nonzeros(np.broadcast_to(mask == wanted, node.shape)))
        elif (own := self.held.value(node.id)) is not None:
            least = nonzeros(own)
        return least

    def _band_of_atom(self, id: int) -> Band | None:
        return self.band(id) if self._nodes[id].aval.ndim == 2 else None

    def symmetric(self, id: int) -> bool:
        """Whether a matrix is its transpose, but for rounding."""
        return self.mirror(id) == 1

    def mirror(self, id: int) -> int:
        """1 if an array is the same, -1 if it is its negative, with its first two axes exchanged, but for rounding."""
        if id not in self._mirrors:
            self._mirrors[id] = 0
            self._mirrors[id] = self._mirror(id)
        return self._mirrors[id]

    def _mirror(self, id: int) -> int:
        node, nodes = self._nodes[id], self._nodes
        if node.aval.ndim < 2 or node.shape[0] != node.shape[1]:
            return 0
        if node.aval.ndim == 2 and not {SYMMETRIC, DEFINITE, SEMIDEFINITE}.isdisjoint(self.claims(id)):
            return 1
        form = self._mirrored_form(id)
        found = 0 if form is None else mirror(form, self.mirror)
        if found or not (node.op.pointwise or node.op.symmetric or node.op.passes) or not node.inputs:
            return found
        operands = [nodes[i] for i in (node.inputs[:1] if node.op.passes else node.inputs)]
        signs = {1 if x.size == 1 else self.mirror(x.id) if x.shape == node.shape else 0 for x in operands}
        if signs == {-1} and node.op.traits & Trait.EVEN:
            return 1
        return 1 if signs == {1} else 0

    def semidefinite(self, id: int) -> bool:
        """Whether a matrix is symmetric and has no eigenvalue below 0, but for rounding."""
        if id not in self._semidefinite:
            self._semidefinite[id] = False
            self._semidefinite[id] = self.definite(id) or self._is_semidefinite(id)
        return self._semidefinite[id]

    def _is_semidefinite(self, id: int) -> bool:
        node = self._nodes[id]
        if node.aval.ndim != 2 or node.shape[0] != node.shape[1] or not is_floating(node.dtype):
            return False
        if SEMIDEFINITE in self.claims(id):
            return True
        passed = self._passed(node)
        if passed is not None:
            return self.semidefinite(passed)
        form = self._mirrored_form(id)
        return form is not None and all(semidefinite(t, self._asked()) for t in form.terms)

    def _asked(self) -> Asked:
        return Asked(lambda id: self._nodes[id].aval.ndim == 2 and self.semidefinite(id), self.nonnegative)

    def definite(self, id: int) -> bool:
        """Whether a matrix is symmetric and has positive eigenvalues only, but for rounding."""
        if id not in self._definite:
            self._definite[id] = False
            self._definite[id] = self._is_definite(id)
        return self._definite[id]

    def _is_definite(self, id: int) -> bool:
        node = self._nodes[id]
        if node.aval.ndim != 2 or node.shape[0] != node.shape[1] or not is_floating(node.dtype):
            return False
        if DEFINITE in self.claims(id):
            return True
        passed = self._passed(node)
        if passed is not None or node.op.inverts:
            return self.definite(node.inputs[0])
        form = self._mirrored_form(id)
        if form is None or not all(semidefinite(t, self._asked()) for t in form.terms):
            return False
        return any(self._definite_term(t, node.shape[0]) for t in form.terms)

    def _definite_term(self, term: Term, n: int) -> bool:
        """Of a term that is semidefinite: whether it is definite."""
        if not term.coefficient:
            return False
        row, column = term.places
        if row == column:
            whole = covers(row, term.sizes, n) and len(row.steps) == len(term.sizes)
            return whole and all(self.positive(f.atom) for f in term.factors)
        met = centers(term, n)
        return met is not None and all(map(self.definite, met))

    def orthogonal(self, id: int) -> bool:
        """Whether the columns of a matrix are orthonormal, but for rounding."""
        node = self._nodes[id]
        if not is_floating(node.dtype):
            return False
        passed = self._passed(node)
        return ("orthogonal",) in self.claims(id) or (passed is not None and self.orthogonal(passed))

    def range(self, id: int) -> Range:
        """Between which numbers the elements lie; nan is none."""
        if id not in self._ranges:
            if self._depth == DEEPEST:
                return ANYTHING
            self._ranges[id] = ANYTHING
            self._depth += 1
            self._ranges[id] = self._range(id)
            self._depth -= 1
        return self._ranges[id]

    def _range(self, id: int) -> Range:
        node = self._nodes[id]
        if not is_floating(node.dtype):
            return ANYTHING
        found = [ANYTHING]
        for name, *numbers in self.claims(id):
            if name in ("range", "positive"):
                found.append(Range(*numbers) if numbers else Range(LEAST, math.inf))
        passed = self._passed(node)
        if passed is not None:
            found.append(self.range(passed))
        if node.op.image is not None and (image := node.op.image_of(node.params, *map(self.range, node.inputs))):
            found.append(Range(*image))
        form = self.form(id)
        if form is not None:
            low, high = range_of(form, self.range)
            found.append(Range(0.0 if 0 < low < float(finfo(node.dtype).tiny) else low, high))  # products vanish
        return Range(max([r.low for r in found]), min([r.high for r in found]))

    def nonnegative(self, id: int) -> bool:
        """Whether no element is less than 0."""
        return self.range(id).low >= 0

    def positive(self, id: int) -> bool:
        """Whether every element is at least some number greater than 0."""
        return self.range(id).low > 0

    def _may_be_bounded(self, id: int) -> bool:
        """Whether no way leads from an input, of which nothing is said, to a node without one that has a range."""
        seen: set[int] = set()
        stack = [id]
        while stack:
            id = stack.pop()
            node = self._nodes[id]
            if id in seen or self.claims(id) or node.op.image is not None:
                continue
            seen.add(id)
            if node.op is INPUT:
                return False
            stack += node.inputs
        return True

    def finite(self, id: int) -> bool:
        """Whether no element is nan or infinite."""
        node = self._nodes[id]
        if node.dtype.kind in "iub":
            return True
        if ("finite",) in self.claims(id):
            return True
        if not self._may_be_bounded(id):
            return False
        low, high = self.range(id)
        bounded = math.isfinite(low) and math.isfinite(high)
        if bounded and any(name == "range" for name, *_ in self.claims(id)):
            return True  # nan is in no range
        if not node.inputs:
            return bounded  # a constant
        kept = node.op.passes or node.op.traits & Trait.MOVES or (bounded and node.op.pointwise)
        return bool(kept) and all(map(self.finite, node.inputs))
