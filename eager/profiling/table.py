"""A profile as a table, laid out as PyTorch's."""

from __future__ import annotations

import math
from collections.abc import Sequence
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

    columns = [("Name", f">{name_width}")]
    columns += [(title, f">{WIDTH}") for title in (
        "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg",
        *(("CPU Mem", "Self CPU Mem") if profile_memory else ()), "# of Calls",
    )]  # fmt: skip
    if any(event.input_shapes for event in events):
        columns.append(("Input Shapes", f">{shapes_width}"))
    if stacks:
        columns.append(("Source Location", f"<{source_width}"))
    if counted:
        columns.append((f"Total {FLOPS[scale]}", f">{WIDTH}"))
    row = "".join(f"{{: {form}}}  " for _, form in columns)
    rule = "".join("-" * int(form[1:]) + "  " for _, form in columns)
    titles = [title for title, _ in columns]

    def cells(event: Any) -> list[str]:
        name = event.key
        if most_name is not None and len(name) >= most_name - 3:
            name = name[: most_name - 3] + "..."
        found = [
            name, shown_share(event.self_cpu_time_total, total), shown_time(event.self_cpu_time_total, time_unit),
            shown_share(event.cpu_time_total, total), shown_time(event.cpu_time_total, time_unit),
            shown_time(event.cpu_time, time_unit),
        ]  # fmt: skip
        if profile_memory:
            found += [shown_memory(event.cpu_memory_usage), shown_memory(event.self_cpu_memory_usage)]
        found.append(event.count)
        if "Input Shapes" in titles:
            found.append(str(event.input_shapes)[:shapes_width])
        if stacks:
            found.append(_end_of(event.stack[0], source_width) if event.stack else "")
        if counted:
            found.append(f"{event.flops / 1000**scale:8.3f}" if event.flops > 0 else "--")
        return found

    lines = [] if header is None else ["=" * (len(rule) - 2), header]
    if top_level_events_only:
        lines += ["=" * (len(rule) - 2), "This report only display top-level ops statistics"]
    lines += [rule, row.format(*titles), rule]
    chosen = [event for event in events if not (top_level_events_only and event.cpu_parent is not None)]
    place = titles.index("Source Location") if stacks else 0
    for event in chosen if row_limit < 0 else chosen[:row_limit]:
        lines.append(row.format(*cells(event)))
        if stacks:
            for entry in [*event.stack[1:], ""]:
                blank = [""] * len(titles)
                blank[place] = _end_of(entry, source_width)
                lines.append(row.format(*blank))
    return "\n".join([*lines, rule, f"Self CPU time total: {shown_time(total, time_unit)}", ""])
