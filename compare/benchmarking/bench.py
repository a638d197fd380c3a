"""`bench`: what each mode costs, from the first call on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from compare.benchmarking.clock import Samples, interleaved
from compare.benchmarking.result import BOTH, FORWARD, BenchReport, Timing
from compare.benchmarking.roofline import Roofline, roofline
from compare.benchmarking.rows import ROWS, Contender, Row, optimized
from compare.benchmarking.statistics import break_even_interval, median_interval
from compare.benchmarking.torch_rows import torch_rows
from compare.cases.case import Case
from compare.checking.equivalence import check
from compare.checking.findings import DisagreementError
from compare.environment import environment
from compare.modes import Mode
from graphc.lowering.cache import uncached


def bench(
    fn: Callable[..., Any],
    *args: Any,
    modes: Sequence[str] | None = None,
    torch_fn: Callable[..., Any] | None = None,
    min_time: float = 0.2,
    force: bool = False,
    seed: int = 0,
    **kwargs: Any,
) -> BenchReport:
    """Time `fn(*args, **kwargs)` in each mode, forward and, where an input requires grad, forward and backward.

    modes     rows of the table; the others are compared with the first. "eager", "compiled" (`graphc.compile`),
              "strict" (the same with strict=True), "jax.jit" (of the captured graph without any pass, with JAX's own
              reverse mode), and with `torch_fn` "torch" and "torch.compile". None: all of these
    torch_fn  the same function of the same arguments, for PyTorch (often `fn` itself: methods and operators have the
              same names). Tensors in the arguments are converted; where `fn` is a module, `torch_fn` is the module of
              PyTorch with the same parameters
    min_time  seconds of steady state for each row; rounds of the modes are interleaved
    force     time functions that do not agree

    Compilations are not taken from the cache on disk. Raises DisagreementError unless `check` finds that the modes
    agree, ValueError for a mode that is unknown or cannot run this function, MissingExtraError for `torch_fn` without
    PyTorch.
    """
    rows = rows_named(modes, torch_fn)
    report = check(fn, *args, modes=modes_to_check(rows), seed=seed, **kwargs)
    if not (report.ok or force):
        raise DisagreementError(report, "they are not timed (force=True does it all the same)")
    return measure(Case(fn, args, kwargs, seed), rows, report.ok, min_time)


def rows_named(modes: Sequence[str] | None, torch_fn: Callable[..., Any] | None) -> list[Row]:
    """The rows of these names, or all. Raises ValueError for an unknown one."""
    known = {**ROWS, **(torch_rows(torch_fn) if torch_fn is not None else {})}
    chosen = list(known) if modes is None else list(modes)
    if unknown := [m for m in chosen if m not in known]:
        raise ValueError(f"unknown mode '{unknown[0]}'; known are {', '.join(known)}")
    return [known[m] for m in chosen]


def modes_to_check(rows: Sequence[Row]) -> list[str | Mode]:
    """The modes of `check` that have to agree before `rows` are timed."""
    return list(dict.fromkeys(["eager", *(mode for row in rows for mode in row.checked)]))


def measure(case: Case, rows: Sequence[Row], agree: bool, min_time: float) -> BenchReport:
    """Time a case, whether or not the modes agree."""
    differentiable = bool(case.wrt) and case.program is not None and bool(case.joint.seeded)
    whats = (FORWARD, BOTH) if differentiable else (FORWARD,)
    timings: list[Timing] = []
    rooflines: dict[str, Roofline] = {}
    for what in whats:
        best = None if case.program is None else roofline(optimized(case, what))
        with case.preserved(), uncached():
            contenders = [row.make(case, what) for row in rows]
            samples = interleaved([c.call for c in contenders], min_time)
            if best is not None:
                best = rooflines[what] = best.reached(min(median_interval(s.rounds).median for s in samples))
            timings += [_timing(what, c, s, samples[0], best) for c, s in zip(contenders, samples, strict=True)]
    return BenchReport(case.name, agree, tuple(timings), rooflines, environment(), case.seed)


def _timing(what: str, contender: Contender, own: Samples, base: Samples, best: Roofline | None) -> Timing:
    steady, cost = median_interval(own.rounds), contender.cost()
    pairs = list(zip(base.rounds, own.rounds, strict=True))
    return Timing(
        contender.mode,
        what,
        own.first,
        cost.parts,
        steady,
        len(own.rounds) * own.loop,
        None if own is base else median_interval([b / o for b, o in pairs]),
        None if own is base else break_even_interval(own.first - base.first, [b - o for b, o in pairs]),
        cost.memory,
        None if best is None else best.seconds / steady.median,
    )
