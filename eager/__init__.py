"""A define-by-run engine on NumPy with PyTorch's API: `import eager as torch`.

Functions of pointwise ops come from the op registry, all others from `eager.functional`. What is not needed at every
start (`nn`, `optim`, printing options) is imported when it is first asked for.
"""

from __future__ import annotations

import builtins
import importlib
from typing import Any

from eager import autograd, dtypes, install, methods, return_types
from eager.device import device
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

# public name -> module that has it, imported at first use
_LATER = {
    **dict.fromkeys(
        (
            "Generator", "bernoulli", "default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed",
            "multinomial",
            "normal", "poisson", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm", "seed",
            "set_rng_state",
        ),
        "eager.random",
    ),
    **dict.fromkeys(("set_printoptions", "get_printoptions"), "eager.printing"),
    **dict.fromkeys(("finfo", "iinfo"), "eager.limits"),
    **dict.fromkeys(
        (
            "channels_last", "channels_last_3d", "contiguous_format", "layout", "memory_format", "preserve_format",
            "sparse_coo", "sparse_csr", "strided",
        ),
        "eager.layouts",
    ),
    **dict.fromkeys(("asarray", "frombuffer"), "eager.functional.data"),
    **dict.fromkeys(("empty_permuted", "empty_strided", "range"), "eager.functional.creation"),
    **dict.fromkeys(
        (
            "block_diag", "cartesian_prod", "combinations", "meshgrid", "tril_indices", "triu_indices", "vander",
        ),
        "eager.functional.grids",
    ),
    **dict.fromkeys(
        (
            "adjoint", "angle", "complex", "conj", "conj_physical", "heaviside", "imag", "is_conj", "is_neg",
            "is_nonzero", "is_signed", "polar", "real", "resolve_conj", "resolve_neg", "sgn", "view_as_complex",
            "view_as_real",
        ),
        "eager.functional.complexes",
    ),
    **dict.fromkeys(
        (
            "argsort", "cummax", "cummin", "kthvalue", "logcumsumexp", "median", "mode", "msort", "nanmedian", "sort",
            "topk",
        ),
        "eager.functional.sorting",
    ),
    **dict.fromkeys(("nanquantile", "quantile"), "eager.functional.quantiles"),
    **dict.fromkeys(
        (
            "bincount", "bucketize", "histc", "histogram", "nonzero_static", "searchsorted", "unique",
            "unique_consecutive",
        ),
        "eager.functional.counting",
    ),
    **dict.fromkeys(("index_reduce", "put", "scatter_reduce"), "eager.functional.scattering"),
    "from_dlpack": "eager.interop",
    **dict.fromkeys(("TypedStorage", "UntypedStorage"), "eager.storage"),
    **dict.fromkeys(
        (
            "BFloat16Tensor", "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "HalfTensor",
            "IntTensor", "LongTensor", "ShortTensor", "set_default_tensor_type",
        ),
        "eager.tensor_types",
    ),
    **dict.fromkeys(("load", "save"), "eager.serialization"),
    "__version__": "eager.version",
    **dict.fromkeys(("is_anomaly_check_nan_enabled", "is_anomaly_enabled"), "eager.autograd.anomaly_mode"),
    "vmap": "eager.func.mapping",
    **dict.fromkeys(
        (
            "are_deterministic_algorithms_enabled", "get_default_device", "get_deterministic_debug_mode",
            "get_float32_matmul_precision", "get_num_interop_threads", "get_num_threads",
            "is_deterministic_algorithms_warn_only_enabled", "set_default_device", "set_deterministic_debug_mode",
            "set_float32_matmul_precision", "set_flush_denormal", "set_num_threads", "use_deterministic_algorithms",
        ),
        "eager.runtime",
    ),
    **dict.fromkeys(
        (
            "bartlett_window", "blackman_window", "hamming_window", "hann_window", "istft", "kaiser_window", "stft",
        ),
        "eager.spectral",
    ),
}  # fmt: skip
_SUBMODULES = frozenset((
    "_tensor_str", "accelerator", "backends", "cuda", "fft", "func", "linalg", "nn", "optim", "random", "signal", "special", "testing",
    "utils", "version",
))  # fmt: skip

globals().update({name: value for name, value in vars(dtypes).items() if isinstance(value, dtype)}, **methods.FUNCTIONS)
_BUILT_IN = frozenset(install.functions)  # never declared anew: safe to keep as attributes of this module

__all__ = [
    "Parameter", "Size", "Tensor", "autograd", "cuda", "device", "dtype", "enable_grad", "inference_mode", "is_grad_enabled", "no_grad",
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
