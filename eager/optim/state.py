"""What an optimizer remembers of each parameter between steps, also of complex ones: tensors that outlive a trace."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextvars import ContextVar
from operator import is_
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from eager.core.interpreter import IMMEDIATE, interpreting
from eager.core.placed import data_of, filled, is_elsewhere, is_placed
from eager.core.placed import like as laid_like
from eager.core.sparse import is_sparse
from eager.core.tensor import Tensor
from eager.engine.crossing import transferred
from eager.engine.language import E
from eager.functional.complexes import view_as_complex, view_as_real
from graphc.ops.dtypes import FLOAT32, FLOAT64, default_float

if TYPE_CHECKING:
    from eager.optim.optimizer import Optimizer


within: ContextVar[bool] = ContextVar("within", default=False)  # a step of an optimizer that a trace has made


class Remembered(NamedTuple):
    """What the state of an optimizer holds, apart from the values of its tensors."""

    state: dict[Tensor, dict[str, Any]]
    held: dict[Tensor, dict[str, Any]]

    def put_back(self) -> None:
        """Drop what the state has got since."""
        for parameter in [p for p in self.state if p not in self.held]:
            self.state.pop(parameter, None)
        for parameter, held in self.held.items():
            self.state[parameter].clear()
            self.state[parameter].update(held)


@final
class StateInUse:
    """Asks whether the tensors that a step has used are those in the state: all of it can be replaced, or dropped."""

    def __init__(self, optimizer: Optimizer):
        self._optimizer = optimizer
        self._state = optimizer.state  # load_state_dict makes another
        self._all = list(self._state.values())
        self._used = [
            (p, held, {name: value for name, value in held.items() if isinstance(value, Tensor)})
            for p in optimizer._parameters()
            if p.grad is not None and (held := self._state.get(p)) is not None
        ]

    def __call__(self) -> bool:
        now = self._optimizer.state
        return now is self._state and all(
            now.get(p) is held and all(held.get(name) is value for name, value in tensors.items())
            for p, held, tensors in self._used
        )

    @property
    def reads(self) -> list[dict[Any, Any]]:
        """See `eager.core.interpreter.Interpreter.guard`."""
        return [vars(self._optimizer), self._state, *(held for _, held, _ in self._used)]

    def quick(self, name: Callable[[Any], str]) -> str:
        """See there."""
        state, each = name(self._state), name(self._all)
        return " or ".join((
            f"{name(self._optimizer)}.state is not {state} or len({state}) != {len(self._all)}",
            f"not all({name(map)}({name(is_)}, {state}.values(), {each}))",
            *(f"{name(held)}[{n!r}] is not {name(t)}" for _, held, tensors in self._used for n, t in tensors.items()),
        ))  # fmt: skip


class Parts(dict[str, Any]):
    """The state of a complex parameter as a step sees it: real tensors of `shape`, over the complex ones of `kept`."""

    def __init__(self, kept: dict[str, Any], shape: tuple[int, ...]):
        super().__init__({name: parts(value) for name, value in kept.items()})
        self._kept, self._shape = kept, shape

    def __setitem__(self, name: str, value: Any) -> None:
        if isinstance(value, Tensor) and tuple(value._d.shape) == self._shape:  # new: no count of steps
            value = outliving(lambda: view_as_complex(value).clone())
        self._kept[name] = value
        super().__setitem__(name, parts(value))

    def update(self, **values: Any) -> None:  # type: ignore[override]
        for name, value in values.items():
            self[name] = value


def parts(value: Any) -> Any:
    """A complex tensor as real numbers along a new last dim, a view; anything else as it is."""
    return view_as_real(value) if isinstance(value, Tensor) and value._dtype().kind == "c" else value


def outliving(make: Callable[[], Tensor]) -> Tensor:
    """A new state tensor, real even under a trace: it was there before the calls that follow, as its optimizer was."""
    if within.get():
        return make()
    with interpreting(IMMEDIATE):
        return make()


def zeros(shape: tuple[int, ...], dtype: np.dtype, value: complex = 0) -> Tensor:
    """A new state tensor, full of `value`."""
    return outliving(lambda: E.full(shape=shape, value=value, dtype=dtype))


def like(parameter: Tensor, value: complex = 0, shape: tuple[int, ...] | None = None) -> Tensor:
    """A new state tensor of the dtype of `parameter`, of its shape if none is given, and where it lies."""
    shape = tuple(parameter._d.shape) if shape is None else shape
    if is_elsewhere(parameter) and not within.get():
        return outliving(lambda: Tensor._wrap(filled(shape, parameter._dtype(), value, parameter._d)))
    return zeros(shape, parameter._dtype(), value)


def counter(value: float = 0) -> Tensor:
    """A new 0-d state tensor, such as the number of steps: of float64 where that is the default, else of float32."""
    return zeros((), FLOAT64 if default_float() == FLOAT64 else FLOAT32, value)


def wide(number: Tensor) -> Tensor:
    """A 0-d state tensor in float64: formulas of the step number lose too many digits in float32."""
    return E.cast(number, dtype=FLOAT64)


def fitted(name: Any, value: Any, parameter: Tensor | None) -> Any:
    """Loaded state: the tensors themselves, as in PyTorch, or copies in the parameter's dtype and on its device.

    Those that count steps stay as they are.
    """
    if isinstance(value, Tensor):
        if parameter is None or name == "step" or is_sparse(value) or parameter._dtype().kind != "f":
            return value
        if value._dtype() != parameter._dtype() or is_placed(value) or is_placed(parameter):
            cast = E.cast(value.detach(), dtype=parameter._dtype()).clone()
            if is_placed(parameter) and cast._d.shape == parameter._d.shape:
                return Tensor._wrap(laid_like(data_of(cast), parameter._d))
            return transferred(cast, parameter.device)
        return value
    if isinstance(value, dict):
        return {key: fitted(key, each, parameter) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(fitted(None, each, parameter) for each in value)
    return copy.deepcopy(value)
