"""Splitting a differentiated program in two: a forward graph that also returns residuals, and a backward graph.

Which values become residuals is a question of prices (`graphc.ir.cut`): of the memory that a residual takes until
backward runs, and of the work of computing it there again. Only pointwise operations and movement are computed again,
which XLA fuses into what reads them, never a product or a sort; and of those no long chains, for a program that
computes all of its forward part again keeps as much as it saves.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from eager.core.tensor import Tensor
from graphc.autodiff import pullback
from graphc.capture.program import Program
from graphc.capture.sources import Draw, History
from graphc.errors import CaptureError
from graphc.execution.prices import USUAL, Recomputation, movable, prices
from graphc.execution.segments import recomputing
from graphc.ir import INPUT, Builder, Graph, Node, Ref, refs_of
from graphc.ir.cut import cheapest_cut
from graphc.ir.garbage_collection import without_collector
from graphc.ir.structure import ancestors, inline
from graphc.passes import Settings, optimize

LIVE = History.LIVE


class Split(NamedTuple):
    """forward returns (result, effects, residuals); backward takes residuals, forward inputs and cotangents.

    saved        numbers of the forward inputs that backward reads, which come after the residuals
    wrt          numbers of the forward inputs that the gradients are for, in the order in which backward returns them:
                 those that the cotangents reach
    late         tensors that only the user's gradient rules reach: the last inputs of backward
    error        what a gradient rule of the user's has raised, for the caller of backward
    residuals    numbers of the residuals that backward takes; None for all
    """

    forward: Graph
    backward: Graph
    saved: tuple[int, ...]
    wrt: tuple[int, ...]
    late: tuple[Tensor, ...] = ()
    error: Exception | None = None
    residuals: tuple[int, ...] | None = None


def with_effects(program: Program) -> Graph:
    """The graph of `program` that returns (result, values of its effects)."""
    graph = program.graph
    effects = tuple(Ref(e.id) for e in program.effects.tensors if e.id is not None)
    return graph.replace(graph.nodes, (graph.result, effects))


class Joint(NamedTuple):
    """A program and its gradients as one graph; what `partition` takes, and the late tensors of the split.

    read  numbers of the forward inputs that gradient rules read, before passes have changed what reads what
    """

    graph: Graph
    forward_inputs: int
    wrt: tuple[int, ...]
    draws: tuple[int, ...]
    late: tuple[Tensor, ...]
    read: frozenset[int]

    def split(self, again: Recomputation = USUAL) -> Split:
        """The two programs."""
        found = partition(self.graph, self.forward_inputs, self.wrt, self.draws, again, self.read)
        return found._replace(late=self.late)


def split(program: Program, wrt: list[int], settings: Settings) -> Split:
    """Differentiate `program` with respect to its inputs, and the leaves it makes, of numbers `wrt`, and split it.

    The whole is optimized first. What the backward part needs of the forward part becomes a residual; inputs are
    passed on, and constants are repeated, instead of being returned.
    """
    joint = differentiated(program, wrt, settings)
    return joint.split() if isinstance(joint, Joint) else joint


def differentiated(program: Program, wrt: list[int], settings: Settings) -> Joint | Split:
    """`program` and its gradients, before they are split; the split if the user's gradient rules cannot run."""
    whole = with_effects(program)
    try:
        builder, found, late = _differentiated(program, whole, wrt)
    except _Refused as refused:
        # it is the user's rules that cannot run: forward is right, backward raises
        alone = optimize(whole.replace(whole.nodes, (whole.result, ())), **settings._asdict())
        return partition(alone, len(whole.inputs), tuple(wrt))._replace(error=refused.error)
    joint = builder.graph(whole.name, (whole.result, tuple(Ref(id) for id in found.values())))
    read = _read_by_rules(joint, len(whole.inputs))
    joint = recomputing(optimize(joint, **settings._asdict()))
    draws = tuple(k for k, source in enumerate(program.sources) if isinstance(source, Draw))
    return Joint(joint, len(whole.inputs), tuple(found), draws, late, read)


