"""The classic static style: graphs built with tensors outside of any function.

`placeholder` gives a tensor without a value. What is computed from it has none either: it is appended to the graph of
the thread. Operations on tensors that have values run as ever. But of what is computed from tensors that require grad
(the *variables*) it is remembered how: when it meets the graph, the graph computes it anew from the variables. All that
lasts as long as a placeholder exists.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from contextvars import ContextVar
from typing import Any, NamedTuple, final, overload

import numpy as np

from eager.core.dtypes import to_numpy
from eager.core.interpreter import IMMEDIATE, INTERPRETER, Interpreter, current_interpreter, forwarding, under
from eager.core.state import Closing, version_of
from eager.core.tensor import Tensor
from eager.engine.backward import as_tuple
from graphc import errors
from graphc.autodiff import gradients as gradients_of_graph
from graphc.autodiff import pullback
from graphc.capture.location import user_line
from graphc.capture.sources import Argument
from graphc.capture.tracer import Tracer
from graphc.ir import Graph, Ref, Symbol
from graphc.ir.sizes import ANY
from graphc.ir.structure import ancestors
from graphc.ops import Op
from graphc.ops.aval import Aval, results_of
from graphc.ops.dims import Dim, Sizes, has_dim
from graphc.ops.dtypes import default_float, is_inexact

_building: ContextVar[Building | None] = ContextVar("building", default=None)


class Recipe(NamedTuple):
    """The operation that a tensor is result number `result` of, and how often its operands had been written by then."""

    op: Op
    operands: tuple[Any, ...]
    params: Any
    versions: list[int]
    result: int


def _version(x: Any) -> int:
    return version_of(x._array()) if isinstance(x, Tensor) and not x.is_leaf else 0


def _either(name: str) -> Any:
    """The method `name` of the tracer where an operand is of the graph; of the immediate interpreter otherwise."""

    def method(self: Building, *args: Any) -> Any:
        operands = itertools.chain.from_iterable(a if isinstance(a, (tuple, list)) else (a,) for a in args)
        if any(map(self.has, operands)):
            return getattr(self.tracer, name)(*args)
        with under(IMMEDIATE):
            return getattr(IMMEDIATE, name)(*args)

    return method


@final
@forwarding({"tracer": "inside tensor_of"})
class Building(Interpreter):
    """The graph of a thread: an interpreter that traces operations on tensors without values, and runs all others."""

    def __init__(self):
        self.tracer = Tracer(lambda tensor: None)
        self.tracer.computed = self._again
        self._recipes: dict[int, Recipe] = {}  # id of a tensor that variables have been made into -> how
        self.placeholders: dict[int, str] = {}  # input node -> name
        self._alive = 0
        self._sizes = Sizes(user_line, known=False)
        self._recording = ExitStack()
        self._closing = Closing()

    def has(self, x: Any) -> bool:
        """Whether `x` is a tensor of this graph."""
        return isinstance(x, Tensor) and x._d.__class__ is Symbol and x._d.builder is self.tracer.builder

    def add(self, shape: tuple[int, ...], dtype: np.dtype, name: str) -> Tensor:
        """A new placeholder."""
        symbol = self.tracer.input(name, Aval(shape, dtype), Argument(len(self.placeholders)))
        tensor = self.tracer.wrap(symbol, False)
        self.placeholders[symbol.id] = name
        self._alive += 1
        weakref.finalize(tensor, self._gone).atexit = False
        return tensor

    def size(self) -> Dim:
        """A new symbolic size."""
        if not self._sizes.hints:
            self._recording.enter_context(self._sizes.recording())
        return self._sizes.new(ANY)

    def _gone(self) -> None:
        self._alive -= 1
        if not self._alive:
            self.close()

    def open(self) -> None:
        """Let this interpreter see the operations of the thread from now on."""
        _building.set(self)
        INTERPRETER.set(self)
        self._closing.set(True)

    def close(self) -> None:
        """The last placeholder is gone."""
        self._closing.set(False)
        self._recording.close()
        if _building.get() is self:
            _building.set(None)
        if current_interpreter() is self:
            INTERPRETER.set(IMMEDIATE)

    def apply(self, op: Any, operands: Sequence[Any], params: Any) -> Any:
        if any(map(self.has, operands)) or (self._sizes.hints and any(map(has_dim, params.values()))):
            return self.tracer.apply(op, operands, params)
        with under(IMMEDIATE):
            found = IMMEDIATE.apply(op, operands, params)
        for k, result in enumerate(results_of(found)):
            if result._n is not None and not result.is_leaf:
                key = id(result)
                self._recipes[key] = Recipe(op, tuple(operands), params, [_version(x) for x in operands], k)
                weakref.finalize(result, self._recipes.pop, key, None).atexit = False
        return found

    def _again(self, tensor: Tensor) -> Symbol | None:
        """The value of a tensor with a history, computed anew from the variables; None if it is one itself."""
        if tensor._n is None or tensor.is_leaf:
            return None
        recipe = self._recipes.get(id(tensor))
        if recipe is None or recipe.versions != [_version(x) for x in recipe.operands]:
            raise errors.CaptureError(errors.COMPUTED_BEFORE.format(used=user_line()))
        found = results_of(self.tracer.apply(recipe.op, recipe.operands, recipe.params))
        return self.tracer.read(found[recipe.result])

    def assign(self, target: Tensor, value: Tensor, name: str, where: Tensor | None = None) -> Tensor:
        if self.has(target):
            return self.tracer.assign(target, value, name, where)
        if self.has(value):
            raise errors.CaptureError(errors.ASSIGN_WHILE_BUILDING.format(op=f"{name}_", used=user_line()))
        with under(IMMEDIATE):
            return IMMEDIATE.assign(target, value, name)

    copied, extents, hook, hook_after, retain = map(_either, ("copied", "extents", "hook", "hook_after", "retain"))
    repeats, lies_plainly, window = map(_either, ("repeats", "lies_plainly", "window"))
    select, replace, custom, scan = map(_either, ("select", "replace", "custom", "scan"))
    entered, left, has_leaves = map(_either, ("entered", "left", "has_leaves"))

    def get_grad(self, tensor: Tensor) -> Any:
        return None if self.has(tensor) else super().get_grad(tensor)

    def backward(self, outputs: Any, cotangents: Any, inputs: Any, create_graph: bool, keep: bool) -> None:
        if any(map(self.has, outputs)):
            raise errors.CaptureError(errors.BACKWARD_WHILE_BUILDING.format(used=user_line()))
        with under(IMMEDIATE):
            IMMEDIATE.backward(outputs, cotangents, inputs, create_graph, keep)

    def gradients(self, outputs: Any, cotangents: Any, inputs: Any, create_graph: bool, keep: bool) -> Any:
        if any(map(self.has, outputs)):
            return self.tracer.gradients(outputs, cotangents, inputs, create_graph, True)
        with under(IMMEDIATE):
            return IMMEDIATE.gradients(outputs, cotangents, inputs, create_graph, keep)

    def random(self, draw: Any, shape: Any, dtype: Any, generator: Any, like: Any = None) -> Tensor:
        if self.has(like) or has_dim(shape):
            return self.tracer.random(draw, shape, dtype, generator)
        with under(IMMEDIATE):
            return IMMEDIATE.random(draw, shape, dtype, generator)

    def drawn(self, sampler: Any, inputs: Any, generator: Any) -> Tensor:
        if any(map(self.has, inputs)):
            return self.tracer.drawn(sampler, inputs, generator)
        with under(IMMEDIATE):
            return IMMEDIATE.drawn(sampler, inputs, generator)

    def show(self, tensor: Tensor, value: Tensor, name: str) -> None:
        if self.has(tensor):
            self.tracer.show(tensor, value, name)
        elif self.has(value):
            raise errors.CaptureError(errors.ASSIGN_WHILE_BUILDING.format(op=name, used=user_line()))
        else:
            super().show(tensor, value, name)

    def leaf_changed(self, tensor: Tensor) -> None:
        if self.has(tensor) and tensor._n is not None:
            self.tracer.state.leaves[self.tracer.read(tensor).id] = tensor

    def is_constant(self, tensor: Tensor) -> bool:
        return not self.has(tensor)


def building_of(tensor: Any) -> Building | None:
    """The graph under construction that a tensor belongs to; None for a tensor with values."""
    building = _building.get()
    return building if building is not None and building.has(tensor) else None


def outside() -> AbstractContextManager[Any]:
    """A context: operations run at once, though a graph is under construction in this thread."""
    return under(IMMEDIATE) if isinstance(current_interpreter(), Building) else nullcontext()


def placeholder(shape: Sequence[int | None] = (), dtype: Any = None, name: str | None = None) -> Tensor:
    """A tensor that gets its value when the graph made of it is run, by `Session.run` or `function`.

    shape  extents; None stands for any
    dtype  default: the default floating dtype
    name   by default "placeholder"; a name in use gets a number

    Raises TypeError or ValueError for a shape that is none.

    >>> import eager as torch, graphc
    >>> x = graphc.placeholder((3,), torch.float32, name="x")
    >>> y = (x * x).sum()
    >>> with graphc.Session() as s:
    ...     s.run(y, feed_dict={x: [1.0, 2.0, 3.0]})
    tensor(14.)
    """
    building = _building.get()
    given = [None if n is None else _extent(n) for n in shape]
    if building is None:
        building = Building()
        building.open()
    extents: Any = tuple(building.size() if n is None else n for n in given)
    taken, stem = set(building.placeholders.values()), name or "placeholder"
    numbered = (f"{stem}_{k}" for k in itertools.count(1))
    chosen = stem if stem not in taken else next(n for n in numbered if n not in taken)
    return building.add(extents, default_float() if dtype is None else to_numpy(dtype), chosen)


def _extent(n: Any) -> int:
    if not hasattr(n, "__index__"):
        raise TypeError(f"placeholder: an extent must be an int or None, got {n!r}")
    if n.__index__() < 0:
        raise ValueError(f"placeholder: an extent must not be negative, got {n}")
    return n.__index__()


@overload
def gradients(
    ys: Graph, /, *, wrt: Collection[str] | None = None, values: bool = False, cotangents: bool = False
) -> Graph: ...
@overload
def gradients(ys: Graph, xs: Collection[str], /, *, values: bool = False, cotangents: bool = False) -> Graph: ...
@overload
def gradients(
    ys: Tensor | Sequence[Tensor], xs: Tensor, *, grad_ys: Tensor | Sequence[Tensor | None] | None = None
) -> Tensor: ...
@overload
def gradients(
    ys: Tensor | Sequence[Tensor], xs: Sequence[Tensor], *, grad_ys: Tensor | Sequence[Tensor | None] | None = None
) -> tuple[Tensor, ...]: ...
def gradients(ys: Any, xs: Any = None, **options: Any) -> Any:
    """Reverse mode as a graph transform, on a Graph or on tensors of a graph under construction.

    gradients(graph, wrt=...)    see `graphc.autodiff.gradients`
    gradients(ys, xs)            for each tensor of `xs` (placeholders, variables, anything in between) the gradient of
                                 the sum of all elements of `ys`, as a tensor without a value; zeros where `ys` do not
                                 depend on it. `grad_ys` gives other cotangents than ones.

    Raises TypeError for what is no tensor, RuntimeError for one that is not of a floating dtype.
    """
    if isinstance(ys, Graph):
        return gradients_of_graph(ys, *(() if xs is None else (xs,)), **options)
    return _gradients(as_tuple(ys), xs, **options)


def _gradients(ys: tuple[Any, ...], xs: Any, grad_ys: Any = None) -> Any:
    targets = as_tuple(xs)
    if not all(isinstance(t, Tensor) for t in (*ys, *targets)):
        raise TypeError("gradients: expected a Graph, or tensors")
    building = next((b for t in ys if (b := building_of(t)) is not None), None)
    if building is None:
        raise errors.GraphError("gradients: ys do not depend on any placeholder. Remedy: use torch.autograd.grad")
    tracer, builder = building.tracer, building.tracer.builder
    for t in (*ys, *targets):
        if not is_inexact(t._dtype()):
            raise RuntimeError(f"gradients: {Aval(tuple(t._d.shape), t._dtype())} has no gradient: it is not floating")
    cotangents = (None,) * len(ys) if grad_ys is None else as_tuple(grad_ys)
    builder.where = user_line()
    seeds: dict[int, Symbol] = {}
    for y, g in zip(ys, cotangents, strict=True):
        symbol = tracer.read(y)
        ones = builder.language.full(shape=symbol.shape, value=1, dtype=symbol.dtype)
        seed = ones if g is None else tracer.read(g)
        seeds[symbol.id] = seeds[symbol.id] + seed if symbol.id in seeds else seed
    symbols = [tracer.read(t) for t in targets]
    found = pullback(builder, seeds, [s.id for s in symbols])
    made = [
        found[s.id] if s.id in found else builder.language.full(shape=s.shape, value=0, dtype=s.dtype) for s in symbols
    ]  # fmt: skip
    grads = tuple(tracer.wrap(g, False) for g in made)
    return grads[0] if isinstance(xs, Tensor) else grads


def graph_of(building: Building, outputs: Sequence[Tensor], name: str, first: Collection[int] = ()) -> Graph:
    """The part of a graph under construction that `outputs` need. Inputs `first` (ids) come first, needed or not."""
    nodes = building.tracer.builder.nodes
    ids = [building.tracer.read(t).id for t in outputs]
    needed = ancestors(nodes, ids, frozenset(first)) | set(first)
    rest = [i for i in building.tracer.builder.inputs if i in needed and i not in first]
    kept = {i: node for i, node in nodes.items() if i in needed}
    return Graph(name, kept, (*first, *rest), tuple(Ref(i) for i in ids))
