"""A profile as a table, laid out as PyTorch's."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
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
