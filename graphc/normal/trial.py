"""Which nodes of a region had better be atoms: choices, written and priced on a copy of the graph."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, final

from graphc.ir import Builder, Graph, Node
from graphc.normal.bounds import BOUNDS, PER_NODE, Bounds, Exhausted
from graphc.normal.find import Region
from graphc.normal.plan import Memory
from graphc.normal.write import Inside, Writer, costs_of
from graphc.rewrite.cost import WRITE, node_cost

NEAR = 1.25  # times the cheapest form, a choice may cost of which others that differ in one atom are tried

# f(region, what a form of it costs, the nodes that it takes, those that are the region's roots)
Watch = Callable[[Region, float, Mapping[int, Node], tuple[int, ...]], None]


class Choice(NamedTuple):
    """How a region is written: with these nodes as atoms; hoping that terms share products (`Memory.hopes`), or not."""

    atoms: frozenset[int]
    hopes: bool = True


@final
class Trial:
    """Choices of atoms, tried on a copy of the graph: within `bounds`, of its `nodes`, which `users` tells."""

    def __init__(
        self, graph: Graph, users: Mapping[int, list[int]], bounds: Bounds = BOUNDS,
        watch: Watch | None = None,
    ):  # fmt: skip
        self.bounds = bounds
        self._watch = watch
        self.nodes = graph.nodes
        self.users = users
        self._builder = Builder(graph.nodes)
        self._keys = {node.key(node.inputs): id for id, node in graph.nodes.items()}
        self.total = sum(costs_of(graph.nodes, graph.nodes, users).values())  # of the graph
        self._memory = Memory(bounds.work + PER_NODE * len(graph) + bounds.of_run * self.total)
        self._narrow: dict[int, bool] = {}

    def best(self, region: Region, hopeful: float, share: float = 1.0) -> tuple[float, Choice] | None:
        """The cheapest choice, and what it costs.

        hopeful: what a usual one may cost, for others to be tried; share: of the graph's cost, that is at stake
        """
        shared, sums, narrow = self._candidates(region)
        bounds, memory = self.bounds, self._memory
        before, start = self.price(region.members), memory.left
        share = min(1.0, bounds.of_share * share)
        least = bounds.of_run * self.total
        end = start - least - share * bounds.region
        last = end - share * bounds.per_operation * before
        rest = start - least - share * start  # for others
        most = share * self._most(region) + least
        found: tuple[float, Choice] | None = None
        worked = math.inf  # units, that the cheapest has taken
        prices: dict[Choice, float | None] = {}

        def attempt(atoms: frozenset[int], hopes: bool = True) -> None:
            nonlocal found, worked
            choice, left = Choice(atoms, hopes), memory.left
            until = last if found is not None and found[0] <= bounds.promising * before else end
            if choice in prices or left < max(until, rest, 0):
                return
            price = prices[choice] = self.cost(region, choice, min(most, left - until, bounds.longer * worked))
            if price is not None and (found is None or price < found[0]):
                found, worked = (price, choice), left - memory.left

        factors = frozenset([id for id in shared if not self._is_added_only(id)])
        first = self._first(region, sums)
        usual = (
            shared, narrow, first, frozenset[int](), shared & narrow, shared | sums, sums, shared - sums | narrow,
            first | narrow, factors,
        )  # fmt: skip
        for atoms in usual:
            attempt(atoms)
        if found is None or found[0] > hopeful:
            return found
        attempt(found[1].atoms, hopes=False)
        own = [id for id in reversed(region.members) if id in shared | sums][: bounds.tries]
        without = prices.get(Choice(frozenset()))
        if without is not None and without <= NEAR * found[0]:
            for id in own:
                attempt(frozenset([id]), found[1].hopes)
        for id in own:
            attempt(found[1].atoms ^ {id}, found[1].hopes)
        return found

    def _first(self, region: Region, sums: frozenset[int]) -> frozenset[int]:
        """The sums that have no other below: of what is centred, or shifted, as it is used by all the rest."""
        above: set[int] = set()
        for id in region.members:
            if any(i in above or i in sums for i in self.nodes[id].inputs):
                above.add(id)
        return sums - above

    def _most(self, region: Region) -> float:
        return self.bounds.attempt + PER_NODE * len(region.members) + self.bounds.of_run * self.price(region.members)

    def cost(self, region: Region, choice: Choice, most: float | None = None) -> float | None:
        """What the region costs like this; None if it stays as it is, or that takes more work than `most`."""
        mark = self._builder.next_id
        try:
            with self._memory.limited(self._most(region) if most is None else most):
                return self._cost(region, choice)
        except Exhausted:
            return None
        finally:
            self._builder.rollback(mark)

    def price(self, some: Iterable[int]) -> float:
        """What these nodes cost that are there."""
        return sum(costs_of({id: self.nodes[id] for id in some}, self.nodes, self.users).values())

    def _candidates(self, region: Region) -> tuple[frozenset[int], frozenset[int], frozenset[int]]:
        """The members that may be atoms: those that several read; sums, also of what lies side by side; narrow ones."""
        nodes = self.nodes
        members = set(region.members)
        several = {id for id in members if len(self.users.get(id, ())) + (id in region.roots) > 1}
        for id in reversed(region.members):
            if id in several and nodes[id].op.view:
                several.update(members.intersection(nodes[id].inputs))
        shared = frozenset([id for id in several if node_cost(nodes[id], nodes)])
        sums = frozenset([id for id in region.members if self._adds(id)])
        narrow = frozenset([id for id in region.members if self._is_narrow(id)])
        narrow = frozenset([id for id in narrow if not self._is_scaled(id, narrow)])
        return shared, sums.difference(region.roots) | shared & sums, narrow

    def _is_narrow(self, id: int) -> bool:
        """Whether a node is smaller than what it is made of: a product or a sum that others had better begin with."""
        if id not in self._narrow:
            node = self.nodes[id]
            sizes = {i: self.nodes[i].size for i in node.inputs}
            follows = node.op.pointwise or node.op.view
            self._narrow[id] = node.size < max(sizes.values(), default=0) or (
                follows and any(n == node.size and self._is_narrow(i) for i, n in sizes.items())
            )
        return self._narrow[id]

    def _is_scaled(self, id: int, some: frozenset[int]) -> bool:
        """Whether a node is one of `some` but for its shape, or numbers: then that is the atom."""
        node = self.nodes[id]
        scaled = node.op.pointwise and (len(node.inputs) == 1 or node.op.bilinear)
        return (node.op.view or scaled) and {i for i in node.inputs if self.nodes[i].size > 1}.issubset(some)

    def _adds(self, id: int) -> bool:
        node = self.nodes[id]
        if len(node.inputs) < 2 or node.op.bilinear:
            return False
        return node.op.pointwise or node.op.moves

    def _is_added_only(self, id: int) -> bool:
        """Whether a node is read by sums alone, perhaps transposed: they may have factors in common."""
        users = [self.nodes[k] for k in self.users.get(id, ())]
        return bool(users) and all(
            self._is_added_only(n.id) if n.op.view else n.op.pointwise and self._adds(n.id) for n in users
        )

    def _cost(self, region: Region, choice: Choice) -> float | None:
        builder, self._memory.hopes = self._builder, choice.hopes
        mark = builder.next_id
        writer = Writer(builder, self.nodes, region, choice.atoms, {}, self.users, self._memory)
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
        atoms: set[int] = set()
        stack: list[int] = []
        for root, id in ids.items():
            id = same.get(id, id)
            stack.append(id)
            users.setdefault(id, []).extend([k for k in self.users.get(root, ()) if k not in members])
        while stack:
            id = stack.pop()
            if id in needed or id in atoms:
                continue
            node = builder.nodes[id]
            if id in members or id >= mark:
                needed[id] = node
            else:
                atoms.add(id)
                users[id] += [k for k in self.users[id] if k not in members]
            if id in needed or node.op.view:
                for i in node.inputs:
                    users.setdefault(i, []).append(id)
                    stack.append(i)
        changed = any(id >= mark for id in needed) or not members.issuperset(ids.values())
        price = None
        if changed:
            before, after = Inside(self.nodes, self.users), Inside(builder.nodes, users)
            written = sum([((id in before) - (id in after)) * self.nodes[id].size for id in atoms])
            price = sum(costs_of(needed, builder.nodes, users).values()) + WRITE * written
        if price is not None and self._watch is not None:
            self._watch(region, price, needed, tuple([same.get(id, id) for id in ids.values()]))
        return price
