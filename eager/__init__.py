"""A define-by-run engine on NumPy with PyTorch's API: `import eager as torch`.

Functions of pointwise ops come from the op registry, all others by the tables in `eager.names`, each imported when it
is first asked for.
"""

from __future__ import annotations

import builtins
import importlib
from typing import Any

from eager import dtypes, install, methods, names
from eager.dtypes import Size, dtype
from eager.grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from eager.language import E, source
from eager.tensor import Parameter, Tensor

install.install()
methods.install()

inf, nan, pi, e = float("inf"), float("nan"), 3.141592653589793, 2.718281828459045
newaxis = None

globals().update({name: value for name, value in vars(dtypes).items() if isinstance(value, dtype)})
_BUILT_IN = frozenset(install.functions)  # never declared anew: safe to keep as attributes of this module

__all__ = [
    "Parameter", "Size", "Tensor", "dtype", "enable_grad", "inference_mode", "is_grad_enabled",
    "is_inference_mode_enabled", "no_grad", "set_grad_enabled", "source",
]  # fmt: skip


def tensor(data: Any, **options: Any) -> Tensor:
    """A tensor with a copy of `data`; see `eager.functional.data.tensor`, which this name becomes."""
    # a plain attribute: the module eager.tensor would be found before __getattr__ is asked
    real = globals()["tensor"] = methods.function("tensor")
    return real(data, **options)


def __getattr__(name: str) -> Any:
    if name in methods.FUNCTIONS:
        value = globals()[name] = methods.function(name)
        return value
    op = names.ALIASES.get(name, name)
    if op in _BUILT_IN:
        function = globals()[name] = getattr(E, op)
        return function
    if op in install.functions:
        return install.functions[op]
    if name in names.IN_PLACE:
        function = globals()[name] = methods.in_place_function(name)
        return function
    if name in names.SUBMODULES:
        try:
            return importlib.import_module(f"eager.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"eager.{name}":
                raise
    raise AttributeError(f"module 'eager' has no attribute '{name}'")


def __dir__() -> builtins.list[str]:
    return sorted(
        {*globals(), *install.functions, *methods.FUNCTIONS, *names.ALIASES, *names.IN_PLACE, *names.SUBMODULES}
    )
