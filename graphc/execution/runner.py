"""Running a captured program: fetch its inputs, call it, wrap the results, carry out the effects, join the tape."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, final

import numpy as np

from eager.core.stand_ins import SEALED_SAVE, Sealed
from eager.core.tensor import Tensor
from graphc.capture.example_values import Hosted, HostedValues
from graphc.capture.program import Effects, Program
from graphc.capture.sources import (
    Argument,
    Captured,
    Computed,
    Effect,
    GradsOf,
    History,
    Lifted,
    Spare,
    ViewOf,
)
from graphc.capture.storage.sharing import owner_of
from graphc.errors import PathChanged
from graphc.execution.budget import fit_split, fit_step
from graphc.execution.call_code import CallCode
from graphc.execution.gradients import BROKEN, ENDED, Gradients
from graphc.execution.packs import Packs, repacked
from graphc.execution.partition import Joint, Split, differentiated, split_for
from graphc.execution.plan import Plan, Services
from graphc.execution.prechecks import NONE, Prechecks, prechecks
from graphc.execution.segments import recomputing
from graphc.execution.target import Target
from graphc.ir import Graph, Ref
from graphc.lowering import Offload
from graphc.passes import layers_of_packs, optimize
from graphc.sharding.followers import Followers
from graphc.sharding.layout import Layout
from graphc.sharding.one_device import on_one_device

SOME = (
    "gradients of some results of a compiled function, of which some are on a mesh of processes and others are each "
    "process's own. Remedy: one backward() for all"
)


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

    forward, backward  the programs of the backend; backward is None where no result can be differentiated
    stops whether a check or a decision may stop a call, before anything has changed
    run   f(tensors, drawn, given): the result of a call, and its effects; see `CallCode.function`. Raises OtherPath
          or CheckFailed, before anything has changed
    plan, services   what its code is made of
    where  the device of its tensors; None for the CPU
    packs  where its small state lies, if it writes any
    memory_note      what was computed again to keep a budget of memory; "" without one
    unsuitable       why it is a program of XLA although NumPy's was wanted; "" if it is not
    """

    def __init__(self, program: Program, tensors: list[Tensor], target: Target):
        self.where: Any = program.device
        self._target = target if self.where is None else target.on(self.where)
        self._program = program
        self._effects: Sequence[Effect] = [e for e in program.effects.tensors if e.id is not None]
        hosted = _hosted(program)
        self._places, results = _results(program, hosted[0])
        outputs = [*results, *(Output(e.id, e.history) for e in self._effects if e.id is not None)]
        self._count = len(outputs)
        checks = program.checks
        ids = [o.id for o in outputs] + [d.id for d in checks.decisions] + list(checks.unread)
        graph = program.graph.replace(program.graph.nodes, tuple(map(Ref, ids)))
        live = self._live = [k for k, output in enumerate(outputs) if output.history is History.LIVE]
        broken = {k: program.recorded.broken[o.id] for k, o in enumerate(outputs) if o.history is History.BROKEN}
        self.unsuitable = self.memory_note = ""
        self.backward: Any = None
        self.packs: Packs | None = None
        wrt = _differentiable(program, tensors)
        ends = [*wrt, *range(len(program.sources), len(program.sources) + len(program.result.made))]
        gradients: Gradients | None = None
        if live and ends:
            histories = tuple(o.history for o in outputs) + (History.NONE,) * (len(ids) - len(outputs))
            gradients = self._differentiated(graph, histories, live, ends, len(ids))
            checked = self._prechecks(gradients.split.forward)
        else:
            checked = self._step(recomputing(optimize(graph, **self._target.settings._asdict())))
        self.stops = self.forward.fails or bool(checked.steps)
        found = self.forward.graph
        returned = [(found.nodes[id].shape, found.nodes[id].dtype) for id in found.outputs[: self._count]]
        first = len(program.sources)  # of the leaves that are made, among the parents
        parents = [] if gradients is None else gradients.split.wrt
        made = {k - first: n for n, k in enumerate(parents) if k >= first}
        live, ended = ([], live) if gradients is None else (live, [])
        self.plan = Plan(
            self._program, self._effects, self._places, hosted, returned, list(self.forward.donated), live, ended,
            broken, [program.sources[k] for k in wrt], made, len(tensors), checked, self.packs,
        )  # fmt: skip
        unsealed = _array if gradients is None else _not_sealed
        join = None if gradients is None else gradients.join
        stopped = OtherPath, CheckFailed
        self.services = Services(
            self.forward, unsealed, join, self._failed, stopped, CheckFailed, BROKEN, ENDED, self.where, self._lie
        )
        self.run = CallCode(self.plan, self.services).function()

    def _differentiated(
        self, graph: Graph, histories: tuple[History, ...], live: Sequence[int], ends: list[int], first_residual: int
    ) -> Gradients:
        """Make the two programs of results that can be differentiated."""
        program, settings, memory = self._program, self._target.settings, self._target.memory
        result = program.result._replace(histories=histories)
        whole = program._replace(graph=graph, result=result, effects=Effects())
        found = differentiated(whole, ends, settings)
        if memory is not None and isinstance(found, Joint):
            fit = fit_split(found, memory, self._lower_both, self._on_one_device)
            split, (self.forward, self.backward), self.memory_note = fit.made_of, fit.programs, fit.note
        else:
            split = found.split() if isinstance(found, Joint) else found
            self.forward, self.backward = self._lower_both(split)
        assert isinstance(split, Split)
        return Gradients(
            split, self.backward, live, self.where, program=program, graph=graph, effects=self._effects,
            first_residual=first_residual, lower=self._lower_backward,
            part_for=lambda arrived: split_for(whole, ends, settings, arrived, split.forward),
            lie=self._lie_around(live),
        )  # fmt: skip

    def _step(self, graph: Graph) -> Prechecks:
        """Make the one program of results that have no gradients. Returns the checks that a call makes before it."""
        found = repacked(self._program, graph, len(self._places), self._effects) if self._target.packs else None
        if found is not None:
            self._program, graph, self._effects, self.packs = found
            if self._target.loops_over_packs:
                graph = layers_of_packs(graph, self._target.settings)
            self._count = len(self._places) + len(self._effects)
        positions = {source: k for k, source in enumerate(self._program.sources)}
        donated: dict[int, int] = {}  # input -> output
        for k, effect in enumerate(self._effects, len(self._places)):
            over = effect.target.spare if isinstance(effect.target, GradsOf) else effect.target
            if isinstance(over, (Captured, Spare)) and over in positions:
                donated[positions[over]] = k
        checked = self._prechecks(graph)
        layout = self._layout(graph)
        lowered = functools.partial(
            self._lower, donate=tuple(donated), restore={output: position for position, output in donated.items()},
            settled=checked.settled, layout=layout, **self._offloaded(donated),
        )  # fmt: skip
        if self._target.memory is None:
            self.forward = lowered(graph)
        else:
            fit = fit_step(graph, donated, self._target.memory, lowered, layout)
            (self.forward,), self.memory_note = fit.programs, fit.note
        return checked

    def _offloaded(self, donated: Mapping[int, int]) -> dict[str, Any]:
        """Which of the state that the program writes lies on the host: what an optimizer keeps for a parameter."""
        if not self._target.offload or self._target.backend != "jax":
            return {}
        graph, sources = self._program.graph, self._program.sources
        known = zip(graph.inputs, sources, strict=True)
        parameters = [i for i, s in known if isinstance(s, Captured) and s.tensor._n is not None]
        groups = Followers(graph)
        held = {
            k: output for k, output in donated.items()
            if graph.inputs[k] not in parameters and groups.leader(graph.inputs[k], parameters) is not None
        }  # fmt: skip
        return {"offload": Offload(frozenset(held), frozenset(held.values()))} if held else {}

    def _layout(self, forward: Graph) -> Layout | None:
        """Where what the forward part takes and returns lies, if that is on a mesh."""
        if self._target.on_mesh is None:
            return None
        results = [place.id for place in self._places]
        return self._target.on_mesh.forward(forward, results, self._effects, self._program.sources)

    @property
    def _lie(self) -> list[Any]:
        """Where each output lies that a caller sees, if some are of each process's own."""
        on_mesh = self._target.on_mesh
        return [] if on_mesh is None else [on_mesh.device(axes, self.where) for axes in self.forward.layout.made]

    def _lie_around(self, live: Sequence[int]) -> tuple[list[Any], list[Any]] | None:
        """Where live results lie, and the inputs, if some are of each process's own."""
        if not (made := self._lie):
            return None
        on_mesh: Any = self._target.on_mesh
        return [made[k] for k in live], [on_mesh.device(axes, self.where) for axes in on_mesh.own]

    def _lower_backward(self, part: Split) -> Any:
        return self._lower(part.backward, self._layout_backward(part))

    def _layout_backward(self, part: Split) -> Layout | None:
        """Where what the backward part takes and returns lies, if that is on a mesh."""
        on_mesh = self._target.on_mesh
        if on_mesh is None:
            return None
        kept = [ref.id for ref in part.forward.result[-1]]
        kept = kept if part.residuals is None else [kept[k] for k in part.residuals]
        own: list[Any] = []
        if on_mesh.own:
            of = on_mesh.owned(part.forward)
            own = [
                *(of[id] for id in kept),
                *(on_mesh.own[k] for k in part.saved),
                *self._own_cotangents(part, len(kept)),
            ]
        return on_mesh.backward(part.backward, len(kept), part.saved, part.wrt, own)

    def _on_one_device(self, parts: Split) -> tuple[Graph, Graph]:
        backward = on_one_device(parts.backward, self._layout_backward(parts))
        return on_one_device(parts.forward, self._layout(parts.forward)), backward

    def _own_cotangents(self, part: Split, residuals: int) -> list[Any]:
        """What each process has of its own, of the last inputs of the backward part."""
        layout = self._layout(part.forward)
        assert layout is not None
        made = [layout.made[k] for k in self._live]
        count = len(part.backward.inputs) - residuals - len(part.saved)
        if count != len(made) and len({*made}) > 1:
            raise NotImplementedError(SOME)
        return made if count == len(made) else made[:1] * count

    def _lower(self, graph: Graph, layout: Layout | None = None, **options: Any) -> Any:
        target, why = self._target.suiting(graph)
        self.unsuitable = why or self.unsuitable
        return target.lower(graph, layout, **options)

    def _lower_both(self, parts: Split) -> tuple[Any, Any]:
        """The programs of a forward and a backward part."""
        settled = self._prechecks(parts.forward).settled
        forward = self.forward = self._lower(parts.forward, self._layout(parts.forward), settled=settled)
        backend = "numpy" if forward.on_host else "jax"  # not NumPy's kernels on arrays of JAX
        self._target = self._target._replace(backend=backend)
        return forward, self._lower_backward(parts)

    def _prechecks(self, graph: Graph) -> Prechecks:
        """The checks of `graph` that each call makes before the program runs."""
        if self._program.checks.decisions:  # which may lead to a program without these checks
            return NONE
        written = {owner_of(effect.target) for effect in self._program.effects.tensors}  # whose memory may be donated
        inputs = zip(graph.inputs, self._program.sources, strict=False)  # the sources come first
        return prechecks(graph, [id for id, source in inputs if owner_of(source) is source and source not in written])

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


