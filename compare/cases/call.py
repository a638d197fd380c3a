"""One call of the user's function: what it reads and does, and how every mode repeats it from the same state."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from compare.cases.joint import gradient_label
from compare.cases.outcome import Outcome, flatten, is_array, is_number
from compare.cases.sharing import Sharing, sharing_of
from compare.cases.state import Held, State, array_of, arrays_in, structures_in
from compare.judging.dtypes import Promotion
from compare.judging.work import LIMIT
from eager import autograd
from eager.core.sparse import is_sparse
from eager.core.state import writeable
from eager.core.tensor import Tensor
from eager.engine.hooks import hooks_of
from eager.engine.language import E
from eager.rng.generator import is_left
from eager.rng.sampling import default_generator
from graphc import forking
from graphc.capture import Argument, Captured, Draw, GradOf, History, MemoryOf, Program, Source, capture
from graphc.capture.state.argument_containers import Containers
from graphc.capture.state.environment import Environment
from graphc.capture.state.places import Place
from graphc.capture.storage.inputs import whole_memory
from graphc.capture.storage.sharing import owner_of
from graphc.capture.trace import forget
from graphc.capture.tracer import Tracer
from graphc.capture.tree import Kept, Slot, map_leaves, map_tensors, tensors_of
from graphc.capture.user_objects import opener
from graphc.ir import Node
from graphc.ops.aval import Aval, aval_of
from graphc.ops.dtypes import is_inexact

SINGLY = 4  # results of a call that are differentiated by themselves, at most: each takes a program of its own
Wrap = Callable[[Callable[..., Any]], Callable[..., Any]]


class Input(NamedTuple):
    """A tensor that the call reads, and the positions of the graph's inputs that are this tensor."""

    name: str
    tensor: Tensor
    positions: tuple[int, ...]


class Unfinished(NamedTuple):
    """A graph that was not finished: its nodes and inputs, and where these come from."""

    nodes: Mapping[int, Node]
    inputs: tuple[int, ...]
    sources: tuple[Source, ...]


