"""`device` objects, and where tensors are made: on the CPU, on "cuda:0" or "xla:0", or, without values, on "meta"."""

from __future__ import annotations

import functools
import re
from contextvars import ContextVar
from typing import Any, NoReturn, final

from eager.core.runtime import devices
from eager.core.shown import Shown

KINDS = (
    "cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga", "maia", "xla", "lazy",
    "vulkan", "mps", "meta", "hpu", "mtia", "privateuseone",
)  # fmt: skip
NO_CUDA = "Torch not compiled with CUDA enabled"
NO_ACCELERATOR = "Cannot access accelerator device when none is available."
NO_SUCH = "tensors on device '{}' are not supported; tensors live on the CPU, on cuda, xpu or xla devices, or on meta"
NO_ORDINAL = "{} error: invalid device ordinal\nGPU device may be out of range, do you have enough GPUs?\n"
KNOWN = ("cuda", "xpu", "xla")  # kinds of devices that JAX may have
# kind of device -> what PyTorch raises where a tensor should go there, in a build for the CPU
MISSING: dict[str, Exception] = {
    "cuda": AssertionError(NO_CUDA),
    "xpu": AssertionError("Torch not compiled with XPU enabled"),
    "mps": RuntimeError("PyTorch is not linked with support for mps devices"),
}


@final
class device(metaclass=Shown):
    """Where a tensor lives: a `type` ("cpu", "cuda", ...) and an `index` or None. As `torch.device`.

    mesh  of a DTensor: the devices that it lies on, a `DeviceMesh`; None for a single device

    Raises RuntimeError for a string that names no device, TypeError for what is neither a string nor a device.
    """

    __slots__ = ("index", "mesh", "type")
    type: str
    index: int | None
    mesh: Any

    def __init__(self, type: Any, index: int | None = None):
        if isinstance(type, device):
            object.__setattr__(self, "mesh", type.mesh)
            object.__setattr__(self, "type", type.type)
            object.__setattr__(self, "index", type.index)
            return
        elif isinstance(type, int) and not isinstance(type, bool):
            if not devices(kind := accelerator()):
                raise RuntimeError(NO_ACCELERATOR)
            type, index = kind, type
        elif not isinstance(type, str):
            raise TypeError(f"device(): argument 'type' must be str, not {type.__class__.__name__}")
        elif index is None:
            type, index = _parse(type)
        else:
            if ":" in type:
                raise RuntimeError(
                    f"type (string) must not include an index because index was passed explicitly: {type}"
                )
            if index < 0:
                raise RuntimeError("Device index must not be negative")
            type = _parse(type)[0]
        object.__setattr__(self, "type", type)
        object.__setattr__(self, "index", index)
        object.__setattr__(self, "mesh", None)

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"attribute '{name}' of 'torch.device' objects is not writable")

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, device) and (self.type, self.index) == (other.type, other.index)
        return same and (self.mesh is other.mesh or self.mesh == other.mesh)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type='{self.type}'{index})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (device, (self.type, self.index)) if self.mesh is None else (device_of_mesh, (self.mesh,))

    def __enter__(self) -> device:
        """Make tensors here. Raises as `check_device`."""
        _defaults.set((*_defaults.get(), check_device(self)))
        return self

    def __exit__(self, *error: object) -> None:
        """Make tensors where they were made before."""
        _defaults.set(_defaults.get()[:-1])


def _parse(text: str) -> tuple[str, int | None]:
    if not text:
        raise RuntimeError("Device string must not be empty")
    kind, colon, number = text.partition(":")
    if not re.fullmatch(r"[A-Za-z_]+", kind) or (colon and not re.fullmatch(r"0|[1-9][0-9]*", number)):
        raise RuntimeError(f"Invalid device string: '{text}'")
    if kind not in KINDS:
        raise RuntimeError(f"Expected one of {', '.join(KINDS)} device type at start of device string: {text}")
    return kind, int(number) if colon else None


CPU, META = device("cpu"), device("meta")
_current: ContextVar[dict[str, int]] = ContextVar("current", default={})  # noqa: B039  (kind -> number; never changed)
_defaults: ContextVar[tuple[device, ...]] = ContextVar("defaults", default=(CPU,))  # of the contexts, innermost last


def default_device() -> device:
    """Where tensors are made."""
    return _defaults.get()[-1]


def set_default(where: device) -> None:
    """Make tensors there, outside of contexts that name a device."""
    _defaults.set((where, *_defaults.get()[1:]))


def check_device(where: Any) -> device:
    """The device that `where` (None for the default, a string or a device) means, always the same object.

    With an index, unless it is `CPU` or `META`: that of the current device where none is given. Raises what PyTorch
    does where there is no such kind of device, RuntimeError for an index that is out of range, NotImplementedError for
    a kind that this library does not know.
    """
    if where is None:
        return _defaults.get()[-1]
    if where is CPU or getattr(where, "mesh", None) is not None:
        return where
    found = where if isinstance(where, device) else device(where)
    if found.type == "cpu":
        return CPU
    if found.type == "meta":
        return META
    if found.type not in KNOWN:
        error = MISSING.get(found.type)
        raise NotImplementedError(NO_SUCH.format(found)) if error is None else type(error)(*error.args)
    count = len(devices(found.type))
    if not count:
        error = MISSING[found.type]
        raise type(error)(*error.args)
    index = current_index(found.type) if found.index is None else found.index
    if index >= count:
        raise RuntimeError(NO_ORDINAL.format(found.type.upper()))
    return _device(found.type, index)


@functools.cache
def _device(kind: str, index: int) -> device:
    return device(kind, index)


def device_of_mesh(mesh: Any, kind: str = "") -> device:
    """All devices of a `DeviceMesh`, as one place for tensors: always the same object for equal parts of one mesh.

    kind: "meta" for tensors without values
    """
    return _device_of_mesh(mesh, mesh._get_root_mesh(), kind or mesh.device_type)


def any_mesh() -> bool:
    """Whether a tensor may be on a mesh: one has been asked for as a device."""
    return _device_of_mesh.cache_info().currsize > 0


@functools.cache
def _device_of_mesh(mesh: Any, root: Any, kind: str) -> device:
    found = device(kind)
    object.__setattr__(found, "mesh", mesh)
    return found


def named(kind: str, where: Any = None) -> device:
    """A device of a kind, which `where` (a number, a device or None for the current one) is to be of."""
    if where is None:
        return check_device(kind)
    if isinstance(where, int):
        return check_device(device(kind, where))
    found = check_device(where)
    if found.type != kind:
        raise ValueError(f"Expected a {kind} device, but got: {found}")
    return found


def accelerator() -> str:
    """The kind of accelerator of this machine, whether or not it has one."""
    return "xpu" if devices("xpu") and not devices("cuda") else "cuda"


def current_index(kind: str) -> int:
    """The number of the device that `kind` means without one, in this thread."""
    return _current.get().get(kind, 0)


def set_current(where: device) -> None:
    """Let the kind of the device `where` mean that one, in this thread."""
    _current.set({**_current.get(), where.type: where.index or 0})
