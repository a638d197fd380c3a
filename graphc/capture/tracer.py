"""The tracer: an interpreter of Tensor operations that appends each to a graph.

User code runs as it stands, with Tensors whose data are Symbols. Concrete tensors that it meets become inputs of the
graph (*captures*), so that they are read anew at each call; those that it makes itself become constants. In-place
writes, `.grad` and random draws are kept here, outside the tensors, until `finish`.
"""

from __future__ import annotations

import enum
import functools
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np

from eager import hooks, tape
from eager.dispatch import call_text
from eager.grad_mode import set_grad_enabled
from eager.state import grad_enabled, interpreting
from eager.storage import is_plain
from eager.tensor import Tensor
from graphc import errors
from graphc.autodiff import Custom, pullback
from graphc.capture.location import user_line
from graphc.capture.tree import map_tensors, tensors_of
from graphc.ir import Builder, Graph, Ref, Symbol
from graphc.ops import OPS, Op
from graphc.ops.aval import Aval
from graphc.ops.dtypes import BOOL, is_inexact

_STOP, _USER = OPS["stop_gradient"], OPS["user_function"]
_CAST = OPS["cast"]
_FULL, _WHERE = OPS["full"], OPS["where"]
INLINE = 64  # larger constants whose elements are all equal become `full`


@final
@dataclass(frozen=True)
class Argument:
    """An input that is tensor number `position` of the call's arguments."""

    position: int


@final
@dataclass(frozen=True, eq=False)
class Captured:
    """An input that is a tensor the function reached by itself. Equal to another that is the same tensor."""

    tensor: Tensor

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Captured) and other.tensor is self.tensor

    def __hash__(self) -> int:
        return id(self.tensor)


@final
@dataclass(frozen=True)
class GradOf:
    """An input, or an effect, that is the `.grad` of the tensor behind another source."""

    of: Argument | Captured


@final
@dataclass(frozen=True, eq=False)
class Draw:
    """An input that is drawn from a random generator at each call."""

    draw: Callable[[], np.ndarray]


Source = Argument | Captured | GradOf | Draw


class Effect(NamedTuple):
    """Something the program changes: `target` gets the value of node `id` (None: a `.grad` becomes None)."""

    target: Argument | Captured | GradOf
    id: int | None


class Guard(NamedTuple):
    """A condition under which the program is right: `getter()` equals `value`."""

    getter: Callable[[], Any]
    value: Any


class _Base(NamedTuple):
    """A tensor that a view looks at, and the node of its value when the view was made."""

    tensor: weakref.ref[Tensor]
    id: int


class _Values(NamedTuple):
    """The values of a tensor at some time."""

    shape: tuple[int, ...]
    dtype: np.dtype
    data: bytes

    def __repr__(self) -> str:
        return str(np.ndarray(self.shape, self.dtype, self.data))


class History(enum.Enum):
    """What autograd knows of a result."""

    NONE = 0  # requires no grad
    LIVE = 1  # can be differentiated
    FREED = 2  # backward() has been called inside the program, and has freed what a second call would need


