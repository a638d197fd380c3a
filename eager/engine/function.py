"""`autograd.Function`: an operation whose gradient the user writes."""

from __future__ import annotations

import functools
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np

from eager.core import state, tape
from eager.core.dtypes import type_name
from eager.core.grad_mode import no_grad
from eager.core.interpreter import current_interpreter
from eager.core.state import grad_enabled
from eager.core.tensor import Tensor
from eager.core.views import check_recorded_write, note_view
from eager.engine.anomaly import traced
from eager.engine.conversion import converted
from eager.engine.inplace import has_history, rebase
from eager.engine.language import E
from eager.engine.walks import with_node
from graphc.ops.dtypes import is_inexact
from graphc.ops.movement import sum_to

NO_FORWARD = "You must implement the forward function for custom autograd.Function."
NO_BACKWARD = (
    "You must implement either the backward or vjp method for your custom autograd.Function to use it with backward "
    "mode AD."
)
LEGACY = (
    "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd function "
    "with static forward method. (Example: https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
)
DIRTY_LEAF = "a leaf Variable that requires grad has been used in an in-place operation."
DIRTY_LOST = (
    "Some elements marked as dirty during the forward method were not returned as output. The inputs that are modified "
    "inplace must all be outputs of the Function."
)
DIRTY_STRANGER = (
    "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been mutated should be "
    "passed to ctx.mark_dirty()."
)
NO_SETUP = (
    "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must override "
    "the setup_context staticmethod. For more details, please see https://pytorch.org/docs/main/notes/extending.func.html"
)
NOT_SAVED = "save_for_backward can only save variables, but argument {position} is of type {kind}"
NOT_DIRTY = "mark_dirty can only accept variables, but argument {position} is of type {kind}"
NOT_MARKED = "mark_non_differentiable only accepts variable arguments, but got {kind}"
NOT_BOOL = "set_materialize_grads received an invalid combination of arguments - got (), but expected (bool)"
NOT_FOR_FORWARD = (
    "save_for_forward expects all arguments to be tensors; you should save non-tensors as attributes on ctx."
)
TWICE = "trying to differentiate twice a function that was marked with @once_differentiable"


class _Output:
    """Stands for the function's own output number `number` among what it saved: the tensor itself would be a cycle."""

    def __init__(self, number: int, output: Tensor):
        self.number = number
        self.array = output._array()
        self.tensor = weakref.ref(output)

    def given(self) -> Tensor:
        """The output itself, or one with its values if nobody has it any more."""
        tensor = self.tensor()
        return Tensor._wrap(self.array) if tensor is None else tensor


@final
class _Saved:
    """What a node has saved, for `ctx.saved_tensors` after forward: it is gone when the node has freed it."""

    __slots__ = ("__weakref__", "values")

    def __init__(self, values: tuple[Any, ...]):
        self.values = values


