"""Autograd under a trace: the graph is the tape, and `backward()` is the transform of `graphc.autodiff` on it."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, final

from eager.core import tape
from eager.core.grad_mode import set_grad_enabled
from eager.core.state import grad_enabled
from eager.core.tensor import Tensor
from eager.engine import hooks
from eager.sparse.rows import gradient_of_rows
from graphc import errors
from graphc.autodiff import Custom, pullback
from graphc.capture.grads import Grads
from graphc.capture.hooks import Hooks
from graphc.capture.location import user_line
from graphc.capture.sources import History, Returned, ViewOf
from graphc.ir import Builder, Graph, Node, Symbol
from graphc.ir.structure import CUSTOM, ITEM, ancestors, emit
from graphc.ops import OPS
from graphc.ops.rules import torch_name

if TYPE_CHECKING:
    from graphc.capture.trace_state import TraceState
    from graphc.capture.tracer import Tracer

_CLONE, _FULL = OPS["clone"], OPS["full"]


class UserFunction(NamedTuple):
    """A call of an autograd.Function: its `custom_vjp` node, the nodes of its inputs, and its rule.

    called gives the gradients of the inputs, or None, for cotangents of the outputs that are tensors.
    """

    node: int
    inputs: tuple[int, ...]
    called: Callable[[list[Tensor]], list[Tensor | None]]


@final
class Autograd:
    """What the tape is to eager: which nodes gradients flow through, the leaves, and their `.grad`."""

    def __init__(self, state: TraceState, tracer: Tracer):
        self._state, self.tracer = state, tracer
        self._builder = state.builder
        self.freed: set[int] = set()  # nodes that a backward() has gone through
        self._saving: set[int] = set()  # users' Functions that have saved tensors
        self.broken: dict[int, str] = {}  # results -> what their backward() raises
        self._replaying = False  # after the trace, when the tape runs the hooks of leaves
        self._custom: dict[int, Custom] = {}  # the rules of user Functions, by their nodes
        self.functions: list[UserFunction] = []
        self.outside: set[int] = set()  # inputs that are tensors of the program around a function of control flow
        self.hooks = Hooks(state, self)
        self.grads = Grads(state, self)
        self._retained: dict[int, Tensor] = {}  # node -> the tensor, no leaf, whose `.grad` is filled, too
        self._tables: dict[int, tuple[Tensor, Tensor]] = {}  # nodes of looked up rows -> (the table, the indices)

    def backward(
        self,
        outputs: Sequence[Tensor],
        cotangents: Sequence[Tensor],
        inputs: Sequence[Tensor] | None,
        create_graph: bool,
        keep: bool,
    ) -> None:
        """See `eager.core.interpreter.Interpreter`."""
        for output in outputs:  # a leaf itself, perhaps, that nothing has used yet
            self.tracer.read(output)
        wrt = self._state.leaves if inputs is None else {i: t for t in inputs for i in self._nodes_of(t)}
        tables = {} if create_graph else self._tables_of(wrt)
        aims = [i for i in wrt if i not in {k for weight, _ in tables.values() for k in self._ids_of(weight)}]
        grads = self._pullback(outputs, cotangents, [*aims, *tables], create_graph, keep)
        for id_, (weight, where) in tables.items():
            if id_ in grads:
                g = self.tracer.wrap(grads.pop(id_), False)
                self.grads.accumulate_sparse(weight, gradient_of_rows(where, g, tuple(weight._d.shape)))
        for id_, g in grads.items():
            tensor = wrt[id_]
            if tensor._n is None:  # it requires no grad any more
                continue
            if inputs is None and not tensor.is_leaf:
                self.grads.goes_on(tensor, g, keep)
                continue
            self.grads.accumulate(tensor, g, create_graph)
            if isinstance(tensor._n, list) and (found := hooks.hooks_of(tensor._n)):
                found.call_accumulated(tensor)

    # tables of which rows are looked up: their gradient is sparse
    def looked_up(self, rows: Tensor, weight: Tensor, where: Tensor) -> None:
        """See `eager.core.interpreter.Interpreter`."""
        self._tables[self.tracer.read(rows).id] = weight, where

    def _ids_of(self, leaf: Tensor) -> list[int]:
        return [i for i, t in self._state.leaves.items() if t is leaf]

    def _tables_of(self, wrt: Mapping[int, Tensor]) -> dict[int, tuple[Tensor, Tensor]]:
        """The lookups in leaves among `wrt` that nothing else is computed from, by the node of their rows."""
        if not self._tables:
            return {}
        leaves = {i: t for i, t in wrt.items() if t.is_leaf}
        users: dict[int, set[int]] = {i: set() for i in leaves}
        for id_ in self._state.recorded:
            for source in self._builder.nodes[id_].inputs:
                if source in users:
                    users[source].add(id_)
        whole = {id(leaves[i]) for i, found in users.items() if not found <= self._tables.keys()}
        return {i: (w, where) for i, (w, where) in self._tables.items()
                if id(w) not in whole and any(w is t for t in leaves.values())}  # fmt: skip

    def gradients(
        self,
        outputs: Sequence[Tensor],
        cotangents: Sequence[Tensor],
        inputs: Sequence[Tensor],
        create_graph: bool,
        keep: bool,
    ) -> list[Tensor | None]:
        """See `eager.core.interpreter.Interpreter`."""
        tracer = self.tracer
        ids = [self._nodes_of(t) for t in inputs]
        grads = self._pullback(outputs, cotangents, [i for nodes in ids for i in nodes], create_graph, keep)
        shares = [[grads[i] for i in nodes if i in grads] for nodes in ids]
        live = self.live() if create_graph else ()
        flags = [any(g.id in live for g in found) for found in shares]
        return [
            tracer.wrap(functools.reduce(operator.add, found), flag) if found else None
            for found, flag in zip(shares, flags, strict=True)
        ]

    def gradients_of_batch(
        self,
        outputs: Sequence[Tensor],
        batches: Sequence[tuple[Tensor, Tensor]],
        inputs: Sequence[Tensor],
        create_graph: bool,
        keep: bool,
        apply: Callable[..., Any],
    ) -> list[Tensor | None] | None:
        """See `eager.core.interpreter.Interpreter`: the nodes that give the gradients of one, anew for the batch."""
        tracer, nodes = self.tracer, self._builder.nodes
        loops = any(nodes[i].op.structured for i in self.history_of([tracer.read(t).id for t in outputs]))
        if loops or self.has_rules or self._retained:  # whose user sees each of the batch
            return None
        values: dict[int, Any] = {tracer.read(one).id: batch for batch, one in batches if one is not batch}
        found = self.gradients(outputs, [one for _, one in batches], inputs, create_graph, keep)
        ids = [None if g is None else tracer.read(g).id for g in found]
        live = self.live() if create_graph else ()
        with set_grad_enabled(create_graph):
            for node in _between(nodes, values, [i for i in ids if i is not None]):
                if node.op is ITEM:
                    values[node.id] = values[node.inputs[0]][node.params["index"]]
                    continue
                operands = [
                    values[i] if i in values else tracer.wrap(self._builder.symbol(i), i in live) for i in node.inputs
                ]
                values[node.id] = apply(node.op, operands, node.params)
        return [g if i is None else values.get(i, g) for i, g in zip(ids, found, strict=True)]

    def live(self, among: Collection[int] | None = None) -> set[int]:
        """The nodes, of recorded ones, from which gradients flow to a leaf: not the constants recorded beside them.

        among  all that are asked about, and what they were computed through
        """
        live = set(self._state.leaves)
        nodes = self._builder.nodes
        for id_ in nodes if among is None else sorted(among):
            node, op = nodes[id_], nodes[id_].op
            through = (i for k, i in enumerate(_sources(node)) if op.structured or op.arg_of(k) in op.vjp)
            if id_ in self._state.recorded and not live.isdisjoint(through):
                live.add(id_)
        return live

    def _nodes_of(self, tensor: Tensor) -> list[int]:
        """The nodes at which gradients for a tensor arrive: a leaf that has been written has one for each value."""
        id_ = self.tracer.read(tensor).id
        leaf = self._state.leaves.get(id_)
        return [id_] if leaf is None else [i for i, t in self._state.leaves.items() if t is leaf]

    def _pullback(
        self, outputs: Sequence[Tensor], cotangents: Sequence[Tensor], wrt: list[int], create_graph: bool, keep: bool
    ) -> dict[int, Symbol]:
        tracer, builder = self.tracer, self._builder
        builder.where = user_line()
        walked = self._towards(wrt, self.history_of([tracer.read(t).id for t in outputs]))
        if problem := self._problem(walked):
            raise RuntimeError(problem)
        seeds: dict[int, Symbol] = {}
        for output, cotangent in zip(outputs, cotangents, strict=True):
            id_, g = tracer.read(output).id, tracer.read(cotangent)
            seeds[id_] = seeds[id_] + g if id_ in seeds else g
        before = builder.next_id
        with set_grad_enabled(create_graph):
            grads = self._apart(self._walk(builder, seeds, wrt, create_graph), before)
        if create_graph:
            self._state.recorded.update(range(before, builder.next_id))
        if not keep:
            self.freed |= {i for i in walked if i in self._saving or _saves(builder.nodes[i], builder.nodes)}
        return grads

    def _towards(self, wrt: Collection[int], among: Collection[int]) -> set[int]:
        """The nodes, of the recorded ones `among`, from which gradients go on to one of the nodes `wrt`."""
        found: set[int] = set()
        for id_ in sorted(among):
            if any(i in found or i in wrt for i in _sources(self._builder.nodes[id_])):
                found.add(id_)
        return found

    def _apart(self, grads: dict[int, Symbol], first: int) -> dict[int, Symbol]:
        """`grads` as nodes, each of one tensor alone: what is written to it is written to no other gradient or seed."""
        taken: set[int] = set()
        for id_, g in grads.items():
            if g.id < first or g.id in taken:
                grads[id_] = self._copy(g)
            taken.add(g.id)
        return grads

    def _copy(self, g: Symbol) -> Symbol:
        return self._builder.emit(_CLONE, (g,), {})

    def _walk(self, builder: Builder, seeds: dict[int, Symbol], wrt: Collection[int], create_graph: bool) -> Any:
        arrived = functools.partial(self._arrived, create_graph=create_graph)
        return pullback(builder, seeds, wrt, self._state.recorded, custom=self._custom, arrived=arrived)

    def _problem(self, walked: Collection[int]) -> str:
        """Why a gradient rule of these nodes does not have what it needs: freed, or written in place. "" if it has."""
        if not self.freed.isdisjoint(walked):
            return tape.FREED
        late = self._state.memories.overwritten
        if not late:
            return ""
        nodes = self._builder.nodes
        live = self.live(walked)
        for id_ in sorted(live.intersection(walked), reverse=True):
            node = nodes[id_]
            names = {
                name
                for k, i in enumerate(node.inputs)
                if i in live and node.op.arg_of(k) in node.op.vjp
                for name in node.op.vjp[node.op.arg_of(k)].names
            }
            saved = [i for k, i in enumerate(node.inputs) if node.op.arg_of(k) in names]
            for i in [*saved, *([id_] if "r" in names else ())]:
                if i in late:
                    aval, origin = nodes[i].aval, ""
                    if nodes[i].op.differentiable and i in self._state.recorded:
                        origin = f", which is output 0 of {nodes[i].op.node_name.partition('Backward')[0]},"
                    now, then = late[i] + 1, late[i]
                    return tape.MODIFIED.format(
                        dtype=torch_name(aval.dtype), shape=list(aval.shape), origin=origin, now=now, then=then
                    )
        return ""

    def retain(self, tensor: Tensor) -> None:
        """See `eager.core.interpreter.Interpreter`."""
        self._retained[self.tracer.read(tensor).id] = tensor

    def _arrived(self, id_: int, g: Symbol, create_graph: bool) -> Symbol:
        """A complete gradient, as the hooks on its tensor leave it."""
        found = self.hooks.of(id_, self._replaying)
        for hook in found:
            result = hook(self.tracer.wrap(g, create_graph))
            g = g if result is None else self.tracer.read(result)
        if (tensor := self._retained.get(id_)) is not None:
            self.grads.accumulate(tensor, self._copy(g), create_graph)
        return self._copy(g) if found else g  # a hook may keep its tensor

    def custom(self, rule: Any, inputs: Sequence[Tensor], outputs: Sequence[Any], wanted: Sequence[bool]) -> list[Any]:
        """See `eager.core.interpreter.Interpreter`."""
        tracer, builder = self.tracer, self._builder
        before = builder.next_id
        given = [tracer.read(t) for t in inputs]
        ids = tuple(symbol.id for symbol in given)
        # results without a gradient take part, so that the numbers agree
        numbers = [k for k, t in enumerate(outputs) if isinstance(t, Tensor)]
        values = [tracer.read(outputs[k]) for k in numbers]
        wrt = tuple(range(len(values), len(values) + len(given)))
        symbols = emit(builder, CUSTOM, [*values, *given], results=len(values), wrt=wrt)
        results = list(outputs)
        for k, symbol in zip(numbers, symbols, strict=True):
            results[k] = tracer.wrap(symbol, wanted[k])
        for k, t in enumerate(outputs):
            if any(t is written for written in rule.ctx.dirty_tensors):  # it is that tensor which has the new history
                tracer.mutation.written(t, results[k], wanted[k])
                results[k] = t
        saved, rule.ctx.to_save = rule.ctx.to_save, ()

        def shares(given: Mapping[int, Symbol]) -> list[tuple[int, Symbol]]:
            cotangents = {numbers[k]: tracer.wrap(g, grad_enabled()) for k, g in given.items()}
            grads = rule.run(cotangents, saved)
            return [(k, tracer.read(g)) for k, g in zip(wrt, grads, strict=True) if g is not None]

        def called(cotangents: list[Tensor]) -> list[Tensor | None]:
            given = {k: ct for k, ct in zip(numbers, cotangents, strict=True) if wanted[k]}
            return rule.run(given, saved)

        node = builder.nodes[symbols[0].id].inputs[0]
        self.functions.append(UserFunction(node, ids, called))
        self._custom[node] = shares
        if saved:
            self._saving.add(node)
        self._state.recorded.update(range(before, builder.next_id))
        return results

    def watched(
        self, results: Iterable[tuple[Tensor, Node, Returned, History]]
    ) -> Iterator[tuple[int, Callable[[Tensor], Any]]]:
        """(number, what registers it) of the hooks on results that are views: each call makes these anew.

        Raises CaptureError where gradients that come from outside would pass a hook, or are to be kept: in the program
        they do not meet those from inside.
        """
        seen: set[int] = set()
        for k, (tensor, node, made, history) in enumerate(results):
            if history is History.LIVE and self._retained.get(node.id) is tensor:
                raise errors.CaptureError(errors.RETAINED_RESULT.format(made=node.where))
            if isinstance(made, ViewOf) and id(tensor) not in seen:
                yield from ((k, hook) for hook in self.hooks.on_view(node.id, made))
            seen.add(id(tensor))

    @property
    def has_rules(self) -> bool:
        """Whether gradients depend on Functions or hooks of the user's."""
        return bool(self._custom or self.hooks)

    @property
    def has_hooks(self) -> bool:
        """Whether hooks of the user's see gradients that arrive within the program."""
        return bool(self.hooks)

    def pullback(
        self, graph: Graph, seeds: Callable[[Builder], dict[int, Symbol]], wrt: list[int]
    ) -> tuple[Builder, dict[int, Symbol], list[Tensor]]:
        """As `graphc.autodiff.pullback`, on a copy of `graph`, the program traced here, with the user's rules.

        They run in this trace, which is open again for them. Returns the builder, too, and the tensors that only the
        rules have reached: the last inputs.
        """
        tracer, builder = self.tracer, self._builder
        self._replaying = True
        try:
            with tracer.reopened(graph), set_grad_enabled(False):
                count = len(self._state.sources)
                given = seeds(builder)
                found = self._walk(builder, given, wrt, False)
                return builder, found, tracer.reached_since(count)
        finally:
            self._replaying = False

    def history_of(self, ids: list[int]) -> set[int]:
        """The recorded nodes that the nodes `ids` were computed through."""
        found: set[int] = set()
        stack = list(ids)
        while stack:
            id_ = stack.pop()
            if id_ in self._state.recorded and id_ not in found:
                found.add(id_)
                stack.extend(_sources(self._builder.nodes[id_]))
        return found

    def history(self, tensor: Tensor) -> History:
        """What autograd knows of `tensor`."""
        if tensor._n is None:
            return History.NONE
        if isinstance(tensor._n, list) and tape.is_leaf(tensor._n) and self._state.owner_of(tensor) is None:
            return History.LEAF
        id_ = self.tracer.read(tensor).id
        problem = self._problem(self.history_of([id_]))
        if problem:
            self.broken[id_] = problem
        return History.BROKEN if problem else History.LIVE

    def has_leaves(self, tensor: Tensor) -> bool:
        """Whether some leaf, live now, can get a gradient from `tensor`."""
        if tensor._n is None:
            return False
        id_ = self.tracer.read(tensor).id
        sources = {id_, *(i for h in self.history_of([id_]) for i in self._builder.nodes[h].inputs)}
        return not sources.isdisjoint(self._state.leaves)


def _between(nodes: Mapping[int, Node], sources: Collection[int], ends: Collection[int]) -> list[Node]:
    """The nodes that `ends` are computed through from `sources`, in order."""
    reached = set(sources)
    for id_ in sorted(ancestors(nodes, ends, sources)):
        if not reached.isdisjoint(nodes[id_].inputs):
            reached.add(id_)
    return [nodes[i] for i in sorted(reached.difference(sources))]


def _sources(node: Node) -> Sequence[int]:
    """The nodes that the history of `node` goes on to: not what a user's Function computed its results from."""
    return [node.inputs[k] for k in node.params["wrt"]] if node.op is CUSTOM else node.inputs


def _saves(node: Node, nodes: Mapping[int, Node]) -> bool:
    """Whether the tape node of `node` keeps values that backward() frees.

    The mask of a write to all of a tensor is none: eager has none.
    """
    names = {name for vjp in node.op.vjp.values() for name in vjp.names}
    read = [nodes[i].op for k, i in enumerate(node.inputs) if node.op.arg_of(k) in names]
    results = {"r", *(f"r_{name}" for name in node.op.results)}
    return not results.isdisjoint(names) or any(op is not _FULL for op in read)
