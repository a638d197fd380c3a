"""Tensors in memory that others own, and the other way round: NumPy's arrays, buffers, DLPack."""

from __future__ import annotations

import ctypes
import enum
import weakref
from typing import Any

import numpy as np

from eager.core import dtypes
from eager.core.devices import accelerator, default_device
from eager.core.runtime import devices
from eager.core.tensor import INEXACT_ONLY, Tensor
from eager.core.warned import warn
from eager.functional.casts import placed
from graphc.ops.dtypes import is_inexact

NO_GRAD_DTYPE = "Only Tensors of floating point and complex dtype can require gradients"
NEGATIVE_STRIDE = (
    "At least one stride in the given numpy array is negative, and tensors with negative strides are not currently "
    "supported. (You can probably work around this by making a copy of your array  with array.copy().) "
)
NOT_WRITABLE = (
    "The given {0} is not writable, and PyTorch does not support non-writable tensors. This means writing to this "
    "tensor will result in undefined behavior. You may want to copy the {1} to protect its data or make it writable "
    "before converting it to a tensor."
)
NO_PINNING = (
    "pin_memory=True requires a CUDA or other accelerator backend; no pinned memory allocator is available on this "
    "system."
)
NO_CAPSULE = (
    "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once, so you might have "
    "already constructed a tensor from it once."
)


def finished(array: np.ndarray | Tensor, device: Any, requires_grad: bool, pin_memory: bool = False) -> Tensor:
    """A Tensor over `array`. RuntimeError if it is to require grad and its dtype cannot."""
    traced = isinstance(array, Tensor)
    if requires_grad and not is_inexact(array._dtype() if traced else array.dtype):
        raise RuntimeError(NO_GRAD_DTYPE)
    if pin_memory and not devices(accelerator()):
        raise RuntimeError(NO_PINNING)
    t = array if traced else Tensor._wrap(array)
    t = placed(t, default_device() if device is None else device)
    if pin_memory:
        pinned[id(t)] = t
    return t.requires_grad_(_message=INEXACT_ONLY) if requires_grad else t


pinned: weakref.WeakValueDictionary[int, Tensor] = weakref.WeakValueDictionary()  # by id, what is pinned


def from_numpy(ndarray: np.ndarray) -> Tensor:
    """A tensor that shares memory with `ndarray`. As `torch.from_numpy`. TypeError for anything else."""
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {dtypes.type_name(ndarray)})")
    dtypes.of_numpy(ndarray.dtype)
    if any(step < 0 for step in ndarray.strides):
        raise ValueError(NEGATIVE_STRIDE)
    if not ndarray.flags.writeable:
        warn(NOT_WRITABLE.format("NumPy array", "array"))
    return Tensor._wrap(ndarray.view(np.ndarray))


def frombuffer(buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """A 1-d tensor in the memory of `buffer`, from byte `offset` on. As `torch.frombuffer`.

    ValueError if `count` elements (all, if negative) are not there.
    """
    wanted = dtypes.to_numpy(dtype, "frombuffer")
    memory = memoryview(buffer)
    length, size = memory.nbytes, wanted.itemsize
    if length <= 0 or count == 0:
        raise ValueError(f"both buffer length ({length}) and count ({count}) must not be 0")
    if not 0 <= offset < length:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({length} bytes) minus 1"
        )
    if count < 0 and (length - offset) % size:
        raise ValueError(
            f"buffer length ({length - offset} bytes) after offset ({offset} bytes) must be a multiple of element size "
            f"({size})"
        )
    if count > 0 and offset + count * size > length:
        raise ValueError(
            f"requested buffer length ({count} * {size} bytes) after offset ({offset} bytes) must not be greater than "
            f"actual buffer length ({length} bytes)"
        )
    if memory.readonly:
        warn(NOT_WRITABLE.format("buffer", "buffer"))
    return finished(np.frombuffer(buffer, wanted, count, offset), None, requires_grad)


class DLDeviceType(enum.IntEnum):
    """The kinds of devices of the DLPack protocol that occur here."""

    kDLCPU = 1


def to_dlpack(self: Tensor, **options: Any) -> Any:
    """The tensor as a DLPack capsule. BufferError if it requires grad."""
    if self._n is not None:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    array = self._known()
    if array.dtype.kind != "V":
        return array.__dlpack__(**options)
    capsule = array.view(np.int16).__dlpack__(**options)
    _write_code(capsule, _BRAIN)
    return capsule


def dlpack_device(self: Tensor) -> tuple[DLDeviceType, int]:
    """Where the memory is: (kDLCPU, 0)."""
    return DLDeviceType.kDLCPU, 0


class _Capsule:
    """A bare capsule, as an object that NumPy can read."""

    def __init__(self, capsule: Any):
        self.capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return DLDeviceType.kDLCPU, 0


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor that shares memory with `ext_tensor`, an array of any library. As `torch.from_dlpack`.

    BufferError if its memory cannot be shared.
    """
    if isinstance(ext_tensor, Tensor):
        to_dlpack(ext_tensor)
        found = ext_tensor._array()
    elif isinstance(ext_tensor, np.ndarray):
        found = ext_tensor
    elif hasattr(ext_tensor, "__dlpack__"):
        found = _memory_of(ext_tensor)
    elif type(ext_tensor).__name__ == "PyCapsule":
        found = np.from_dlpack(_Capsule(ext_tensor))
    else:
        raise RuntimeError(NO_CAPSULE)
    if found.flags.writeable or copy:
        return from_numpy(found.copy() if copy else found.view())
    return Tensor._wrap(found.view())  # a capsule of the old form does not say whether it may be written


def _memory_of(array: Any) -> np.ndarray:
    """An ndarray over the memory of an array of another library."""
    if "bfloat16" not in str(getattr(array, "dtype", "")):
        return np.from_dlpack(array)
    if array.__dlpack_device__()[0] != DLDeviceType.kDLCPU:
        raise BufferError("the memory is that of another device")
    capsule = array.__dlpack__(max_version=(1, 0))  # this form says whether the memory may be written
    _write_code(capsule, _INTEGER)
    return np.from_dlpack(_Capsule(capsule)).view(dtypes.bfloat16.numpy)


_INTEGER, _BRAIN = 0, 4  # codes of dtypes
# by the name of a capsule: where its code is. Before it are the address, the device and the number of dims, and in the
# newer form the version, two pointers and flags.
_CODE = {b"dltensor": 20, b"dltensor_versioned": 52}


def _write_code(capsule: Any, code: int) -> None:
    """Say in a DLPack capsule what its numbers are. NumPy does not know brain floats, only integers of their size."""
    name_of, pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, (ctypes.py_object,)
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    name = name_of(capsule)
    ctypes.c_uint8.from_address(pointer(capsule, name) + _CODE[name]).value = code


def is_of_elsewhere(x: Any) -> bool:
    """Whether `x` is an array of another library, such as JAX or PyTorch."""
    return hasattr(type(x), "__dlpack__") and not isinstance(x, (Tensor, np.ndarray, np.generic))


def from_elsewhere(array: Any) -> Tensor:
    """A tensor of the values of such an array, in its memory if that is the CPU's and may be written.

    BufferError if the array requires grad: gradients do not flow from one library to another.
    """
    if array.__dlpack_device__()[0] != DLDeviceType.kDLCPU:
        return Tensor._wrap(np.array(array))
    found = from_dlpack(array)
    # JAX's arrays never change
    return found if found._array().flags.writeable else Tensor._wrap(found._array().copy())