class FunctionCtx:
    """What `forward` and `backward` of a Function share. Other attributes are the user's.

    What `forward` gives the methods below is looked at when it has ended, as in PyTorch: nothing is saved, and so
    nothing is asked of it, where no gradient is wanted.
    """

    def __init__(self, needs_input_grad: tuple[bool, ...]):
        self.needs_input_grad = needs_input_grad
        self.materialize_grads = True
        self.to_save: tuple[Any, ...] = ()
        self.dirty_tensors: tuple[Any, ...] = ()
        self.non_differentiable: tuple[Any, ...] = ()
        self._saved: tuple[Any, ...] | None = None  # what `saved_tensors` gives while backward runs
        self._kept: weakref.ref[_Saved] | None = None  # and before, and between

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep Tensors (or None) for `backward`, which finds them in `saved_tensors`.

        For anything else `apply` raises TypeError, if an input requires grad.
        """
        self.to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Keep Tensors for a `jvp` rule; accepted, for forward mode here is derived from `backward`.

        AssertionError for anything but Tensors and None.
        """
        if not all(t is None or isinstance(t, Tensor) for t in tensors):
            raise AssertionError(NOT_FOR_FORWARD)
        self.saved_for_forward = tensors

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What `save_for_backward` kept; nothing before forward has ended. RuntimeError once it has been freed."""
        if self._saved is not None:
            return self._saved
        if self._kept is None:
            return ()
        kept = self._kept()
        if kept is None:
            raise RuntimeError(tape.FREED)
        return tuple(v.given() if v.__class__ is _Output else v for v in kept.values)

    def mark_dirty(self, *tensors: Any) -> None:
        """Declare inputs that `forward` has written in place, and returns. Else `apply` raises RuntimeError."""
        self.dirty_tensors = tensors

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Declare outputs that have no gradient. `apply` raises RuntimeError for anything but Tensors."""
        self.non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether `backward` gets zeros (the default) or None for outputs that were not used. TypeError for others."""
        if not isinstance(value, bool):
            raise TypeError(NOT_BOOL)
        self.materialize_grads = value


def _check_marks(ctx: FunctionCtx, outputs: list[Any], inputs: list[Any]) -> None:
    """Raise RuntimeError for what `forward` has marked and cannot be so."""
    for position, t in enumerate(ctx.dirty_tensors):
        if not isinstance(t, Tensor):
            raise RuntimeError(NOT_DIRTY.format(position=position, kind=type_name(t)))
    for t in ctx.non_differentiable:
        if not isinstance(t, Tensor):
            raise RuntimeError(NOT_MARKED.format(kind=type_name(t)))
    for t in ctx.dirty_tensors:
        if any(t is output for output in outputs) and any(t is x for x in inputs) and t._n is not None and t.is_leaf:
            raise RuntimeError(DIRTY_LEAF)
    if not all(any(t is output for output in outputs) for t in ctx.dirty_tensors):
        raise RuntimeError(DIRTY_LOST)


def _check_saved(ctx: FunctionCtx) -> None:
    for position, t in enumerate(ctx.to_save):
        if t is not None and not isinstance(t, Tensor):
            raise TypeError(NOT_SAVED.format(position=position, kind=type_name(t)))


class _FunctionMeta(type):
    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]):
        super().__init__(name, bases, namespace)
        cls._backward_name = f"{name}Backward"


class Function(metaclass=_FunctionMeta):
    """Base of operations with a gradient of their own: static `forward`, `backward`. As `torch.autograd.Function`.

    >>> import eager as torch
    >>> class Cube(torch.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x**3
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         (x,) = ctx.saved_tensors
    ...         return g * 3 * x**2
    >>> x = torch.tensor(2.0, requires_grad=True)
    >>> Cube.apply(x).backward(); x.grad
    tensor(12.)
    """

    _backward_name: str
    generate_vmap_rule = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(LEGACY)

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the outputs from `(ctx, *args)`, or from `(*args)` if there is a `setup_context`."""
        raise NotImplementedError(NO_FORWARD)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Store in `ctx` what backward needs."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(*args: Any, **kwargs: Any) -> Any:
        """From `(ctx, *cotangents of the outputs)`: a gradient, or None, for each argument of forward."""
        raise NotImplementedError(NO_BACKWARD)

    vjp = backward

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> Any:
        """(outputs, their batch dims) of arguments with a batch dim at `in_dims`, or none at None."""
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap static method or set "
            "generate_vmap_rule=True."
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run `forward` on `args`, and record the operation."""
        if state.active_transforms():
            if cls.setup_context is Function.setup_context:
                raise RuntimeError(NO_SETUP)
            return current_interpreter().function(cls, args, kwargs)
        return cls._applied(args, kwargs)

    @classmethod
    def _applied(cls, args: tuple[Any, ...], kwargs: dict[str, Any], forward: Any = None) -> Any:
        """`apply`, with `forward` in place of the Function's own if given."""
        recording = grad_enabled()
        needs = tuple(recording and has_history(a) for a in args)
        ctx = FunctionCtx(needs)
        with no_grad():
            if cls.setup_context is Function.setup_context:
                output = cls.forward(ctx, *args, **kwargs)
            else:
                output = (forward or cls.forward)(*args, **kwargs)
                cls.setup_context(ctx, args, output)
        several = isinstance(output, tuple)
        outputs = list(output) if several else [output]
        inputs = [a for a in args if isinstance(a, Tensor)]
        _check_marks(ctx, outputs, inputs)
        if any(needs):
            _check_saved(ctx)
            outputs = _record(cls, ctx, args, outputs)
        else:
            ctx.to_save = ()
            dirty = {id(t) for t in ctx.dirty_tensors}
            outputs = [_alias(t, inputs) if isinstance(t, Tensor) and id(t) not in dirty else t for t in outputs]
        return tuple(outputs) if several else outputs[0]


def _record(cls: type[Function], ctx: FunctionCtx, args: tuple[Any, ...], outputs: list[Any]) -> list[Any]:
    """Give `outputs` their history; what must not be the caller's own tensor becomes a new one."""
    inputs = [a for a in args if isinstance(a, Tensor)]
    skipped = {id(t) for t in ctx.non_differentiable}
    if not all(any(t is x for x in inputs) for t in ctx.dirty_tensors):
        warnings.warn(DIRTY_STRANGER, UserWarning, stacklevel=4)
    # an output that was no input is new, and so is one without a gradient: the input keeps its own
    written = [t for t in ctx.dirty_tensors if id(t) not in skipped and any(t is x for x in inputs)]
    dirty = {id(t) for t in written}
    for t in written:
        check_recorded_write(t)
    differentiable = [
        isinstance(t, Tensor) and id(t) not in skipped and is_inexact(t._dtype()) for t in outputs
    ]  # fmt: skip
    fresh = [_alias(t, inputs) if isinstance(t, Tensor) and id(t) not in dirty else t for t in outputs]
    own = [next((k for k, x in enumerate(outputs) if t is x and t._n is None), None) for t in ctx.to_save]
    return current_interpreter().custom(Rule(cls, ctx, inputs, args, fresh, own), inputs, fresh, differentiable)


def _alias(t: Tensor, inputs: list[Tensor]) -> Tensor:
    """`t`, or a view of it if it is one of the inputs."""
    if not any(t is x for x in inputs):
        return t
    view = with_node(t._d, None)
    assert view is not None
    if isinstance(t._d, np.ndarray):
        note_view(view, t)
    return view


@final
class Rule(tape.Backward):
    """The backward function of a Function's node.

    own  of each tensor to save: which output it is, or None
    """

    def __init__(
        self, cls: type[Function], ctx: FunctionCtx, inputs: list[Tensor], args: tuple[Any, ...], outputs: list[Any],
        own: list[int | None],
    ):  # fmt: skip
        self.own = own
        self.cls = cls
        self.name = cls._backward_name
        self.ctx = ctx
        self.positions = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        self.inputs = [(tuple(t._d.shape), t._dtype(), has_history(t)) for t in inputs]
        self.outputs = [(tuple(t._d.shape), t._dtype()) if isinstance(t, Tensor) else None for t in outputs]

    def record(self, inputs: Sequence[Tensor], outputs: Sequence[Any], wanted: Sequence[bool]) -> list[Any]:
        """Give those of `outputs` that have a gradient a node; the inputs among them have been written in place."""
        ctx = self.ctx
        saved = tuple(t if k is None else _Output(k, t) for t, k in zip(ctx.to_save, self.own, strict=True))
        if saved:
            kept = _Saved(saved)
            ctx._kept, saved = weakref.ref(kept), (kept, *saved)
        ctx.to_save = ()
        owner = tape.new_node(self, saved, *(t._n for t in inputs))
        if state.anomaly.enabled:
            owner = traced(owner)
        for t, node, differentiable in zip(outputs, tape.output_nodes(owner, len(outputs)), wanted, strict=True):
            if differentiable and any(t is x for x in inputs):
                written = with_node(t._array(), node)
                assert written is not None
                rebase(t, written, "")
            elif differentiable:
                t._n = node
        return list(outputs)

    def on_arrays(self, node: tape.Node, g: Any, heap: list[tape.Node]) -> None:
        """The rule on arrays, for the loop of backward()."""
        cotangents = {k: Tensor._wrap(np.asarray(d)) for k, d in tape.arrived(g).items()}  # d may be a NumPy scalar
        with no_grad():
            grads = self.run(cotangents, self.unpacked(node))
        for parent, d in zip(node[tape.PARENTS :], grads, strict=True):
            if parent is not None and d is not None:
                tape.give(parent, d._array(), heap)

    def on_tensors(self, node: tape.Node, g: Any) -> list[Tensor | None]:
        """The rule on Tensors, in the grad mode in force."""
        return self.run(tape.arrived(g), self.unpacked(node))

    def unpacked(self, node: tape.Node) -> tuple[Any, ...]:
        """What was saved, as Tensors with their history."""
        return tuple(_restored(value, node, len(self.outputs)) for value in node[tape.SAVED][1:])

    def run(self, cotangents: dict[int, Tensor], saved: tuple[Any, ...]) -> list[Tensor | None]:
        """The user's backward: a gradient for each Tensor among the arguments."""
        ctx, cls = self.ctx, self.cls
        given = [
            cotangents[k] if k in cotangents else _zeros(about) if ctx.materialize_grads else None
            for k, about in enumerate(self.outputs)
        ]
        backward = cls.backward if cls.backward is not Function.backward else cls.vjp
        ctx._saved = saved
        try:
            result = backward(ctx, *given)
        finally:
            ctx._saved = None
        grads = list(result) if isinstance(result, (tuple, list)) else [result]
        expected = len(ctx.needs_input_grad)
        while len(grads) > expected and grads[-1] is None:
            grads.pop()
        if len(grads) != expected:
            raise RuntimeError(
                f"function {self.name} returned an incorrect number of gradients (expected {expected}, got "
                f"{len(grads)})"
            )
        return [
            self._checked(grads[position], position, *about)
            for position, about in zip(self.positions, self.inputs, strict=True)
        ]

    def _checked(self, g: Any, position: int, shape: tuple[int, ...], dtype: np.dtype, wanted: bool) -> Tensor | None:
        if g is None or not wanted:
            return None
        if not isinstance(g, Tensor):
            raise RuntimeError(f"expected Variable or None (got {type(g).__name__})")
        if g._d.shape != shape:
            extra = len(g._d.shape) - len(shape)
            if extra < 0 or any(n not in (1, m) for n, m in zip(shape, g._d.shape[extra:], strict=True)):
                raise RuntimeError(
                    f"Function {self.name} returned an invalid gradient at index {position} - got "
                    f"{list(g._d.shape)} but expected shape compatible with {list(shape)}"
                )
            g = sum_to(E, g, shape)
        return converted(g, dtype)


def _zeros(about: Any) -> Tensor | None:
    return None if about is None else Tensor._wrap(np.zeros(*about))


def _restored(value: Any, node: tape.Node, outputs: int) -> Any:
    if not isinstance(value, _Output):
        return value
    return with_node(value.array, tape.output_nodes(node, outputs)[value.number])


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator of a `backward` whose result must not be differentiated again: doing so is a RuntimeError."""

    @functools.wraps(fn)
    def wrapper(ctx: Any, *grad_outputs: Any) -> Any:
        with no_grad():
            result = fn(ctx, *grad_outputs)
        if not grad_enabled() or not any(isinstance(g, Tensor) and g._n is not None for g in grad_outputs):
            return result
        several = isinstance(result, (tuple, list))
        results: Sequence[Any] = result if several else (result,)
        cotangents, wanted = (
            [g for g in grad_outputs if isinstance(g, Tensor)],
            [isinstance(r, Tensor) for r in results],
        )
        outputs = current_interpreter().custom(_Twice(), cotangents, results, wanted)
        return tuple(outputs) if several else outputs[0]

    return wrapper


@final
class _Twice:
    """The rule of what a `once_differentiable` backward has given."""

    def __init__(self):
        self.ctx = FunctionCtx(())

    def record(self, inputs: Sequence[Tensor], outputs: Sequence[Any], wanted: Sequence[bool]) -> list[Any]:
        """`outputs` with nodes that refuse."""
        parents = [t._n for t in inputs if t._n is not None]
        return [
            with_node(r._array(), tape.new_node(_REFUSING, (), *parents)) if differentiable else r
            for r, differentiable in zip(outputs, wanted, strict=True)
        ]

    def run(self, cotangents: dict[int, Tensor], saved: tuple[Any, ...]) -> list[Tensor | None]:
        raise RuntimeError(TWICE)


def _refuse(*_: Any) -> Any:
    raise RuntimeError(TWICE)


_REFUSING = tape.Backward(_refuse, "Error", on_tensors=_refuse)