@final
class Tracer:
    """See `eager.state.Interpreter` for the methods that tensors call."""

    def __init__(self, name_of: Callable[[Tensor], str | None] = lambda t: None):
        self.builder = Builder(locate=user_line)
        self.sources: list[Source] = []  # of each input
        self.guards: list[Guard] = []
        self._name_of = name_of
        self.plain_arguments: set[int] = set()  # positions of those that have to fill their memory in row-major order
        self._arguments: list[Tensor] = []
        self._read: set[int] = set()  # concrete tensors whose values are guarded
        self._held: dict[int, tuple[Tensor, Symbol]] = {}  # concrete tensors and their present values
        self._fresh: dict[int, Tensor] = {}  # concrete tensors made inside the trace
        self._origin: dict[int, Argument | Captured] = {}  # id of tensor -> where it comes from
        self._recorded: set[int] = set()  # nodes that gradients flow through
        self._freed: set[int] = set()  # nodes that a backward() has gone through
        self._leaves: dict[int, Tensor] = {}  # node id -> the leaf tensor whose value it is
        self._changed: dict[int, Tensor] = {}  # tensors written in place
        self._grads: dict[int, tuple[Tensor, Tensor | None]] = {}  # `.grad` as the program sees it
        self._initial_grads: dict[int, int | None] = {}  # the node of `.grad` before the program, None if it was None
        self._views: dict[int, list[_Base]] = {}  # node of a view -> the tensors that it looks at, nearest first
        self._viewers: dict[int, set[int]] = {}  # node -> the nodes that are views of it
        self._custom: dict[int, Custom] = {}  # output nodes of user Functions
        self._hooks: dict[int, dict[int, Callable[[Tensor], Any]]] = {}  # node -> hooks on the gradient that arrives
        self._stale: set[int] = set()  # views of what has been written in place since

    # --- tensors and symbols

    def argument(self, tensor: Tensor, position: int, name: str) -> Tensor:
        """The traced stand-in of argument number `position`."""
        symbol = self._input(name, Aval(tuple(tensor._d.shape), tensor._dtype()), Argument(position))
        stand_in = self._wrap(symbol, tensor._n is not None)
        self._origin[id(stand_in)] = Argument(position)
        self._arguments.append(tensor)
        self._fresh[id(stand_in)] = stand_in  # keeps its id from being used again
        if tensor._n is not None:
            self._leaves[symbol.id] = stand_in
        return stand_in

    def read(self, tensor: Tensor) -> Symbol:
        """The present value of a tensor."""
        data = tensor._d
        if data.__class__ is Symbol:
            data.check_open(self.builder)
            if data.id in self._stale:
                made = self.builder.nodes[data.id].where or "an unknown line"
                raise errors.CaptureError(errors.STALE_VIEW.format(made=made, used=user_line()))
            return data
        held = self._held.get(id(tensor))
        if held is None:
            return self._capture(tensor)
        symbol = held[1]
        if tensor._n is not None and id(tensor) in self._changed and symbol.id not in self._leaves:
            # a parameter after its update is a leaf again: gradients stop at this node
            symbol = self.builder.emit(_STOP, (symbol,), {})
            self._leaves[symbol.id] = tensor
            self._held[id(tensor)] = (tensor, symbol)
        return symbol

    def _input(self, name: str, aval: Aval, source: Source) -> Symbol:
        self.sources.append(source)
        return self.builder.input(name, aval)

    def _capture(self, tensor: Tensor) -> Symbol:
        if id(tensor) in self._fresh:
            symbol = self._constant(tensor._array())
        else:
            name = self._name_of(tensor) or f"captured_{len(self.sources)}"
            self._origin[id(tensor)] = Captured(tensor)
            symbol = self._input(name, Aval(tuple(tensor._d.shape), tensor._dtype()), Captured(tensor))
        self._held[id(tensor)] = (tensor, symbol)
        if tensor._n is not None:
            self._leaves[symbol.id] = tensor
        return symbol

    def _constant(self, array: np.ndarray) -> Symbol:
        if array.size > INLINE:
            first = array.reshape(-1)[0].item()
            if (array == first).all() and not (first == 0 and np.signbit(array).any()):
                params = {"shape": array.shape, "value": first, "dtype": array.dtype}
                return self.builder.emit(_FULL, (), params)
        return self.builder.constant(array)

    def _wrap(self, symbol: Symbol, requires_grad: bool) -> Tensor:
        t = object.__new__(Tensor)
        t._d = symbol
        t._n = symbol if requires_grad else None
        return t

    def _is_shared(self, id_: int) -> bool:
        """Whether `id_` is a view of memory that another tensor may look at too."""
        bases = self._views.get(id_, ())
        chain = {id_, *(base.id for base in bases)}
        return any(base.tensor() is not None or self._viewers[base.id] - chain for base in bases)

    def _present(self, tensor: Tensor) -> int | None:
        if tensor._d.__class__ is Symbol:
            return tensor._d.id
        held = self._held.get(id(tensor))
        return held[1].id if held else None

    # --- what tensors call

    def apply(self, op: Op, operands: Sequence[Any], params: Any) -> Tensor:
        builder = self.builder
        builder.where = user_line()
        symbols, requires = [], False
        for i, x in enumerate(operands):
            if isinstance(x, Tensor):
                symbols.append(self.read(x))
                requires = requires or (x._n is not None and op.arg_of(i) in op.vjp)
            elif (
                isinstance(x, (bool, int, float, complex, np.generic))
                and op.rule.promote
                and op.rule.scalars
                and i >= op.rule.first
            ):
                symbols.append(x)
            else:
                raise TypeError(
                    f"{op.name}(): argument '{op.arg_of(i)}' (position {i + 1}) must be Tensor, not {type(x).__name__}"
                )
        before = builder.next_id
        try:
            result = builder.apply(op, symbols, params)
        except Exception as error:
            error.add_note(f"in {call_text(op, operands)} at {builder.where}")
            raise
        requires = requires and grad_enabled() and is_inexact(result.aval.dtype)
        if requires:
            self._recorded.update(range(before, builder.next_id))  # the op, and casts of its operands
        if op.view:
            nearest = _Base(weakref.ref(operands[0]), symbols[0].id)
            self._views[result.id] = bases = [nearest, *self._views.get(symbols[0].id, ())]
            for base in bases:
                self._viewers.setdefault(base.id, set()).add(result.id)
        return self._wrap(result, requires)

    def created(self, tensor: Tensor) -> None:
        self._fresh[id(tensor)] = tensor

    def assign(self, target: Tensor, value: Tensor, name: str) -> Tensor:
        self.builder.where = where = user_line()
        symbol, before = self.read(value), self.read(target)
        if self._is_shared(before.id):
            raise errors.CaptureError(errors.INPLACE_ON_VIEW.format(op=f"{name}_", used=where))
        recorded = grad_enabled() and (value._n is not None or target._n is not None)
        if symbol.aval.dtype != before.aval.dtype:
            symbol = self.builder.emit(_CAST, (symbol,), {"dtype": before.aval.dtype})
            if recorded:
                self._recorded.add(symbol.id)
        if id(target) in self._origin or id(target) in self._held:
            if recorded:
                raise errors.CaptureError(
                    f"{name}_(): an in-place write with history, to a tensor that outlives the call (at {where}), "
                    "cannot be captured yet. Remedy: write under torch.no_grad(), or return the new value."
                )
            self._changed[id(target)] = target
        if recorded and value._n is None:
            # what has a past keeps it, though no gradient reaches that any more
            everywhere = self.builder.emit(_FULL, (), {"shape": before.aval.shape, "value": True, "dtype": BOOL})
            symbol = self.builder.emit(_WHERE, (everywhere, symbol, before), {})
            self._recorded.add(symbol.id)
        self._stale |= self._viewers.get(before.id, set())
        if target._d.__class__ is Symbol:
            target._d = symbol
            if recorded:
                target._n = symbol
        else:
            self._held[id(target)] = (target, symbol)
        return target

    def copied(self, tensor: Tensor) -> Tensor:
        return tensor  # values of a graph are never overwritten

    def random(self, draw: Callable[[tuple[int, ...]], np.ndarray], shape: tuple[int, ...], dtype: np.dtype) -> Tensor:
        source = Draw(functools.partial(draw, shape))
        return self._wrap(self._input(f"random_{len(self.sources)}", Aval(tuple(shape), dtype), source), False)

    def entered(self, tensor: Tensor, leaf: Any) -> Tensor:
        """A tensor like `tensor` that gradients can be taken with respect to: with its history, or with `leaf`."""
        if tensor._n is not None:
            return self.apply(OPS["clone"], (tensor,), {})
        stand_in = self.apply(_STOP, (tensor,), {})
        stand_in._n = leaf
        self._leaves[self.read(stand_in).id] = stand_in
        return stand_in

    def left(self, tensor: Tensor) -> None:
        """Gradients are no longer taken with respect to `tensor`, which `entered` made."""
        leaf = self._leaves.get(self.read(tensor).id)
        if leaf is tensor:
            del self._leaves[self.read(tensor).id]

    def has_leaves(self, tensor: Tensor) -> bool:
        """Whether some leaf, live now, can get a gradient from `tensor`."""
        if tensor._n is None:
            return False
        id_ = self.read(tensor).id
        history = self._history_of([id_])
        sources = {id_, *(i for h in history for i in self.builder.nodes[h].inputs)}
        return not sources.isdisjoint(self._leaves)

    def guard(self, getter: Callable[[], Any], value: Any) -> None:
        self.guards.append(Guard(getter, value))

    def became_leaf(self, tensor: Tensor) -> None:
        if not isinstance(self._origin.get(id(tensor)), Argument):  # whose `.grad` a program does not set
            self._leaves[self.read(tensor).id] = tensor

    def values_read(self, tensor: Tensor) -> None:
        if id(tensor) in self._changed:
            raise self._unknown(tensor, errors.TRACED_TO_NUMPY, "reading the values after an in-place write")
        if id(tensor) not in self._fresh and id(tensor) not in self._read:
            self._read.add(id(tensor))
            self.guard(functools.partial(_values_of, tensor), _values_of(tensor))

    def lies_plainly(self, tensor: Tensor) -> None:
        given, data = tensor, tensor._d
        if data.__class__ is Symbol:
            origin = self._origin.get(id(tensor))
            if isinstance(origin, Argument):
                given = self._arguments[origin.position]
                self.plain_arguments.add(origin.position)
            elif data.id in self._views:
                raise self._unknown(tensor, errors.UNKNOWN_MEMORY, "as_strided")
            else:
                return
        elif id(tensor) not in self._fresh:
            self.guard(functools.partial(is_plain, tensor), True)
        if not is_plain(given):
            raise self._unknown(tensor, errors.UNKNOWN_MEMORY, "as_strided")

    def _unknown(self, tensor: Tensor, message: str, what: str) -> errors.CaptureError:
        symbol = self.read(tensor)
        made = self.builder.nodes[symbol.id].where or "the call"
        return errors.CaptureError(message.format(what=what, aval=symbol.aval, made=made, used=user_line()))

    # --- gradients

    def get_grad(self, tensor: Tensor) -> Tensor | None:
        key = id(tensor)
        if key not in self._grads:
            self._grads[key] = (tensor, self._read_grad(tensor))
        return self._grads[key][1]

    def _read_grad(self, tensor: Tensor) -> Tensor | None:
        """The `.grad` that the tensor has before the program starts."""
        origin = self._origin_of(tensor)
        if origin is None:
            return getattr(tensor, "_g", None) if tensor._d.__class__ is not Symbol else None
        if isinstance(origin, Argument):
            raise errors.CaptureError(
                f"reading .grad of an argument (at {user_line()}) cannot be captured yet. "
                "Remedy: let the compiled function capture the tensor instead."
            )
        grad = getattr(tensor, "_g", None)
        self.guard(lambda: getattr(tensor, "_g", None) is None, grad is None)
        if grad is None:
            self._initial_grads[id(tensor)] = None
            return None
        name = (self._name_of(tensor) or "captured") + "_grad"
        symbol = self._input(name, Aval(tuple(grad._d.shape), grad._dtype()), GradOf(origin))
        self._initial_grads[id(tensor)] = symbol.id
        return self._wrap(symbol, False)

    def _origin_of(self, tensor: Tensor) -> Argument | Captured | None:
        if tensor._d.__class__ is not Symbol and id(tensor) not in self._fresh and id(tensor) not in self._origin:
            self._origin[id(tensor)] = Captured(tensor)
        return self._origin.get(id(tensor))

    def set_grad(self, tensor: Tensor, value: Tensor | None) -> None:
        self._origin_of(tensor)
        self._grads[id(tensor)] = (tensor, value)

    def backward(
        self,
        outputs: Sequence[Tensor],
        cotangents: Sequence[Tensor],
        inputs: Sequence[Tensor] | None,
        create_graph: bool,
        keep: bool,
    ) -> None:
        wrt = self._leaves if inputs is None else {self.read(t).id: t for t in inputs}
        grads = self._pullback(outputs, cotangents, list(wrt), create_graph, keep)
        for id_, g in grads.items():
            tensor = wrt[id_]
            if inputs is None and isinstance(self._origin.get(id(tensor)), Argument):
                old = self._grads.get(id(tensor), (tensor, None))[1]
            else:
                old = self.get_grad(tensor)
            if old is None:
                self.set_grad(tensor, self._wrap(g, create_graph))
            else:
                self.assign(old, self._wrap(self.read(old) + g, False), "add")

    def gradients(
        self,
        outputs: Sequence[Tensor],
        cotangents: Sequence[Tensor],
        inputs: Sequence[Tensor],
        create_graph: bool,
        keep: bool,
    ) -> list[Tensor | None]:
        ids = [self.read(t).id for t in inputs]
        grads = self._pullback(outputs, cotangents, ids, create_graph, keep)
        return [self._wrap(grads[i], create_graph) if i in grads else None for i in ids]

    def _pullback(
        self,
        outputs: Sequence[Tensor],
        cotangents: Sequence[Tensor],
        wrt: list[int],
        create_graph: bool,
        keep: bool,
    ) -> dict[int, Symbol]:
        self.builder.where = user_line()
        walked = self._history_of([self.read(t).id for t in outputs])
        if walked & self._freed:
            raise RuntimeError(tape.FREED)
        seeds: dict[int, Symbol] = {}
        for output, cotangent in zip(outputs, cotangents, strict=True):
            id_, g = self.read(output).id, self.read(cotangent)
            seeds[id_] = seeds[id_] + g if id_ in seeds else g
        before = self.builder.next_id
        with set_grad_enabled(create_graph):
            grads = pullback(
                self.builder, seeds, wrt, self._recorded, custom=self._custom,
                arrived=functools.partial(self._arrived, create_graph=create_graph),
            )  # fmt: skip
        if create_graph:
            self._recorded.update(range(before, self.builder.next_id))
        if not keep:
            self._freed |= {i for i in walked if _saves(self.builder.nodes[i].op)}
        return grads

    def hook(self, tensor: Tensor, hook: Callable[[Tensor], Any]) -> hooks.RemovableHandle:
        return hooks.RemovableHandle(self._hooks.setdefault(self.read(tensor).id, {}), hook)

    def _arrived(self, id_: int, g: Symbol, create_graph: bool) -> Symbol:
        """A complete gradient, as the hooks on its tensor leave it."""
        found = list(self._hooks.get(id_, {}).values())
        leaf = self._leaves.get(id_)
        if leaf is not None and isinstance(leaf._n, list) and (registered := hooks.hooks_of(leaf._n)):
            found += registered.of_tensor.values()
        for hook in found:
            result = hook(self._wrap(g, create_graph))
            g = g if result is None else self.read(result)
        return g

    def custom(self, rule: Any, inputs: Sequence[Tensor], outputs: Sequence[Any], wanted: Sequence[bool]) -> list[Any]:
        before = self.builder.next_id
        ids = tuple(self.read(t).id for t in inputs)
        results, outs = list[Any](), list[int]()
        for t, differentiable in zip(outputs, wanted, strict=True):
            # one node for each output; those without a gradient take part, so that the numbers agree
            symbol = self.builder.emit(_USER, (self.read(t),), {}) if isinstance(t, Tensor) else None
            outs.append(-1 if symbol is None else symbol.id)
            results.append(t if symbol is None else self._wrap(symbol, differentiable))
        saved, rule.ctx._to_save = rule.ctx._to_save, ()

        def shares(given: dict[int, Symbol]) -> list[tuple[int, Symbol]]:
            cotangents = {k: self._wrap(g, grad_enabled()) for k, g in given.items()}
            grads = rule.run(cotangents, saved)
            return [(id_, self.read(g)) for id_, g in zip(ids, grads, strict=True) if g is not None]

        entry = Custom(tuple(outs), ids, shares)
        self._custom.update(dict.fromkeys((id_ for id_ in outs if id_ >= 0), entry))
        self._recorded.update(range(before, self.builder.next_id))
        return results

    def _history_of(self, ids: list[int]) -> set[int]:
        """The recorded nodes that the nodes `ids` were computed through."""
        found: set[int] = set()
        stack = list(ids)
        while stack:
            id_ = stack.pop()
            if id_ in self._recorded and id_ not in found:
                found.add(id_)
                stack.extend(self.builder.nodes[id_].inputs)
        return found

    # --- the end

    def finish(self, result: Any) -> tuple[Any, list[Effect]]:
        """Close the trace. Returns the result with Refs in place of tensors, and what the program changes."""
        refs = map_tensors(result, lambda t, path: Ref(self.read(t).id))
        effects: list[Effect] = []
        for key, tensor in self._changed.items():
            origin = self._origin.get(key)
            if origin is not None:
                effects.append(Effect(origin, self._present(tensor)))
        for key, (_, grad) in self._grads.items():
            origin = self._origin.get(key)
            final = None if grad is None else self.read(grad).id
            if origin is not None and (key not in self._initial_grads or final != self._initial_grads[key]):
                effects.append(Effect(GradOf(origin), final))
        self.builder.closed = True
        # in the order of the inputs: JAX pairs donated inputs with results of the same type in order, and a program
        # that writes each state over itself needs no copies
        place = {source: k for k, source in enumerate(self.sources)}
        effects.sort(key=lambda effect: place.get(effect.target, len(place)))
        return refs, effects

    def pullback(
        self, graph: Graph, seeds: Callable[[Builder], dict[int, Symbol]], wrt: list[int]
    ) -> tuple[Builder, dict[int, Symbol]]:
        """As `graphc.autodiff.pullback`, on a copy of `graph`, which this tracer made: with the user's rules and hooks.

        They run in this trace, which is open again for them. Returns the builder, too.
        """
        builder = self.builder
        builder.nodes, builder.inputs, builder.closed = dict(graph.nodes), list(graph.inputs), False
        try:
            with interpreting(self), set_grad_enabled(False):
                found = pullback(
                    builder, seeds(builder), wrt, self._recorded, custom=self._custom,
                    arrived=functools.partial(self._arrived, create_graph=False),
                )  # fmt: skip
        finally:
            builder.closed = True
        return builder, found

    @property
    def has_rules(self) -> bool:
        """Whether gradients depend on Functions or hooks of the user's."""
        return bool(self._custom or self._hooks)

    @property
    def recorded(self) -> frozenset[int]:
        """The ids of the nodes that gradients flow through."""
        return frozenset(self._recorded)

    def histories(self, result: Any) -> list[History]:
        """What autograd knows of each tensor in the result."""
        return [self._history(t) for t in tensors_of(result)]

    def _history(self, tensor: Tensor) -> History:
        if tensor._n is None:
            return History.NONE
        return History.FREED if self._history_of([self.read(tensor).id]) & self._freed else History.LIVE


def _values_of(tensor: Tensor) -> _Values:
    array = tensor._array()
    return _Values(array.shape, array.dtype, array.tobytes())


def _saves(op: Op) -> bool:
    """Whether the tape node of `op` keeps values that backward() frees."""
    return any(set(vjp.names) & {"r", *op.args} for vjp in op.vjp.values())
