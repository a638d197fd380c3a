"""Events of a profile, and their sums. As PyTorch's `FunctionEvent`, `FunctionEventAvg` and `EventList`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any

from eager.profiling.table import shown_time, table


class _Times:
    """Formatted times and averages. Times are in microseconds."""

    key: str
    count: int
    cpu_time_total: float
    self_cpu_time_total: float
    device_type = "DeviceType.CPU"
    node_id = -1
    overload_name = ""
    is_async = is_remote = is_legacy = False
    use_device = None
    device_time = device_time_total = self_device_time_total = 0.0
    device_memory_usage = self_device_memory_usage = 0

    @property
    def cpu_time(self) -> float:
        """The time of one call."""
        return self.cpu_time_total / self.count if self.count else 0.0

    cpu_time_str = property(lambda self: shown_time(self.cpu_time))
    cpu_time_total_str = property(lambda self: shown_time(self.cpu_time_total))
    self_cpu_time_total_str = property(lambda self: shown_time(self.self_cpu_time_total))


class FunctionEvent(_Times):
    """One call. `cpu_parent` is the event that it happened in, `cpu_children` are those within it.

    own_bytes: memory of its result, if that was allocated in it.
    """

    def __init__(self, id: int, name: str, thread: int, start: float, parent: FunctionEvent | None, **about: Any):
        self.id, self.name, self.thread = id, name, thread
        self.start, self.end = start, start
        self.cpu_parent = parent
        self.cpu_children: list[FunctionEvent] = []
        self.input_shapes: list[list[int]] = about.get("input_shapes", [])
        self.stack: list[str] = about.get("stack", [])
        self.is_user_annotation: bool = about.get("is_user_annotation", False)
        self.own_bytes = self.flops = 0
        self.call: Any = None  # the op, its arguments and keywords, while the event lasts and flops are counted
        self.count = 1

    @property
    def key(self) -> str:  # type: ignore[override]
        """The name; steps are counted as one."""
        return "ProfilerStep*" if self.name.startswith("ProfilerStep#") else self.name

    @property
    def cpu_time_total(self) -> float:  # type: ignore[override]
        """From its start to its end."""
        return self.end - self.start

    @property
    def self_cpu_time_total(self) -> float:  # type: ignore[override]
        """Without the time of its children."""
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def cpu_memory_usage(self) -> int:
        """Bytes of the results that were allocated in it."""
        inside = sum(child.cpu_memory_usage for child in self.cpu_children)
        return inside or self.own_bytes

    @property
    def self_cpu_memory_usage(self) -> int:
        """Without those of its children."""
        return self.cpu_memory_usage - sum(child.cpu_memory_usage for child in self.cpu_children)

    def __repr__(self) -> str:
        children = [child.id for child in self.cpu_children]
        return (
            f"<FunctionEvent id={self.id} name={self.name} device_type={self.device_type} "
            f"cpu_time={self.cpu_time_str} start_us={self.start:.3f} end_us={self.end:.3f} cpu_children={children} "
            f"thread={self.thread} input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage}>"
        )


SUMMED = ("count", "cpu_time_total", "self_cpu_time_total", "cpu_memory_usage", "self_cpu_memory_usage", "flops")


class FunctionEventAvg(_Times):
    """The sum of several events."""

    def __init__(self, key: str = ""):
        self.key = key
        self.count = 0
        self.cpu_time_total = self.self_cpu_time_total = 0.0
        self.cpu_memory_usage = self.self_cpu_memory_usage = self.flops = 0
        self.input_shapes: Any = ""
        self.stack: list[str] = []
        self.cpu_parent: Any = None
        self.is_user_annotation = False

    def add(self, other: Any) -> FunctionEventAvg:
        """Add an event, or a sum of events, of the same key."""
        if not self.count:
            self.cpu_parent, self.is_user_annotation = other.cpu_parent, other.is_user_annotation
            self.input_shapes, self.stack, self.key = other.input_shapes, other.stack, self.key or other.key
        for name in SUMMED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self

    __iadd__ = add

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str}  self_cuda_time=0.000us cuda_time=0.000us "
            f"input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage} cuda_memory_usage=0>"
        )


class EventList(list[Any]):
    """Events, or sums of them."""

    def __init__(self, events: Iterable[Any] = (), *, profile_memory: bool = False, with_flops: bool = False):
        super().__init__(events)
        self._options = {"profile_memory": profile_memory, "with_flops": with_flops}

    def __str__(self) -> str:
        return self.table()

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds, each counted once."""
        return sum(event.self_cpu_time_total for event in self)

    def table(
        self, sort_by: str | None = None, row_limit: int = 100, max_src_column_width: int | None = 75,
        max_name_column_width: int | None = 55, max_shapes_column_width: int | None = 80, header: str | None = None,
        top_level_events_only: bool = False, time_unit: str | None = None,
    ) -> str:  # fmt: skip
        """The events as a table, sorted by one of their attributes. AttributeError for another name."""
        events = sorted(self, key=lambda e: getattr(e, sort_by), reverse=True) if sort_by else list(self)
        return table(
            events, header, row_limit, max_src_column_width, max_name_column_width, max_shapes_column_width,
            top_level_events_only=top_level_events_only, time_unit=time_unit, **self._options,
        )  # fmt: skip

    def key_averages(
        self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """The sum of the events of each name; also of each input shapes, or first entries of the stack."""
        sums: dict[Any, FunctionEventAvg] = {}
        for event in self:
            shapes = str(event.input_shapes) if group_by_input_shapes else ""
            key = event.key, event.is_user_annotation, shapes, *event.stack[:group_by_stack_n]
            sums.setdefault(key, FunctionEventAvg()).add(event)
        for each in sums.values():
            each.stack = each.stack[:group_by_stack_n]
            each.input_shapes = each.input_shapes if group_by_input_shapes else ""
        return EventList(sums.values(), **self._options)

    def total_average(self) -> FunctionEventAvg:
        """The sum of all events."""
        total = FunctionEventAvg("Total")
        for event in self:
            total.add(event)
        return total

    def export_chrome_trace(self, path: str) -> None:
        """Write a file for chrome://tracing or Perfetto; compressed if its name ends in ".gz"."""
        spans = [
            {
                "ph": "X",
                "cat": "user_annotation" if event.is_user_annotation else "cpu_op",
                "name": event.name,
                "pid": os.getpid(),
                "tid": event.thread,
                "ts": event.start,
                "dur": event.cpu_time_total,
                "args": {"External id": event.id, **({"Input Dims": event.input_shapes} if event.input_shapes else {})},
            }
            for event in self
        ]
        named = {"ph": "M", "name": "process_name", "ts": 0, "pid": os.getpid(), "tid": 0, "args": {"name": "python"}}
        text = json.dumps({"schemaVersion": 1, "displayTimeUnit": "ms", "traceEvents": [named, *spans]})
        if str(path).endswith(".gz"):
            import gzip

            with gzip.open(path, "wt", encoding="utf-8") as file:
                file.write(text)
            return
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def supported_export_stacks_metrics(self) -> list[str]:
        """What `export_stacks` can write."""
        return ["self_cpu_time_total"]

    def export_stacks(self, path: str, metric: str) -> None:
        """Write stacks with microseconds, as flame graphs read them. ValueError for another metric."""
        if metric not in self.supported_export_stacks_metrics():
            raise ValueError(f"metric should be one of: {self.supported_export_stacks_metrics()}")
        with open(path, "w", encoding="utf-8") as file:
            for event in self:
                if event.stack and int(event.self_cpu_time_total) > 0:
                    frames = ";".join(frame.replace(" ", "_") for frame in reversed(event.stack))
                    file.write(f"{frames} {int(event.self_cpu_time_total)}\n")
