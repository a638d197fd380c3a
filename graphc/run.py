"""Running a captured program: fetch its inputs, call XLA, wrap the results, carry out the effects, join the tape."""

from __future__ import annotations

import functools
import itertools
from sys import getrefcount
from typing import Any, final

import numpy as np

from eager import autograd, tape
from eager.dispatch import apply
from eager.language import E
from eager.state import note_write, sequence
from eager.tensor import Deferred, Tensor
from graphc.capture import Argument, Captured, Draw, GradOf, History, Program
from graphc.ir import Graph, Ref, fill, map_refs, refs_of
from graphc.lowering import block, lower
from graphc.partition import split, with_effects
from graphc.passes import optimize


@final
class Runner:
    """A program made ready to run on the tensors of a call."""

    def __init__(self, program: Program, tensors: list[Tensor], device: str | None, strict: bool):
        self._program = program
        self._sources = program.sources
        self._effects = [e for e in program.effects if e.id is not None]
        self._cleared = [e.target for e in program.effects if e.id is None]
        self._split = None
        self.backward: Any = None
        wrt = [k for k, s in enumerate(program.sources) if _requires_grad(s, tensors)]
        self._live = [k for k, h in enumerate(program.histories) if h is History.LIVE]
        self._freed = [k for k, h in enumerate(program.histories) if h is History.FREED]
        if self._live and wrt:
            self._split = split(program, wrt, strict)
            self.forward = lower(self._split.forward, device, strict=strict)
            self.backward = lower(self._split.backward, device, strict=strict)
            self._donated: list[tuple[int, Tensor]] = []
        else:
            graph = optimize(with_effects(program), strict=strict)
            donated = {}
            first = len(refs_of(program.graph.result))
            for k, effect in enumerate(self._effects):
                if isinstance(effect.target, Captured):
                    donated[program.sources.index(effect.target)] = first + k
            restore = {output: position for position, output in donated.items()}
            self.forward = lower(graph, device, donate=tuple(donated), restore=restore, strict=strict)
            self._donated = [(k, s.tensor) for k in donated if isinstance(s := program.sources[k], Captured)]
        graph = self.forward.graph
        self._result = graph.result[0]
        numbers = itertools.count()
        self._numbered = map_refs(self._result, lambda _: Ref(next(numbers)))
        self._fixed: list[Any] = [s.tensor if isinstance(s, Captured) else None for s in program.sources]
        self._moving = [(k, s) for k, s in enumerate(program.sources) if not isinstance(s, Captured)]
        targets = [e.target for e in self._effects]
        self._state = [(k, target.tensor) for k, target in enumerate(targets) if isinstance(target, Captured)]
        self._others = [(k, target) for k, target in enumerate(targets) if not isinstance(target, Captured)]
        # a gradient that the program reads is accumulated into the same .grad object, as eager does
        self._read = {s for s in program.sources if isinstance(s, GradOf)}
        self._single = isinstance(self._result, Ref)
        self._out = [(graph.nodes[id].shape, graph.nodes[id].dtype) for id in graph.outputs]
        self._results = len(refs_of(self._result))
        self._positional = all(s == Argument(k) for k, s in enumerate(program.sources))
        self._simple = (
            self._split is None and not self._effects and not self._cleared and self._single and not self._freed
        )

    def __call__(self, tensors: list[Tensor]) -> Any:
        on_host = False
        arrays = []
        for t in tensors if self._positional else self._inputs(tensors):
            d = t._d
            if d.__class__ is Deferred:
                arrays.append(d.array)
            else:
                arrays.append(d)
                on_host = True
        d = t = None  # or the last input would look shared
        call = self.forward.call
        if self._simple:
            (out,) = call(*arrays)
            if on_host:
                block(out)  # the program may still be reading memory that the caller owns
            t = object.__new__(Tensor)
            shape, dtype = self._out[0]
            t._d = Deferred(out, shape, dtype)
            t._n = None
            return t
        return self._general(call, arrays, tensors, on_host)

    def _general(self, call: Any, arrays: list[Any], tensors: list[Tensor], on_host: bool) -> Any:
        self._take_over(arrays)
        try:
            outputs = call(*arrays)
        except Exception as error:
            restored = getattr(error, "outputs", None)
            if restored is not None:
                self._write_state(restored)
            raise
        if on_host:
            block(outputs)
        wrapped = [self._wrap(k, outputs[k]) for k in range(self._results)]
        if self._split is not None:
            self._join_tape(wrapped, arrays, outputs, tensors)
        for k in self._freed:
            wrapped[k]._n = [-next(sequence), None, _backward, None]
        self._write_state(outputs)
        self._write_others(outputs, tensors)
        return wrapped[0] if self._single else fill(self._numbered, dict(enumerate(wrapped)))

    def _take_over(self, arrays: list[Any]) -> None:
        """Make the donated arrays ones that the program may overwrite."""
        for position, tensor in self._donated:
            data = tensor._d
            # ours to take: a program made it, and only the tensor, `data` and getrefcount hold the stand-in, only the
            # stand-in, `arrays` and getrefcount the array
            if data.__class__ is not Deferred or getrefcount(data) > 3 or getrefcount(data.array) > 3:
                arrays[position] = self.forward.own(arrays[position])

    def _inputs(self, tensors: list[Tensor]) -> list[Tensor]:
        """The tensors behind the program's inputs, in order. Random numbers are drawn here."""
        found = self._fixed.copy()
        for k, source in self._moving:
            found[k] = self._fetch(source, tensors)
        return found

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
            case Draw(draw):
                return Tensor._wrap(draw())
        raise AssertionError(source)

    def _wrap(self, k: int, array: Any) -> Tensor:
        return Tensor._wrap(Deferred(array, *self._out[k]))

    # --- effects

    def _write_state(self, values: Any) -> None:
        """Give the captured tensors that the program writes their new values."""
        first = self._results
        for k, tensor in self._state:
            if tensor._d.__class__ is Deferred:
                tensor._d.array = values[first + k]
            else:
                _overwrite(tensor, Deferred(values[first + k], *self._out[first + k]))

    def _write_others(self, values: Any, tensors: list[Tensor]) -> None:
        """Carry out the other effects: on arguments and on `.grad`."""
        first = self._results
        for k, target in self._others:
            if isinstance(target, GradOf):
                owner = self._fetch(target.of, tensors)
                if target in self._read:
                    _overwrite(owner._g, Deferred(values[first + k], *self._out[first + k]))
                else:
                    owner._g = self._wrap(first + k, values[first + k])
            else:
                _overwrite(self._fetch(target, tensors), Deferred(values[first + k], *self._out[first + k]))
        for target in self._cleared:
            assert isinstance(target, GradOf)
            self._fetch(target.of, tensors)._g = None

    # --- gradients through the program

    def _join_tape(self, wrapped: list[Tensor], arrays: list[Any], outputs: Any, tensors: list[Tensor]) -> None:
        """Give the results a node whose parents are the inputs that gradients are for."""
        assert self._split is not None
        parents = [self._fetch(self._sources[k], tensors)._n for k in self._split.wrt]
        residuals = list(outputs[self._results + len(self._effects) :])
        live = [wrapped[k] for k in self._live]
        saved = (self, residuals, [arrays[k] for k in self._split.saved], len(live), Inputs(arrays))
        owner: tape.Node = [-next(sequence), None, _backward, saved, *parents]
        if len(live) == 1:
            live[0]._n = owner
            return
        owner[tape.SAVED] = list(saved)  # not freed by a walk from one result: others may follow from the rest
        for k, t in enumerate(live):
            t._n = [-next(sequence), None, _select, (k, len(live)), owner]

    def gradients(self, saved: list[Any], cotangents: list[Any]) -> list[np.ndarray]:
        """Run the backward program; one gradient for each parent of the node."""
        outputs = self.backward.call(*saved, *cotangents)
        return [np.asarray(g) for g in outputs]

    def zero_cotangents(self) -> list[np.ndarray]:
        """A zero for each result that requires grad, to start from."""
        return [np.zeros(*self._out[k]) for k in self._live]

    def replay(self, inputs: list[Tensor]) -> list[Tensor]:
        """The results that require grad, computed op by op on Tensors: for gradients that are differentiated again."""
        if self._program.rules is not None:
            raise NotImplementedError(
                "differentiating twice through a compiled function that holds an autograd.Function or hooks is not "
                "supported. Remedy: compile the gradient as well, or run this part eagerly."
            )
        graph: Graph = self._program.graph
        values: dict[int, Tensor] = dict(zip(graph.inputs, inputs, strict=True))
        for node in graph.operations():
            if node.id in self._relevant:
                result = apply(node.op, [values[i] for i in node.inputs], node.params)
                values[node.id] = result if node.id in self._program.recorded else E.stop_gradient(result)
        refs = refs_of(graph.result)
        return [values[refs[k].id] for k in self._live]

    @functools.cached_property
    def _relevant(self) -> set[int]:
        """The nodes that the results which require grad are made of: not those that only the effects need."""
        graph: Graph = self._program.graph
        refs = refs_of(graph.result)
        found = {refs[k].id for k in self._live}
        for node in reversed(list(graph.operations())):
            if node.id in found:
                found.update(node.inputs)
        return found

    def unmodified(self, node: tape.Node, given: list[Any]) -> None:
        """Raise RuntimeError if an input that `replay` reads has been written in place since the call of `node`."""
        inputs = zip(self._program.graph.inputs, given, strict=True)
        tape.check_unmodified([*node[: tape.SAVED], [array for id, array in inputs if id in self._relevant]])


