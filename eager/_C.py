"""The names of `torch._C` that libraries ask for; what is compiled in PyTorch is in other modules here."""

from __future__ import annotations

from typing import Any

from eager.accelerator import current_accelerator
from eager.core.devices import device
from eager.core.homes import opened
from eager.core.overriding import DisableTorchFunction, DisableTorchFunctionSubclass, local
from eager.core.overriding import disabled as _disabled_torch_function_impl  # noqa: F401
from eager.core.state import active_transforms, storage_of
from eager.core.tensor import Tensor
from eager.nn.conversion import parse_to
from eager.rng.generator import Generator
from eager.surface.runtime import get_default_device

__all__ = [
    "DisableTorchFunction", "DisableTorchFunctionSubclass", "DispatchKey", "DispatchKeySet", "Generator",
    "PyTorchFileReader",
]  # fmt: skip

_TensorMeta = type(Tensor)


class _Functions:
    """Functions that PyTorch writes in C++, by the names that they have there. prefix: how these begin."""

    def __init__(self, place: str, prefix: str = "", **others: Any):
        self._place = place
        self._prefix = prefix
        vars(self).update(others)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith(self._prefix) or name.startswith("__"):
            raise AttributeError(name)
        return getattr(opened(self._place), _OTHER_NAMES.get(name, name.removeprefix(self._prefix)))


_OTHER_NAMES = {"log_sigmoid": "logsigmoid"}
_nn = _Functions("nn.functional", _parse_to=parse_to)
_linalg, _special, _fft = (_Functions(place, f"{place}_") for place in ("linalg", "special", "fft"))


def _is_torch_function_enabled() -> bool:
    """Whether classes are asked for their `__torch_function__`."""
    return local.classes


def _get_tracing_state() -> None:
    """None: no TorchScript is traced; `torch.compiler.is_compiling()` asks about capture."""


def _log_api_usage_once(event: str) -> None:
    """Does nothing: no usage is logged."""


class _Keys:
    def __getattr__(self, name: str) -> str:
        return name


DispatchKey = _Keys()


class DispatchKeySet:
    """Keys of PyTorch's dispatcher, which libraries write down when they are imported. There is none to read them."""

    def __init__(self, *keys: str):
        self.keys = frozenset(keys)

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*self.keys, *other.keys)


def _is_torch_function_mode_enabled() -> bool:
    """Whether modes are asked for their `__torch_function__`."""
    return bool(local.modes)


def _get_privateuse1_backend_name() -> str:
    """The name of the kind of device that users may add to PyTorch."""
    return "privateuseone"


def _get_accelerator() -> Any:
    """The kind of the accelerator, as a device; the CPU without one."""
    return current_accelerator(check_available=True) or device("cpu")


def _get_default_device() -> str:
    """The kind of the device on which tensors are made."""
    return get_default_device().type


def _are_functorch_transforms_active() -> bool:
    """Whether a transform of `torch.func` is under way."""
    return bool(active_transforms())


def _is_alias_of(data: Tensor, other: Tensor) -> bool:
    """Whether two tensors share memory."""
    return storage_of(data._array()) is storage_of(other._array())


def _set_nothing(value: Any = None) -> Any:
    """`value`: a switch of PyTorch's compilers and kernels, which are not here."""
    return value


def _never() -> bool:
    """False: a question about PyTorch's compilers, which are not here."""
    return False


_SWITCHES = (
    "_jit_override_can_fuse_on_cpu _jit_override_can_fuse_on_gpu _jit_set_nvfuser_enabled _jit_set_nvfuser_guard_mode "
    "_jit_set_profiling_executor _jit_set_profiling_mode _jit_set_texpr_fuser_enabled "
    "_set_math_sdp_allow_fp16_bf16_reduction"
)
globals().update(dict.fromkeys(_SWITCHES.split(), _set_nothing))
_jit_can_fuse_on_cpu = _jit_can_fuse_on_gpu = _never


class Graph:
    """Graphs in TorchScript. There are none: for `isinstance`, as the next."""


class Value:
    """Values in TorchScript."""


class TensorType:
    """The type of tensors in TorchScript."""


class PyTorchFileReader:
    """What reads a file's records in PyTorch. NotImplementedError for an instance: `torch.load` reads files."""

    def __init__(self, *args: Any):
        raise NotImplementedError("PyTorchFileReader: `torch.load` with mmap=True reads a file as far as it is used")
