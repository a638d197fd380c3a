"""`device` objects, and the `cuda` namespace of a build without CUDA. Tensors of this engine live on the CPU."""

from __future__ import annotations

import re
from typing import Any, NoReturn, final

KINDS = (
    "cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga", "maia", "xla", "lazy",
    "vulkan", "mps", "meta", "hpu", "mtia", "privateuseone",
)  # fmt: skip
NO_CUDA = "Torch not compiled with CUDA enabled"


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
            raise RuntimeError("Cannot access accelerator device when none is available.")
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


def _parse(text: str) -> tuple[str, int | None]:
    if not text:
        raise RuntimeError("Device string must not be empty")
    kind, colon, number = text.partition(":")
    if not re.fullmatch(r"[A-Za-z_]+", kind) or (colon and not re.fullmatch(r"0|[1-9][0-9]*", number)):
        raise RuntimeError(f"Invalid device string: '{text}'")
    if kind not in KINDS:
        raise RuntimeError(f"Expected one of {', '.join(KINDS)} device type at start of device string: {text}")
    return kind, int(number) if colon else None


CPU = device("cpu")


def check_device(where: Any) -> device:
    """The device that `where` (None, a string or a device) means, always `CPU`.

    Raises AssertionError for CUDA, NotImplementedError for any other kind.
    """
    if where is None or where is CPU:
        return CPU
    found = where if isinstance(where, device) else device(where)
    if found.type == "cuda":
        raise AssertionError(NO_CUDA)
    if found.type != "cpu":
        raise NotImplementedError(f"tensors on device '{found}' are not supported; tensors live on the CPU")
    return CPU


class _Cuda:
    """`torch.cuda` of a build without CUDA: queries answer, everything that needs a device raises AssertionError."""

    def is_available(self) -> bool:
        return False

    def is_initialized(self) -> bool:
        return False

    def device_count(self) -> int:
        return 0

    def manual_seed(self, seed: int) -> None:
        """Does nothing: there is no device generator to seed."""

    def manual_seed_all(self, seed: int) -> None:
        """Does nothing: there is no device generator to seed."""

    def memory_allocated(self, device: Any = None) -> int:
        return 0

    def empty_cache(self) -> None:
        """Does nothing: there is no device memory."""

    def _needs_cuda(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise AssertionError(NO_CUDA)

    current_device = synchronize = set_device = get_device_name = get_device_properties = _needs_cuda


cuda = _Cuda()
