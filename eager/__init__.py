"""A define-by-run engine on NumPy with PyTorch's API: `import eager as torch`.

Functions of pointwise ops come from the op registry, all others by the tables in `eager.surface.names`, each imported
when it is first asked for.
"""

from __future__ import annotations

import builtins
import importlib
from typing import Any

from eager.core import dtypes, missing
from eager.core.dtypes import Size, dtype
from eager.core.grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from eager.core.parameter import Parameter
from eager.core.tensor import Tensor
from eager.engine.language import source
from eager.surface import methods, names, operators, overriding, public
from graphc.ops import allocator

allocator.keep_freed_memory()
operators.install()
methods.install()
overriding.install()

inf, nan, pi, e = float("inf"), float("nan"), 3.141592653589793, 2.718281828459045
newaxis = None

_DTYPES = {name: value for name, value in vars(dtypes).items() if isinstance(value, dtype)}
_CONSTANTS = {*_DTYPES, "e", "inf", "nan", "newaxis", "pi"}
globals().update(_DTYPES)

__all__ = [
    "Parameter", "Size", "Tensor", "dtype", "enable_grad", "inference_mode", "is_grad_enabled",
    "is_inference_mode_enabled", "no_grad", "set_grad_enabled", "source",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in names.SUBMODULES:
        try:
            return importlib.import_module(f"eager.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"eager.{name}":
                raise
    try:
        value = overriding.public(name, public.named(name))
    except LookupError:
        raise AttributeError(name) from None  # `missing` says more
    if public.is_fixed(name):
        globals()[name] = value
    return value


def __dir__() -> builtins.list[str]:
    found = {*__all__, *_CONSTANTS, *public.every_name(), *names.SUBMODULES}
    return sorted({name for name in found if name[0] != "_"} | {name for name in globals() if name.startswith("__")})


missing.install()
