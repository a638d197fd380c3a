"""Running a captured program: fetch its inputs, call XLA, wrap the results, carry out the effects, join the tape."""

from __future__ import annotations

import itertools
import sys
from typing import Any, NamedTuple, final

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


class _Target(NamedTuple):
    """Where an effect goes: to `tensor` (or argument number `position`), or to its `.grad`, which may be made anew."""

    tensor: Tensor | None
    position: int
    of_grad: bool
    fresh_grad: bool


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
            self._donated: tuple[int, ...] = ()
        else:
            graph = optimize(with_effects(program), strict=strict)
            donated = {}
            first = len(refs_of(program.graph.result))
            for k, effect in enumerate(self._effects):
                if isinstance(effect.target, Captured):
                    donated[program.sources.index(effect.target)] = first + k
            self._donated = tuple(donated)
            restore = {output: position for position, output in donated.items()}
            self.forward = lower(graph, device, donate=self._donated, restore=restore, strict=strict)
        graph = self.forward.graph
        self._result = graph.result[0]
        numbers = itertools.count()
        self._numbered = map_refs(self._result, lambda _: Ref(next(numbers)))
        self._targets = [self._plan(e.target) for e in self._effects]
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
        for position in self._donated:
            source = self._sources[position]
            assert isinstance(source, Captured)
            if not _is_ours(source.tensor, arrays, position):
                arrays[position] = self.forward.own(arrays[position])
        try:
            outputs = call(*arrays)
        except Exception as error:
            restored = getattr(error, "outputs", None)
            if restored is not None:
                self._write_back(restored[self._results :], tensors, only_donated=True)
            raise
        if on_host:
            block(outputs)
        wrapped = [self._wrap(k, outputs[k]) for k in range(self._results)]
        if self._split is not None:
            self._join_tape(wrapped, arrays, outputs, tensors)
        for k in self._freed:
            wrapped[k]._n = [-next(sequence), None, _backward, None]
        self._write_back(outputs[self._results :], tensors, only_donated=False)
        return wrapped[0] if self._single else fill(self._numbered, dict(enumerate(wrapped)))

    def _inputs(self, tensors: list[Tensor]) -> list[Tensor]:
        """The tensors behind the program's inputs, in order. Random numbers are drawn here."""
        found = []
        for s in self._sources:
            if isinstance(s, Captured):
                found.append(s.tensor)
            else:
                found.append(tensors[s.position] if isinstance(s, Argument) else self._fetch(s, tensors))
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

    def _plan(self, target: Argument | Captured | GradOf) -> _Target:
        """How to reach what an effect writes: worked out once, so that a call only follows it."""
        owner = target.of if isinstance(target, GradOf) else target
        tensor = owner.tensor if isinstance(owner, Captured) else None
        position = owner.position if isinstance(owner, Argument) else -1
        # a gradient that the program reads is accumulated into the same .grad object, as eager does
        fresh_grad = isinstance(target, GradOf) and target not in self._sources
        return _Target(tensor, position, isinstance(target, GradOf), fresh_grad)

    def _write_back(self, values: Any, tensors: list[Tensor], only_donated: bool) -> None:
        for (tensor, position, of_grad, fresh_grad), array, (shape, dtype) in zip(
            self._targets, values, self._out[self._results :], strict=False
        ):
            if only_donated and (tensor is None or of_grad):
                continue
            owner = tensors[position] if tensor is None else tensor
            value = Deferred(array, shape, dtype)
            if fresh_grad:
                owner._g = Tensor._wrap(value)
            else:
                _overwrite(owner._g if of_grad else owner, value)
        if only_donated:
            return
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
        saved = (self, residuals, arrays, len(live))
        owner: tape.Node = [-next(sequence), None, _backward, saved, *parents]
        if len(live) == 1:
            live[0]._n = owner
            return
        for k, t in enumerate(live):
            t._n = [-next(sequence), None, _select, (k, len(live)), owner]

    def gradients(self, residuals: list[Any], arrays: list[Any], cotangents: list[Any]) -> list[np.ndarray]:
        """Run the backward program; one gradient for each parent of the node."""
        assert self._split is not None
        saved = [arrays[k] for k in self._split.saved]
        outputs = self.backward.call(*residuals, *saved, *cotangents)
        return [np.asarray(g) for g in outputs]

    def zero_cotangents(self) -> list[np.ndarray]:
        """A zero for each result that requires grad, to start from."""
        return [np.zeros(*self._out[k]) for k in self._live]

    def replay(self, inputs: list[Tensor]) -> list[Tensor]:
        """The results that require grad, computed op by op on Tensors: for gradients that are differentiated again."""
        graph: Graph = self._program.graph
        values: dict[int, Tensor] = dict(zip(graph.inputs, inputs, strict=True))
        for node in graph.operations():
            result = apply(node.op, [values[i] for i in node.inputs], node.params)
            values[node.id] = result if node.id in self._program.recorded else E.stop_gradient(result)
        refs = refs_of(graph.result)
        return [values[refs[k].id] for k in self._live]


def _requires_grad(source: Any, tensors: list[Tensor]) -> bool:
    if isinstance(source, Argument):
        return tensors[source.position]._n is not None
    return isinstance(source, Captured) and source.tensor._n is not None


def _is_ours(tensor: Tensor, arrays: list[Any], position: int) -> bool:
    """Whether the program may take over the memory of this tensor: a program made it, and nobody else holds it."""
    data = tensor._d
    if data.__class__ is not Deferred:
        return False
    # references: `tensor._d` and `data` to the stand-in; its slot and `arrays` to the array; each call adds one
    return sys.getrefcount(data) <= 3 and sys.getrefcount(data.array) <= 3


def _overwrite(tensor: Tensor, value: Deferred) -> None:
    """Give `tensor` the program's value: in its own memory if others can see that, else by taking the new memory."""
    data = tensor._d
    # references to an ndarray that is only this tensor's: its slot, `data`, and the argument of getrefcount
    if data.__class__ is np.ndarray and (data.base is not None or sys.getrefcount(data) > 3) and data.flags.writeable:
        np.copyto(data, value.force())
        note_write(data)
    else:
        tensor._d = value


# --- tape nodes: saved = (runner, residuals, input arrays, number of results that require grad)


def _backward(node: tape.Node, g: Any, heap: list[tape.Node]) -> None:
    runner, residuals, arrays, count = node[tape.SAVED]
    cotangents = [g] if count == 1 else g
    shares = runner.gradients(residuals, arrays, [np.asarray(c) for c in cotangents])
    for parent, d in zip(node[tape.PARENTS :], shares, strict=True):
        tape.give(parent, d, heap)


def _select(node: tape.Node, g: Any, heap: list[tape.Node]) -> None:
    """One of several results: put its gradient in its place in the owner's list."""
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
    runner, _, arrays, count = node[tape.SAVED]
    if count != 1:
        raise NotImplementedError(
            "create_graph=True through a compiled function with several results is not supported yet"
        )
    parents = dict(zip(runner._split.wrt, node[tape.PARENTS :], strict=True))
    inputs = []
    for k, array in enumerate(arrays):
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
