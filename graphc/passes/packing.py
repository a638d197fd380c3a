"""Small state side by side in one array: as many tensors are read, updated and returned as one.

A program with hundreds of small parameters, moments and gradients spends its time on arrays, not on numbers: each is
handed over, updated by an operation of its own, and handed back. Where the new values of several are the same
elementwise expression, of old values that lie side by side and of gradients that are laid side by side, one operation
updates them all. And numbers that are equal, and are all updated in the same way from nothing that differs (the steps
that an optimizer counts for each parameter), stay equal: one stands for all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar, final

from graphc.ir import Builder, Graph, Node, Ref, Symbol
from graphc.ops import OPS, Trait
from graphc.ops.aval import Aval
from graphc.passes.dce import eliminate_dead_code
from graphc.passes.pipeline import Record
from graphc.passes.rolling import columns

LARGE = 1 << 15  # elements of a tensor that takes longer to move than to hand over
DEEPEST = 64  # operations of an expression, from the new value down; what is below is laid side by side as it is

_RESHAPE, _SLICE = OPS["reshape"], OPS["slice"]
_T = TypeVar("_T")
_Ids = tuple[int, ...]


class Pack(NamedTuple):
    """Tensors in one array.

    inputs   those of the graph's inputs that are read from it, in order; none of a pack that is only returned
    outputs  the positions of the graph's outputs that are its new values
    equal    all have one value: the array is that
    """

    inputs: _Ids
    outputs: _Ids
    equal: bool = False


class Packed(NamedTuple):
    """graph: its inputs are those that are in no pack, then the packs that have inputs; its outputs those that are in
    no pack, then the packs."""

    graph: Graph
    packs: tuple[Pack, ...]


def pack_state(
    graph: Graph, state: Mapping[int, int], fresh: Collection[int], equal: Iterable[Collection[int]]
) -> Packed | None:
    """`graph` with its small state in packs; None if there is too little of it.

    state  input -> the position of the output that is its new value
    fresh  positions of outputs that may lie in a pack that is only returned
    equal  sets of inputs without dims that hold equal values
    """
    nodes, outputs = graph.nodes, graph.outputs
    state = {i: k for i, k in state.items() if _small(nodes[i]) and nodes[i].aval == nodes[outputs[k]].aval}
    if len(state) < 2:
        return None
    known = _Expressions(graph, state, [k for k in fresh if _small(nodes[outputs[k]]) and nodes[outputs[k]].shape])
    same = known.stay_equal(equal)
    groups = [group for group in known.groups() if known.fits(known.new_values(group), same)]
    return _Packing(known, groups, same).packed() if groups or same else None


def _told(pack: Pack, name: str) -> str:
    """What `explain` says of a pack that is an input."""
    return f"{name} is {len(pack.inputs)} " + ("equal numbers" if pack.equal else "tensors, side by side")


def _small(node: Node) -> bool:
    return 0 < node.size <= LARGE


def _pays(group: Sequence[int], nodes: Mapping[int, Node]) -> bool:
    """Whether to move all of a group takes less time than to hand over all but one."""
    return sum(nodes[id].size for id in group) <= LARGE * (len(group) - 1)


@final
class _Expressions:
    """The new values of state, as elementwise expressions.

    state    input -> the position of its new value among the graph's outputs
    given    node -> the position, of gradients that are returned: expressions end at them
    colours  of each node: equal where the expressions are, up to the state and the arrays that they end in
    """

    def __init__(self, graph: Graph, state: Mapping[int, int], fresh: Iterable[int]):
        self.graph, self.nodes, self.state = graph, graph.nodes, state
        self.given: dict[int, int] = {}
        for k in fresh:
            self.given.setdefault(graph.outputs[k], k)
        self.colours: dict[int, int] = {}
        self._depths: dict[int, int] = {}  # of expressions; not there for what they end in
        self._copied: dict[int, int] = {}  # what only hands an array on -> what it is given
        known: dict[Hashable, int] = {}
        for id, node in graph.nodes.items():
            if id not in self.given and node.op.traits & Trait.IDENTITY:
                self._copied[id] = self._copied.get(node.inputs[0], node.inputs[0])
            self.colours[id] = known.setdefault(self._form(id, node), len(known))

    def _form(self, id: int, node: Node) -> Hashable:
        if id in self.state:
            return "state", node.dtype, node.shape == ()
        if id not in self.given and self._elementwise(node):
            depth = 1 + max(self._depths.get(i, 0) for i in self._origins(node.inputs))
            if depth < DEEPEST:
                self._depths[id] = depth
                return node.key(tuple([self.colours[i] for i in self._origins(node.inputs)]))
        # arrays are laid side by side; numbers are the same or not
        return ("array", node.dtype) if not node.op.several and node.shape else ("one", id)

    def _elementwise(self, node: Node) -> bool:
        op = node.op
        plain = op.pointwise and bool(node.inputs) and not op.several and _small(node)
        return plain and all(not (s := self.nodes[i].shape) or s == node.shape for i in node.inputs)

    def expands(self, ids: _Ids) -> bool:
        """Whether the nodes are the same operation, on operands that may be taken together."""
        return ids[0] in self._depths and all(self.colours[i] == self.colours[ids[0]] for i in ids)

    def operands(self, ids: _Ids) -> list[_Ids]:
        return [self._origins(part) for part in zip(*(self.nodes[i].inputs for i in ids), strict=True)]

    def new_values(self, inputs: _Ids) -> _Ids:
        return self._origins(self.graph.outputs[self.state[i]] for i in inputs)

    def _origins(self, ids: Iterable[int]) -> _Ids:
        return tuple([self._copied.get(i, i) for i in ids])

    def stay_equal(self, equal: Iterable[Collection[int]]) -> set[_Ids]:
        """Those of the sets `equal`, as far as they are state, that are equal again after the program."""
        found: set[_Ids] = set()
        for inputs in equal:
            numbers = sorted((i for i in inputs if i in self.state), key=self.state.__getitem__)
            found |= {tuple(s) for s in _by(numbers, lambda i: self.colours[self.new_values((i,))[0]])}
        found = {inputs for inputs in found if len(inputs) > 1}
        while wrong := {s for s in found if not self._is_one(self.new_values(s), found, {})}:
            found -= wrong
        return found

    def _is_one(self, ids: _Ids, equal: Collection[_Ids], known: dict[_Ids, bool]) -> bool:
        """Whether the numbers `ids` have one value, if those of each of `equal` have one."""
        if ids not in known:
            known[ids] = (
                len(set(ids)) == 1
                or _within(ids, equal) is not None
                or (self.expands(ids) and all(self._is_one(o, equal, known) for o in self.operands(ids)))
            )
        return known[ids]

    def groups(self) -> list[_Ids]:
        """State that may be updated as one, in the order of its new values.

        What one parameter has (its moments, the parameter itself) is a family: their new values depend on each other.
        Families are alike if their members have the same colours; of those that are, each colour makes a group. So it
        does of the families of a column, in its order: a loop over the layers reads the pack as it lies (`columns`).
        """
        arrays = sorted((i for i in self.state if self.nodes[i].shape), key=self.state.__getitem__)
        family = {i: i for i in arrays}

        def head(i: int) -> int:
            while family[i] != i:
                i = family[i] = family[family[i]]
            return i

        for i in arrays:
            for j in self._read(self.new_values((i,))[0]):
                if j in family:
                    family[head(j)] = head(i)
        colour = {i: (self.colours[self.new_values((i,))[0]], self.nodes[i].dtype) for i in arrays}
        families = _by(arrays, head)
        alike = {i: tuple(sorted((colour[j] for j in f), key=repr)) for f in families for i in f}
        place: dict[int, tuple[int, int]] = {}  # of a family: the column, and which of it
        for c, column in enumerate(columns(self.graph)):
            heads = [head(i) for i in column if i in family]
            if place.keys().isdisjoint(heads) and len(set(heads)) == len(column):
                place |= {h: (c, k) for k, h in enumerate(heads)}
        # each group in the same order of families: one expression updates what lies at the same place in several packs
        last, ranks = (len(family), 0), {head(f[0]): k for k, f in enumerate(families)}
        arrays.sort(key=lambda i: (place.get(head(i), last), ranks[head(i)]))
        groups = _by(arrays, lambda i: (colour[i], alike[i], place.get(head(i), last)[0]))
        return [tuple(group) for group in groups if _pays(group, self.nodes)]

    def _read(self, id: int) -> set[int]:
        """The state that expression `id` ends in."""
        seen, stack = {id}, [id]
        while stack:
            at = stack.pop()
            if at in self._depths:
                new = set(self._origins(self.nodes[at].inputs)) - seen
                seen |= new
                stack.extend(new)
        return seen & self.state.keys()

    def fits(self, ids: _Ids, equal: Collection[_Ids]) -> bool:
        """Whether the arrays `ids` can be computed as one: numbers that they depend on must be the same for all."""
        seen, stack = {ids}, [ids]
        while stack:
            at = stack.pop()
            if not self.nodes[at[0]].shape:
                if not self._is_one(at, equal, {}):
                    return False
            elif self.expands(at):
                new = set(self.operands(at)) - seen
                seen |= new
                stack.extend(new)
        return True


@final
class _Packing:
    """A packed graph in the making: nodes for all tensors of a pack are appended to those that there are."""

    def __init__(self, known: _Expressions, groups: Sequence[_Ids], same: Collection[_Ids]):
        self._known, self._nodes = known, known.nodes
        self._builder = Builder(known.nodes)
        self._made: dict[_Ids, Symbol] = {}  # nodes -> all of them: side by side, or as the one that they are
        self._returned: dict[_Ids, Symbol] = {}  # nodes of gradients -> all of them
        self._placed: set[int] = set()  # those that are in one of these
        self._packs: dict[_Ids, Symbol] = {}
        for inputs in [*groups, *sorted(same)]:
            first = self._nodes[inputs[0]]
            shape = () if inputs in same else (sum(self._nodes[i].size for i in inputs),)
            self._packs[inputs] = self._builder.input(f"pack_{len(self._packs)}", Aval(shape, first.dtype))
        self._made |= self._packs
        self._same = same

    def packed(self) -> Packed:
        known, outputs = self._known, self._known.graph.outputs
        updated = {inputs: self._all(known.new_values(inputs)).id for inputs in self._packs}
        packs = [Pack(s, tuple([known.state[i] for i in s]), s in self._same) for s in self._packs]
        ends = [updated[s] for s in self._packs]
        for same in _by([id for id in known.given if id not in self._placed], lambda id: self._nodes[id].dtype):
            if _pays(same, self._nodes):
                self._side_by_side(tuple(same))
        for ids, symbol in self._returned.items():
            packs.append(Pack((), tuple([known.given[id] for id in ids])))
            ends.append(symbol.id)
        inside = {k for pack in packs for k in pack.outputs}
        ends = [*(id for k, id in enumerate(outputs) if k not in inside), *ends]
        nodes, new = self._read_from_packs()
        result = tuple([Ref(new.get(id, id)) for id in ends])
        graph = known.graph
        packed = {i for inputs in self._packs for i in inputs}
        inputs = (*(i for i in graph.inputs if i not in packed), *(s.id for s in self._packs.values()))
        made = eliminate_dead_code(Graph(graph.name, nodes, inputs, result, graph.history))
        inserted = made.input_names[len(inputs) - len(self._packs) :]
        notes = tuple([_told(pack, name) for pack, name in zip(packs, inserted, strict=False)])
        record = Record("packs", len(graph), len(made), notes=notes)
        return Packed(Graph(made.name, made.nodes, inputs, result, (*made.history, record)), tuple(packs))

    def _all(self, ids: _Ids) -> Symbol:
        """The values of `ids`, computed as one."""
        made = self._made.get(ids)
        if made is None:
            node = self._nodes[ids[0]]
            same = _within(ids, self._same)
            if same is not None:
                made = self._packs[same]
            elif not node.shape and len(set(ids)) == 1:
                made = self._builder.symbol(ids[0])
            elif self._known.expands(ids):
                operands = [self._all(part) for part in self._known.operands(ids)]
                self._builder.where, self._builder.scope = node.where, node.scope
                made = self._builder.emit(node.op, operands, node.params)
            else:
                made = self._side_by_side(ids)
            self._made[ids] = made
        return made

    def _side_by_side(self, ids: _Ids) -> Symbol:
        F, symbol = self._builder.language, self._builder.symbol
        node = self._nodes[ids[0]]
        self._builder.where, self._builder.scope = node.where, node.scope
        made = F.cat(*[F.reshape(symbol(id), shape=(self._nodes[id].size,)) for id in ids])
        if all(id in self._known.given and id not in self._placed for id in ids):
            self._returned[ids] = made
            self._placed.update(ids)
        return made

    def _read_from_packs(self) -> tuple[dict[int, Node], dict[int, int]]:
        """All nodes, with state read from the packs; and what stands for nodes that are gone."""
        builder = self._builder
        new = {i: self._packs[inputs].id for inputs in self._same for i in inputs}
        packed = {i for inputs in self._packs for i in inputs}
        first = {id: node for id, node in self._nodes.items() if not node.inputs and id not in packed}
        first |= {s.id: builder.nodes[s.id] for s in self._packs.values()}
        for inputs, pack in self._packs.items():
            if inputs in self._same:
                continue
            start = 0
            for i in inputs:
                node, stop = self._nodes[i], start + self._nodes[i].size
                place = {"start": (start,), "stop": (stop,), "step": (1,)}
                part = builder.append(_SLICE, (pack.id,), place, (Aval((node.size,), node.dtype),))
                first[part] = builder.nodes[part]
                first[i] = Node(i, _RESHAPE, (part,), {"shape": node.shape}, node.results, "", "")
                start = stop
        rest = {id: n.on(tuple([new.get(i, i) for i in n.inputs])) for id, n in builder.nodes.items()
                if id not in first and id not in packed}  # fmt: skip
        return first | rest, new


def _within(ids: _Ids, equal: Collection[_Ids]) -> _Ids | None:
    """That of the sets of equal numbers in which all of `ids` are."""
    return next((same for same in equal if set(ids) <= set(same)), None)


def _by(items: Iterable[_T], key: Callable[[_T], Hashable]) -> list[list[_T]]:
    """The items in groups of equal keys."""
    found: dict[Hashable, list[_T]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return list(found.values())
