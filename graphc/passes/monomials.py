"""Products and sums, element by element, with like terms collected: x * x * x + 2 * x * x = x^2 (x + 2).

What reverse mode makes of a polynomial has each product many times, in another order, and so computed again. Each node
that its op lifts (`Op.lifting`) is a sum of terms: a number times a product of powers of atoms. Like terms are one,
factors that all terms have are taken out, and products share their parts. A product of sums is never multiplied out,
which would cancel digits; and no term vanishes: x - x is nan where x is inf.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, final

from graphc.ir import Builder, Graph, Node, Symbol, rename
from graphc.ops.dtypes import finfo
from graphc.rewrite.cost import node_cost
from graphc.rewrite.rule import held_number

Monomial = tuple[tuple[int, int], ...]  # (atom, power), by atom
Form = dict[Monomial, float]
TERMS, DEGREE = 16, 32  # more are not taken together


def collect_terms(graph: Graph) -> Graph:
    """`graph` with like terms collected where that takes fewer operations. Rounds differently."""
    found = _Forms(graph)
    left = found.promising()
    while left:
        writer = _Writer(graph, found, left)
        rewritten = writer.written()
        worse = {part for part in left if writer.cost[part] >= found.cost[part]}
        if not worse:
            return rewritten
        left -= worse
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

    def scale(self, x: Form, c: Any) -> Form:
        return self._checked({key: c * value for key, value in x.items()})

    def mul(self, x: Form, y: Form) -> Form:
        ((p, a),), ((q, b),) = x.items(), y.items()
        powers = defaultdict(int, p)
        for atom, n in q:
            powers[atom] += n
        if sum(powers.values()) > DEGREE:
            raise _Refused
        return self._checked({tuple(sorted(powers.items())): a * b})

    def __getattr__(self, name: str) -> Any:
        raise _Refused


def _one(atom: int) -> Form:
    return {((atom, 1),): 1.0}


@final
class _Forms:
    """The forms of the nodes of a graph, and the parts of it that they make: connected, or with a product in common.

    of    id -> form, of the nodes that are more than an atom
    part  id -> the part that the node is in
    cost  of each part
    """

    def __init__(self, graph: Graph):
        self.of: dict[int, Form] = {}
        self._above: dict[int, int] = {}
        self._nodes = graph.nodes
        self._uses = graph.uses()
        algebras: dict[Any, _Algebra] = {}
        first: dict[Monomial, int] = {}
        for id, node in graph.nodes.items():
            if self._is_product_or_sum(node):
                algebra = algebras.get(node.dtype) or algebras.setdefault(node.dtype, _Algebra(node.dtype))
                form = self._form(node, algebra)
                if form is not None:
                    self.of[id] = form
                    self._join(id, [i for i in node.inputs if i in self.of])
                    if len(form) == 1:
                        self._join(id, [first.setdefault(next(iter(form)), id)])
        self.part = {id: self._root(id) for id in self.of}
        self.cost: dict[int, float] = defaultdict(float)
        for id, part in self.part.items():
            self.cost[part] += node_cost(graph.nodes[id], graph.nodes)

    def _is_product_or_sum(self, node: Node) -> bool:
        op = node.op
        if op.several or not op.pointwise or op.lifting is None or node.dtype.name not in ("float32", "float64"):
            return False
        return all(not self._nodes[i].op.several and self._nodes[i].dtype == node.dtype for i in node.inputs)

    def _form(self, node: Node, algebra: _Algebra) -> Form | None:
        def operand(id: int) -> Form:
            form = self.of.get(id)
            if form is not None and (len(form) == 1 or self._uses[id] == 1):
                return form
            number = held_number(id, self._nodes)
            return {(): float(number)} if isinstance(number, (int, float)) else _one(id)

        assert node.op.lifting is not None
        given = [operand(i) for i in node.inputs]
        for forms in (given, [f if len(f) == 1 else _one(i) for f, i in zip(given, node.inputs, strict=True)]):
            try:
                form = node.op.lifting(algebra, *forms, **node.params)
            except (_Refused, ValueError):  # of mul, which takes one term each
                continue
            return None if any(form is f for f in forms) or (() in form and len(form) == 1) else form
        return None

    def _root(self, id: int) -> int:
        while (above := self._above.get(id, id)) != id:
            self._above[id] = self._above.get(above, above)
            id = above
        return id

    def _join(self, id: int, others: Sequence[int]) -> None:
        for other in others:
            self._above[self._root(other)] = self._root(id)

    def promising(self) -> set[int]:
        """The parts in which two products are one but for a number, or a sum has a factor or like terms."""
        seen: dict[tuple[int, Monomial], int] = {}
        found: set[int] = set()
        for id, form in self.of.items():
            part = self.part[id]
            if len(form) == 1:
                ((key, _),) = form.items()
                repeated = seen.setdefault((part, key), id) != id or any(n > 2 for _, n in key)
            else:
                written = sum(
                    len(self.of[i]) if self._uses[i] == 1 and i in self.of else 1 for i in self._nodes[id].inputs
                )
                repeated = len(form) < written or bool(_common(list(form)))
            if repeated:
                found.add(part)
        return found


def _common(keys: Sequence[Monomial]) -> Monomial:
    """The factors that all have."""
    first, *rest = map(dict, keys)
    return tuple((atom, n) for atom in first if (n := min([first[atom], *(k.get(atom, 0) for k in rest)])))


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
    """Writes a graph anew, the nodes of some parts by their forms.

    cost  what each of these parts takes now
    """

    def __init__(self, graph: Graph, forms: _Forms, parts: set[int]):
        self.cost: dict[int, float] = defaultdict(float)
        self._graph = graph
        self._forms = {id: form for id, form in forms.of.items() if forms.part[id] in parts}
        self._part = forms.part
        self._builder = Builder()
        self._builder.next_id = max(graph.nodes) + 1
        self._new: dict[int, int] = {}
        self._products: dict[Monomial, Symbol] = {}
        self._as_written: set[Monomial] = set()
        self._with: dict[int, list[Monomial]] = defaultdict(list)  # those of an atom
        for form in self._forms.values():
            for key in form if len(form) == 1 else ():
                if key not in self._as_written:
                    self._as_written.add(key)
                    for atom, _ in key:
                        self._with[atom].append(key)

    def written(self) -> Graph:
        graph, builder = self._graph, self._builder
        needed = self._needed()
        for id, node in graph.nodes.items():
            if id in self._forms and id not in needed:
                continue
            builder.where, builder.scope = node.where, node.scope
            if id not in self._forms:
                builder.nodes[id] = node.on(tuple([self._new[i] for i in node.inputs]))
                self._new[id] = id
                continue
            first = builder.next_id
            value = self._sum(self._forms[id])
            for k in range(first, builder.next_id):
                self.cost[self._part[id]] += node_cost(builder.nodes[k], builder.nodes)
            if value.aval != node.aval:  # a number has given it its shape
                self.cost[self._part[id]] = float("inf")
            self._new[id] = value.id
        return graph.replace(builder.nodes, rename(graph.result, {id: self._new[id] for id in graph.outputs}))

    def _needed(self) -> set[int]:
        """What is written: what others read, and the atoms of what is written."""
        needed = set(self._graph.outputs)
        for id in reversed(list(self._graph.nodes)):
            form = self._forms.get(id)
            if form is None:
                needed.update(self._graph.nodes[id].inputs)
            elif id in needed:
                needed.update(atom for key in form for atom, _ in key)
        return needed

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
            return self._builder.symbol(self._new[key[0][0]])
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
