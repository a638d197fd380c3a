"""`nn.Buffer`: a tensor that a module registers as a buffer when it is assigned."""

from __future__ import annotations

from typing import Any

from eager.core.overriding import disabled
from eager.core.tensor import Tensor


class Buffer(Tensor):
    """A buffer to be: `module.name = Buffer(tensor)` registers it. As `torch.nn.Buffer`."""

    __slots__ = ("persistent",)
    __torch_function__: Any = staticmethod(disabled)

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Buffer:
        made = object.__new__(cls)
        return made

    def __init__(self, data: Tensor | None = None, *, persistent: bool = True):
        import numpy as np

        self._d = Tensor._wrap(np.empty(0, np.float32))._d if data is None else data.detach()._d
        self._n = None
        self.persistent = persistent
