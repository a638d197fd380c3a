"""A bar that shows how far a loop is, and how fast."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from graphc.errors import require

T = TypeVar("T")


def progress(
    batches: Iterable[T], description: str = "", *, total: int | None = None, samples: int = 1, unit: str = "samples"
) -> Iterator[T]:
    """Iterate over `batches`, and show on the terminal how many are done, how many `unit` a second, and what is left.

    total    how many batches there are; `len(batches)` by default, if there is one
    samples  in a batch, for the throughput: the batch size, or the batch size times the tokens in a sample

    rich draws it, on standard error: ModuleNotFoundError that names the extra without it.
    """
    shown: Any = require("rich.progress", "progress", "data")
    console: Any = require("rich.console", "progress", "data").Console(stderr=True)
    if total is None and hasattr(batches, "__len__"):
        total = len(batches)  # type: ignore[arg-type]
    columns = (
        shown.TextColumn("{task.description}"), shown.BarColumn(), shown.MofNCompleteColumn(),
        shown.TextColumn("{task.fields[rate]}"), shown.TimeElapsedColumn(), shown.TimeRemainingColumn(),
    )  # fmt: skip
    with shown.Progress(*columns, console=console) as bar:
        task = bar.add_task(description, total=total, rate="")
        for batch in batches:
            yield batch
            speed = bar.tasks[0].speed
            bar.update(task, advance=1, rate=f"{speed * samples:,.0f} {unit}/s" if speed else "")
