"""Regions of a graph that are sums of products, written anew where the plan of their form costs less.

A region ends in a root, which something else than a sum of products reads, and begins at atoms. What its form is
depends on which nodes are atoms: nodes that several read, or sums, may be, or are expanded. Each choice is planned; the
cheapest is taken if it saves enough. Nodes that are there anyway cost nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple, final

from graphc.ir import Builder, Graph, Node, rename
from graphc.normal.affine import Unsolved
from graphc.normal.emit import emit
from graphc.normal.lift import forms_of, is_lifted
from graphc.ops import Trait
from graphc.rewrite.cost import node_cost, work

ENOUGH = 0.9  # of the cost as written, at most
WORTH = 0.002  # of the cost of the graph, for a region to be looked at
MOST_NODES = 100  # of a region
MOST_TERMS = 16  # of its form


class Rewritten(NamedTuple):
    """A region that was: the user's line, what it cost and costs now, in scalar operations."""

    where: str
    before: float
    after: float

    def __str__(self) -> str:
        return f"sum of products at {self.where or 'unknown line'}: {self.before:,.0f} -> {self.after:,.0f} operations"


def rewrite_regions(graph: Graph) -> tuple[Graph, list[Rewritten]]:
    """`graph` with its regions in their cheapest forms, and those that changed. Rounds differently."""
    nodes = graph.nodes
    if not any(map(_sums, nodes.values())):
        return graph, []
    return _Regions(graph).rewritten()


def _sums(node: Node) -> bool:
    """Whether a node adds up many elements."""
    traits = node.op.traits
    return bool(traits & (Trait.CONTRACTS | Trait.LINEAR)) and not traits & Trait.MOVES and not node.op.pointwise


