"""Regions of a graph that are sums of products, written anew where the plans of their forms cost less.

A region is what is multilinear between atoms below and roots above, which something else reads. What the forms of its
roots are depends on which of its nodes are atoms as well: each choice is written and what that costs counted, of all
roots together; the cheapest is taken if it saves enough.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, final

from graphc.ir import Builder, Graph, Node, Symbol, rename
from graphc.normal.affine import Unsolved
from graphc.normal.emit import emit
from graphc.normal.factor import factored
from graphc.normal.form import Factor, Form
from graphc.normal.gate import adds_up, may_gain, multiplies
from graphc.normal.lift import forms_of, is_lifted
from graphc.normal.merge import merged
from graphc.normal.plan import Memory
from graphc.ops import Trait
from graphc.rewrite.cost import node_cost, work

ENOUGH = 0.9  # of the cost as written, at most
HOPEFUL = 0.92  # of it: with less gained by the usual choices, no others are tried
WORTH = 0.002  # of the cost of the graph, for a region to be looked at
MOST_NODES = 200  # of a region
MOST_TERMS = 16  # of a form
MOST_TRIES = 16  # choices of atoms, beside the usual ones
MOST_WORK = 1000  # nodes of all regions, each as often as it is tried; beside one for each node of the graph


class Rewritten(NamedTuple):
    """A region that was: the user's line of its dearest node, what it cost and costs now, in scalar operations."""

    where: str
    before: float
    after: float

    def __str__(self) -> str:
        return f"sum of products at {self.where or 'unknown line'}: {self.before:,.0f} -> {self.after:,.0f} operations"


class _Region(NamedTuple):
    """The members in order, and those of them that are read by what is no member."""

    members: tuple[int, ...]
    roots: tuple[int, ...]


def rewrite_regions(graph: Graph) -> tuple[Graph, list[Rewritten]]:
    """`graph` with its regions in their cheapest forms, and those that changed. Rounds differently."""
    nodes, users = graph.nodes, graph.users()
    regions = [region for region in _regions(graph, users) if may_gain(region.members, nodes, users)]
    if not regions:
        return graph, []
    least = WORTH * sum(_costs(nodes, nodes, users).values())
    trial = _Trial(graph, users)
    chosen: dict[int, tuple[_Region, frozenset[int]]] = {}
    found: list[Rewritten] = []
    alike: dict[
        Any, tuple[float, float, list[int]] | None
    ] = {}  # by what a region is: its costs, and its atoms' places
    for region in regions:
        if sum([node_cost(nodes[id], nodes) for id in region.members]) < least:
            continue
        key = _key(region, nodes)
        if key not in alike:
            before = trial.price(region.members)
            best = trial.best(region, before)
            pays = best is not None and best[0] <= min(ENOUGH * before, before - least)
            alike[key] = (before, best[0], [region.members.index(id) for id in best[1]]) if best and pays else None
        known = alike[key]
        if known is not None:
            before, after, places = known
            chosen.update(dict.fromkeys(region.roots, (region, frozenset([region.members[k] for k in places]))))
            where = max(region.members, key=lambda id: node_cost(nodes[id], nodes))
            found.append(Rewritten(nodes[where].where, before, after))
    return (_rewritten(graph, chosen, users) if found else graph), found


def _key(region: _Region, nodes: Mapping[int, Node]) -> Any:
    """What a region is, but for the numbers of its nodes and what it reads."""
    below = [i for id in region.members for i in nodes[id].inputs if i not in region.members]
    own = [*_lifted_below(dict.fromkeys(below), nodes), *region.members]
    number = {id: k for k, id in enumerate(own)}
    read: dict[int, int] = {}
    key: list[Any] = [tuple([number[id] for id in region.roots])]
    for id in own:
        node = nodes[id]
        inputs = tuple([number[i] if i in number else -1 - read.setdefault(i, len(read)) for i in node.inputs])
        key.append((node.key(inputs), node.shape))
    return tuple(key), tuple([nodes[i].aval for i in read])


