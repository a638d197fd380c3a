"""The names of `torch._C` that libraries ask for; what is compiled in PyTorch is in other modules here."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from eager.core.missing import explain
from eager.core.overriding import DisableTorchFunction, DisableTorchFunctionSubclass, local
from eager.core.overriding import disabled as _disabled_torch_function_impl  # noqa: F401
from eager.core.tensor import Tensor
from eager.nn.conversion import parse_to
from eager.rng.generator import Generator

__all__ = [
    "DisableTorchFunction", "DisableTorchFunctionSubclass", "DispatchKey", "DispatchKeySet", "Generator",
    "PyTorchFileReader",
]  # fmt: skip

_TensorMeta = type(Tensor)
_nn = SimpleNamespace(_parse_to=parse_to)


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


class PyTorchFileReader:
    """What reads a file's records in PyTorch. NotImplementedError for an instance: `torch.load` reads files."""

    def __init__(self, *args: Any):
        raise NotImplementedError("PyTorchFileReader: `torch.load` with mmap=True reads a file as far as it is used")


explain(__name__)
