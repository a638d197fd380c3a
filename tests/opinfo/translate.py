"""PyTorch's values and functions as those of `eager`: what the samples of PyTorch's own op tests are turned into."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import eager
from eager.core.interpreter import on_arrays

DTYPES = {
    getattr(torch, name): getattr(eager, name)
    for name in (
        *("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"),
        *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
    )
    if hasattr(eager, name)
}


class Untranslatable(Exception):
    """A value that `eager` has nothing for (sparse, quantized, nested tensors)."""


def tensor(value: torch.Tensor) -> Any:
    """An `eager` tensor with the values, strides, offset and `requires_grad` of a PyTorch tensor."""
    if value.layout != torch.strided or value.dtype not in DTYPES or value.device.type != "cpu":
        raise Untranslatable(f"{value.layout} {value.dtype} {value.device}")
    plain = value.detach().resolve_conj().resolve_neg()
    if plain._is_zerotensor():
        plain = plain.clone()
    data = bytearray(torch.tensor([], dtype=torch.uint8).set_(plain.untyped_storage()).numpy().tobytes())
    dtype = DTYPES[value.dtype]
    if data:
        whole = eager.frombuffer(data, dtype=dtype)
        made = whole.as_strided(tuple(plain.shape), plain.stride(), plain.storage_offset())
        made = (
            made
            if plain.storage_offset() or whole.numel() != made.numel() or not made.is_contiguous()
            else (whole.reshape(tuple(plain.shape)))
        )
    else:
        made = eager.empty(tuple(plain.shape), dtype=dtype)
    made = made.detach()
    return made.requires_grad_() if value.requires_grad else made


def value(given: Any) -> Any:
    """The same for any argument: containers, dtypes, devices, sizes."""
    if isinstance(given, torch.Tensor):
        return tensor(given)
    if isinstance(given, torch.dtype):
        if given not in DTYPES:
            raise Untranslatable(str(given))
        return DTYPES[given]
    if isinstance(given, (torch.device, torch.layout, torch.memory_format)):
        name = str(given)
        return eager.device(name) if isinstance(given, torch.device) else getattr(eager, name.removeprefix("torch."))
    if isinstance(given, torch.Size):
        return eager.Size(given)
    if isinstance(given, dict):
        return {key: value(item) for key, item in given.items()}
    if isinstance(given, (list, tuple)):
        items = [value(item) for item in given]
        return type(given)(*items) if hasattr(given, "_fields") else type(given)(items)
    if isinstance(given, torch.Generator):
        made = eager.Generator()
        made.manual_seed(given.initial_seed())
        return made
    if isinstance(given, torch.nn.Module):
        return getattr(eager.nn, type(given).__name__)()
    if callable(given) and getattr(given, "__module__", "").startswith("torch"):
        return function(given, given.__name__)
    return given


def lookup(name: str) -> Any:
    """The thing `torch.<name>` of eager."""
    found: Any = eager
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _seeded(op: Callable, *args: Any, **kwargs: Any) -> Any:
    """As PyTorch's `wrapper_set_seed`. A compiled program draws from the generator that its caller has seeded."""
    if on_arrays():
        eager.manual_seed(42)
    return op(*args, **kwargs)


def function(given: Callable, name: str) -> Callable:
    """`eager`'s function for one of PyTorch's; the lambdas of PyTorch's op tests run with `torch` being eager."""
    if isinstance(given, types.FunctionType) and given.__name__ == "<lambda>":
        scope = {**given.__globals__, "torch": eager, "wrapper_set_seed": _seeded}
        return types.FunctionType(given.__code__, scope, given.__name__, given.__defaults__, given.__closure__)
    if name.startswith("__"):
        return getattr(eager.Tensor, name)
    found = getattr(eager, name, None) if "." not in name else lookup(name)
    return found if callable(found) else getattr(eager.Tensor, name)  # `cfloat` is a dtype, too


def array(given: Any) -> np.ndarray:
    """The values of a tensor of either library as NumPy's widest type of their kind."""
    plain = given.detach()
    if isinstance(plain, torch.Tensor):
        plain = (plain.clone() if plain._is_zerotensor() else plain).resolve_conj().resolve_neg()
    name = str(plain.dtype).removeprefix("torch.").removeprefix("eager.")
    if name == "bfloat16":
        plain = plain.float()
    return np.asarray(plain.numpy())
