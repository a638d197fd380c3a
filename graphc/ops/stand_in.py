"""What lies behind a Tensor in place of an array: a traced value, a result still on its way, a batch of slices.

Here, since it is known to both: the Tensors of `eager`, and the graphs whose Symbols are the most common case.
"""

from __future__ import annotations

from typing import Any

import numpy as np


class StandIn:
    """What a Tensor asks of its data if that is no ndarray; it gives itself along. The defaults are for known values.

    shape        extents
    dtype        None equals no dtype: the fast paths hand such a tensor to the slow one
    numpy_dtype  the dtype, if `dtype` is None
    batched      stands for the slices of a batch of `vmap`
    captured     has values, and memory, only when the graph that it is part of runs
    has_history  stands for tensors that require grad, outside
    selection    the places that it is made of, if it is what `x[mask]` is in a trace that has not counted them
    """

    __slots__ = ()
    shape: Any
    dtype: Any = None
    numpy_dtype: Any
    batched = captured = has_history = False
    selection: Any = None

    def force(self, tensor: Any) -> np.ndarray:
        """The values. Raises what fits if there are none."""
        raise NotImplementedError

    def read(self, tensor: Any) -> np.ndarray:
        """The values, which Python asks for."""
        return self.force(tensor)

    def truth(self, tensor: Any) -> np.ndarray:
        """The values, for `bool(tensor)`."""
        return self.force(tensor)

    def check_values(self, tensor: Any, purpose: str, python: bool) -> None:
        """Raise unless there are values for `purpose`: a Python number, or a result whose shape depends on them."""

    def counted(self, tensor: Any, purpose: str) -> Any:
        """The number that the shape of the result of `purpose` depends on."""
        return tensor._values_for(purpose, python=True).item()

    def number(self, tensor: Any) -> Any:
        """The one element as a Python number that only a trace knows; None if it is known."""

    def text(self) -> str | None:
        """What `repr(tensor)` shows, if that is not its values."""

    def text_values(self, tensor: Any) -> np.ndarray | None:
        """What the text of a captured tensor is made of, if it counts; None if it is only shown."""

    def strides(self, tensor: Any) -> tuple[int, ...] | None:
        """The steps in elements along each dim; None if nobody has to know that they are not row-major."""

    def storage_offset(self, tensor: Any) -> int | None:
        """The place of the first element in memory, in elements; None if it is that of the array of the values."""

    def made_plain(self, tensor: Any) -> None:
        """Note that a tensor, just made, lies in row-major order."""

    def spread(self, made: Any) -> Any:
        """`made`, a new tensor like this one, with memory of its own for each slice."""
        return made
