"""Events of a profile, their sums and their table. As PyTorch's `FunctionEvent`, `FunctionEventAvg` and `EventList`."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

WIDTH = 12  # of a column of numbers
UNITS = {"s": 1e6, "ms": 1e3, "us": 1.0}  # in microseconds
SIZES = ((1024**3, "GB"), (1024**2, "MB"), (1024, "KB"))
FLOPS = ("FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs")


def shown_time(us: float, unit: str | None = None) -> str:
    """Microseconds as a text, in the largest unit that leaves at least 1."""
    chosen = unit or next((name for name, size in UNITS.items() if us >= size), "us")
    return f"{us / UNITS[chosen]:.3f}{chosen}"


def shown_share(us: float, total: float) -> str:
    """A part of a total as a percentage."""
    return f"{us * 100.0 / total:.2f}%" if total else "NaN"


def shown_memory(nbytes: int) -> str:
    """A number of bytes as a text."""
    for size, unit in SIZES:
        if abs(nbytes) >= size:
            return f"{nbytes / size:.2f} {unit}"
    return f"{nbytes} B"


def _at_most(width: int, most: int | None) -> int:
    return width if most is None else min(width, most)


def _end_of(path: str, width: int) -> str:
    return path if len(path) <= width else "..." + path[len(path) - width + 3 :]


def table(
    events: Sequence[Any], header: str | None, row_limit: int, most_source: int | None, most_name: int | None,
    most_shapes: int | None, *, top_level_events_only: bool, time_unit: str | None, profile_memory: bool,
    with_flops: bool,
) -> str:  # fmt: skip
    """The first `row_limit` of `events`; -1 for all."""
    if not events:
        return ""
    total = sum(event.self_cpu_time_total for event in events)
    name_width = _at_most(max(len(event.key) for event in events) + 4, most_name)
    shapes_width = _at_most(max(len(str(event.input_shapes)) for event in events) + 4, most_shapes)
    stacks = [entry for event in events for entry in event.stack]
    source_width = _at_most(max(map(len, stacks), default=0) + 4, most_source)
    counted = [event.flops for event in events if event.flops > 0] if with_flops else []
    scale = min(int(math.log10(min(counted)) / 3), len(FLOPS) - 1) if counted else 0

    def name(event: Any) -> str:
        most = math.inf if most_name is None else most_name - 3
        return event.key[: int(most)] + "..." if len(event.key) >= most else event.key

    number = f">{WIDTH}"
    # title, form, cell of an event
    columns: list[tuple[str, str, Callable[[Any], Any]]] = [
        ("Name", f">{name_width}", name),
        ("Self CPU %", number, lambda e: shown_share(e.self_cpu_time_total, total)),
        ("Self CPU", number, lambda e: shown_time(e.self_cpu_time_total, time_unit)),
        ("CPU total %", number, lambda e: shown_share(e.cpu_time_total, total)),
        ("CPU total", number, lambda e: shown_time(e.cpu_time_total, time_unit)),
        ("CPU time avg", number, lambda e: shown_time(e.cpu_time, time_unit)),
    ]
    if profile_memory:
        columns.append(("CPU Mem", number, lambda e: shown_memory(e.cpu_memory_usage)))
        columns.append(("Self CPU Mem", number, lambda e: shown_memory(e.self_cpu_memory_usage)))
    columns.append(("# of Calls", number, lambda e: e.count))
    if any(event.input_shapes for event in events):
        columns.append(("Input Shapes", f">{shapes_width}", lambda e: str(e.input_shapes)[:shapes_width]))
    place = len(columns)  # of the source, if there is one
    if stacks:
        columns.append(
            ("Source Location", f"<{source_width}", lambda e: _end_of(next(iter(e.stack), ""), source_width))
        )
    if counted:
        flops = lambda e: f"{e.flops / 1000**scale:8.3f}" if e.flops > 0 else "--"
        columns.append((f"Total {FLOPS[scale]}", number, flops))
    row = "".join(f"{{: {form}}}  " for _, form, _ in columns)
    rule = "".join("-" * int(form[1:]) + "  " for _, form, _ in columns)

    lines = [] if header is None else ["=" * (len(rule) - 2), header]
    if top_level_events_only:
        lines += ["=" * (len(rule) - 2), "This report only display top-level ops statistics"]
    lines += [rule, row.format(*(title for title, _, _ in columns)), rule]
    chosen = [event for event in events if not (top_level_events_only and event.cpu_parent is not None)]
    for event in chosen if row_limit < 0 else chosen[:row_limit]:
        lines.append(row.format(*(cell(event) for _, _, cell in columns)))
        for entry in [*event.stack[1:], ""] if stacks else []:
            blank = [_end_of(entry, source_width) if k == place else "" for k in range(len(columns))]
            lines.append(row.format(*blank))
    return "\n".join([*lines, rule, f"Self CPU time total: {shown_time(total, time_unit)}", ""])


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