def split_for(program: Program, wrt: list[int], settings: Settings, arrived: Collection[int], forward: Graph) -> Split:
    """What `split` gives for cotangents of the results number `arrived` alone, of those that can be differentiated.

    A gradient that has not arrived is not one of zeros: what it does not reach gets none, rules and hooks of the user's
    on the way are not called, and no 0 * inf becomes nan. `forward` is the forward part that has run already: where
    its residuals do not give what these gradients are made of, the backward part computes it from the inputs.
    """
    whole = with_effects(program)
    try:
        builder, found, late = _differentiated(program, whole, wrt, arrived)
    except _Refused as refused:
        return Split(forward, forward, (), tuple(wrt), error=refused.error)
    # beside what forward has computed, so that what is the same becomes one node
    inputs = [builder.symbol(id) for id in whole.inputs]
    computed = inline(builder, forward.replace(forward.nodes, forward.result[-1]), inputs)
    joint = builder.graph(whole.name, (tuple(Ref(s.id) for s in computed), tuple(Ref(id) for id in found.values())))
    joint = recomputing(optimize(joint, **settings._asdict()))
    residuals = [ref.id for ref in joint.result[0]]
    number = {id: k for k, id in reversed(list(enumerate(residuals)))}
    backward, taken, saved = _backward_part(joint, len(whole.inputs), list(number))
    return Split(forward, backward, saved, tuple(found), late, residuals=tuple(number[id] for id in taken))


class _Refused(Exception):
    """A gradient rule of the user's cannot run: `error` says why."""

    def __init__(self, error: Exception):
        super().__init__()
        self.error = error


def _differentiated(
    program: Program, whole: Graph, wrt: list[int], arrived: Collection[int] | None = None
) -> tuple[Builder, dict[int, int], tuple[Tensor, ...]]:
    """The gradients of the inputs and leaves `wrt`, of the cotangents `arrived` (None: all).

    Returns who has built them; the node of each, by number, for those that get one; and what only the user's rules
    reach. Raises _Refused.
    """
    outputs = [r.id for r, h in zip(refs_of(program.graph.result), program.result.histories, strict=True) if h is LIVE]

    def seeds(builder: Builder) -> dict[int, Any]:
        found: dict[int, Any] = {}
        for k, id in enumerate(outputs):
            if arrived is None or k in arrived:
                ct = builder.input(f"ct_{k}", whole.nodes[id].aval)
                found[id] = found[id] + ct if id in found else ct
        return found

    at_once = [k for k in wrt if k < len(whole.inputs) and k not in program.recorded.late]
    targets = [(k, whole.inputs[k]) for k in at_once]
    targets += [(k, id) for id, k in program.recorded.ends if k in wrt]
    try:
        builder, grads, late = _pulled(program, whole, seeds, [id for _, id in targets])
    except Exception as error:
        if program.recorded.rules is None and not isinstance(error, CaptureError):
            raise
        raise _Refused(error) from error
    totals: dict[int, Any] = {}
    for k, id in targets:
        if id in grads:
            totals[k] = totals[k] + grads[id] if k in totals else grads[id]
    return builder, {k: totals[k].id for k in wrt if k in totals}, tuple(late)


def _pulled(
    program: Program, whole: Graph, seeds: Callable[[Builder], dict[int, Any]], ends: list[int]
) -> tuple[Builder, dict[int, Any], list[Tensor]]:
    """The gradients of the nodes `ends`: who has built them, the gradients, and what only the user's rules reach."""
    if program.recorded.rules is not None:
        return program.recorded.rules.pullback(whole, seeds, ends)
    builder = Builder(whole.nodes, whole=True)
    builder.inputs = list(whole.inputs)
    return builder, pullback(builder, seeds(builder), ends, program.recorded.nodes), []


