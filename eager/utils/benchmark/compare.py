"""Compare: a table of measurements. As `torch.utils.benchmark.Compare`."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable
from typing import Any

from eager.core.shown import ShownObject
from eager.utils.benchmark.measurement import Measurement, select_unit, trim_sigfig, unit_to_english

BOLD, END = "\033[1m", "\033[0m"
BEST, GOOD, BAD, VERY_BAD = "\033[92m", "\033[34m", "\033[2m\033[91m", "\033[31m"


class Colorize(enum.Enum):
    """What is compared where times are coloured."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


def _coloured(text: str, value: float, best: float) -> str:
    """`text` in the colour of a `value`, of which the least is `best`."""
    colours = (
        (value <= best * 1.01 or value <= best + 100e-9, BEST + BOLD), (value <= best * 1.1, GOOD + BOLD),
        (value >= best * 5, VERY_BAD + BOLD), (value >= best * 2, BAD), (True, ""),
    )  # fmt: skip
    colour = next(colour for holds, colour in colours if holds)
    return colour + text + END * 2 if colour else text


class Table:
    """The measurements of one label: a row for each (threads, env, name), a column for each description."""

    def __init__(self, results: list[Measurement], colorize: Colorize, trim: bool, warn: bool):
        self.label = results[0].label
        self.unit, self.scale = select_unit(min(r.median for r in results))
        self.colorize, self.trim = colorize, trim
        self.warn = warn and any(r.has_warnings for r in results)
        self.columns = list(dict.fromkeys(r.description for r in results))
        keys = dict.fromkeys((r.num_threads, r.env, r.as_row_name) for r in results)
        self.rows = sorted(keys, key=lambda key: (key[0], key[1] or ""))
        self.cells = {((r.num_threads, r.env, r.as_row_name), r.description): r for r in results}
        self.templates = [self._template(column) for column in self.columns]

    def _column(self, column: Any) -> list[Measurement]:
        return [found for row in self.rows if (found := self.cells.get((row, column))) is not None]

    def _template(self, column: Any) -> str:
        """The format of the cells of a column."""
        results = self._column(column)
        digits = [math.ceil(math.log10(r.median / self.scale)) for r in results]
        decimals = 1
        if self.trim:
            decimals = min(max(r.significant_figures - n, 0) for r, n in zip(results, digits, strict=True))
        width = max(digits) + decimals + (1 if decimals else 0)
        noted = self.warn and any(r.has_warnings for r in results)
        return f"{{:>{width}.{decimals}f}}{{:>{7 if noted else 0}}}"

    def _cell(self, result: Measurement | None, template: str) -> str:
        if result is None:
            return " " * len(template.format(1, ""))
        value = result.median / self.scale
        noted = result.has_warnings and not template.endswith("{:>0}")
        spread = f" (! {result.iqr / result.median * 100:.0f}%)" if noted else ""
        return template.format(trim_sigfig(value, result.significant_figures) if self.trim else value, spread)

    def _lines(self) -> list[tuple[str | None, list[str], list[Measurement | None]]]:
        """(a line before it, cells, measurements) of each row."""
        envs = {env for _, env, _ in self.rows}
        width = max(len(env or "") for env in envs) if len(envs) > 1 else 0
        lines, before = [], (None, None)
        for threads, env, name in self.rows:
            shown = f"({env})" if width and (threads, env) != before else ""
            results = [self.cells.get(((threads, env, name), column)) for column in self.columns]
            cells = ["  " + shown.ljust(width + 4) + name, *map(self._cell, results, self.templates)]
            lines.append((f"{threads} threads: " if threads != before[0] else None, cells, results))
            before = threads, env
        return lines

    def _best(self, threads: int, results: list[Measurement | None]) -> list[float]:
        if self.colorize is Colorize.ROWWISE:
            return [min(r.median for r in results if r is not None)] * len(results)
        columns = ([r.median for r in self._column(c) if r.num_threads == threads] for c in self.columns)
        return [min(medians, default=0.0) for medians in columns]

    def render(self) -> str:
        """The table as a text."""
        head, lines = ["", *map(str, ("" if c is None else c for c in self.columns))], self._lines()
        widths = [max(map(len, column)) for column in zip(head, *(cells for _, cells, _ in lines), strict=True)]
        text = ["  |  ".join(name.center(width) for name, width in zip(head, widths, strict=True))]
        overall = len(text[0])
        for (threads, _, _), (title, cells, results) in zip(self.rows, lines, strict=True):
            text += [] if title is None else [title.ljust(overall, "-")]
            shown = [cell.center(width) for cell, width in zip(cells[1:], widths[1:], strict=True)]
            if self.colorize is not Colorize.NONE:
                best = self._best(threads, results)
                shown = [
                    cell if r is None else _coloured(cell, r.median, least)
                    for cell, r, least in zip(shown, results, best, strict=True)
                ]
            text.append("  |  ".join([cells[0].ljust(widths[0]), *shown]))
        note = "(! XX%) Measurement has high variance, where XX is the IQR / median * 100.\n" if self.warn else ""
        title = f"[{f' {self.label or str()} '.center(overall - 2, '-')}]"
        return "\n".join([title, *text, "", f"Times are in {unit_to_english(self.unit)}s ({self.unit}).", note])


class Compare(ShownObject):
    """Measurements, shown as a table for each label. ValueError for anything else."""

    def __init__(self, results: Iterable[Measurement]):
        self._results: list[Measurement] = []
        self.extend_results(results)
        self._colorize = Colorize.NONE
        self._trim = self._warn = False

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Add measurements."""
        added = list(results)
        for each in added:
            if not isinstance(each, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(each)} instead.")
        self._results += added

    def trim_significant_figures(self) -> None:
        """Show no more digits than mean something."""
        self._trim = True

    def colorize(self, rowwise: bool = False) -> None:
        """Colour the times by how they compare within their column, or their row."""
        self._colorize = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Mark times that vary much."""
        self._warn = True

    def __str__(self) -> str:
        groups: dict[Any, list[Measurement]] = {}
        for each in Measurement.merge(self._results):
            groups.setdefault(each.label, []).append(each)
        return "\n".join(Table(group, self._colorize, self._trim, self._warn).render() for group in groups.values())

    def print(self) -> None:
        """Print the tables."""
        print(self)
