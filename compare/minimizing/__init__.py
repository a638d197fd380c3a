"""`minimize`: the smallest program that still shows what `check` has found: a few ops on literal inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from compare.cases.case import Case
from compare.checking.equivalence import check
from compare.checking.findings import Finding
from compare.fuzzing.program import Program
from compare.minimizing.search import Minimized, Search, search_of
from compare.minimizing.sources import source_of
from compare.minimizing.statements import MinimizeError
from compare.minimizing.writing import program_of

__all__ = ["MinimizeError", "Minimized", "minimize", "minimize_program"]

CHECKS = 400


def minimize(
    fn: Callable[..., Any], *args: Any, modes: Sequence[str] | None = None, seed: int = 0,
    checks: int = CHECKS, seconds: float | None = None, **kwargs: Any,
) -> Minimized:  # fmt: skip
    """The smallest program found that has the same bug as `fn(*args, **kwargs)`: the same mode, op, pass and rule.

    The captured graph of `fn`, or if that does not show the bug the source of `fn`, is made smaller: only the
    statements at which the modes part, inputs in place of what was computed, what a loop does at its first step in
    place of the loop, fewer elements, rounder numbers. Each step is kept only if `check` still names the same culprit.

    modes, seed  as for `check`
    checks       how many smaller programs are checked, before the smallest so far is returned
    seconds      after which that is returned anyway; None: no such bound, and the result depends on no clock

    Raises MinimizeError if `check` finds no bug, or if neither the graph nor the source shows it by itself.
    """
    report = check(fn, *args, modes=modes, seed=seed, **kwargs)
    search = search_of(report, seed, checks, seconds)
    reasons: list[str] = []
    for form, written in (("graph", program_of), ("source", source_of)):
        try:
            program = written(Case(fn, args, kwargs, seed))
        except MinimizeError as error:
            reasons.append(str(error))
            continue
        found = search.smallest(program)
        if found is not None:
            return found
        reasons.append(f"the {form} by itself does not show the bug")
    raise MinimizeError(f"{report.name}: {'; '.join(dict.fromkeys(reasons))}")


def minimize_program(
    program: Program, modes: Sequence[str], bug: Finding | None = None, *, seed: int = 0, checks: int = CHECKS,
    seconds: float | None = None,
) -> Minimized:  # fmt: skip
    """The smallest part of `program` that has the same bug; `bug`: which one, else the first that `check` finds."""
    found = Search(modes, bug, seed, checks, seconds).smallest(program)
    if found is None:
        raise MinimizeError(f"{program.name}: the program by itself does not show the bug")
    return found
