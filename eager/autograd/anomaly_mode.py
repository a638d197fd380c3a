"""Anomaly mode: where in the forward pass the operation was called whose gradient fails or holds nan."""

from __future__ import annotations

import warnings

from eager.core.shown import ShownObject
from eager.core.state import Closing, anomaly

WARNING = (
    "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for debugging."
)
_closing = Closing()


def _set(enabled: bool, check_nan: bool) -> None:
    _closing.set(enabled)  # the plain path records stacks and checksums
    anomaly.enabled, anomaly.check_nan = enabled, check_nan


def is_anomaly_enabled() -> bool:
    """Whether anomaly mode is on. As `torch.is_anomaly_enabled`."""
    return anomaly.enabled


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly mode looks for nan. As `torch.is_anomaly_check_nan_enabled`."""
    return anomaly.check_nan


class set_detect_anomaly(ShownObject):
    """Turn anomaly mode on or off; as a context, restore it at the end. As `torch.autograd.set_detect_anomaly`.

    Beyond PyTorch, memory that was written behind autograd's back (through `.data`, or through the NumPy array behind
    `from_numpy`) after an operation saved it is noticed too, by checksum: RuntimeError.
    """

    def __init__(self, mode: bool, check_nan: bool = True):
        self._before = anomaly.enabled, anomaly.check_nan
        _set(bool(mode), check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        _set(*self._before)


class detect_anomaly(ShownObject):
    """Context: anomaly mode is on inside. As `torch.autograd.detect_anomaly`."""

    def __init__(self, check_nan: bool = True):
        self.check_nan = check_nan
        warnings.warn(WARNING, UserWarning, stacklevel=2)

    def __enter__(self) -> None:
        self._before = anomaly.enabled, anomaly.check_nan
        _set(True, self.check_nan)

    def __exit__(self, *error: object) -> None:
        _set(*self._before)
