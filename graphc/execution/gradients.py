"""Gradients through the calls of a program: their node on eager's tape, and a replay for gradients of gradients."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NoReturn, final

import numpy as np

from eager import autograd
from eager.core import state, tape
from eager.core.devices import CPU
from eager.core.interpreter import IMMEDIATE, interpreting
from eager.core.placed import Placed, is_placed
from eager.core.tensor import Tensor
from eager.engine.crossing import crossings, transferred
from eager.engine.language import E
from graphc.capture.flow.bodies import with_rules
from graphc.capture.program import Program
from graphc.capture.sources import Effect
from graphc.capture.storage.sharing import given
from graphc.execution.partition import Split
from graphc.execution.replay import run_node
from graphc.ir import Graph, refs_of
from graphc.ir.structure import ancestors


@final
class Gradients:
    """The gradients of a program's results.

    split, backward  the parts of the program, and the backward part made ready
    live, avals  the outputs that can be differentiated
    where      the device of the tensors; None for the CPU
    """

    def __init__(
        self, split: Split, backward: Any, live: Sequence[int], where: Any, *, program: Program, graph: Graph,
        effects: Sequence[Effect], first_residual: int, part_for: Callable[[Collection[int]], Split],
        lower: Callable[[Split], Any], lie: tuple[Sequence[Any], Sequence[Any]] | None = None,
    ):  # fmt: skip
        """program, graph  what was captured: the program, and its graph with the outputs of what XLA is given
        effects         that have a value
        first_residual  the number of the first output that is one
        part_for        the split for cotangents of some of the live results
        lower           makes the backward part of a split ready
        lie             where each live result lies, and each input, if these are not all at `where`
        """
        self.split, self.backward = split, backward
        self.live, self.where = live, where
        self._program, self._graph, self._sources, self._effects = program, graph, program.sources, effects
        self._first_residual = first_residual
        self._part_for, self._lower, self._lie = part_for, lower, lie
        self._partial: dict[frozenset[int], tuple[Split, Any]] = {}  # by the cotangents that have arrived
        self.avals = [graph.nodes[graph.outputs[k]].aval for k in live]

    def join(self, live: list[Tensor], arrays: list[Any], outputs: Any, tensors: list[Tensor]) -> tape.Node:
        """Give the `live` results a node whose parents are the inputs that gradients are for. Returns the node.

        Its parents that the program makes are still missing.
        """
        sources = self._sources
        parents = [given(sources[k], tensors)._n if k < len(sources) else None for k in self.split.wrt]
        residuals = list(outputs[self._first_residual :])
        kept = list(arrays)
        for k in self._rewritten:
            if arrays[k].__class__ is np.ndarray:
                kept[k] = arrays[k].copy()  # as it was, for a replay
        if len(live) == 1:
            saved = (self, residuals, [arrays[k] for k in self.split.saved], Inputs(kept))
        else:
            # which inputs are read depends on the results that gradients arrive at; and none are freed by a walk from
            # one result: others may follow from the rest
            saved = [self, residuals, [], Inputs(kept)]
        if self._lie:
            crossings[:] = [True]
        owner = tape.new_node(COMPILED if self._lie is None else ACROSS, saved, *parents)
        for t, node in zip(live, tape.output_nodes(owner, len(live), freed=True), strict=True):
            t._n = node
        return owner

    def shares(self, node: tape.Node, g: Any) -> list[tuple[tape.Node, np.ndarray]]:
        """What the parents of a call's `node` get, each that the cotangents which have arrived reach."""
        arrived = {k: np.asarray(d) for k, d in tape.arrived(g).items()}
        return [(parent, np.asarray(d)) for parent, d in self._shares(node, arrived)]

    def placed(self, array: Any) -> Placed:
        """The data of a tensor over an array of the program's."""
        return Placed(array, self.where)

    def placed_shares(self, node: tape.Node, g: Any) -> list[Tensor | None]:
        """What all parents get, where the tensors are on a device."""
        arrived = {k: self._given(d, k) for k, d in tape.arrived(g).items()}
        found = {id(p): Tensor._wrap(self._made(d, k)) for k, p, d in self._numbered(node, arrived) if p is not None}
        return [found.get(id(parent)) for parent in node[tape.PARENTS :]]

    def _given(self, cotangent: Tensor, k: int) -> Any:
        """What the backward part is given of the cotangent of live result number `k`."""
        where = self._lie[0][k] if self._lie else self.where
        return cotangent._array() if where is CPU else transferred(cotangent, where)._d.array

    def _made(self, array: Any, k: int) -> Any:
        """The data of the gradient of input number `k`."""
        where = self._lie[1][k] if self._lie and k < len(self._lie[1]) else self.where
        return np.asarray(array) if where is CPU else Placed(array, where)

    def _shares(self, node: tape.Node, arrived: dict[int, Any]) -> list[tuple[tape.Node, Any]]:
        return [(parent, d) for _, parent, d in self._numbered(node, arrived)]

    def _numbered(self, node: tape.Node, arrived: dict[int, Any]) -> list[tuple[int, tape.Node, Any]]:
        """The number of an input, who it is of, and its gradient."""
        _, residuals, read, given = node[tape.SAVED]
        part, backward = self.split, self.backward
        if len(self.live) > 1:
            part, backward = self._part(frozenset(arrived))
            read = [given.arrays[k] for k in part.saved]
            if -node[0] < state.latest_mutation:
                tape.check_unmodified(node, read)
        if part.error is not None:
            raise part.error
        if part.residuals is not None:
            residuals = [residuals[k] for k in part.residuals]
        late = [t._d.array if is_placed(t) else t._array() for t in part.late]
        outputs = backward.call(*residuals, *read, *arrived.values(), *late)
        parents = dict(zip(self.split.wrt, node[tape.PARENTS :], strict=True))
        return [(k, parents[k], d) for k, d in zip(part.wrt, outputs, strict=True) if k in parents]

    def _part(self, arrived: frozenset[int]) -> tuple[Split, Any]:
        """The gradients of the live results number `arrived`, and the program that computes them."""
        if len(arrived) == len(self.live):
            return self.split, self.backward
        if arrived not in self._partial:
            part = self._part_for(arrived)
            self._partial[arrived] = part, None if part.error is not None else self._lower(part)
        return self._partial[arrived]

    def replay(self, inputs: list[Tensor], parents: Mapping[int, Any]) -> tuple[list[Tensor], list[tuple[int, Tensor]]]:
        """The results that require grad, computed op by op on Tensors: for gradients that are differentiated again.

        parents: the tape node of each input and of each leaf made, by number. Returns also the places, besides the
        inputs, at which gradients for them arrive (leaves that the program has made or written), each after the number.
        """
        graph, recorded, late = self._replayed
        values: dict[int, Any] = dict(zip(graph.inputs, [*inputs, *late], strict=True))
        leaves, ends = dict(self._program.recorded.ends), list[tuple[int, Tensor]]()
        for node in graph.operations():
            if node.id in self._relevant:
                result = run_node(node, [values[i] for i in node.inputs])
                stops = node.id not in recorded and not isinstance(result, tuple)
                result = E.stop_gradient(result) if stops else result
                if leaves.get(node.id) in parents and isinstance(result, Tensor):
                    result._n = parents[leaves[node.id]]
                    result = E.positive(result)
                    ends.append((leaves[node.id], result))
                values[node.id] = result
        refs = refs_of(graph.result)
        return [values[refs[k].id] for k in self.live], ends

    @property
    def late_leaves(self) -> frozenset[int]:
        """See `Recorded`."""
        return self._program.recorded.late

    @functools.cached_property
    def _replayed(self) -> tuple[Graph, Collection[int], list[Tensor]]:
        """The graph that is replayed, with the user's gradient rules; its recorded nodes; what only the rules reach."""
        rules = self._program.recorded.rules
        if rules is None:
            return self._graph, self._program.recorded.nodes, []
        return with_rules(rules, self._graph)

    @functools.cached_property
    def _rewritten(self) -> list[int]:
        """Numbers of the inputs that `replay` reads, and that the program itself overwrites."""
        written = {effect.target for effect in self._effects}
        # which the rules read is not known until they are traced
        any_of_them = self._program.recorded.rules is not None
        inputs = zip(self._sources, self._graph.inputs, strict=True)
        return [k for k, (source, id) in enumerate(inputs)
                if source in written and (any_of_them or id in self._relevant)]  # fmt: skip

    @functools.cached_property
    def _relevant(self) -> set[int]:
        """The nodes that the results which require grad are made of: not those that only the effects need."""
        graph = self._replayed[0]
        refs = refs_of(graph.result)
        return ancestors(graph.nodes, [refs[k].id for k in self.live])

    def unmodified(self, node: tape.Node, given: list[Any]) -> None:
        """Raise RuntimeError if an input that `replay` reads has been written in place since the call of `node`."""
        inputs = zip(self._graph.inputs, given, strict=True)
        tape.check_unmodified(node, [array for id, array in inputs if id in self._relevant])


