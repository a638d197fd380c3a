"""The names of `torch.overrides` that libraries use. Tensors have no `__torch_function__` here: functions call ops."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

from eager.core.missing import explain
from eager.core.tensor import Tensor

__all__ = ["TorchFunctionMode", "has_torch_function", "is_tensor_like"]

NO_MODE = (
    "{}: functions call no __torch_function__ here, so a TorchFunctionMode would not see them. Remedy: "
    "graphc.trace(fn, *inputs) shows the ops that a function runs, torch.autograd.Function defines operations."
)


class TorchFunctionMode:
    """A base class. NotImplementedError when a mode is entered: it would not see what is called."""

    def __enter__(self) -> NoReturn:
        raise NotImplementedError(NO_MODE.format(type(self).__name__))

    def __exit__(self, *error: object) -> None:
        pass


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether one of the arguments, no tensor of this engine, has `__torch_function__`."""
    return any(hasattr(type(value), "__torch_function__") for value in relevant_args)


def is_tensor_like(inp: Any) -> bool:
    """Whether it is a Tensor, or has `__torch_function__`."""
    return isinstance(inp, Tensor) or hasattr(inp, "__torch_function__")


explain(__name__)
