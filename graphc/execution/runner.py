"""Running a captured program: fetch its inputs, call XLA, wrap the results, carry out the effects, join the tape."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from sys import getrefcount
from typing import Any, NamedTuple, final

import numpy as np

from eager import autograd, tape
from eager.grad_mode import set_grad_enabled
from eager.inplace import assign
from eager.language import E
from eager.several import output_nodes
from eager.state import add_maker, interpreting, note_write, sequence
from eager.tensor import SEALED_SAVE, Deferred, Sealed, Tensor
from graphc.capture import (
    Argument,
    Captured,
    Computed,
    Draw,
    Given,
    GradOf,
    History,
    LeafFlag,
    MemoryOf,
    PastOf,
    Program,
    Reached,
    Tracer,
    ViewOf,
)
from graphc.capture.outcomes import Outcomes
from graphc.capture.state.arguments import Containers
from graphc.capture.state.environment import Environment
from graphc.capture.storage.inputs import whole_memory
from graphc.capture.tree import Kept, Slot, map_leaves
from graphc.errors import PathChanged
from graphc.execution.partition import split
from graphc.execution.replay import run_node
from graphc.ir import Ref, refs_of
from graphc.lowering import block, lower
from graphc.passes import optimize


def _make_with(new: Any) -> None:
    global _new
    _new = new


_new: Any = object.__new__
add_maker(_make_with)


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
    results, the values of the effects, the values decided on, and (if gradients may be wanted) the residuals.
    """

    def __init__(self, program: Program, tensors: list[Tensor], device: str | None, strict: bool):
        self._program = program
        self._sources = program.sources
        self._effects = [e for e in program.effects if e.id is not None]
        self._cleared = [e.target for e in program.effects if e.id is None and isinstance(e.target, GradOf)]
        self._flags = [e.target for e in program.effects if isinstance(e.target, LeafFlag)]
        self._leaves = {k for k, history in enumerate(program.histories) if history is History.LEAF}
        self._places: dict[Computed, int] = {}  # which output a result is
        outputs = [*self._results(), *(Output(e.id, e.history) for e in self._effects if e.id is not None)]
        self._results_count = len(self._places)
        self._count = len(outputs)
        ids = [output.id for output in outputs] + [d.id for d in program.decisions]
        graph = self._graph = program.graph.replace(program.graph.nodes, tuple(map(Ref, ids)))
        self._live = [k for k, output in enumerate(outputs) if output.history is History.LIVE]
        self._freed = [k for k, output in enumerate(outputs) if output.history is History.FREED]
        self._split = None
        self.backward: Any = None
        becoming = [f.of for f in self._flags if f.flag]
        wrt = [k for k, s in enumerate(program.sources) if _requires_grad(s, tensors) or s in becoming]
        self._donated: list[tuple[int, Tensor]] = []
        if self._live and wrt:
            histories = tuple(o.history for o in outputs) + (History.NONE,) * len(program.decisions)
            self._split = split(program._replace(graph=graph, histories=histories, effects=()), wrt, strict)
            self.forward = lower(self._split.forward, device, strict=strict)
            self.backward = lower(self._split.backward, device, strict=strict)
        else:
            donated: dict[int, int] = {}
            for k, effect in enumerate(self._effects):
                if isinstance(effect.target, Captured) and effect.target in program.sources:
                    donated[program.sources.index(effect.target)] = self._results_count + k
            restore = {output: position for position, output in donated.items()}
            self.forward = lower(
                optimize(graph, strict=strict), device, donate=tuple(donated), restore=restore, strict=strict
            )
            self._donated = [(k, s.tensor) for k in donated if isinstance(s := program.sources[k], Captured)]
        found = self.forward.graph
        self._out = [(found.nodes[id].shape, found.nodes[id].dtype) for id in found.outputs[: self._count]]
        self._fixed: list[Any] = [s.tensor if isinstance(s, Captured) else None for s in program.sources]
        self._moving = [(k, s) for k, s in enumerate(program.sources) if not isinstance(s, Captured)]
        numbered = list(enumerate(self._effects, self._results_count))
        self._state = [
            (k, e.target.tensor) for k, e in numbered if isinstance(e.target, Captured) and e.history is History.NONE
        ]
        state = {k for k, _ in self._state}
        self._others = [(k, effect) for k, effect in numbered if k not in state]
        self._wrapped = [k for k in range(self._count) if k not in state]
        self._positional = program.sources == tuple(map(Argument, range(len(tensors))))
        self._generators = (
            list({id(s.generator): s.generator for s in program.sources if isinstance(s, Draw)}.values())
            if self.forward.fails
            else []
        )
        self._simple = (
            self._split is None and not self._effects and not self._cleared and not self._freed
            and not self._flags and not program.decisions and not program.numbers and not program.changes
            and self._count == 1 and not self._leaves and program.structure == Slot(0)
            and isinstance(program.returned[0], Computed)
        )  # fmt: skip
        # of a program that is but a call of XLA with the arguments: the shape and dtype of its result
        self.direct = self._out[0] if self._simple and self._positional and not self.forward.fails else None

    def _results(self) -> list[Output]:
        """The outputs that the result is made of, each once."""
        found: list[Output] = []
        leaves = zip(self._program.returned, self._program.histories, strict=True)
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

    def __call__(
        self, tensors: list[Tensor], drawn: Mapping[int, np.ndarray] | None = None, given: Any = ((), {})
    ) -> Any:
        """The result for the tensors of a call, and its effects. Raises OtherPath, before anything has changed."""
        on_host = False
        arrays = []
        for t in tensors if self._positional else self._inputs(tensors, drawn):
            d = t._d
            if d.__class__ is Deferred:
                arrays.append(d.array)
            else:
                arrays.append(d if d.__class__ is np.ndarray else self._unsealed(d))
                on_host = True
        d = t = None  # or the last input would look shared
        call = self.forward.call
        if self._simple:
            try:
                (out,) = call(*arrays)
            except Exception as error:
                if getattr(error, "outputs", None) is None:
                    raise
                raise CheckFailed() from error
            if on_host:
                out.block_until_ready()  # the program may still be reading memory that the caller owns
            t = _new(Tensor)
            shape, dtype = self._out[0]
            t._d = Deferred(out, shape, dtype)
            t._n = None
            return t
        return self._general(call, arrays, tensors, on_host, given)

    def _unsealed(self, data: Sealed) -> np.ndarray:
        """The array of a tensor that was made in inference mode."""
        if self._split is not None:
            raise RuntimeError(SEALED_SAVE)
        return data.array

    def _general(self, call: Any, arrays: list[Any], tensors: list[Tensor], on_host: bool, given: Any) -> Any:
        self._take_over(arrays)
        try:
            outputs = call(*arrays)
        except Exception as error:
            restored = getattr(error, "outputs", None)
            if restored is None:
                raise
            self._write_state(restored)
            raise (self._other_path(restored) if isinstance(error, PathChanged) else CheckFailed()) from error
        if on_host:
            block(outputs)
        wrapped: list[Any] = [None] * self._count
        for k in self._wrapped:
            wrapped[k] = self._wrap(k, outputs[k])
        self._set_flags(True, tensors)
        if self._split is not None:
            self._join_tape(wrapped, arrays, outputs, tensors)
        self._set_flags(False, tensors)
        for k in self._freed:
            wrapped[k]._n = [-next(sequence), None, _backward, None]
        self._write_state(outputs)
        if self._others or self._cleared:
            self._write_others(wrapped, tensors)
        return self._assembled(wrapped, tensors, given)

    def _set_flags(self, flag: bool, tensors: list[Tensor]) -> None:
        for target in self._flags:
            if target.flag is flag:
                self._fetch(target.of, tensors).requires_grad_(flag)

    def _other_path(self, outputs: Any) -> OtherPath:
        values: list[bytes] = []
        decided = outputs[self._count : self._count + len(self._program.decisions)]
        for decision, array in zip(self._program.decisions, decided, strict=True):
            values.append(np.asarray(array).tobytes())
            if values[-1] != decision.value:
                break
        return OtherPath(tuple(values))

    def _take_over(self, arrays: list[Any]) -> None:
        """Make the donated arrays ones that the program may overwrite."""
        for position, tensor in self._donated:
            data = tensor._d
            # ours to take: a program made it, and only the tensor, `data` and getrefcount hold the stand-in, only the
            # stand-in, `arrays` and getrefcount the array
            if data.__class__ is not Deferred or getrefcount(data) > 3 or getrefcount(data.array) > 3:
                arrays[position] = self.forward.own(arrays[position])

    def _inputs(self, tensors: list[Tensor], drawn: Mapping[int, np.ndarray] | None) -> list[Tensor]:
        """The tensors behind the program's inputs, in order. Random numbers are drawn here."""
        found = self._fixed.copy()
        for k, source in self._moving:
            if isinstance(source, Draw):
                found[k] = Tensor._wrap(drawn[k] if drawn and k in drawn else source.draw())
            elif isinstance(source, Reached) and source.kind is not None:
                found[k] = Tensor._wrap(np.asarray(source.get(), source.kind))
            else:
                found[k] = self._fetch(source, tensors)
        return found

    def states(self, known: Sequence[Any] = ()) -> list[tuple[Any, Any]]:
        """The states of the generators that this program draws from, but for those `known`; none if it cannot fail."""
        return [(g, g.get_state()) for g in self._generators if not any(g is k for k in known)]

    def _fetch(self, source: Any, tensors: list[Tensor]) -> Tensor:
        match source:
            case Argument(position):
                return tensors[position]
            case Captured(tensor):
                return tensor
            case GradOf(of):
                grad = self._fetch(of, tensors)._g
                assert grad is not None
                return grad
            case MemoryOf(of):
                return whole_memory(self._fetch(of, tensors))
            case Reached():
                return source.get()
        raise AssertionError(source)

    def _wrap(self, k: int, array: Any) -> Tensor:
        return Tensor._wrap(Deferred(array, *self._out[k]))

    # --- the result

    def _assembled(self, outputs: list[Tensor], tensors: list[Tensor], given: Any) -> Any:
        """The function's result, made of the program's."""
        known: dict[int, Tensor] = {}

        def leaf(slot: Any, path: str) -> Any:
            if type(slot) is Kept:
                return slot.find(given)
            k = slot.index
            returned = self._program.returned[k]
            if isinstance(returned, ViewOf):
                if returned.tensor not in known:
                    known[returned.tensor] = _view(self._base(returned.base, outputs, tensors), returned)
                    if k in self._leaves:
                        known[returned.tensor].requires_grad_()
                return known[returned.tensor]
            found = self._base(returned, outputs, tensors)
            if k in self._leaves:
                found.requires_grad_()
            return found.item() if k in self._program.numbers else found

        containers: dict[int, Any] = {}
        result = map_leaves(self._program.structure, leaf, "", containers)
        # all values first: one may be what another place has held so far
        for change, value in [(c, map_leaves(s, leaf, "", containers)) for c, s in self._program.changes]:
            change.carry_out(value, given)
        return result

    def _base(self, of: Computed | Given, outputs: list[Tensor], tensors: list[Tensor]) -> Tensor:
        return outputs[self._places[of]] if isinstance(of, Computed) else self._fetch(of.source, tensors)

    # --- effects

    def _write_state(self, values: Any) -> None:
        """Give the captured tensors that the program writes their new values."""
        for k, tensor in self._state:
            if tensor._d.__class__ is Deferred:
                tensor._d.array = values[k]
            else:
                _overwrite(tensor, Deferred(values[k], *self._out[k]))

    def _write_others(self, outputs: list[Tensor], tensors: list[Tensor]) -> None:
        """Carry out the other effects: on arguments, on `.grad`, and those that have a history."""
        past: list[tuple[Tensor, Tensor, bool]] = []
        made: dict[int, Tensor] = {}
        for k, (target, _, history, fresh) in self._others:
            value = outputs[k]
            if isinstance(target, PastOf):
                past.append((self._fetch(target.of, tensors), value, target.keep))
            elif isinstance(target, GradOf):
                owner = self._fetch(target.of, tensors)
                if fresh is None:
                    _overwrite(owner._g, value._d)
                else:
                    owner._g = made.setdefault(fresh, value)
            elif history is History.NONE:
                _overwrite(self._fetch(target, tensors), value._d)
            else:
                with set_grad_enabled(True):
                    assign(self._fetch(target, tensors), value, "copy")
        for target in self._cleared:
            self._fetch(target.of, tensors)._g = None
        for keep in (True, False):
            if chosen := [(t, g) for t, g, kept in past if kept is keep]:
                autograd.backward([t for t, _ in chosen], [g for _, g in chosen], retain_graph=keep)

    # --- gradients through the program

    def _join_tape(self, wrapped: list[Tensor], arrays: list[Any], outputs: Any, tensors: list[Tensor]) -> None:
        """Give the results a node whose parents are the inputs that gradients are for."""
        assert self._split is not None
        parents = [self._fetch(self._sources[k], tensors)._n for k in self._split.wrt]
        residuals = list(outputs[self._count + len(self._program.decisions) :])
        live = [wrapped[k] for k in self._live]
        given = list(arrays)
        for k in self._rewritten:
            if arrays[k].__class__ is np.ndarray:
                given[k] = arrays[k].copy()  # as it was, for a replay
        saved = (self, residuals, [arrays[k] for k in self._split.saved], len(live), Inputs(given))
        owner: tape.Node = [-next(sequence), None, _backward, saved, *parents]
        if len(live) == 1:
            live[0]._n = owner
            return
        owner[tape.SAVED] = list(saved)  # not freed by a walk from one result: others may follow from the rest
        for k, (t, node) in enumerate(zip(live, output_nodes(owner, len(live)), strict=True)):
            node[tape.SAVED] = (k,)  # freed by a walk from this result
            t._n = node

    def gradients(self, saved: list[Any], cotangents: Any) -> list[np.ndarray]:
        """Run the backward program; one gradient for each parent of the node."""
        outputs = self.backward.call(*saved, *self._complete(cotangents))
        return [np.asarray(g) for g in outputs]

    def _complete(self, cotangents: Any) -> list[np.ndarray]:
        """A cotangent for each result that requires grad: zeros for those that none has arrived at."""
        given = cotangents if isinstance(cotangents, dict) else {0: cotangents}
        return [
            np.asarray(given[n]) if n in given else np.zeros(*self._out[k]) for n, k in enumerate(self._live)
        ]  # fmt: skip

    def replay(self, inputs: list[Tensor], parents: Mapping[int, Any]) -> tuple[list[Tensor], list[tuple[Any, Tensor]]]:
        """The results that require grad, computed op by op on Tensors: for gradients that are differentiated again.

        parents: the tape node of each input, by number. Returns also the places, besides the inputs, at which gradients
        for them arrive (leaves that the program has written), each after the node.
        """
        if self._program.rules is not None:
            raise NotImplementedError(
                "differentiating twice through a compiled function that holds an autograd.Function or hooks is not "
                "supported. Remedy: compile the gradient as well, or run this part eagerly."
            )
        graph = self._graph
        values: dict[int, Any] = dict(zip(graph.inputs, inputs, strict=True))
        leaves, ends = dict(self._program.leaves), list[tuple[Any, Tensor]]()
        for node in graph.operations():
            if node.id in self._relevant:
                result = run_node(node, [values[i] for i in node.inputs])
                stops = node.id not in self._program.recorded and not isinstance(result, tuple)
                result = E.stop_gradient(result) if stops else result
                if leaves.get(node.id) in parents and isinstance(result, Tensor):
                    result._n = parent = parents[leaves[node.id]]
                    result = E.positive(result)
                    ends.append((parent, result))
                values[node.id] = result
        refs = refs_of(graph.result)
        return [values[refs[k].id] for k in self._live], ends

    @functools.cached_property
    def _rewritten(self) -> list[int]:
        """Numbers of the inputs that `replay` reads, and that the program itself overwrites."""
        written = {effect.target for effect in self._effects}
        inputs = zip(self._sources, self._graph.inputs, strict=True)
        return [k for k, (source, id) in enumerate(inputs) if source in written and id in self._relevant]

    @functools.cached_property
    def _relevant(self) -> set[int]:
        """The nodes that the results which require grad are made of: not those that only the effects need."""
        graph = self._graph
        refs = refs_of(graph.result)
        found = {refs[k].id for k in self._live}
        for node in reversed(list(graph.operations())):
            if node.id in found:
                found.update(node.inputs)
        return found

    def unmodified(self, node: tape.Node, given: list[Any]) -> None:
        """Raise RuntimeError if an input that `replay` reads has been written in place since the call of `node`."""
        inputs = zip(self._graph.inputs, given, strict=True)
        tape.check_unmodified([*node[: tape.SAVED], [array for id, array in inputs if id in self._relevant]])


