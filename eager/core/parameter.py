"""Parameter: a Tensor that modules register."""

from __future__ import annotations

from typing import Any

import numpy as np

from eager.core.interpreter import current_interpreter
from eager.core.overriding import Asking, Overrides, disabled
from eager.core.placed import data_of
from eager.core.tensor import INEXACT_ONLY, Tensor

_new = object.__new__


class ParameterMeta(Overrides):
    """The type of Parameter: a tensor of a class with a handler of its own may be a parameter, too."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if super().__instancecheck__(instance):
            return True
        return cls is Parameter and isinstance(instance, Tensor) and getattr(instance, "_is_param", False)


class Parameter(Tensor, metaclass=ParameterMeta):
    """A Tensor that a Module registers as its parameter when it is assigned as an attribute.

    Of a tensor of a subclass that has a `__torch_function__` it is one of that subclass.
    """

    __slots__ = ()
    __torch_function__: Any = staticmethod(disabled)

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Parameter:
        if cls is Parameter and isinstance(data, Asking):
            own: Any = data.detach().requires_grad_(requires_grad)
            own._is_param = True
            return own
        p = _new(cls)
        p._n = None
        if data is None:
            p._d = np.empty(0, np.float32)
        elif current_interpreter().immediate:
            p._d = data_of(data.detach())
        else:
            shown = data.detach()
            p._d = shown._d
            current_interpreter().show(p, shown, cls.__name__)
        p.requires_grad_(requires_grad, _message=INEXACT_ONLY)
        return p

    def __init__(self, *arguments: Any, **options: Any):  # of a subclass, whose `__new__` takes others
        pass

    def __repr__(self) -> str:
        return f"Parameter containing:\n{super().__repr__()}"
