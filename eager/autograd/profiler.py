"""`torch.autograd.profiler`: the older profiler, of one recording. `torch.profiler` has steps and schedules."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from eager.profiling.events import EventList, FunctionEventAvg
from eager.profiling.instruments import recording
from eager.profiling.recorder import Recorder, record_function

__all__ = ["emit_nvtx", "profile", "record_function"]


class profile:
    """Context: records what runs inside. As `torch.autograd.profiler.profile`; its sums and tables are the EventList's.

    record_shapes, profile_memory, with_stack: note also shapes of arguments, bytes of results, where calls come from.
    """

    def __init__(
        self, enabled: bool = True, *, use_cuda: bool = False, use_device: str | None = None,
        record_shapes: bool = False, with_flops: bool = False, profile_memory: bool = False, with_stack: bool = False,
        with_modules: bool = False, **unused: Any,
    ):  # fmt: skip
        self.enabled, self._modules = enabled, with_modules
        self._settings = {
            "shapes": record_shapes, "memory": profile_memory, "stack": with_stack, "flops": with_flops
        }  # fmt: skip
        self._recorder: Recorder | None = None

    def __enter__(self) -> profile | None:
        if not self.enabled:
            return None
        self._stack = ExitStack()
        self._recorder = self._stack.enter_context(recording(Recorder(**self._settings), self._modules))
        return self

    def __exit__(self, *error: object) -> None:
        if self.enabled:
            self._stack.close()

    @property
    def function_events(self) -> EventList:
        """The events. RuntimeError before the recording has begun."""
        if self._recorder is None:
            raise RuntimeError("Profiler didn't finish running")
        return self._recorder.list()

    def key_averages(self, *args: Any, **kwargs: Any) -> EventList:
        """See `EventList.key_averages`."""
        return self.function_events.key_averages(*args, **kwargs)

    def total_average(self) -> FunctionEventAvg:
        """See `EventList.total_average`."""
        return self.function_events.total_average()

    def table(self, *args: Any, **kwargs: Any) -> str:
        """See `EventList.table`."""
        return self.function_events.table(*args, **kwargs)

    def export_chrome_trace(self, path: str) -> None:
        """See `EventList.export_chrome_trace`."""
        self.function_events.export_chrome_trace(path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """See `EventList.export_stacks`."""
        self.function_events.export_stacks(path, metric)

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds, each counted once."""
        return self.function_events.self_cpu_time_total

    def __str__(self) -> str:
        return "<unfinished torch.autograd.profile>" if self._recorder is None else str(self.function_events)

    __repr__ = __str__


class emit_nvtx:
    """Marks for CUDA's own profiler. NotImplementedError for an instance: there is no CUDA code to be marked."""

    def __init__(self, enabled: bool = True, record_shapes: bool = False):
        raise NotImplementedError("emit_nvtx: jax.profiler.trace(folder) records what runs on a GPU")