def _rank(history: History) -> int:
    return history.value


def _requires_grad(source: Any, tensors: list[Tensor]) -> bool:
    match source:
        case Argument(position):
            return tensors[position]._n is not None
        case Captured(tensor):
            return tensor._n is not None
        case Reached():
            return source.kind is None and source.get()._n is not None
    return False


def _view(tensor: Tensor, returned: ViewOf) -> Tensor:
    """The view of `tensor` that a result is."""
    with set_grad_enabled(returned.recorded):
        for op, params in returned.steps:
            # eager's broadcast_to makes a copy
            tensor = getattr(E, "expand" if op.name == "broadcast_to" else op.name)(tensor, **params)
    return tensor


def _overwrite(tensor: Tensor, value: Deferred) -> None:
    """Give `tensor` the program's value: in its own memory if others can see that, else by taking the new memory."""
    data = tensor._d
    # references to an ndarray that is only this tensor's: its slot, `data`, and the argument of getrefcount
    if data.__class__ is np.ndarray and (data.base is not None or getrefcount(data) > 3) and data.flags.writeable:
        np.copyto(data, np.asarray(value.array))
        note_write(data)
    else:
        tensor._d = value


def abandon(given: Any, environment: Environment, tracer: Tracer, containers: Containers) -> None:
    """Carry out what a traced function has done before it raised. Raises what eager would have raised before that.

    given  the arguments of the call: (args, kwargs)
    """
    with interpreting(None):
        tracer.draw_all()
        tracer.hold_inputs()  # values are computed from what is about to be written
        made: dict[int, Tensor] = {}
        for target, id_, _, fresh in tracer.effects():
            array = None if id_ is None else np.array(tracer.value_of_node(id_))
            if isinstance(target, LeafFlag):
                tracer.given(target.of).requires_grad_(target.flag)
            elif isinstance(target, PastOf):
                autograd.backward(tracer.given(target.of), Tensor._wrap(array), retain_graph=target.keep)
            elif isinstance(target, GradOf) and (array is None or fresh is not None):
                wrapped = None if array is None else made.setdefault(fresh or 0, Tensor._wrap(array))
                tracer.given(target.of)._g = wrapped
            elif array is not None:
                _overwrite(tracer.given(target), Deferred(array, array.shape, array.dtype))
        concrete = Outcomes(tracer, given)
        known: dict[int, Any] = {**containers.existing(), **environment.existing()}
        changes = [*containers.changes(), *environment.written()]
        for change, after in [(c, map_leaves(c.after, _itself, "", known)) for c in changes]:
            change.carry_out(map_leaves(after, concrete), given)