@final
class _Regions:
    def __init__(self, graph: Graph):
        self._graph = graph
        self._nodes = graph.nodes
        self._position = {id: k for k, id in enumerate(graph.nodes)}
        self._lifted = {id for id, node in graph.nodes.items() if is_lifted(node, graph.nodes)}
        self._users = graph.users()
        self._outputs = set(graph.outputs)
        self._cost = _costs(graph.nodes, graph.nodes, self._users)
        self._least = WORTH * sum(self._cost.values())
        self._builder = Builder()
        self._builder.next_id = max(graph.nodes) + 1
        self._new: dict[int, int] = {}
        self._keys: dict[Any, int] = {}  # what there is already: by operation and operands
        self._found: list[Rewritten] = []

    def rewritten(self) -> tuple[Graph, list[Rewritten]]:
        builder = self._builder
        for id, node in self._nodes.items():
            builder.nodes[id] = node.on(tuple([self._new.get(i, i) for i in node.inputs]))
            self._keys.setdefault(builder.nodes[id].key(builder.nodes[id].inputs), id)
            if self._is_root(id):
                self._improve(id)
        if not self._found:
            return self._graph, []
        result = rename(self._graph.result, {id: self._new.get(id, id) for id in self._outputs})
        return self._graph.replace(builder.nodes, result), self._found

    def _is_root(self, id: int) -> bool:
        return id in self._lifted and (id in self._outputs or not self._lifted.issuperset(self._users.get(id, ())))

    def _improve(self, root: int) -> None:
        """Write the region of `root` anew if that saves enough."""
        region = self._region(root)
        if len(region) > MOST_NODES or not self._may_gain(region):
            return
        freed = self._freed(root, region)
        before = sum(self._cost[id] for id in freed)
        most = min(ENOUGH * before, before - self._least)
        builder, best = self._builder, None
        for atoms in self._choices(root, region):
            mark = builder.next_id
            cost, id = self._written(root, region, freed, atoms)
            if id is not None and cost <= most and (best is None or cost < best[0]):
                best = cost, atoms
            builder.rollback(mark)
        if best is None:
            return
        mark = builder.next_id
        _, id = self._written(root, region, freed, best[1])
        assert id is not None
        for made in range(mark, builder.next_id):
            node = builder.nodes[made]
            self._keys.setdefault(node.key(node.inputs), made)
        self._new[root] = id
        self._found.append(Rewritten(self._nodes[root].where, before, best[0]))

    def _region(self, root: int) -> list[int]:
        """The nodes that are lifted from `root` down, in order."""
        found, stack = {root}, [root]
        while stack and len(found) <= MOST_NODES:
            for i in self._nodes[stack.pop()].inputs:
                if i in self._lifted and i not in found:
                    found.add(i)
                    stack.append(i)
        return sorted(found, key=self._position.__getitem__)

    def _may_gain(self, region: list[int]) -> bool:
        """Whether there are products whose order may be another, or of which parts are not needed."""
        sums = [id for id in region if _sums(self._nodes[id])]
        if sum(self._work(id) for id in sums) < self._least:
            return False
        return len(sums) + sum(self._gives(id) for id in region if id not in sums) > 1

    def _gives(self, id: int) -> bool:
        """Whether a node that sums nothing up may make a sum beside it cheaper."""
        node, nodes = self._nodes[id], self._nodes
        if not node.inputs:
            return node.size > 1  # numbers, an identity
        if node.op.traits & Trait.BILINEAR:
            scaled = any(nodes[i].size == 1 for i in node.inputs)
            return not scaled or any(_sums(nodes[k]) for k in self._users[id])
        linear = node.op.traits & Trait.LINEAR and not node.op.pointwise
        return bool(linear) and (not node.op.view or node.size < nodes[node.inputs[0]].size)

    def _work(self, id: int) -> float:
        return self._cost[id] + sum(self._cost[i] for i in self._nodes[id].inputs)

    def _freed(self, root: int, region: list[int]) -> set[int]:
        """The nodes that only `root` needs."""
        freed = {root}
        for id in reversed(region):
            if id not in self._outputs and id != root and freed.issuperset(self._users[id]):
                freed.add(id)
        return freed

    def _needed(self, kept: Collection[int], freed: Collection[int]) -> set[int]:
        """Those of the nodes that only the root needed which are needed for `kept`."""
        found = {id for id in kept if id in freed}
        stack = list(found)
        while stack:
            for i in self._nodes[stack.pop()].inputs:
                if i in freed and i not in found:
                    found.add(i)
                    stack.append(i)
        return found

    def _choices(self, root: int, region: list[int]) -> list[frozenset[int]]:
        """Which nodes are atoms."""
        shared = frozenset([id for id in region if id != root and len(self._users[id]) > 1 and self._cost[id]])
        sums = frozenset([id for id in region if id != root and self._nodes[id].op.pointwise and self._adds(id)])
        return list(dict.fromkeys([shared, frozenset(), shared | sums, sums]))

    def _adds(self, id: int) -> bool:
        return not self._nodes[id].op.traits & Trait.BILINEAR and len(self._nodes[id].inputs) > 1

    def _written(
        self, root: int, region: list[int], freed: Collection[int], atoms: Collection[int]
    ) -> tuple[float, int | None]:
        """Append the form of `root`. Returns what it costs and the node, or None if there is no such program."""
        builder, nodes = self._builder, self._builder.nodes
        form = forms_of({id: self._nodes[id] for id in region}, self._nodes, atoms).get(root)
        if form is None or len(form.terms) > MOST_TERMS:
            return 0.0, None
        mark = builder.next_id
        builder.where, builder.scope = self._nodes[root].where, self._nodes[root].scope
        names = {f.atom for t in form.terms for f in t.factors}
        if root in names:
            return 0.0, None
        symbols = {k: builder.symbol(self._new.get(k, k)) for k in names}
        try:
            result = emit(builder, form, symbols, self._nodes[root].dtype)
        except Unsolved:
            return 0.0, None
        if result.aval != self._nodes[root].aval:
            return 0.0, None
        same: dict[int, int] = {}
        kept = set(names)
        own: dict[Any, int] = {}
        users: dict[int, list[int]] = {result.id: self._users.get(root, [])}
        for id in range(mark, builder.next_id):
            inputs = tuple([same.get(i, i) for i in nodes[id].inputs])
            key = nodes[id].key(inputs)
            known = self._keys.get(key, own.get(key))
            if known is not None:
                same[id] = known
                kept.add(known)
                continue
            own[key] = id
            for i in inputs:
                users.setdefault(i, []).append(id)
        made = {id: nodes[id] for id in own.values()}
        again = sum(self._cost[id] for id in self._needed(kept, freed))
        return again + sum(_costs(made, {**nodes, **self._nodes}, users).values()), result.id


def _costs(some: Mapping[int, Node], nodes: Mapping[int, Node], users: Mapping[int, list[int]]) -> dict[int, float]:
    """The costs of `some` nodes. What is computed on the way, in the loops that read it, is not written."""

    def is_loop(node: Node) -> bool:
        return node.op.pointwise or (_sums(node) and not node.op.traits & Trait.CONTRACTS)

    found: dict[int, float] = {}
    for id, node in some.items():
        inside = node.op.pointwise and users.get(id) and all(is_loop(nodes[k]) for k in users[id])
        found[id] = work(node, nodes) if inside else node_cost(node, nodes)
    return found
