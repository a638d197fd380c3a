"""The interpreter in force: who runs Tensor operations.

Mostly `IMMEDIATE`, which runs them at once, on NumPy: `eager.engine.immediate` says how. A trace puts operations into a
graph; inside `vmap` an operation on slices becomes one on the batch.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar, Token
from operator import attrgetter
from typing import Any, TypeVar

import numpy as np

from eager.core import state
from eager.core.devices import CPU, device
from eager.core.placed import data_of, is_elsewhere
from eager.core.sparse import is_sparse

NOT_LEAF_GRAD = (
    "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be "
    "populated during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf Tensor, "
    "use .retain_grad() on the non-leaf Tensor."
)


class Interpreter:
    """What Tensors ask of the interpreter in force. They are `eager.core.tensor.Tensor`.

    The defaults are what happens where operations run at once; what the engine is needed for has none here.

    immediate: operations on tensors with values run at once. capturing: operations become part of a program. watching:
    each is to be seen, so that compiled functions run line by line.
    """

    immediate = True
    capturing = False
    watching = False

    def where(self, tensor: Any) -> device:
        """The device of `tensor`, which is traced."""
        return CPU

    def separates(self, mesh: Any) -> bool:
        """Whether plain tensors are each process's own, of those of `mesh`; else they are wholes that all have."""
        return True

    def lies(self, tensor: Any) -> Any:
        """How `tensor`, which is traced, lies on its mesh: the axes of each dim. None where that is not known yet."""

    def moved(self, tensor: Any, where: device) -> Any:
        """`tensor` on another device, in the program that is being traced; None if that is to be done now."""

    def position(self) -> int:
        """How much of the program has been traced."""
        raise NotImplementedError

    def apply(self, op: Any, operands: Sequence[Any], params: Mapping[str, Any]) -> Any:
        """Run `op` on Tensors and Python scalars; returns a Tensor, or a tuple of them."""
        raise NotImplementedError

    def created(self, tensor: Any) -> None:
        """A concrete tensor has been made inside the traced function."""

    def begun(self, keeper: Any) -> None:
        """What keeps values, an optimizer or a parameter, has been made inside the traced function."""

    def keeps_inside(self, keeper: Any) -> bool:
        """Whether each call makes this keeper of values anew, so that what it keeps is no state of the program."""
        return False

    def assign(self, target: Any, value: Any, name: str, where: Any = None) -> Any:
        """The in-place op `name` gives `target` the values of `value`, which fits. Returns `target`.

        where: the elements that are written; only for a tensor that `repeats`.
        """
        raise NotImplementedError

    def copied(self, tensor: Any) -> Any:
        """`tensor` as it is now, with its history, whatever is written to it later."""
        raise NotImplementedError

    def select(self, x: Any, mask: Any, lead: int, purpose: str) -> Any:
        """The parts of `x` where a bool tensor, over its dims from number `lead` on, is true; None: count them."""

    def replace(self, target: Any, value: Any) -> bool:
        """Give `target`, which `select` has made, a new `value` from it. False: that takes an `assign`."""
        return False

    def get_grad(self, tensor: Any) -> Any:
        """`tensor.grad` at this point of the program."""
        grad = getattr(tensor, "_g", None)
        if grad is None and not tensor.is_leaf and not tensor.retains_grad:
            warnings.warn(NOT_LEAF_GRAD, UserWarning, stacklevel=3)
        return grad

    def set_grad(self, tensor: Any, value: Any) -> None:
        """`tensor.grad = value`."""
        tensor._g = value

    def backward(self, outputs: Any, cotangents: Any, inputs: Any, create_graph: bool, keep: bool) -> None:
        """Accumulate gradients into `.grad`, of the leaves or of `inputs`."""
        raise NotImplementedError

    def gradients(self, outputs: Any, cotangents: Any, inputs: Any, create_graph: bool, keep: bool) -> list[Any]:
        """The gradient of each of `inputs`, or None; the graph may be used again if `keep`."""
        raise NotImplementedError

    def gradients_of_batch(
        self,
        outputs: Any,
        batches: Sequence[Any],
        inputs: Any,
        create_graph: bool,
        keep: bool,
        apply: Callable[..., Any],
    ) -> list[Any] | None:
        """As `gradients`, for a batch of each cotangent; `apply(op, operands, params)` does an operation on batches.

        batches: pairs of what stands for a batch in the operands of `apply`, and one of the batch. None where each of
        the batch is to be asked for by itself.
        """

    def hook(self, tensor: Any, hook: Callable[[Any], Any]) -> Any:
        """Call `hook` with each gradient that arrives at `tensor`. Returns a handle."""
        raise NotImplementedError

    def hook_after(self, tensor: Any, hook: Callable[[Any], Any]) -> Any:
        """Call `hook(tensor)` after each time the `.grad` of the leaf `tensor` has been written. Returns the handle."""
        raise NotImplementedError

    def retain(self, tensor: Any) -> None:
        """Fill `.grad` of `tensor`, which is no leaf, too."""
        raise NotImplementedError

    def custom(self, rule: Any, inputs: Sequence[Any], outputs: Sequence[Any], wanted: Sequence[bool]) -> list[Any]:
        """`outputs` of a Function, computed from `inputs`, with its `rule` (`eager.engine.function`) for a gradient."""
        raise NotImplementedError

    def function(self, cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """`cls.apply(*args, **kwargs)` of a user's Function inside a function transform."""
        return cls._applied(args, kwargs)

    def entered(self, tensor: Any, leaf: Any) -> Any:
        """A tensor like `tensor` that gradients can be taken with respect to: with its history, or with `leaf`."""
        raise NotImplementedError

    def left(self, tensor: Any) -> None:
        """Gradients are no longer taken with respect to `tensor`, which `entered` made."""

    def has_leaves(self, tensor: Any) -> bool:
        """Whether some leaf, live now, can get a gradient from `tensor`."""
        raise NotImplementedError

    def looked_up(self, rows: Any, weight: Any, where: Any) -> None:
        """`rows` are those of the table `weight` at the indices `where`: its gradient is to be sparse."""

    def random(
        self, draw: Callable[[tuple[int, ...]], np.ndarray], shape: tuple[int, ...], dtype: np.dtype, generator: Any,
        like: Any = None,
    ) -> Any:  # fmt: skip
        """A tensor of random numbers, drawn anew from `generator` by `draw(shape)` each time the program runs.

        like: the tensor for which they are drawn.
        """
        raise NotImplementedError

    def drawn(self, sampler: Any, inputs: Sequence[Any], generator: Any) -> Any:
        """What a sampler draws from `generator` with the parameters `inputs`, all of one shape, at each run.

        sampler: an `eager.rng.rejection.Sampler`. How many random words it takes depends on the parameters. The
        result has the shape and dtype of the first one.
        """
        raise NotImplementedError

    def at_each_call(self, action: Callable[[], Any], generator: Any) -> None:
        """Do `action`, which changes the state of `generator`, each time the program runs, in order with the draws."""
        action()

    def on_interrupt(self, undo: Callable[[], None]) -> None:
        """Do `undo`, which may be done twice, if the call ends by an interrupt and what is traced has not been run."""

    def inside(self, module: Any) -> AbstractContextManager[Any]:
        """The context in which `forward` of `module` runs."""
        return nullcontext()

    def guard(self, getter: Callable[[], Any], value: Any, what: str) -> None:
        """The program is right only while `getter() == value`; `what` names that in messages.

        If there is a `getter.quick(name)`, it is the source of a condition that is true, or a KeyError, if this may not
        be so; `name` gives an object a name. If there are `getter.reads`, what these dicts hold decides what it gives.
        """

    def set_data(self, tensor: Any, value: Any) -> None:
        """`tensor.data = value`."""
        tensor._d = data_of(value)

    def show(self, tensor: Any, value: Any, name: str) -> None:
        """The function `name` lets `tensor` show what `value` shows, in the same memory and with its history."""
        tensor._d, tensor._n = value._d, value._n

    def leaf_changed(self, tensor: Any) -> None:
        """`tensor`, without a history, requires grad from now on, or no longer does."""

    def values_read(self, tensor: Any) -> Any:
        """Python decides on the values of `tensor`, which has some. Returns others, or None if those are right."""

    def values_shown(self, tensor: Any) -> np.ndarray | None:
        """The values of `tensor`, which has some, for a text; None if they are not known and only shown."""
        return tensor._read()

    def is_constant(self, tensor: Any) -> bool:
        """Whether `tensor`, which has values, has them at this point of every run."""
        return True

    def number_written(self, tensor: Any) -> Any:
        """`tensor.item()`, if the program that is being traced has written the tensor; else None."""

    def tensor_of(self, number: Any) -> Any:
        """A Python number that is part of what is traced as a 0-d tensor of bool, int64 or float64; None for others."""

    def repeats(self, tensor: Any) -> bool:
        """Whether elements of `tensor` share a place in memory, as those of `expand` do."""
        return False

    def extents(self, a: Any, b: Any) -> Any:
        """Where two tensors lie in the memory that they share; None if they share none, or that is not known."""

    def lies_plainly(self, tensor: Any) -> None:
        """Raise unless the memory of `tensor` is known to hold its elements, row-major, and nothing else."""

    def scan(self, step: Callable[[Any, Any], Any], state: Any, rows: Any, reverse: bool) -> Any:
        """`state, y = step(state, row)` for each row of the tensor `rows`, as one operation of a program.

        Returns the last state, and the ys in one tensor; None where steps are to be run one by one.
        """

    def window(
        self, tensor: Any, size: tuple[int, ...], stride: tuple[int, ...], offset: int | None
    ) -> dict[str, Any] | None:
        """The parameters of the op `as_strided` for what `torch.as_strided` shows. Raise unless they are known.

        None if `tensor` is an array of which all is known.
        """


IMMEDIATE = Interpreter()
INTERPRETER: ContextVar[Interpreter] = ContextVar("interpreter", default=IMMEDIATE)
current_interpreter = INTERPRETER.get


def on_arrays(tensor: Any = None) -> bool:
    """Whether operations run at once, on values that `tensor` has, so that code may compute on NumPy without them."""
    return (not state.closed or current_interpreter() is IMMEDIATE) and (
        tensor is None or not (is_elsewhere(tensor) or is_sparse(tensor))
    )


Interpreting = TypeVar("Interpreting", bound=type[Interpreter])


def forwarding(parts: Mapping[str, str]) -> Callable[[Interpreting], Interpreting]:
    """Class decorator of an interpreter made of parts. `{"outer": "guard inside"}`: `self.outer` has these methods."""

    def decorate(cls: Interpreting) -> Interpreting:
        for part, names in parts.items():
            for name in names.split():
                setattr(cls, name, property(attrgetter(f"{part}.{name}")))
        return cls

    return decorate


class under:
    """Context: run ops through `interpreter`. Fast paths stay as they are: closed, since another one is active."""

    __slots__ = ("_interpreter", "_token")
    _token: Token[Interpreter]

    def __init__(self, interpreter: Interpreter):
        self._interpreter = interpreter

    def __enter__(self) -> None:
        self._token = INTERPRETER.set(self._interpreter)

    def __exit__(self, *error: object) -> None:
        INTERPRETER.reset(self._token)


class interpreting:
    """Context: run ops through `interpreter` in this thread. Fast paths are closed while any thread does so."""

    def __init__(self, interpreter: Interpreter):
        self.interpreter = interpreter
        self._before = current_interpreter()
        self._closing = state.Closing()

    def __enter__(self):
        try:
            self._closing.set(True)
            INTERPRETER.set(self.interpreter)
        except BaseException:
            self.leave()
            raise
        return self.interpreter

    def __exit__(self, *error: object) -> None:
        try:
            self.leave()
        except BaseException:  # an interrupt
            self.leave()
            raise

    def leave(self) -> None:
        """The end of the context. May be called twice: an interrupt can come anywhere."""
        INTERPRETER.set(self._before)
        self._closing.set(False)