def _itself(leaf: Any, path: str) -> Any:
    return leaf


# --- tape nodes: saved = (runner, residuals, inputs that backward reads, number of results that require grad, Inputs)


@final
class Inputs:
    """The arrays that a call was given, for replaying it; backward itself may read fewer, and cares for no others."""

    __slots__ = ("arrays",)

    def __init__(self, arrays: list[Any]):
        self.arrays = arrays


def _backward(node: tape.Node, g: Any, heap: list[tape.Node]) -> None:
    if node[tape.SAVED] is None:
        raise RuntimeError(tape.FREED)
    runner, residuals, read, _, _ = node[tape.SAVED]
    shares = runner.gradients([*residuals, *read], g)
    for parent, d in zip(node[tape.PARENTS :], shares, strict=True):
        tape.give(parent, d, heap)


def _tensor_shares(node: tape.Node, g: Any) -> list[tuple[tape.Node, Tensor]]:
    """Gradients that can be differentiated again: the graph is replayed on Tensors, and its tape walked."""
    runner, _, _, count, given = node[tape.SAVED]
    parents = dict(zip(runner._split.wrt, node[tape.PARENTS :], strict=True))
    inputs = []
    runner.unmodified(node, given.arrays)
    # under vmap, the cotangents are batched; what the program was given is not
    with interpreting(None), autograd.enable_grad():
        for k, array in enumerate(given.arrays):
            t = Tensor._wrap(np.asarray(array))
            t._n = parents.get(k)
            inputs.append(E.positive(t) if k in parents else t)
        results, ends = runner.replay(inputs, parents)
    ends = [*((p, inputs[k]) for k, p in parents.items()), *ends]
    with autograd.enable_grad():
        arrived = g if count > 1 else {0: g}
        chosen = [results[k] for k in arrived]
        found = autograd.grad(
            chosen, [t for _, t in ends], list(arrived.values()), create_graph=True, allow_unused=True
        )
    return [(p, d) for (p, _), d in zip(ends, found, strict=True) if d is not None]


tape.tensor_rules[_backward] = _tensor_shares
tape.names[_backward] = "CompiledBackward"