def _rewritten(
    graph: Graph, chosen: Mapping[int, tuple[_Region, frozenset[int]]], users: Mapping[int, list[int]]
) -> Graph:
    """`graph` with each root in `chosen` written by its region's forms, with these atoms."""
    builder = Builder()
    builder.next_id = max(graph.nodes) + 1
    new: dict[int, int] = {}
    writers: dict[tuple[int, ...], _Writer] = {}
    for id, node in graph.nodes.items():
        builder.copy(node, tuple([new.get(i, i) for i in node.inputs]))
        if id in chosen:
            region, atoms = chosen[id]
            writer = writers.get(region.roots)
            if writer is None:
                writer = writers[region.roots] = _Writer(builder, graph.nodes, region, atoms, new, users, Memory())
            new[id] = writer.symbol(id).id
    return graph.replace(builder.nodes, rename(graph.result, {id: new.get(id, id) for id in graph.outputs}))


# --- finding regions


def _regions(graph: Graph, users: Mapping[int, list[int]]) -> list[_Region]:
    """The regions that have a node which adds up, each with all roots that share something dear."""
    nodes, outputs = graph.nodes, set(graph.outputs)
    lifted = {id for id, node in nodes.items() if is_lifted(node, nodes)}
    group: dict[int, int] = {}

    def leader(id: int) -> int:
        while group[id] != id:
            group[id] = id = group[group[id]]
        return id

    dear = {id for id in lifted if nodes[id].inputs and not nodes[id].op.view}
    for id in nodes:  # views of what is dear are with it; those of atoms are with all that read them
        if id in lifted:
            below = [i for i in nodes[id].inputs if i in group]
            if id in dear or below:
                group[id] = id
                for i in below:
                    group[leader(i)] = id
    members: dict[int, list[int]] = {}
    for id in nodes:
        if id in group:
            members.setdefault(leader(id), []).append(id)
    found: list[_Region] = []
    for own in members.values():
        if len(own) <= MOST_NODES:
            found.append(_Region(tuple(own), tuple([id for id in own if _is_root(id, lifted, users, outputs)])))
        else:
            found += _pieces(own, lifted, users, outputs)
    return found


def _is_root(id: int, inside: Collection[int], users: Mapping[int, list[int]], outputs: Collection[int]) -> bool:
    return id in outputs or any(k not in inside for k in users.get(id, ()))


def _pieces(
    members: Sequence[int], lifted: Collection[int], users: Mapping[int, list[int]], outputs: Collection[int]
) -> list[_Region]:
    """A large region, cut where a node has several users."""
    top: dict[int, int] = {}  # the root of each
    for id in reversed(members):
        readers = users.get(id, [])
        alone = len(readers) == 1 and id not in outputs and readers[0] in top
        top[id] = top[readers[0]] if alone else id
    pieces: dict[int, list[int]] = {}
    for id in members:
        pieces.setdefault(top[id], []).append(id)
    return [_Region(tuple(own), (root,)) for root, own in pieces.items() if 1 < len(own) <= MOST_NODES]


# --- writing them


