"""A define-by-run engine on NumPy with PyTorch's API: `import eager as torch`.

Functions of pointwise ops come from the op registry, all others from `eager.functional`. What is not needed at every
start (`nn`, `optim`, printing options) is imported when it is first asked for.
"""

from __future__ import annotations

import builtins
import importlib
from typing import Any

from eager import autograd, dtypes, install, methods
from eager.dtypes import Size, dtype
from eager.functional.reductions import return_types
from eager.grad_mode import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled
from eager.language import E, source
from eager.tensor import Parameter, Tensor

install.install()
methods.install()

inf, nan, pi, e = float("inf"), float("nan"), 3.141592653589793, 2.718281828459045
newaxis = None
strided, preserve_format, contiguous_format = "torch.strided", "torch.preserve_format", "torch.contiguous_format"

# public name -> module that has it, imported at first use
_LATER = {
    **dict.fromkeys(("device", "cuda"), "eager.device"),
    **dict.fromkeys(
        (
            "Generator", "bernoulli", "default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed",
            "normal", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm", "seed",
            "set_rng_state",
        ),
        "eager.random",
    ),
    "set_printoptions": "eager.printing",
}  # fmt: skip
_SUBMODULES = frozenset(("linalg", "fft", "special", "nn", "optim", "random", "utils"))

globals().update({name: value for name, value in vars(dtypes).items() if isinstance(value, dtype)}, **methods.FUNCTIONS)
_BUILT_IN = frozenset(install.functions)  # never declared anew: safe to keep as attributes of this module

__all__ = [
    "Parameter", "Size", "Tensor", "autograd", "dtype", "enable_grad", "inference_mode", "is_grad_enabled", "no_grad",
    "return_types", "set_grad_enabled", "source",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    op = methods.ALIASES.get(name, name)
    if op in _BUILT_IN:
        function = globals()[name] = getattr(E, op)
        return function
    if op in install.functions:
        return install.functions[op]
    if name in _LATER:
        value = globals()[name] = getattr(importlib.import_module(_LATER[name]), name)
        return value
    if name in _SUBMODULES:
        try:
            return importlib.import_module(f"eager.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"eager.{name}":
                raise
    raise AttributeError(f"module 'eager' has no attribute '{name}'")


def __dir__() -> builtins.list[str]:
    return sorted({*globals(), *install.functions, *methods.ALIASES, *_LATER, *_SUBMODULES})