def _hosted(program: Program) -> tuple[Sequence[int], HostedValues | None]:
    """The results that are numbers and follow from Python's own, as a schedule's next rate; and what computes them."""
    hosted, found = Hosted(program.graph, program.sources), dict[int, int]()
    for k in sorted(program.result.numbers):
        leaf = program.result.leaves[k]
        if isinstance(leaf, Computed) and (value := hosted.getter(leaf.id)) is not None and not value.may_fail:
            found[k] = leaf.id
    return [*found], hosted.together([*found.values()])


def _results(program: Program, hosted: Collection[int]) -> tuple[Mapping[Computed, int], list[Output]]:
    """The outputs that the result is made of, each once, but for those `hosted`; and which of them each value is."""
    places: dict[Computed, int] = {}
    found: list[Output] = []
    for k, (returned, known) in enumerate(zip(program.result.leaves, program.result.histories, strict=True)):
        if k in hosted:
            continue
        history = History.NONE if known is History.LEAF else known
        base = returned.base if isinstance(returned, ViewOf) else returned
        if not isinstance(base, Computed):
            continue
        if base not in places:
            places[base] = len(found)
            found.append(Output(base.id, history))
        elif found[places[base]].history is not history:
            found[places[base]] = Output(base.id, max(history, found[places[base]].history, key=_rank))
    return places, found


def _differentiable(program: Program, tensors: list[Tensor]) -> list[int]:
    """The numbers of the inputs that gradients may be for."""
    late = program.recorded.late
    return [k for k, s in enumerate(program.sources) if k in late or _requires_grad(s, tensors)]


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


def _array(data: Any) -> np.ndarray:
    """The array of a tensor that was made in inference mode, or lies in a pack."""
    return data.array


def _not_sealed(data: Any) -> np.ndarray:
    """As `_array`, for a program that saves its inputs for backward."""
    if data.__class__ is Sealed:
        raise RuntimeError(SEALED_SAVE)
    return data.array
