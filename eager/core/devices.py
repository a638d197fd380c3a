"""`device` objects, and where tensors are made. Tensors live on the CPU, or, without values, on "meta"."""

from __future__ import annotations

import re
from contextvars import ContextVar
from typing import Any, NoReturn, final

KINDS = (
    "cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga", "maia", "xla", "lazy",
    "vulkan", "mps", "meta", "hpu", "mtia", "privateuseone",
)  # fmt: skip
NO_CUDA = "Torch not compiled with CUDA enabled"
NO_ACCELERATOR = "Cannot access accelerator device when none is available."
# kind of device -> what PyTorch raises where a tensor should go there, in a build for the CPU
MISSING: dict[str, Exception] = {
    "cuda": AssertionError(NO_CUDA),
    "xpu": AssertionError("Torch not compiled with XPU enabled"),
    "mps": RuntimeError("PyTorch is not linked with support for mps devices"),
}


@final
class device:
    """Where a tensor lives: a `type` ("cpu", "cuda", ...) and an `index` or None. As `torch.device`.

    Raises RuntimeError for a string that names no device, TypeError for what is neither a string nor a device.
    """

    __slots__ = ("index", "type")
    type: str
    index: int | None

    def __init__(self, type: Any, index: int | None = None):
        if isinstance(type, device):
            type, index = type.type, type.index
        elif isinstance(type, int) and not isinstance(type, bool):
            raise RuntimeError(NO_ACCELERATOR)
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

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"attribute '{name}' of 'torch.device' objects is not writable")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type='{self.type}'{index})"

    def __reduce__(self) -> tuple[Any, ...]:
        return device, (self.type, self.index)

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
_defaults: ContextVar[tuple[device, ...]] = ContextVar("defaults", default=(CPU,))  # of the contexts, innermost last


def default_device() -> device:
    """Where tensors are made."""
    return _defaults.get()[-1]


def set_default(where: device) -> None:
    """Make tensors there, outside of contexts that name a device."""
    _defaults.set((where, *_defaults.get()[1:]))


def check_device(where: Any) -> device:
    """The device that `where` (None for the default, a string or a device) means: `CPU` or `META`.

    Raises AssertionError for CUDA, PyTorch's error or NotImplementedError for any other kind.
    """
    if where is None:
        return _defaults.get()[-1]
    if where is CPU:
        return CPU
    found = where if isinstance(where, device) else device(where)
    if found.type in MISSING:
        error = MISSING[found.type]
        raise type(error)(*error.args)
    if found.type not in ("cpu", "meta"):
        raise NotImplementedError(f"tensors on device '{found}' are not supported; tensors live on the CPU")
    return CPU if found.type == "cpu" else META
