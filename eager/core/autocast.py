"""The state of autocast, local to the thread, and who has to know when some thread turns it on.

What is cast is the business of `eager.amp`, which `torch.autocast` loads. Here is only what the rest asks for: a
checkpoint that runs again, a compiled program that is right for one state.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, NamedTuple

from eager.core import dtypes
from graphc import forking

# device type -> the dtype that it computes in
DTYPES = {
    "cpu": dtypes.bfloat16, "cuda": dtypes.float16, "xpu": dtypes.float16, "mps": dtypes.float16,
    "xla": dtypes.bfloat16, "hpu": dtypes.bfloat16, "ipu": dtypes.float16, "mtia": dtypes.float16,
    "maia": dtypes.bfloat16, "privateuseone": dtypes.float16,
}  # fmt: skip


class AutocastState(NamedTuple):
    """Which device types are autocast, the dtypes that have been set, and whether casts of weights are cached."""

    enabled: frozenset[str] = frozenset()
    dtypes: tuple[tuple[str, Any], ...] = ()
    cache_enabled: bool = True

    def dtype(self, device_type: str) -> Any:
        """The dtype that ops of this device compute in, while it is autocast."""
        return dict(self.dtypes).get(device_type, DTYPES[device_type])

    def with_enabled(self, device_type: str, enabled: bool) -> AutocastState:
        """The same with this device type autocast or not."""
        return self._replace(enabled=self.enabled | {device_type} if enabled else self.enabled - {device_type})

    def with_dtype(self, device_type: str, dtype: Any) -> AutocastState:
        """The same with another dtype. One state has one form, so that equal states are equal."""
        chosen = {**dict(self.dtypes), device_type: dtype}
        return self._replace(dtypes=tuple((k, v) for k, v in sorted(chosen.items()) if v is not DTYPES[k]))


USUAL = AutocastState()
AUTOCAST: ContextVar[AutocastState] = ContextVar("autocast", default=USUAL)
autocast_state = AUTOCAST.get

# states that have been in force: those that are equal are one, so that asking for one compares no contents
_known: dict[AutocastState, AutocastState] = {USUAL: USUAL}
_lock = forking.renewed(threading.Lock())
_users = 0  # how many threads have tensors autocast
_switches: list[Callable[[bool], None]] = []


def add_switch(switch: Callable[[bool], None]) -> None:
    """Call `switch(True)` when the first thread has tensors autocast, and `switch(False)` when none has any more."""
    with _lock:
        _switches.append(switch)
        switch(_users > 0)


def set_autocast_state(state: AutocastState) -> None:
    """Put `state` in force in this thread. Tensors live on the CPU: of other devices it is only remembered."""
    global _users
    state = _known.setdefault(state, state)
    before = "cpu" in autocast_state().enabled
    after = "cpu" in state.enabled
    if before is after:
        AUTOCAST.set(state)
        return
    with _lock:
        AUTOCAST.set(state)
        _users += 1 if after else -1
        if _users == after:  # from none to one, or from one to none
            for switch in _switches:
                switch(after)


class autocasting_as:
    """Context: autocast as it was in `state`."""

    def __init__(self, state: AutocastState):
        self._state = state

    def __enter__(self) -> None:
        self._before = autocast_state()
        set_autocast_state(self._state)

    def __exit__(self, *error: object) -> None:
        set_autocast_state(self._before)
