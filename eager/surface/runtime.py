"""Settings of the whole process: threads, determinism, precision of matrix products, the default device."""

from __future__ import annotations

import warnings
from typing import Any

from eager.core import warned
from eager.core.devices import CPU, check_device, default_device, device, set_default
from graphc.ops.threads import number_of_threads, set_number_of_threads

MODES = {"default": 0, "warn": 1, "error": 2}
PRECISIONS = ("highest", "high", "medium")
BAD_PRECISION = (
    "{precision} is not one of 'highest', 'high', or 'medium'; the currentsetFloat32MatmulPrecision call has no effect."
)

_deterministic = 0  # a value of MODES
_precision = "highest"


def get_num_threads() -> int:
    """How many threads a matrix product may use. As `torch.get_num_threads`."""
    return number_of_threads()


def set_num_threads(num: int) -> None:
    """Set how many threads the linear algebra of NumPy and of SciPy may use. As `torch.set_num_threads`.

    Factors of small matrices are left to one thread in any case, and all else of eager runs in one. A program that is
    compiled while the number is 1 runs in one, too; XLA decides by itself on the threads of others. RuntimeError unless
    `num` is a positive integer.
    """
    if not isinstance(num, int) or isinstance(num, bool):
        raise RuntimeError(f"set_num_threads expects an int, but got {type(num).__name__}")
    if num <= 0:
        raise RuntimeError("set_num_threads expects a positive integer")
    set_number_of_threads(num)


def get_num_interop_threads() -> int:
    """1: operations do not run side by side."""
    return 1


def set_num_interop_threads(num: int) -> None:
    """Nothing: operations do not run side by side. RuntimeError unless `num` is a positive integer."""
    if not isinstance(num, int) or isinstance(num, bool):
        raise RuntimeError(f"set_num_interop_threads expects an int, but got {type(num).__name__}")
    if num <= 0:
        raise RuntimeError("set_num_interop_threads expects a positive integer")


def set_warn_always(b: bool) -> None:
    """Give warnings each time that PyTorch gives once in a process, or not. As `torch.set_warn_always`."""
    if not isinstance(b, bool):
        raise RuntimeError(f"setWarnOnlyOnce expects a bool, but got {type(b).__name__}")
    warned.always[0] = b


def is_warn_always_enabled() -> bool:
    """What was set by `set_warn_always`."""
    return warned.always[0]


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Note that only deterministic algorithms are wanted. As PyTorch's; all are deterministic here."""
    if not isinstance(mode, bool):
        raise TypeError(
            "_set_deterministic_algorithms(): argument 'mode' (position 1) must be bool, not " + type(mode).__name__
        )
    global _deterministic
    _deterministic = (MODES["warn"] if warn_only else MODES["error"]) if mode else MODES["default"]


def are_deterministic_algorithms_enabled() -> bool:
    """Whether only deterministic algorithms are wanted."""
    return _deterministic != MODES["default"]


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether any other algorithm would only warn."""
    return _deterministic == MODES["warn"]


def get_deterministic_debug_mode() -> int:
    """0: all algorithms, 1: others than deterministic ones warn, 2: they raise."""
    return _deterministic


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Choose among "default" (0), "warn" (1) and "error" (2). RuntimeError for anything else."""
    global _deterministic
    if isinstance(debug_mode, str) and debug_mode not in MODES:
        raise RuntimeError(
            f"invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got {debug_mode}"
        )
    mode = MODES.get(debug_mode, debug_mode) if isinstance(debug_mode, str) else debug_mode
    if mode not in MODES.values():
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}")
    _deterministic = int(mode)


def get_float32_matmul_precision() -> str:
    """ "highest", "high" or "medium", as it was set."""
    return _precision


def set_float32_matmul_precision(precision: str) -> None:
    """Set how exact products of float32 have to be on devices that can round their operands: "highest" (float32's own
    precision, the default), "high" (TensorFloat-32) or "medium" (bfloat16). On the CPU all have float32's own.

    Programs that are compiled from then on keep to it. Warns of any other word.
    """
    global _precision
    if precision not in PRECISIONS:
        warnings.warn(BAD_PRECISION.format(precision=precision), UserWarning, stacklevel=2)
        return
    _precision = precision


def set_flush_denormal(mode: bool) -> bool:
    """False for `mode=True`: NumPy keeps denormal numbers."""
    return not mode


def get_default_device() -> device:
    """Where tensors are made: the CPU, or "meta"."""
    return default_device()


def set_default_device(device: Any) -> None:
    """Make tensors on `device` (a string or a device; None: the CPU) from now on, outside of contexts.

    Raises what a tensor there would: AssertionError for CUDA.
    """
    set_default(CPU if device is None else check_device(device))