@without_collector
def partition(
    joint: Graph, forward_inputs: int, wrt: tuple[int, ...] = (), constant: Collection[int] = (),
    again: Recomputation = USUAL, read: Collection[int] | None = None,
) -> Split:  # fmt: skip
    """Split a graph that computes results and gradients of them.

    joint           its result is a pair: a tuple that the forward part returns, and a tuple of Refs, the gradients
    forward_inputs  how many of its inputs, the first ones, are given to the forward part; the others (cotangents) are
                    given to the backward part alone
    wrt             is passed on to the result
    constant        numbers of forward inputs that nobody writes before backward has run: random draws, say, or, in the
                    body of a loop, all of them
    again           what may be computed twice
    read            numbers of the forward inputs that gradient rules read; None: those that what is computed for the
                    gradients alone reads

    forward takes the forward inputs and returns (*results, residuals), with the residuals as a tuple of Refs; backward
    takes the residuals, the forward inputs whose numbers are in `saved`, and the other inputs, and returns the
    gradients. Both compute what `joint` does, bit for bit.

    Residuals are chosen by a minimum cut. A forward input that the gradient rules read costs nothing, it exists anyway.
    Another one that is not `constant` may be written between forward and backward, as in eager: it is a residual, a
    copy, if anything is computed from it. Results cost little: the caller holds them.
    """
    nodes = joint.nodes
    result, gradients = joint.result
    ours = joint.inputs[:forward_inputs]
    first = _with_items(nodes, ancestors(nodes, [r.id for r in refs_of(result)]))
    needed = ancestors(nodes, [r.id for r in gradients])
    late = _late(nodes, needed, first, joint.inputs[forward_inputs:])
    # what the backward part asks of what does not depend on cotangents
    asked = {i for id in late for i in nodes[id].inputs if i not in late} | {
        r.id for r in gradients if r.id not in late
    }
    there = {i for id in needed - first for i in nodes[id].inputs} | asked
    there = there.intersection(ours if read is None else [ours[k] for k in read]) | {ours[k] for k in constant}
    early = {id: n.inputs for id, n in nodes.items() if id not in late and (id in first or id in needed)}
    costs = prices(nodes, early, first, {r.id for r in refs_of(result)}, there, again)
    residuals = sorted(cheapest_cut(early, costs, asked), key={id: k for k, id in enumerate(nodes)}.__getitem__)

    backward, residuals, saved = _backward_part(joint, forward_inputs, residuals)
    kept = first | ancestors(nodes, residuals)
    # an input that only the backward part reads is no ancestor of the result, and still an input of the forward part
    forward_nodes = {id: n for id, n in nodes.items() if id in kept or id in ours}
    forward = Graph(joint.name, forward_nodes, ours, (*result, tuple(Ref(id) for id in residuals)), joint.history)

    return Split(forward, backward, saved, wrt)


def _backward_part(joint: Graph, forward_inputs: int, residuals: list[int]) -> tuple[Graph, list[int], tuple[int, ...]]:
    """The part of `joint` that computes the gradients, which are the second of its results.

    residuals  ids of nodes whose values are given, where they are needed

    Returns the graph, the residuals that it takes, and the numbers of the forward inputs that it takes after them.
    """
    nodes, gradients = joint.nodes, joint.result[1]
    ours = joint.inputs[:forward_inputs]
    again = ancestors(nodes, [r.id for r in gradients], frozenset(residuals))
    taken = [id for id in residuals if id in again]
    saved = [id for id in ours if id in again and id not in taken]
    backward_nodes: dict[int, Node] = {}
    for id in taken:
        backward_nodes[id] = Node(id, INPUT, (), {"name": f"residual_{id}"}, nodes[id].results, nodes[id].where)
    inputs = (*taken, *saved, *joint.inputs[forward_inputs:])
    for id, node in nodes.items():
        if id not in backward_nodes and (id in again or id in inputs):
            backward_nodes[id] = node
    number = {id: k for k, id in enumerate(ours)}
    backward = Graph(f"{joint.name}_backward", backward_nodes, inputs, gradients, joint.history)
    return backward, taken, tuple(number[id] for id in saved)


def _read_by_rules(joint: Graph, forward_inputs: int) -> frozenset[int]:
    """The numbers of the forward inputs that gradients alone read, as they are or as views."""
    result, gradients = joint.result
    first = ancestors(joint.nodes, [r.id for r in refs_of(result)])
    needed = ancestors(joint.nodes, [r.id for r in gradients])
    pending = list({i for id in needed - first for i in joint.nodes[id].inputs} | {r.id for r in gradients})
    there = set(pending)
    while pending:
        node = joint.nodes[pending.pop()]
        if node.op.lens is not None and node.inputs[0] not in there:
            there.add(node.inputs[0])
            pending.append(node.inputs[0])
    return frozenset(k for k, id in enumerate(joint.inputs[:forward_inputs]) if id in there)


def _with_items(nodes: Mapping[int, Node], first: set[int]) -> set[int]:
    """`first`, and what takes results out of its operations with several: those themselves are no arrays."""
    found = set(first)
    for id, node in nodes.items():
        if node.inputs and all(i in first and nodes[i].op.several for i in node.inputs):
            found.add(id)
    return found


def _late(
    nodes: Mapping[int, Node], needed: Collection[int], first: Collection[int], cotangents: Collection[int]
) -> set[int]:
    """What can only be computed in the backward part: what depends on cotangents, and what must not run elsewhere."""
    late = set(cotangents)
    for id, node in nodes.items():
        fixed = id in needed and id not in first and node.op is not INPUT and not movable(node)
        if fixed or not late.isdisjoint(node.inputs):
            late.add(id)
    return late
