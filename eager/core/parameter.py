"""Parameter: a Tensor that modules register."""

from __future__ import annotations

from typing import Any

import numpy as np

from eager.core.interpreter import current_interpreter
from eager.core.placed import data_of
from eager.core.tensor import INEXACT_ONLY, Tensor

_new = object.__new__


class Parameter(Tensor):
    """A Tensor that a Module registers as its parameter when it is assigned as an attribute."""

    __slots__ = ()

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Parameter:
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

    def __init__(self, data: Any = None, requires_grad: bool = True):
        pass

    def __repr__(self) -> str:
        return f"Parameter containing:\n{super().__repr__()}"