class Call:
    """`fn(*args, **kwargs)`, its captured program, and the cotangents to differentiate it with.

    program and failure: what `graphc.capture` returned or raised. Arguments with history are cut off from it.
    wrap     makes what is called from `fn`, or from what a mode has in its place
    locates  whether it is asked where modes part
    constant whether results without history are taken for constants, and asked whether they are, as gradients are
    limit    work that a mode may take, or judging it (see compare.judging.work)
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        seed: int,
        wrap: Wrap = lambda call: call,
        locates: bool = True,
        constant: bool = False,
        limit: float = LIMIT,
    ):
        forking.refuse("a comparison")  # compiled functions would run eagerly, and agree
        self.fn = fn
        self.locates = locates
        self._constant = constant
        self.limit = limit
        self._wrap = wrap
        self.name = getattr(fn, "__name__", type(fn).__name__)
        self.seed = seed
        leaves: dict[int, Tensor] = {}

        def leaf(tensor: Tensor, path: str) -> Tensor:
            return leaves.setdefault(id(tensor), tensor if tensor.is_leaf else _cut(tensor))

        self.args = tuple(map_tensors(a, leaf) for a in args)
        self.kwargs = {name: map_tensors(value, leaf) for name, value in kwargs.items()}
        self.tensors = [*tensors_of(self.args), *tensors_of(self.kwargs)]
        self.batched: set[str] = set()  # see `compare.locating.batching.watched`
        self.promoted: set[Promotion] = set()  # see `compare.judging.dtypes.watched`
        self._random = default_generator.get_state()
        self.state = State(fn, self.args, self.kwargs)
        self._traced: list[tuple[Place, Any]] = []
        self.program: Program | None = None
        self.failure: Exception | None = None
        self.unfinished: Unfinished | None = None  # what was captured until the function raised
        with self._restored(self.tensors):
            try:
                self.program = self.captured()
                self._traced = [(place, place.now()) for place in self.state.changed()]
            except Exception as error:
                self.failure = error
        self.inputs = self._inputs()
        self.wrt = [i for i in self.inputs if i.tensor.requires_grad]

    @property
    def captured_program(self) -> Program:
        """`program`, where there is one."""
        assert self.program is not None
        return self.program

    def captured(self) -> Program:
        """The program of the call, as `graphc.compile` captures it: right on the path that Python takes."""
        environment = Environment(self.fn, self.args, self.kwargs)

        def failed(tracer: Tracer, containers: Containers) -> None:
            builder = tracer.builder
            self.unfinished = Unfinished(dict(builder.nodes), tuple(builder.inputs), tuple(tracer.state.sources))
            forget(environment, tracer, containers)

        fn, args, kwargs = self._wrap(self.fn), self.args, self.kwargs
        return capture(fn, args, kwargs, environment=environment, failed=failed, keepers_stay=True)

    def _inputs(self) -> list[Input]:
        if self.program is None:
            named = [(f"argument {k}", t, (k,)) for k, t in enumerate(self.tensors)]
        else:
            graph = self.program.graph
            sources = zip(graph.input_names, self.program.sources, strict=True)
            named: list[tuple[str, Tensor, tuple[int, ...]]] = [
                (name, self._tensor(source), (k,))
                for k, (name, source) in enumerate(sources)
                if isinstance(source, (Argument, Captured))
            ]
            known = {id(t) for _, t, _ in named}
            for effect in self.program.effects.tensors:  # tensors that are written and never read
                tensor = self._tensor(owner_of(effect.target))
                if id(tensor) not in known:
                    known.add(id(tensor))
                    named.append((f"tensor {len(named)}", tensor, ()))
        merged: dict[int, Input] = {}
        for name, tensor, positions in named:
            old = merged.get(id(tensor))
            merged[id(tensor)] = Input(name, tensor, positions) if old is None else old._replace(
                positions=(*old.positions, *positions)
            )  # fmt: skip
        return list(merged.values())

    def _tensor(self, source: Source) -> Tensor:
        match source:
            case Argument(position):
                return self.tensors[position]
            case Captured(tensor):
                return tensor
            case GradOf(of):
                grad = self._tensor(of)._g
                assert grad is not None
                return grad
            case MemoryOf(of):
                return whole_memory(self._tensor(of))
            case Draw(draw):
                return Tensor._wrap(np.asarray(draw()))
        raise AssertionError(source)

    def array(self, source: Source) -> np.ndarray:
        """A copy of what a source has now."""
        return np.array(self._tensor(source)._array())

    def memory(self, source: MemoryOf) -> Tensor:
        """All of the memory that a source is, as a vector that shares it."""
        return self._tensor(source)

    def arrays(self, laid: bool = False) -> list[np.ndarray]:
        """A copy of each input of the captured graph, random ones drawn anew. Needs `program`.

        laid  the arrays themselves, in the layouts that they have
        """
        found = [self._tensor(source)._array() for source in self.captured_program.sources]
        return found if laid else [np.array(array) for array in found]

    def preserved(self) -> contextlib.AbstractContextManager[None]:
        """Context: the state from which every run starts; at its end tensors, the generator and Python's state are
        put back.
        """
        return self._restored([i.tensor for i in self.inputs])

    @contextlib.contextmanager
    def _restored(self, tensors: list[Tensor]) -> Iterator[None]:
        saved = [(t, t._array(), t._array().copy(), t._n, *_gradient_of(t)) for t in tensors]
        default_generator.set_state(self._random)
        try:
            with self.state.restored():
                yield
        finally:
            default_generator.set_state(self._random)
            for t, array, values, node, grad, grad_values in saved:
                _restore(t, array, values)
                t._n = node
                if grad is not None and not is_sparse(grad):
                    _restore(grad, grad._array(), grad_values)
                if grad is not None or hasattr(t, "_g"):
                    t._g = grad

    def observe(self, call: Callable[..., Any]) -> Outcome:
        """Run `call` in place of the function, on Tensors, and differentiate its result through the tape."""
        with self.preserved():
            before = {i.name: _contents(i.tensor) for i in self.inputs}
            memories = {i.name: Tensor._wrap(i.tensor._array()) for i in self.inputs}
            try:
                result = self._wrap(call)(*self.args, **self.kwargs)
                structure, leaves = flatten(result, lambda x: isinstance(x, Tensor) or is_number(x) or is_array(x))
                values = {label: np.array(array_of(leaf)) for label, leaf in leaves.items()}
                tensors = {label: leaf for label, leaf in leaves.items() if isinstance(leaf, Tensor)}
                gradients = self._tape_gradients(list(tensors.values()))
            except Exception as error:
                return Outcome(error=error)
            held = self._held()
            found = Outcome(
                structure,
                values,
                {label: Aval(tuple(t.shape), t.dtype.numpy) for label, t in tensors.items()},  # numbers declare nothing
                {label: t.requires_grad for label, t in tensors.items()},
                gradients,
                changes=self._changes(before) | arrays_in(held),
                state=structures_in(held),
                sharing=self._sharing(tensors, held, memories),
                drawn=default_generator.bits(2).tobytes(),
                classes={label: type(t) for label, t in tensors.items()},
            )
            # last, for it calls the user's hooks again
            return dataclasses.replace(found, reached=self._reached(tensors))

    def _reached(self, tensors: Mapping[str, Tensor]) -> dict[str, frozenset[str] | str]:
        """The inputs that gradients arrive at, of all results together and of each alone."""
        slots = self._slots_of(list(tensors.values()))
        live = {label: t for k, (label, t) in zip(slots, tensors.items(), strict=True) if self._live(k, t)}
        singly = [*live.items()][: SINGLY if self.locates else 1] if len(live) > 1 else []
        asked = {"all": list(live.values()), **{label: [t] for label, t in singly}}
        found: dict[str, frozenset[str] | str] = {}
        for label, results in asked.items() if live and self.wrt else ():
            seeds = [Tensor._wrap(np.ones(t._d.shape, t._dtype())) for t in results]
            wrt = [i.tensor for i in self.wrt]
            try:
                grads = autograd.grad(results, wrt, seeds, retain_graph=True, allow_unused=True)
            except Exception as error:
                found[label] = type(error).__name__
                continue
            found[label] = frozenset(i.name for i, g in zip(self.wrt, grads, strict=True) if g is not None)
        return found

    def _sharing(
        self, results: Mapping[str, Tensor], held: Mapping[str, Held], before: Mapping[str, Tensor]
    ) -> Sharing:
        """How results, inputs and what is left in Python's state belong together; and inputs with their old memory."""
        kept = [sharing_of({i.name: i.tensor, f"{i.name} before the call": before[i.name]}) for i in self.inputs]
        return {**sharing_of({**results, **self._tensors_after(held)}), **{k: v for s in kept for k, v in s.items()}}

    def _tensors_after(self, held: Mapping[str, Held]) -> dict[str, Any]:
        """Whatever may be a tensor after the call besides its result, by name."""
        found = {f"{i.name}.grad": getattr(i.tensor, "_g", None) for i in self.inputs}
        grads = {name: g for name, g in found.items() if g is None or not is_sparse(g)}  # of which the parts are new
        left = {label: leaf for h in held.values() for label, leaf in h.leaves.items()}
        return {**{i.name: i.tensor for i in self.inputs}, **grads, **left}

    def _held(self) -> dict[str, Held]:
        held = self.state.held(frozenset(i.name for i in self.inputs))
        for i in self.inputs:
            grad = getattr(i.tensor, "_g", None)
            if grad is not None and is_sparse(grad):  # a container of tensors
                label = f"{i.name}.grad after the call"
                held[label] = Held(*flatten(grad, lambda x: isinstance(x, (Tensor, Slot)), label))
        return held

    @cached_property
    def traced_effects(self) -> frozenset[str]:
        """Labels of the Python state that is changed when the function is traced, and not by the program."""
        with self.preserved():
            for place, value in self._traced:
                place.write(value)
            return frozenset(self._held())

    def state_after(self, leaf: Callable[[Slot], Any]) -> dict[str, Held]:
        """The Python state that the captured program leaves, with `leaf(slot)` in place of what it computes."""
        program, given = self.captured_program, (self.args, self.kwargs)

        def filled(value: Any, path: str) -> Any:
            return leaf(value) if type(value) is Slot else value.find(given)

        with self.preserved():
            for place, value in self._traced:
                place.write(value)
            known: dict[int, Any] = {}
            values = [map_leaves(value, filled, "", known, _holding_slots) for _, value in program.effects.state]
            for (change, _), value in zip(program.effects.state, values, strict=True):
                change.carry_out(value, given)
            return self._held()

    def _changes(self, before: Mapping[str, tuple[np.ndarray, np.ndarray | None]]) -> dict[str, np.ndarray]:
        changes: dict[str, np.ndarray] = {}
        for name, tensor, _ in self.inputs:
            value, grad = _contents(tensor)
            old_value, old_grad = before[name]
            if value.tobytes() != old_value.tobytes() and not is_left(tensor):
                changes[f"{name} after the call"] = value
            if grad is None or is_sparse(tensor._g):
                continue
            if old_grad is None or grad.tobytes() != old_grad.tobytes():
                changes[f"{name}.grad after the call"] = grad
        return changes

    def _tape_gradients(self, outputs: list[Tensor]) -> dict[str, np.ndarray]:
        live = [(k, t) for k, t in zip(self._slots_of(outputs), outputs, strict=True) if self._live(k, t)]
        asked = bool(live) or (self._constant and any(is_inexact(t._dtype()) for t in outputs))
        if not asked or not self.wrt:
            return {}
        cotangents = [Tensor._wrap(self.cotangent(k, aval_of(t._array()))) for k, t in live]
        wrt = [i.tensor for i in self.wrt]
        results = [t for _, t in live]
        found: Any = [None] * len(wrt)
        if live:  # the graph is kept for `_reached`
            found = autograd.grad(results, wrt, cotangents, retain_graph=True, allow_unused=True)
        return {
            gradient_label(i): np.zeros(i.tensor._d.shape, i.tensor._dtype()) if g is None else np.array(array_of(g))
            for i, g in zip(self.wrt, found, strict=True)
        }

    @property
    def hooked(self) -> list[Input]:
        """The inputs whose gradients go through hooks that were there before the call."""
        return [i for i in self.wrt if hooks_of(i.tensor._n) is not None]

    def as_hooks_leave(self, gradients: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """`gradients` of inputs, by label, as they are behind the hooks on those."""
        with self.preserved():
            for i in self.hooked:
                if gradient_label(i) in gradients:
                    given = Tensor._wrap(gradients[gradient_label(i)])
                    (left,) = autograd.grad([E.clone(i.tensor)], [i.tensor], [given])
                    gradients[gradient_label(i)] = np.array(left._array())
        return gradients

    def _live(self, k: int, output: Tensor) -> bool:
        if not output.requires_grad:
            return False
        histories = None if self.program is None else self.program.result.histories
        return histories is None or k >= len(histories) or histories[k] is not History.BROKEN

    def seeds(self, k: int, dtype: np.dtype) -> bool:
        """Whether slot number `k` of the program's result has a cotangent. Needs `program`."""
        history = self.captured_program.result.histories[k]
        return history is History.LIVE or (self._constant and history is History.NONE and is_inexact(dtype))

    def _slots_of(self, tensors: list[Tensor]) -> list[int]:
        """The number of the slot of each tensor of a result."""
        known = [] if self.program is None else self.tensor_slots
        return known if len(known) == len(tensors) else list(range(len(tensors)))

    @cached_property
    def slots(self) -> Mapping[str, Any]:
        """Leaves of the program's result by label: a Slot, or a number that the trace has fixed. Needs `program`."""
        return flatten(self.captured_program.result.plain, lambda x: type(x) is Slot or is_number(x) or is_array(x))[1]

    @cached_property
    def keeps_containers(self) -> bool:
        """Whether the result has a container in it that was there before the call. Needs `program`."""
        return bool(flatten(self.captured_program.result.plain, lambda x: type(x) is Kept)[1])

    @cached_property
    def tensor_slots(self) -> list[int]:
        """Of each tensor of the result, the number of its slot."""
        found = [leaf.index for leaf in self.slots.values() if type(leaf) is Slot]
        return [index for index in found if index not in self.captured_program.result.numbers]

    def cotangent(self, k: int, aval: Aval) -> np.ndarray:
        """The random cotangent of slot number `k` of the result: see `random_cotangent`."""
        return random_cotangent(np.random.default_rng((self.seed, k)), aval)


def random_cotangent(rng: np.random.Generator, aval: Aval) -> np.ndarray:
    """A cotangent: no element, or its real or imaginary part, is near 0, and none is 1 throughout."""

    def part() -> np.ndarray:
        signs = rng.choice([-1.0, 1.0], aval.shape)
        return np.asarray(signs * rng.uniform(0.5, 1.5, aval.shape))

    real = part()
    return np.asarray(real + 1j * part() if aval.dtype.kind == "c" else real, aval.dtype)


_holding_slots = opener(lambda leaf: type(leaf) in (Slot, Kept))


def _cut(tensor: Tensor) -> Tensor:
    made = tensor.data.requires_grad_(tensor.requires_grad)
    vars(made).update(vars(tensor))
    return made


def _gradient_of(tensor: Tensor) -> tuple[Tensor | None, np.ndarray | None]:
    grad = getattr(tensor, "_g", None)
    return grad, None if grad is None else np.array(array_of(grad))


def _contents(tensor: Tensor) -> tuple[np.ndarray, np.ndarray | None]:
    return np.array(tensor._array()), _gradient_of(tensor)[1]


def _restore(tensor: Tensor, array: np.ndarray, values: np.ndarray | None) -> None:
    assert values is not None
    memory = writeable(array)
    if memory is not None:
        np.copyto(memory, values)
    tensor._d = array
