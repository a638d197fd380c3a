"""Settings of `eager` that a function may change, and leave changed: how to read and to write each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from eager.autograd.anomaly_mode import is_anomaly_check_nan_enabled, is_anomaly_enabled, set_detect_anomaly
from eager.core.autocast import autocast_state, set_autocast_state
from eager.core.state import GRAD_ENABLED, grad_enabled
from eager.surface import runtime
from eager.surface.printing import get_printoptions, set_printoptions
from graphc.ops.dtypes import default_float, set_default_float


class Setting(NamedTuple):
    """A setting; `readers` are the functions of `eager` whose results depend on it."""

    shown: str
    read: Callable[[], Any]
    write: Callable[[Any], Any]
    readers: tuple[Callable[..., Any], ...] = ()


def _anomaly() -> tuple[bool, bool]:
    return is_anomaly_enabled(), is_anomaly_check_nan_enabled()


def _set_printoptions(value: dict[str, Any]) -> None:
    set_printoptions(**value)


# What computing depends on is in the signature of a call or, as `eager` reads it, in a guard: the rest is only written.
SETTINGS = (
    Setting("torch.get_default_dtype()", default_float, set_default_float),
    Setting("torch.is_grad_enabled()", grad_enabled, GRAD_ENABLED.set),
    Setting("torch.is_autocast_enabled()", autocast_state, set_autocast_state),
    Setting("torch.is_anomaly_enabled()", _anomaly, lambda value: set_detect_anomaly(*value)),
    Setting("torch.get_printoptions()", get_printoptions, _set_printoptions, (get_printoptions,)),
    Setting("torch.get_num_threads()", runtime.get_num_threads, runtime.set_num_threads, (runtime.get_num_threads,)),
    Setting(
        "torch.get_deterministic_debug_mode()", runtime.get_deterministic_debug_mode,
        runtime.set_deterministic_debug_mode,
        (runtime.get_deterministic_debug_mode, runtime.are_deterministic_algorithms_enabled,
         runtime.is_deterministic_algorithms_warn_only_enabled),
    ),
    Setting(
        "torch.get_float32_matmul_precision()", runtime.get_float32_matmul_precision,
        runtime.set_float32_matmul_precision, (runtime.get_float32_matmul_precision,),
    ),
)  # fmt: skip
READERS = {reader: setting for setting in SETTINGS for reader in setting.readers}