def _requires_grad(source: Any, tensors: list[Tensor]) -> bool:
    if isinstance(source, Argument):
        return tensors[source.position]._n is not None
    return isinstance(source, Captured) and source.tensor._n is not None


def _overwrite(tensor: Tensor, value: Deferred) -> None:
    """Give `tensor` the program's value: in its own memory if others can see that, else by taking the new memory."""
    data = tensor._d
    # references to an ndarray that is only this tensor's: its slot, `data`, and the argument of getrefcount
    if data.__class__ is np.ndarray and (data.base is not None or getrefcount(data) > 3) and data.flags.writeable:
        np.copyto(data, np.asarray(value.array))
        note_write(data)
    else:
        tensor._d = value


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
    runner, residuals, read, count, _ = node[tape.SAVED]
    cotangents = [g] if count == 1 else g
    shares = runner.gradients([*residuals, *read], [np.asarray(c) for c in cotangents])
    for parent, d in zip(node[tape.PARENTS :], shares, strict=True):
        tape.give(parent, d, heap)


def _select(node: tape.Node, g: Any, heap: list[tape.Node]) -> None:
    """One of several results: put its gradient in its place in the owner's list."""
    if node[tape.SAVED] is None:
        raise RuntimeError(tape.FREED)
    k, _ = node[tape.SAVED]
    owner = node[tape.PARENTS]
    slot = owner[tape.SLOT]
    if slot is None:
        runner = owner[tape.SAVED][0]
        slot = owner[tape.SLOT] = runner.zero_cotangents()
        tape.heappush(heap, owner)
    slot[k] = np.add(slot[k], g, out=...)


def _tensor_shares(node: tape.Node, g: Any) -> list[tuple[tape.Node, Tensor]]:
    """Gradients that can be differentiated again: the graph is replayed on Tensors, and its tape walked."""
    runner, _, _, count, given = node[tape.SAVED]
    if count != 1:
        raise NotImplementedError(
            "create_graph=True through a compiled function with several results is not supported yet"
        )
    parents = dict(zip(runner._split.wrt, node[tape.PARENTS :], strict=True))
    inputs = []
    runner.unmodified(node, given.arrays)
    for k, array in enumerate(given.arrays):
        t = Tensor._wrap(np.asarray(array))
        t._n = parents.get(k)
        inputs.append(E.positive(t) if k in parents else t)
    wrt = [inputs[k] for k in parents]
    with autograd.enable_grad():
        found = autograd.grad(runner.replay(inputs), wrt, [g], create_graph=True, allow_unused=True)
    return [(p, d) for p, d in zip(parents.values(), found, strict=True) if d is not None]


tape.tensor_rules[_backward] = _tensor_shares
tape.names[_backward] = "CompiledBackward"
tape.names[_select] = "CompiledBackward"