@final
class _Writer:
    """Appends the forms of a region's nodes, each once, when they are asked for."""

    def __init__(
        self,
        builder: Builder,
        nodes: Mapping[int, Node],
        region: _Region,
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
        below = [i for id in region.members for i in nodes[id].inputs if i not in self._members]
        some = dict.fromkeys(below)  # numbers and views of atoms are lifted with them
        self._forms = forms_of(
            {id: nodes[id] for id in (*_lifted_below(some, nodes), *region.members)}, nodes, atoms, memory.forms
        )
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
            form = self._merged(stack.pop())
            for t in () if form is None else form.terms:
                yield t.factors, frozenset([k for place in t.places for k in place.labels]), t.sizes
                below = {f.atom for f in t.factors if f.atom in self._members} - seen
                seen |= below
                stack += below

    def _merged(self, id: int) -> Form | None:
        """The form of a node, with as few terms as it can have."""
        form = self._forms.get(id)
        return None if form is None else merged(form)

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
        if form is not None and id not in names and len(form.terms) <= MOST_TERMS:
            for k in names:
                self.symbol(k)
            builder.where, builder.scope = node.where, node.scope
            mark, made = builder.next_id, dict(self._memory.made)
            try:
                result = self._emitted(form, node.dtype)
            except Unsolved:
                result = None
            if (
                result is not None
                and result.aval == node.aval
                and self._cost(range(mark, result.id + 1)) < self._before(id)
            ):
                return result
            builder.rollback(mark)
            self._memory.made = made
        return self._as_it_was(id)

    def _as_it_was(self, id: int) -> Symbol:
        """A node on what its operands are now, from the next atoms up."""
        if id not in self._kept:
            builder, node = self._builder, self._nodes[id]
            operands = tuple(
                [
                    (self._as_it_was(i) if i in self._members and i not in self._atoms else self.symbol(i)).id
                    for i in node.inputs
                ]
            )
            builder.where, builder.scope = node.where, node.scope
            same = operands == node.inputs
            self._kept[id] = id if same else builder.append(node.op, operands, node.params, node.results)
        return self._builder.symbol(self._kept[id])

    def _cost(self, made: Iterable[int]) -> float:
        """What nodes cost that have been appended."""
        nodes = self._builder.nodes
        some = {id: nodes[id] for id in made}
        users: dict[int, list[int]] = {}
        for id, node in some.items():
            for i in node.inputs:
                users.setdefault(i, []).append(id)
        return sum(_costs(some, nodes, users).values())

    def _before(self, root: int) -> float:
        """What a node cost as it was, from the next atoms up, without what is there already."""
        found: set[int] = set()
        stack = [root]
        while stack:
            id = stack.pop()
            if id not in found and id not in self._kept:
                found.add(id)
                stack += [i for i in self._nodes[id].inputs if i in self._members and i not in self._atoms]
        return sum(_costs({id: self._nodes[id] for id in found}, self._nodes, self._users).values())

    def _emitted(self, form: Form, dtype: Any) -> Symbol:
        """A form, with common factors before brackets. Raises Unsolved."""
        form = factored(form, self._bracket)
        atoms = {f.atom for t in form.terms for f in t.factors}
        given = {k: self.symbol(k) if k >= 0 else self._emitted(self._inside[k], dtype) for k in atoms}
        return emit(self._builder, form, given, dtype, self._memory)

    def _bracket(self, inner: Form) -> int:
        """The atom that stands for a sum."""
        number = self._brackets.setdefault(inner, -2 - len(self._brackets))
        self._inside[number] = inner
        return number


def _lifted_below(some: Iterable[int], nodes: Mapping[int, Node]) -> list[int]:
    """The numbers among `some` nodes, and the views, with what they show, as far as they are lifted; in order."""
    found: set[int] = set()
    stack = list(some)
    while stack:
        id = stack.pop()
        if id not in found and is_lifted(nodes[id], nodes) and (nodes[id].op.view or not nodes[id].inputs):
            found.add(id)
            stack += nodes[id].inputs
    return [id for id in nodes if id in found] if found else []


@final
class _Trial:
    """Choices of atoms, tried on a copy of the graph."""

    def __init__(self, graph: Graph, users: Mapping[int, list[int]]):
        self._nodes = graph.nodes
        self._users = users
        self._builder = Builder(graph.nodes)
        self._keys = {node.key(node.inputs): id for id, node in graph.nodes.items()}
        self._left = MOST_WORK + len(graph)
        self._memory = Memory()

    def best(self, region: _Region, before: float) -> tuple[float, frozenset[int]] | None:
        """The cheapest choice, and what it costs."""
        shared, sums = self._candidates(region)
        found: tuple[float, frozenset[int]] | None = None
        tried: set[frozenset[int]] = set()

        def attempt(atoms: frozenset[int]) -> bool:
            nonlocal found
            if atoms in tried or self._left < 0:
                return False
            tried.add(atoms)
            self._left -= len(region.members)
            price = self._cost(region, atoms)
            if price is None or (found is not None and price >= found[0]):
                return False
            found = price, atoms
            return True

        for atoms in (shared, frozenset[int](), shared | sums, sums):
            attempt(atoms)
        if found is None or found[0] > HOPEFUL * before:
            return found
        own = [id for id in reversed(region.members) if id in shared | sums][:MOST_TRIES]
        for id in own:
            attempt(frozenset([id]))
        for id in own:
            attempt((found[1] if found else frozenset()) ^ {id})
        return found

    def price(self, some: Iterable[int]) -> float:
        """What these nodes cost that are there."""
        return sum(_costs({id: self._nodes[id] for id in some}, self._nodes, self._users).values())

    def _candidates(self, region: _Region) -> tuple[frozenset[int], frozenset[int]]:
        """The members that may be atoms: those that several read, and sums."""
        nodes = self._nodes
        members = set(region.members)
        several = {id for id in members if len(self._users.get(id, ())) + (id in region.roots) > 1}
        for id in reversed(region.members):
            if id in several and nodes[id].op.view:
                several.update(members.intersection(nodes[id].inputs))
        shared = frozenset([id for id in several if node_cost(nodes[id], nodes)])
        sums = [id for id in region.members if nodes[id].op.pointwise and self._adds(id)]
        alone = shared.union(sums).difference(region.roots) | shared
        return shared, alone.difference(shared)

    def _adds(self, id: int) -> bool:
        return not self._nodes[id].op.traits & Trait.BILINEAR and len(self._nodes[id].inputs) > 1

    def _cost(self, region: _Region, atoms: frozenset[int]) -> float | None:
        """What the region costs with these atoms; None if it stays as it is."""
        builder = self._builder
        mark = builder.next_id
        writer = _Writer(builder, self._nodes, region, atoms, {}, self._users, self._memory)
        ids = {root: writer.symbol(root).id for root in region.roots}
        same: dict[int, int] = {}
        own: dict[Any, int] = {}
        for id in range(mark, builder.next_id):
            node = builder.nodes[id]
            inputs = tuple([same.get(i, i) for i in node.inputs])
            key = node.key(inputs)
            known = self._keys.get(key, own.get(key))
            if known is None:
                own[key] = id
                builder.nodes[id] = node.on(inputs)
            else:
                same[id] = known
        members = set(region.members)
        users: dict[int, list[int]] = {}
        needed: dict[int, Node] = {}
        stack: list[int] = []
        for root, id in ids.items():
            id = same.get(id, id)
            stack.append(id)
            users.setdefault(id, []).extend([k for k in self._users.get(root, ()) if k not in members])
        while stack:
            id = stack.pop()
            if id in needed or not (id in members or id >= mark):
                continue
            node = needed[id] = builder.nodes[id]
            for i in node.inputs:
                users.setdefault(i, []).append(id)
                stack.append(i)
        changed = any(id >= mark for id in needed) or not members.issuperset(ids.values())
        price = sum(_costs(needed, builder.nodes, users).values()) if changed else None
        builder.rollback(mark)
        return price


def _costs(some: Mapping[int, Node], nodes: Mapping[int, Node], users: Mapping[int, list[int]]) -> dict[int, float]:
    """The costs of `some` nodes. What is computed on the way, in the loops that read it, is not written."""

    def is_loop(node: Node) -> bool:
        return node.op.pointwise or (adds_up(node) and not multiplies(node))

    found: dict[int, float] = {}
    for id, node in some.items():
        inside = node.op.pointwise and users.get(id) and all(is_loop(nodes[k]) for k in users[id])
        found[id] = work(node, nodes) if inside else node_cost(node, nodes)
    return found
