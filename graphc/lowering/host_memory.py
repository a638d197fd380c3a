"""NumPy's memory as that of a JAX array: what XLA would copy at each call, it reads where it is.

XLA reads memory in place that begins at a multiple of 64 bytes; NumPy's mostly does not. An alias is no copy: a later
write to the memory is seen through it, so who runs a program on one waits for its end, and donates it to none.
"""

from __future__ import annotations

import jax
import numpy as np

from eager.core.state import separate
from graphc.lowering.stages import default_device, setting

ALIGNMENT = 64
_NOTHING = np.zeros(0, np.float32)


class _Memory:
    """Memory as NumPy's array interface describes it, which is not kept alive."""

    def __init__(self, array: np.ndarray):
        self.__array_interface__ = array.__array_interface__


def aligned(array: np.ndarray) -> np.ndarray:
    """A copy of `array`, row-major, whose memory begins where XLA wants it; as an array of its own, not a view."""
    memory = np.empty(array.nbytes + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    copy = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return separate(copy)


def release() -> None:
    """Let JAX drop what it still holds of the NumPy arrays of earlier calls: it does so when it is called."""
    jax.device_put(_NOTHING)


def alias(array: np.ndarray) -> jax.Array | None:
    """A JAX array in the memory of `array`, which it does not keep alive. None if there is no such array."""
    if default_device().platform != "cpu" or not array.flags.c_contiguous or not array.size:
        return None
    seen = np.asarray(_Memory(array))
    if seen.dtype != array.dtype or array.ctypes.data % ALIGNMENT:
        return None
    with setting(wide=True):
        found = jax.device_put(seen, may_alias=True)
    return found if found.unsafe_buffer_pointer() == array.ctypes.data else None