# a tape node has saved (gradients, residuals, inputs that backward reads, Inputs)


@final
class Inputs:
    """The arrays that a call was given, for replaying it; backward itself may read fewer, and cares for no others."""

    __slots__ = ("arrays",)

    def __init__(self, arrays: list[Any]):
        self.arrays = arrays


def _broken(node: tape.Node, *_: Any) -> NoReturn:
    raise RuntimeError(*node[tape.SAVED])


def _backward(node: tape.Node, g: Any, heap: list[tape.Node]) -> None:
    for parent, d in node[tape.SAVED][0].shares(node, g):
        tape.give(parent, d, heap)


def _on_tensors(node: tape.Node, g: Any) -> list[Tensor | None]:
    """Gradients that can be differentiated again: the graph is replayed on Tensors, and its tape walked."""
    own, _, _, given = node[tape.SAVED]
    if own.where is not None and not state.grad_enabled():
        return own.placed_shares(node, g)
    parents = dict(zip(own.split.wrt, node[tape.PARENTS :], strict=True))
    leaves = {k: parent for k, parent in parents.items() if k not in own.late_leaves}
    inputs: list[Tensor] = []
    own.unmodified(node, given.arrays)
    # under vmap, the cotangents are batched; what the program was given is not
    with interpreting(IMMEDIATE), autograd.enable_grad():
        for k, array in enumerate(given.arrays):
            there = own.where is not None and array.__class__ is not np.ndarray
            t = Tensor._wrap(own.placed(array) if there else np.asarray(array))
            t._n = leaves.get(k)
            inputs.append(E.positive(t) if k in leaves else t)
        results, ends = own.replay(inputs, parents)
    ends = [*((k, inputs[k]) for k in leaves if k < len(inputs)), *ends]
    shares: dict[int, Tensor] = {}
    with autograd.enable_grad():
        arrived = tape.arrived(g)
        chosen = [results[k] for k in arrived]
        found = autograd.grad(
            chosen, [t for _, t in ends], list(arrived.values()), create_graph=True, allow_unused=True
        )
        for (k, _), d in zip(ends, found, strict=True):
            if d is not None:
                shares[k] = shares[k] + d if k in shares else d
    return [shares.get(k) for k in parents]


COMPILED = tape.Backward(_backward, "CompiledBackward", on_tensors=_on_tensors)
ACROSS = tape.Backward(_backward, "CompiledBackward", on_tensors=_on_tensors, crosses=True)
BROKEN = tape.Backward(_broken, "CompiledBackward", on_tensors=_broken)
ENDED = tape.END.renamed("CompiledBackward")
