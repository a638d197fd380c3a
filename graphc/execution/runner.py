"""Running a captured program: fetch its inputs, call it, wrap the results, carry out the effects, join the tape."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple, NoReturn, final

import numpy as np

from eager import autograd
from eager.core import state, tape
from eager.core.interpreter import IMMEDIATE, interpreting
from eager.core.placed import Placed, is_placed
from eager.core.tensor import SEALED_SAVE, Deferred, Sealed, Tensor
from eager.engine.crossing import transferred
from eager.engine.language import E
from graphc.capture.flow.bodies import with_rules
from graphc.capture.materialization import Materializer
from graphc.capture.program import Effects, Program
from graphc.capture.sources import (
    Argument,
    Captured,
    Computed,
    DataOf,
    GradOf,
    GradsOf,
    History,
    LeafFlag,
    Lifted,
    PastOf,
    ViewOf,
)
from graphc.capture.state.arguments import Containers
from graphc.capture.state.environment import Environment
from graphc.capture.storage.sharing import given, owner_of
from graphc.capture.tracer import Tracer
from graphc.capture.tree import map_leaves
from graphc.capture.user_objects import is_traced, opener
from graphc.errors import PathChanged
from graphc.execution.budget import fit_split, fit_step
from graphc.execution.call_code import CallCode
from graphc.execution.on_mesh import OnMesh
from graphc.execution.packs import Packs, repacked
from graphc.execution.partition import Joint, Split, differentiated, split_for
from graphc.execution.plan import Plan, Services
from graphc.execution.prechecks import NONE, Prechecks, prechecks
from graphc.execution.replay import run_node
from graphc.execution.steps import overwrite
from graphc.ir import Graph, Ref, refs_of
from graphc.ir.structure import ancestors
from graphc.lowering import lower, unsuitable
from graphc.passes import Settings, optimize
from graphc.passes.settings import PACKS
from graphc.rewrite import REASSOCIATES
from graphc.sharding.layout import Layout


class OtherPath(Exception):
    """The values of a call lead along another path: `values`, as bytes, of the decisions up to that which differs."""

    def __init__(self, values: tuple[bytes, ...]):
        super().__init__()
        self.values = values


class CheckFailed(Exception):
    """A run-time check of the program has failed; nothing has changed."""


class Output(NamedTuple):
    """A value that the XLA program returns."""

    id: int
    history: History


@final
class Runner:
    """A program made ready to run on the tensors of a call. What the XLA program returns is, in this order: the
    results, the values of the effects, the values decided on, those that nobody reads, and (if gradients may be wanted)
    the residuals.

    stops whether a check or a decision may stop a call, before anything has changed
    run   f(tensors, drawn, given): the result of a call, and its effects; see `CallCode.function`. Raises OtherPath
          or CheckFailed, before anything has changed
    plan, services   what its code is made of
    packs  where its small state lies, if it writes any
    memory_note      what was computed again to keep a budget of memory; "" without one
    unsuitable       why it is a program of XLA although NumPy's was wanted; "" if it is not
    """

    def __init__(
        self, program: Program, tensors: list[Tensor], device: str | None, settings: Settings, backend: str = "jax",
        memory: int | float | None = None, on_mesh: OnMesh | None = None,
    ):  # fmt: skip
        self.where: Any = program.device
        if self.where is not None:
            device = str(self.where) if self.where.mesh is None or self.where.type != "xla" else None
        self._program, self._on_mesh = program, on_mesh
        self._sources = program.sources
        self._effects = [e for e in program.effects.tensors if e.id is not None]
        flags = [e.target for e in program.effects.tensors if isinstance(e.target, LeafFlag)]
        self._places: dict[Computed, int] = {}  # which output a result is
        outputs = [*self._results(), *(Output(e.id, e.history) for e in self._effects if e.id is not None)]
        self._count = len(outputs)
        self._first_residual = len(outputs) + len(program.checks.decisions) + len(program.checks.unread)
        ids = [output.id for output in outputs] + [d.id for d in program.checks.decisions] + list(program.checks.unread)
        graph = self._graph = program.graph.replace(program.graph.nodes, tuple(map(Ref, ids)))
        self._live = [k for k, output in enumerate(outputs) if output.history is History.LIVE]
        broken = {k: program.recorded.broken[o.id] for k, o in enumerate(outputs) if o.history is History.BROKEN}
        self._split: Split | None = None
        self.backward: Any = None
        self._device, self._settings, self._backend, self._ends = device, settings, backend, list[int]()
        self.unsuitable = self.memory_note = ""
        self._partial: dict[frozenset[int], tuple[Split, Any]] = {}  # by the cotangents that have arrived
        becoming = [f.of for f in flags if f.flag]
        wrt = [k for k, s in enumerate(program.sources) if _requires_grad(s, tensors) or s in becoming]
        donated: dict[int, int] = {}  # input -> output
        self.packs: Packs | None = None
        of = [program.sources[k] for k in wrt]
        ends = [*wrt, *range(len(program.sources), len(program.sources) + len(program.result.made))]
        if self._live and ends:
            histories = tuple(o.history for o in outputs) + (History.NONE,) * (len(ids) - len(outputs))
            self._differentiated = program._replace(
                graph=graph, result=program.result._replace(histories=histories), effects=Effects()
            )
            found = differentiated(self._differentiated, ends, settings)
            if memory is not None and isinstance(found, Joint):
                fit = fit_split(found, memory, self._lower_both)
                self._split, (self.forward, self.backward), self.memory_note = fit.made_of, fit.programs, fit.note
            else:
                self._split = found.split() if isinstance(found, Joint) else found
                self.forward, self.backward = self._lower_both(self._split)
            assert self._split is not None
            prechecks = self._prechecks(self._split.forward)
            self._ends = ends
        else:
            optimized = optimize(graph, **settings._asdict())
            packed = backend == "jax" and device is None and on_mesh is None and settings.allow(PACKS, REASSOCIATES)
            found = repacked(program, optimized, len(self._places), self._effects) if packed else None
            if found is not None:
                program, optimized, self._effects, self.packs = found
                self._program, self._sources = program, program.sources
                self._count = len(self._places) + len(self._effects)
            positions = {source: k for k, source in enumerate(program.sources)}
            for k, effect in enumerate(self._effects, len(self._places)):
                if isinstance(effect.target, Captured) and effect.target in positions:
                    donated[positions[effect.target]] = k
            restore = {output: position for position, output in donated.items()}
            prechecks = self._prechecks(optimized)
            lowered = functools.partial(
                self._lower, donate=tuple(donated), restore=restore, settled=prechecks.settled,
                layout=self._layout(optimized),
            )  # fmt: skip
            if memory is None:
                self.forward = lowered(optimized)
            else:
                fit = fit_step(optimized, donated, memory, lowered)
                (self.forward,), self.memory_note = fit.programs, fit.note
        self.stops = self.forward.fails or bool(prechecks.steps)
        found = self.forward.graph
        self._out = [(found.nodes[id].shape, found.nodes[id].dtype) for id in found.outputs[: self._count]]
        live, ended = (self._live, []) if self._split is not None else ([], self._live)
        parents = [] if self._split is None else self._split.wrt
        made = {k - len(program.sources): n for n, k in enumerate(parents) if k >= len(program.sources)}
        self.plan = Plan(
            program, self._effects, self._places, self._out, list(self.forward.donated), live, ended, broken, of, made,
            len(tensors), prechecks, self.packs,
        )  # fmt: skip
        self.services = Services(
            self.forward,
            self._unsealed,
            self._join_tape,
            self._failed,
            (OtherPath, CheckFailed),
            CheckFailed,
            _BROKEN,
            _ENDED,
            self.where,
        )
        self.run = CallCode(self.plan, self.services).function()

    def _layout(self, forward: Graph) -> Layout | None:
        """Where what the forward part takes and returns lies, if that is on a mesh."""
        if self._on_mesh is None:
            return None
        results = [place.id for place in self._places]
        return self._on_mesh.forward(forward, results, self._effects, self._sources)

    def _lower_backward(self, part: Split) -> Any:
        if self._on_mesh is None:
            return self._lower(part.backward)
        residuals = len(part.forward.result[-1] if part.residuals is None else part.residuals)
        return self._lower(part.backward, self._on_mesh.backward(part.backward, residuals, part.saved, part.wrt))

    def _lower(self, graph: Graph, layout: Layout | None = None, **options: Any) -> Any:
        """The program of `graph`: of XLA if NumPy is wanted and not suitable."""
        backend = self._backend
        if backend == "numpy" and (why := unsuitable(graph)):
            backend, self.unsuitable = "jax", why
        return lower(
            graph,
            self._device,
            strict=self._settings.strict,
            without=self._settings.not_lowered,
            backend=backend,
            mesh=layout,
            **options,
        )

    def _lower_both(self, parts: Split) -> tuple[Any, Any]:
        """The programs of a forward and a backward part."""
        settled = self._prechecks(parts.forward).settled
        forward = self._lower(parts.forward, self._layout(parts.forward), settled=settled)
        self._backend = "numpy" if forward.on_host else "jax"  # not NumPy's kernels on arrays of JAX
        return forward, self._lower_backward(parts)

    def _prechecks(self, graph: Graph) -> Prechecks:
        """The checks of `graph` that each call makes before the program runs."""
        if self._program.checks.decisions:  # which may lead to a program without these checks
            return NONE
        written = {owner_of(effect.target) for effect in self._program.effects.tensors}  # whose memory may be donated
        inputs = zip(graph.inputs, self._sources, strict=False)  # the sources come first
        return prechecks(graph, [id for id, source in inputs if owner_of(source) is source and source not in written])

    def _results(self) -> list[Output]:
        """The outputs that the result is made of, each once."""
        found: list[Output] = []
        leaves = zip(self._program.result.leaves, self._program.result.histories, strict=True)
        for returned, known in leaves:
            history = History.NONE if known is History.LEAF else known
            base = returned.base if isinstance(returned, ViewOf) else returned
            if not isinstance(base, Computed):
                continue
            if base not in self._places:
                self._places[base] = len(found)
                found.append(Output(base.id, history))
            elif found[self._places[base]].history is not history:
                found[self._places[base]] = Output(base.id, max(history, found[self._places[base]].history, key=_rank))
        return found

    def _unsealed(self, data: Any) -> np.ndarray:
        """The array of a tensor that was made in inference mode, or lies in a pack."""
        if self._split is not None and data.__class__ is Sealed:
            raise RuntimeError(SEALED_SAVE)
        return data.array

    def _failed(self, error: Exception) -> None:
        """Raise what it means that a check of the program has raised `error`."""
        outputs = getattr(error, "outputs", None)
        if outputs is not None:  # else it is an error of XLA's
            raise (self._other_path(outputs) if isinstance(error, PathChanged) else CheckFailed()) from error

    def _other_path(self, outputs: Any) -> OtherPath:
        values: list[bytes] = []
        decided = outputs[self._count : self._count + len(self._program.checks.decisions)]
        for decision, array in zip(self._program.checks.decisions, decided, strict=True):
            values.append(np.asarray(array).tobytes())
            if values[-1] != decision.value:
                break
        return OtherPath(tuple(values))

    # --- gradients through the program

    def _join_tape(self, live: list[Tensor], arrays: list[Any], outputs: Any, tensors: list[Tensor]) -> tape.Node:
        """Give the `live` results a node whose parents are the inputs that gradients are for. Returns the node.

        Its parents that the program makes are still missing.
        """
        assert self._split is not None
        sources = self._sources
        parents = [given(sources[k], tensors)._n if k < len(sources) else None for k in self._split.wrt]
        residuals = list(outputs[self._first_residual :])
        kept = list(arrays)
        for k in self._rewritten:
            if arrays[k].__class__ is np.ndarray:
                kept[k] = arrays[k].copy()  # as it was, for a replay
        if len(live) == 1:
            saved = (self, residuals, [arrays[k] for k in self._split.saved], Inputs(kept))
        else:
            # which inputs are read depends on the results that gradients arrive at; and none are freed by a walk from
            # one result: others may follow from the rest
            saved = [self, residuals, [], Inputs(kept)]
        owner = tape.new_node(_COMPILED, saved, *parents)
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
        arrived = {k: transferred(d, self.where)._d.array for k, d in tape.arrived(g).items()}
        found = {id(p): Tensor._wrap(Placed(d, self.where)) for p, d in self._shares(node, arrived) if p is not None}
        return [found.get(id(parent)) for parent in node[tape.PARENTS :]]

    def _shares(self, node: tape.Node, arrived: dict[int, Any]) -> list[tuple[tape.Node, Any]]:
        assert self._split is not None
        _, residuals, read, given = node[tape.SAVED]
        part, backward = self._split, self.backward
        if len(self._live) > 1:
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
        parents = dict(zip(self._split.wrt, node[tape.PARENTS :], strict=True))
        return [(parents[k], d) for k, d in zip(part.wrt, outputs, strict=True) if k in parents]

    def _part(self, arrived: frozenset[int]) -> tuple[Split, Any]:
        """The gradients of the live results number `arrived`, and the program that computes them."""
        assert self._split is not None
        if len(arrived) == len(self._live):
            return self._split, self.backward
        if arrived not in self._partial:
            part = split_for(self._differentiated, self._ends, self._settings, arrived, self._split.forward)
            self._partial[arrived] = part, None if part.error is not None else self._lower_backward(part)
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
        return [values[refs[k].id] for k in self._live], ends

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
        return ancestors(graph.nodes, [refs[k].id for k in self._live])

    def unmodified(self, node: tape.Node, given: list[Any]) -> None:
        """Raise RuntimeError if an input that `replay` reads has been written in place since the call of `node`."""
        inputs = zip(self._graph.inputs, given, strict=True)
        tape.check_unmodified(node, [array for id, array in inputs if id in self._relevant])


def _rank(history: History) -> int:
    return history.value


def _requires_grad(source: Any, tensors: list[Tensor]) -> bool:
    match source:
        case Argument(position):
            return tensors[position]._n is not None
        case Captured(tensor):
            return tensor._n is not None
        case Lifted():
            return source.kind is None and source.get()._n is not None
    return False


def abandon(given: Any, environment: Environment, tracer: Tracer, containers: Containers) -> None:
    """Carry out what a traced function has done before it raised. Raises what eager would have raised before that.

    given  the arguments of the call: (args, kwargs)
    """
    with interpreting(IMMEDIATE):
        tracer.concretization.draw_all()
        tracer.concretization.hold_inputs()  # values are computed from what is about to be written
        made: dict[int, Tensor] = {}
        for target, id_, _, fresh in tracer.effects():
            array = None if id_ is None else np.array(tracer.concretization.value_of_node(id_))
            if isinstance(target, LeafFlag):
                tracer.state.given(target.of).requires_grad_(target.flag)
            elif isinstance(target, PastOf):
                autograd.backward(tracer.state.given(target.of), Tensor._wrap(array), retain_graph=target.keep)
            elif isinstance(target, GradOf) and (array is None or fresh is not None):
                wrapped = None if array is None else made.setdefault(fresh or 0, Tensor._wrap(array))
                tracer.state.given(target.of)._g = wrapped
            elif isinstance(target, DataOf):
                tracer.state.given(target.of)._d = array
            elif array is not None and not isinstance(target, GradsOf):  # which no traced function has
                overwrite(tracer.state.given(target), Deferred(array, array.shape, array.dtype))
        concrete = Materializer(tracer, given)
        known: dict[int, Any] = {**containers.existing(), **environment.existing()}
        changes = [*containers.changes(), *environment.written(), *tracer.autograd.hooks.staying()]
        opened = opener(is_traced, environment.owners())
        again: dict[int, Any] = {}
        for change, after in [(c, map_leaves(c.after, _itself, "", known, opened)) for c in changes]:
            change.carry_out(map_leaves(after, concrete, "", again, opened), given)


def _itself(leaf: Any, path: str) -> Any:
    return leaf


# --- tape nodes: saved = (runner, residuals, inputs that backward reads, Inputs)


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
    runner, _, _, given = node[tape.SAVED]
    if runner.where is not None and not state.grad_enabled():
        return runner.placed_shares(node, g)
    parents = dict(zip(runner._split.wrt, node[tape.PARENTS :], strict=True))
    inputs: list[Tensor] = []
    runner.unmodified(node, given.arrays)
    # under vmap, the cotangents are batched; what the program was given is not
    with interpreting(IMMEDIATE), autograd.enable_grad():
        for k, array in enumerate(given.arrays):
            there = runner.where is not None and array.__class__ is not np.ndarray
            t = Tensor._wrap(runner.placed(array) if there else np.asarray(array))
            t._n = parents.get(k)
            inputs.append(E.positive(t) if k in parents else t)
        results, ends = runner.replay(inputs, parents)
    ends = [*((k, inputs[k]) for k in parents if k < len(inputs)), *ends]
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


_COMPILED = tape.Backward(_backward, "CompiledBackward", on_tensors=_on_tensors)
_BROKEN = tape.Backward(_broken, "CompiledBackward", on_tensors=_broken)
_ENDED = tape.END.renamed("CompiledBackward")
