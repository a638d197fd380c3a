"""Products and sums, element by element, with like terms collected: x * x * x + 2 * x * x = x^2 (x + 2).

What reverse mode makes of a polynomial has each product many times, in another order, and so computed again. Each node
that its op lifts (`Op.lifting`) is a sum of terms: a number times a product of powers of atoms. Like terms are one,
factors that all terms have are taken out, and products share their parts. A product of sums is never multiplied out,
which would cancel digits; and no term vanishes: x - x is nan where x is inf.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, final

import numpy as np

from graphc.ir import Builder, Graph, Node, Symbol
from graphc.ops.dtypes import finfo
from graphc.rewrite.cost import node_cost
from graphc.rewrite.rule import held_number

Monomial = tuple[tuple[int, int], ...]  # (atom, power), by atom
Form = dict[Monomial, float]
TERMS, DEGREE = 16, 32  # more are not taken together


def collect_terms(graph: Graph) -> Graph:
    """`graph` with like terms collected where that takes fewer operations. Rounds differently."""
    found = _Forms(graph)
    left = found.promising
    while left:
        writer = _Writer(graph, found.of, left)
        worse = {part for part, members in left.items() if writer.cost[part] >= members.cost}
        if not worse:
            return writer.written()
        left = {part: members for part, members in left.items() if part not in worse}
    return graph


class _Refused(Exception):
    """An operation that makes no sum of terms of its operands."""


@final
class _Algebra:
    """What `Op.lifting` is told in, for single elements. Operands are forms."""

    def __init__(self, dtype: Any):
        limits = finfo(dtype)
        self._least, self._most = float(limits.tiny), float(limits.max)

    def _checked(self, form: Form) -> Form:
        whole = all(self._least <= abs(c) <= self._most or (not c and not key) for key, c in form.items())
        if len(form) > TERMS or not whole:
            raise _Refused
        return form

    def add(self, x: Form, y: Form) -> Form:
        total = dict(x)
        for key, c in y.items():
            if key and total.get(key, c) * c < 0:
                raise _Refused  # 2 x - x is nan where x is infinite
            total[key] = total.get(key, 0.0) + c
        return self._checked(total)

    def sub(self, x: Form, y: Form) -> Form:
        return self.add(x, self.scale(y, -1))

    def scale(self, x: Form, c: Any) -> Form:
        return self._checked({key: c * value for key, value in x.items()})

    def mul(self, x: Form, y: Form) -> Form:
        ((p, a),), ((q, b),) = x.items(), y.items()
        powers = dict(p)
        for atom, n in q:
            powers[atom] = powers.get(atom, 0) + n
        if not self._least <= abs(a * b) <= self._most or sum(powers.values()) > DEGREE:
            raise _Refused
        return {tuple(sorted(powers.items())): a * b}

    def __getattr__(self, name: str) -> Any:
        raise _Refused


class _Part(NamedTuple):
    """Ids of nodes, in order, and what they cost as they are."""

    members: list[int]
    cost: float


_ALGEBRAS = {np.dtype(name): _Algebra(np.dtype(name)) for name in ("float32", "float64")}


@final
class _Forms:
    """The forms of the nodes of a graph, and the parts of it that they make: where one form is part of another, or two
    are one product but for a number.

    of         id -> form, of the nodes that are more than an atom
    promising  the parts in which two products are one, or a sum has a factor or like terms, by the id of one node
    """

    def __init__(self, graph: Graph):
        self.of: dict[int, Form] = {}
        self._leaves: dict[int, Form] = {}
        self._above: dict[int, int] = {}
        self._nodes = graph.nodes
        ops = {op for op in graph.ops if op.pointwise and op.lifting is not None and not op.several}
        self._uses = graph.uses() if ops else {}
        self._first: dict[Monomial, int] = {}  # of the products that are equal but for a number
        gains: list[int] = []
        for id, node in graph.nodes.items():
            if node.op not in ops or not self._is_of_one_dtype(node):
                continue
            form, taken = self._form(node)
            if form is None:
                continue
            self.of[id] = form
            self._join(id, taken)
            if self._may_gain(id, form, taken):
                gains.append(id)
        self.promising = self._parts(gains)

    def _may_gain(self, id: int, form: Form, taken: Sequence[int]) -> bool:
        """Whether a product has a like, which it is joined with, or a power; or a sum a factor or like terms."""
        inputs = self._nodes[id].inputs
        if len(form) > 1:
            terms = sum([len(self.of[i]) for i in taken]) + len(inputs) - len(taken)
            return len(form) < terms or bool(_common(list(form)))
        ((key, number),) = form.items()
        read = [(i, self.of[i] if i in taken else self._leaves[i]) for i in inputs]
        factors = [(i, factor) for i, factor in read if () not in factor]
        if len(factors) == 1 and key in factors[0][1]:  # something times a number: only two numbers can be one
            ((i, factor),) = factors
            return i in taken and self._uses[i] == 1 and abs(factor[key]) != 1 != abs(number)
        like = self._first.setdefault(key, id)
        self._join(id, [like])
        powers = [n for _, n in key]
        return like != id or powers == [1] or max(powers) > 2 or (len(powers) > 1 and not any(n % 2 for n in powers))

    def _is_of_one_dtype(self, node: Node) -> bool:
        dtype = node.results[0].dtype
        if dtype not in _ALGEBRAS:
            return False
        return all(self._nodes[i].results[0].dtype == dtype for i in node.inputs)

    def _form(self, node: Node) -> tuple[Form | None, list[int]]:
        """The form of a node, None if it is an atom; and of which operands the forms are parts of it."""
        lifting, algebra = node.op.lifting, _ALGEBRAS[node.results[0].dtype]
        assert lifting is not None
        inputs = node.inputs
        taken = [i for i in inputs if i in self.of and (len(self.of[i]) == 1 or self._uses[i] == 1)]
        single = [i for i in taken if len(self.of[i]) == 1]
        for chosen in (taken, single) if len(single) < len(taken) else (taken,):
            given = [self.of[i] if i in chosen else self._leaf(i) for i in inputs]
            try:
                form = lifting(algebra, *given, **node.params)
            except (_Refused, ValueError):  # of mul, which takes one term each
                continue
            if form in given or (len(form) == 1 and () in form):
                break
            return form, chosen
        return None, []

    def _leaf(self, id: int) -> Form:
        """The form of an operand that is a number, or an atom."""
        leaf = self._leaves.get(id)
        if leaf is None:
            number = held_number(id, self._nodes) if id not in self.of else None
            leaf = {(): float(number)} if isinstance(number, (int, float)) else {((id, 1),): 1.0}
            self._leaves[id] = leaf
        return leaf

    def _root(self, id: int) -> int:
        above = self._above
        while (over := above.get(id, id)) != id:
            above[id] = above.get(over, over)
            id = over
        return id

    def _join(self, id: int, others: Sequence[int]) -> None:
        for other in others:
            self._above[self._root(other)] = self._root(id)

    def _parts(self, gains: Sequence[int]) -> dict[int, _Part]:
        """The parts that these nodes are in."""
        members: dict[int, list[int]] = {self._root(id): [] for id in gains}
        for id in self.of if members else ():
            root = self._root(id)
            if root in members:
                members[root].append(id)
        nodes = self._nodes
        return {part: _Part(ids, sum([node_cost(nodes[i], nodes) for i in ids])) for part, ids in members.items()}


def _common(keys: Sequence[Monomial]) -> Monomial:
    """The factors that all have."""
    first, *rest = keys
    atoms = {atom for atom, _ in first}
    for key in rest:
        atoms.intersection_update([atom for atom, _ in key])
        if not atoms:
            return ()
    others = [dict(key) for key in rest]
    return tuple([(atom, min([n, *[powers[atom] for powers in others]])) for atom, n in first if atom in atoms])


def _without(key: Monomial, factor: Monomial) -> Monomial | None:
    """`key / factor`, or None."""
    powers = dict(key)
    for atom, n in factor:
        powers[atom] = powers.get(atom, 0) - n
        if powers[atom] < 0:
            return None
    return tuple((atom, n) for atom, n in powers.items() if n)


@final
class _Writer:
    """Writes the nodes of some parts by their forms.

    cost  what each of these parts takes now
    """

    def __init__(self, graph: Graph, forms: Mapping[int, Form], parts: Mapping[int, _Part]):
        self._graph = graph
        self._builder = Builder(graph.nodes)
        self._forms = {id: forms[id] for part in parts.values() for id in part.members}
        self._new: dict[int, int] = {}  # of what is written
        self._made: dict[int, range] = {}  # for it
        self._products: dict[Monomial, Symbol] = {}
        self._as_written: set[Monomial] = set()
        self._with: dict[int, list[Monomial]] = defaultdict(list)  # those of an atom
        for form in self._forms.values():
            for key in form if len(form) == 1 else ():
                if key not in self._as_written:
                    self._as_written.add(key)
                    for atom, _ in key:
                        self._with[atom].append(key)
        needed, made = self._needed(), self._made
        for id in graph.nodes:
            if id in self._forms and id in needed:
                self._write(id)
        self.cost = {name: sum([self._cost(i) for i in part.members if i in made]) for name, part in parts.items()}

    def _needed(self) -> set[int]:
        """What is written: what others read, and the atoms of what is written."""
        needed = set(self._graph.outputs)
        for id, node in reversed(list(self._graph.nodes.items())):
            form = self._forms.get(id)
            if form is None:
                needed.update(node.inputs)
            elif id in needed:
                needed.update([atom for key in form for atom, _ in key])
        return needed

    def _write(self, id: int) -> None:
        builder, node = self._builder, self._graph.nodes[id]
        builder.where, builder.scope = node.where, node.scope
        first = builder.next_id
        self._new[id] = self._sum(self._forms[id]).id
        self._made[id] = range(first, builder.next_id)

    def _cost(self, id: int) -> float:
        """What the nodes cost that were made for node `id`."""
        nodes = self._builder.nodes
        if nodes[self._new[id]].aval != nodes[id].aval:  # a number has given it its shape
            return float("inf")
        return sum([node_cost(nodes[k], nodes) for k in self._made[id]])

    def written(self) -> Graph:
        """The graph with these nodes in place of the former ones."""
        graph, written, new = self._graph, self._builder.nodes, self._new
        nodes: dict[int, Node] = {}
        for id, node in graph.nodes.items():
            if id not in self._forms:
                nodes[id] = node.on(tuple([new.get(i, i) for i in node.inputs]))
            else:
                nodes.update((k, written[k]) for k in self._made.get(id, ()))
        return graph.rewired(nodes, new)

    def _sum(self, form: Form) -> Symbol:
        factor = _common(list(form)) if len(form) > 1 else ()
        if factor and not self._may_be_part(factor):
            factor = self._part_of(factor)
        if factor:
            inner = {_without(key, factor) or (): c for key, c in form.items()}
            return self._sum(inner) * self._product(factor)
        terms = sorted(form.items(), key=lambda term: (term[0] == (), term[1] < 0))  # numbers last
        (key, c), *rest = terms
        total = self._scaled(key, c)
        for key, c in rest:
            if not key:
                total = total + c
            elif c < 0:
                total = total - self._scaled(key, -c)
            else:
                total = total + self._scaled(key, c)
        return total

    def _scaled(self, key: Monomial, c: float) -> Symbol:
        value = self._product(key)
        if c == -1:
            return self._builder.language.neg(value)
        return value if c == 1 else value * c

    def _product(self, key: Monomial) -> Symbol:
        if key not in self._products:
            self._products[key] = self._multiplied(key)
        return self._products[key]

    def _multiplied(self, key: Monomial) -> Symbol:
        if len(key) == 1 and key[0][1] == 1:
            return self._builder.symbol(self._new.get(key[0][0], key[0][0]))
        if all(n % 2 == 0 for _, n in key):
            half = tuple((atom, n // 2) for atom, n in key)
            if half in self._products or self._may_be_part(half):
                return self._builder.language.square(self._product(half))
        part = self._part_of(key)
        rest = _without(key, part)
        assert rest
        return self._product(rest) * self._product(part)

    def _may_be_part(self, key: Monomial) -> bool:
        """Whether a product is one that the graph has as well, or an atom: another may overflow, where none did."""
        return key in self._as_written or (len(key) == 1 and key[0][1] == 1)

    def _part_of(self, key: Monomial) -> Monomial:
        """The part of a product that is computed first: the largest that there is, or an atom."""
        atoms = sorted([atom for atom, _ in key], key=lambda atom: -self._graph.nodes[atom].size)
        known = [k for k in self._with[atoms[0]] if k != key and _without(key, k) is not None]
        return max(known, key=lambda k: (sum(n for _, n in k), k in self._products), default=((atoms[0], 1),))
