"""What the runs show: claims that hold or not, tables of figures, a headline. Console and report share them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from graphc.display import Block, Remark, Section, Table
from training import EAGER, LOSS, MODES, STEP, Comparison

GRADIENT_LIMIT = 1e-5
LOSS_LIMIT, LOSS_STEPS = 1e-4, 50
ACCURACY_LIMIT = 0.96
WARM_UP = 5  # calls that are counted as the cost of starting


class Claim(NamedTuple):
    """A statement, the figure that was measured for it, and whether it holds."""

    text: str
    measured: str
    holds: bool

    def cells(self) -> tuple[Remark, str, str]:
        """The claim as a row."""
        return Remark("holds", "good") if self.holds else Remark("FAILS", "bad"), self.text, self.measured


class Figures(NamedTuple):
    """A table with a title and a note; cells are ready to print."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str

    def blocks(self) -> Iterator[Block]:
        """The table, and below it the note."""
        yield Table(self.rows, self.columns, labels=2)
        yield Remark(self.note, "note")

    def section(self) -> Section:
        """The same below its title."""
        return Section(self.title, [*self.blocks()])


class Timing(NamedTuple):
    """Seconds of the first call, of a call after the warm-up (median), of all calls; and where eager is overtaken.

    break_even: number of steps from which the total is below eager's, None for never
    """

    first: float
    steady: float
    total: float
    break_even: int | None


def timing(comparison: Comparison, mode: str) -> Timing:
    """Times of one mode. The break-even point is that of start-up cost and median step."""
    seconds = comparison.seconds[mode]
    steady, eager = _steady(seconds), _steady(comparison.seconds[EAGER])
    extra = _start(seconds) - _start(comparison.seconds[EAGER])
    gain = eager - steady
    break_even = None if mode == EAGER or gain <= 0 else max(1, math.ceil(extra / gain))
    return Timing(float(seconds[0]), steady, float(seconds.sum()), break_even)


def _steady(seconds: np.ndarray) -> float:
    return float(np.median(seconds[WARM_UP:]))


def _start(seconds: np.ndarray) -> float:
    return float(seconds[:WARM_UP].sum()) - WARM_UP * _steady(seconds)


def loss_difference(comparison: Comparison, mode: str, steps: int | None = None) -> float:
    """The largest relative difference of the loss from eager's, over the first `steps` steps or all."""
    expected, found = comparison.losses[EAGER][:steps], comparison.losses[mode][:steps]
    return float(np.max(np.abs(expected - found) / np.abs(expected)))


def gradient_difference(comparison: Comparison, mode: str) -> float:
    """The largest over the checked steps; nan if any is nan."""
    return float(np.max([d.value for (_, m), d in comparison.differences.items() if m == mode]))


def claims(comparisons: list[Comparison], check_accuracy: bool) -> list[Claim]:
    """Everything the demo asserts, for every model."""
    found = []
    for c in comparisons:
        worst = float(np.max([gradient_difference(c, mode) for mode in (LOSS, STEP)]))
        found.append(_at_most(f"{c.model}: every gradient agrees with eager's", worst, GRADIENT_LIMIT))
        worst = float(np.max([loss_difference(c, mode, LOSS_STEPS) for mode in (LOSS, STEP)]))
        found.append(_at_most(f"{c.model}: losses agree over {LOSS_STEPS} steps", worst, LOSS_LIMIT))
        if check_accuracy:
            lowest = min(c.accuracy.values())
            text = f"{c.model}: test accuracy is at least {ACCURACY_LIMIT:.2f} in every mode"
            found.append(Claim(text, f"lowest {lowest:.4f}", lowest >= ACCURACY_LIMIT))
    return found


def _at_most(text: str, measured: float, limit: float) -> Claim:
    return Claim(f"{text} to {limit:.0e}, relative", f"largest {measured:.1e}", measured <= limit)


def tables(comparisons: list[Comparison]) -> list[Figures]:
    """Accuracy, agreement and time."""
    return [_accuracy(comparisons), _agreement(comparisons), _gradients(comparisons), _times(comparisons)]


def _accuracy(comparisons: list[Comparison]) -> Figures:
    rows = tuple(
        (f"{c.model} ({c.parameters:,} parameters)", *(f"{c.accuracy[mode]:.4f}" for mode in MODES))
        for c in comparisons
    )
    return Figures("Test accuracy", ("model", *MODES), rows, "360 images that were not trained on.")


def _agreement(comparisons: list[Comparison]) -> Figures:
    rows = tuple(
        (
            c.model,
            mode,
            f"{gradient_difference(c, mode):.1e}",
            f"{loss_difference(c, mode, LOSS_STEPS):.1e}",
            f"{loss_difference(c, mode):.1e}",
        )
        for c in comparisons
        for mode in (LOSS, STEP)
    )
    columns = ("model", "mode", "gradients", f"loss, {LOSS_STEPS} steps", "loss, whole run")
    note = (
        "Largest relative difference from eager. Gradients are compared at the same parameters; losses are not: each "
        "mode trains its own copy, so rounding adds up, and late losses are small."
    )
    return Figures("Agreement with eager", columns, rows, note)


def _gradients(comparisons: list[Comparison]) -> Figures:
    rows = tuple(
        (c.model, str(step), mode, f"{d.value:.1e}", d.parameter)
        for c in comparisons
        for (step, mode), d in c.differences.items()
    )
    columns = ("model", "step", "mode", "difference", "parameter")
    note = "max |a - b| / max |a| of the parameter where it is largest."
    return Figures("Gradients, step by step", columns, rows, note)


def _times(comparisons: list[Comparison]) -> Figures:
    rows = []
    for c in comparisons:
        for mode in MODES:
            t = timing(c, mode)
            even = "" if mode == EAGER else "never" if t.break_even is None else f"{t.break_even:,} steps"
            row = (c.model, mode, f"{t.first * 1e3:.0f} ms", f"{t.steady * 1e3:.2f} ms", f"{t.total:.2f} s", even)
            rows.append(row)
    steps = len(comparisons[0].losses[EAGER])
    note = (
        f"The modes take turns, batch by batch. Step: median after {WARM_UP} calls. Total: {steps:,} steps. "
        "Break-even: the number of steps from which the total is below eager's."
    )
    return Figures("Time", ("model", "mode", "first call", "step", "total", "break-even"), tuple(rows), note)


def headline(comparisons: list[Comparison], found: list[Claim]) -> str:
    """The finding in one sentence."""
    failed = [claim.text for claim in found if not claim.holds]
    if failed:
        return f"Not everything holds: {'; '.join(failed)}."
    worst = float(np.max([gradient_difference(c, mode) for c in comparisons for mode in (LOSS, STEP)]))
    lowest = min(a for c in comparisons for a in c.accuracy.values())
    return (
        f"One training program, run in three modes, has the same gradients to {worst:.1e}, relative, and a test "
        f"accuracy of {lowest:.4f} in the lowest case. " + " ".join(_speed(c) for c in comparisons)
    )


def _speed(comparison: Comparison) -> str:
    eager, step = timing(comparison, EAGER), timing(comparison, STEP)
    times = f"{step.steady * 1e3:.2f} ms against {eager.steady * 1e3:.2f} ms in eager mode"
    steps = len(comparison.losses[EAGER])
    if step.break_even is None or step.break_even > steps:
        pays = f"compiling does not pay within these {steps:,} steps"
    else:
        pays = f"compiling pays from step {step.break_even:,} on"
    return f"{comparison.model}: a compiled step takes {times}; {pays}."
