"""`torch.profiler`: recordings of steps of a program, by a schedule."""

from __future__ import annotations

import enum
import os
import socket
import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from eager.autograd.profiler import profile as recording
from eager.core.shown import ShownObject
from eager.profiling.events import EventList
from eager.profiling.recorder import record_function

__all__ = [
    "ProfilerAction", "ProfilerActivity", "kineto_available", "profile", "record_function", "schedule",
    "supported_activities", "tensorboard_trace_handler",
]  # fmt: skip

BAD_SCHEDULE = (
    "Invalid profiler schedule arguments. Got wait={} (need >= 0), warmup={} (need >= 0), active={} (need > 0), "
    "repeat={} (need >= 0), skip_first={} (need >= 0)."
)


class ProfilerActivity(enum.Enum):
    """What can be recorded; here it is what the CPU does."""

    CPU = 0
    XPU = 1
    CUDA = 2


class ProfilerAction(enum.Enum):
    """What a profile does in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def supported_activities() -> set[ProfilerActivity]:
    """The CPU's."""
    return {ProfilerActivity.CPU}


def kineto_available() -> bool:
    """False: events come from this library."""
    return False


def schedule(*, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0,
             skip_first_wait: int = 0) -> Callable[[int], ProfilerAction]:  # fmt: skip
    """f(step): what to do in it, in cycles of `wait`, `warmup` and `active` steps. As `torch.profiler.schedule`.

    AssertionError for numbers that make no cycle.
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active <= 0:
        raise AssertionError(BAD_SCHEDULE.format(wait, warmup, active, repeat, skip_first))
    if warmup == 0:
        warnings.warn("Profiler won't be using warmup, this can skew profiler results", stacklevel=2)
    cycle = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        step += (wait if skip_first_wait else 0) - skip_first
        if step < (wait if skip_first_wait else 0) or (repeat and step / cycle >= repeat) or step % cycle < wait:
            return ProfilerAction.NONE
        if step % cycle < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if step % cycle == cycle - 1 else ProfilerAction.RECORD

    return action


def tensorboard_trace_handler(dir_name: str, worker_name: str | None = None, use_gzip: bool = False,
                              use_python_export: bool = False) -> Callable[[Any], None]:  # fmt: skip
    """An `on_trace_ready` that writes "<host>_<pid>.<time>.pt.trace.json" into the folder `dir_name`."""

    def handler(prof: Any) -> None:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        file = f"{worker}.{time.time_ns()}.pt.trace.json{'.gz' if use_gzip else ''}"
        prof.export_chrome_trace(os.path.join(dir_name, file))

    return handler


class profile(ShownObject):
    """Context: records what runs inside; with a `schedule`, only in some of the steps that `step()` ends.

    As `torch.profiler.profile`. on_trace_ready(self) is called at the end of each cycle; then the events start anew.
    record_shapes, profile_memory, with_stack, with_modules: note also shapes of arguments, bytes of results, where
    calls come from, calls of modules.
    """

    def __init__(
        self, *, activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None, on_trace_ready: Callable[..., Any] | None = None,
        record_shapes: bool = False, profile_memory: bool = False, with_stack: bool = False, with_flops: bool = False,
        with_modules: bool = False, experimental_config: Any = None, execution_trace_observer: Any = None,
        acc_events: bool = False, use_cuda: bool | None = None, custom_trace_id_callback: Any = None,
        post_processing_timeout_s: float | None = None,
    ):  # fmt: skip
        self._actions = schedule or (lambda _: ProfilerAction.RECORD)
        self._ready = on_trace_ready
        self._settings = {
            "record_shapes": record_shapes, "profile_memory": profile_memory, "with_stack": with_stack,
            "with_flops": with_flops, "with_modules": with_modules,
        }  # fmt: skip
        self._scheduled = schedule is not None
        self.step_num = 0
        self.profiler: recording | None = None  # the recording, also after its end
        self._runs = False
        self._step: Any = None

    def start(self) -> None:
        """Begin."""
        self._carry_on()

    def stop(self) -> None:
        """End; `on_trace_ready` is called if something has been recorded."""
        self._end_step()
        if self._runs:
            self._finish(self._actions(self.step_num) in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE))

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def step(self) -> None:
        """The next step begins."""
        self._end_step()
        done = self._actions(self.step_num)
        if done is ProfilerAction.RECORD_AND_SAVE:
            self._finish(True)
        self.step_num += 1
        self._carry_on()

    def _carry_on(self) -> None:
        wanted = self._actions(self.step_num) in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
        if wanted and not self._runs:
            self.profiler = recording(**self._settings)  # type: ignore[arg-type]
            self.profiler.__enter__()
            self._runs = True
        if wanted and self._scheduled:
            self._step = record_function(f"ProfilerStep#{self.step_num}")
            self._step.__enter__()

    def _end_step(self) -> None:
        if self._step is not None:
            self._step.__exit__()
            self._step = None

    def _finish(self, ready: bool) -> None:
        if self._runs and self.profiler is not None:
            self.profiler.__exit__()
            self._runs = False
            if ready and self._ready is not None:
                self._ready(self)

    def events(self) -> EventList:
        """The events. AssertionError before the first recording."""
        if self.profiler is None:
            raise AssertionError("Expected profiler to be initialized")
        return self.profiler.function_events

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0,
                     group_by_overload_name: bool = False) -> EventList:  # fmt: skip
        """The sum of the events of each name; see `EventList.key_averages`."""
        return self.events().key_averages(group_by_input_shape, group_by_stack_n)

    def export_chrome_trace(self, path: str, use_python_export: bool = False) -> None:
        """See `EventList.export_chrome_trace`."""
        self.events().export_chrome_trace(path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """See `EventList.export_stacks`."""
        self.events().export_stacks(path, metric)
