"""Names for what functions take: `Number`, `Device`, `FileLike`. As `torch.types`.

There are no symbolic numbers here, so `IntLikeType` and its kin are Python's own types.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import IO, TypeAlias

from eager.core.devices import device as _device
from eager.core.dtypes import Size
from eager.core.dtypes import dtype as _dtype  # noqa: F401
from eager.core.layouts import layout as _layout  # noqa: F401
from eager.core.tensor import Tensor

__all__ = ["BoolLikeType", "Device", "FileLike", "FloatLikeType", "IntLikeType", "Number"]

Number: TypeAlias = int | float | bool
Device: TypeAlias = _device | str | int | None
FileLike: TypeAlias = str | os.PathLike[str] | IO[bytes]
IntLikeType: TypeAlias = int
FloatLikeType: TypeAlias = float
BoolLikeType: TypeAlias = bool

_bool, _bytes, _complex, _float, _int, _str = bool, bytes, complex, float, int, str
_Number = (int, float, bool)
_size: TypeAlias = Size | list[int] | tuple[int, ...]
_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
_TensorOrOptionalTensors: TypeAlias = Tensor | Sequence[Tensor | None]
