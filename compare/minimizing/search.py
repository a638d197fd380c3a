"""The search: a smaller program is kept if it still shows the same bug."""

from __future__ import annotations

import ast
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, final

import eager
from compare.checking.equivalence import check
from compare.checking.findings import Finding, Report
from compare.fuzzing.program import Program
from compare.judging.tolerance import Verdict
from compare.minimizing.reducing import around, simpler_expressions
from compare.minimizing.simplifying import (
    plainer_memory,
    simpler_values,
    smaller_shapes,
    with_short_names,
    without_gradients,
)  # fmt: skip
from compare.minimizing.statements import MinimizeError, apart, cut, live, values_of, with_aliases
from compare.minimizing.unrolling import goes_on, inside, opened
from compare.modes import PASSES, modes_named
from eager.rng.sampling import default_generator
from graphc.display import Block, Code, Displayed
from graphc.lowering.timing import unannounced

Reduction = Callable[[Program], Iterable[Program]]


@final
@dataclass(frozen=True, repr=False)
class Minimized(Displayed):
    """A small program that shows a finding, and what `check` says of it.

    bug      the finding that it shows
    checks   how many programs were tried
    seconds  that it took
    """

    program: Program
    report: Report
    bug: Finding
    checks: int
    seconds: float

    @property
    def script(self) -> str:
        """A file that shows the finding in a fresh process: its exit code is 1."""
        modes = [_asked(self.bug.mode)]
        return self.program.script(modes, seed=self.report.seed, draws=_draws(self.program), expected=_said(self.bug))

    def blocks(self) -> Iterator[Block]:
        """The program, and what is wrong with it."""
        yield from self.report.blocks()
        yield Code(self.program.source)

    def to_dict(self) -> dict[str, Any]:
        """The program, the script and the report as plain values."""
        return {"source": self.program.source, "script": self.script, "report": self.report.to_dict()}


def _said(bug: Finding) -> str:
    """A finding without numbers and places."""
    text = f"{bug.verdict} in mode '{bug.mode}': {bug.what}"
    return text if bug.culprit is None else f"{text}, the {replace(bug.culprit, node=None, where='', evidence='')}"


def worst(report: Report) -> Finding | None:
    """The finding to minimize: a bug, else what cannot be captured."""
    return max(report.bugs, key=lambda f: f.verdict, default=None)


@final
class Search:
    """What is asked of a smaller program, and how often.

    bug      what it must show; None: the first bug that there is
    seed     of `check`
    most     checks, after which the smallest program so far is the answer
    seconds  after which it is, too, if given
    """

    def __init__(
        self, modes: Iterable[str], bug: Finding | None, seed: int, most: int, seconds: float | None = None
    ):  # fmt: skip
        self.bug = bug
        self._modes = list(dict.fromkeys(map(_asked, [bug.mode] if bug is not None else modes)))
        self._seed = seed
        self._start = time.perf_counter()
        self._most, self._seconds = most, seconds
        self._asked: set[Any] = set()
        self.report: Report | None = None
        self.checks = 0

    def shows(self, program: Program) -> bool:
        """Whether the program has the bug."""
        key = program.source, tuple((i.array.tobytes(), i.array.shape, *i[2:]) for i in program.inputs)
        if key in self._asked or (self.report is not None and self._is_over()):
            return False
        self._asked.add(key)
        if goes_on(program):
            return False
        self.checks += 1
        with warnings.catch_warnings(), unannounced(), default_generator.forked():
            warnings.simplefilter("ignore")
            default_generator.manual_seed(0)
            try:
                report = check(program.function, *program.arguments(), modes=self._modes, seed=self._seed)
            except Exception:  # a part of a program may not run, in any mode
                return False
        found = next((f for f in report.bugs if _alike(f, self.bug)), None)
        if found is None:
            return False
        self.bug, self.report = found, report
        return True

    def _is_over(self) -> bool:
        return self.checks >= self._most or (self._seconds is not None and self._elapsed() > self._seconds)

    def _elapsed(self) -> float:
        return time.perf_counter() - self._start

    def smallest(self, program: Program) -> Minimized | None:
        """The smallest program found that shows the bug, from `program`; None if that does not show it itself."""
        started = self._started(program)
        return None if started is None else self._smallest(started)

    def _started(self, program: Program) -> Program | None:
        """A part of the program that shows the bug, at once if the culprit's op does; checks of the whole are slow."""
        split = apart(program)
        small = self._first(self._at_the_culprit(split, by_line=False), split)
        if small is not split:
            return with_aliases(small)
        if not self.shows(program):
            return None
        if len(split.statements) > len(program.statements):
            program = self._or(split, program)
        program = with_aliases(program)
        return self._first(self._at_the_culprit(program, by_line=True), program)

    def _smallest(self, program: Program) -> Minimized:
        while True:
            before = _weight(program)
            program = self._as_often_as_possible(inside, program)
            program = self._fewer_statements(self._first(_fewer_results(program), program))
            for reduction in (opened, simpler_expressions, smaller_shapes):
                program = self._as_often_as_possible(reduction, program)
            if _weight(program) >= before:
                break
        program = self._simpler_inputs(program)
        program = self._or(with_short_names(apart(program)), program)
        assert self.report is not None and self.bug is not None
        return Minimized(program, self.report, self.bug, self.checks, self._elapsed())

    def _or(self, program: Program, otherwise: Program) -> Program:
        return program if self.shows(program) else otherwise

    def _first(self, candidates: Iterable[Program], otherwise: Program) -> Program:
        try:
            return next((p for p in candidates if self.shows(p)), otherwise)
        except Exception:  # making candidates runs the program, whose bug may be that it raises
            return otherwise

    def _as_often_as_possible(self, reduction: Reduction, program: Program) -> Program:
        while True:
            smaller = self._first((p for p in reduction(program) if _weight(p) < _weight(program)), program)
            if smaller is program:
                return program
            program = smaller

    def _at_the_culprit(self, program: Program, by_line: bool) -> Iterator[Program]:
        """Where the report says that the modes part. by_line: whether the report is of this very program."""
        culprit = self.bug.culprit if self.bug is not None else None
        if culprit is not None:
            line = culprit.where.rpartition(":")[2]
            number = int(line) if by_line and line.isdigit() else 0
            yield from around(program, number, culprit.op, values_of(program))

    def _fewer_statements(self, program: Program) -> Program:
        """Inputs in place of what statements compute: halves of them, quarters, ... and one at a time."""
        size = len(program.statements) // 2
        while size:
            start = 0
            while start < len(program.statements):
                away = set(range(start, min(start + size, len(program.statements))))
                smaller = self._first(_without(program, away), program)
                if smaller is program:
                    start += size
                program = smaller
            size //= 2
        return program

    def _simpler_inputs(self, program: Program) -> Program:
        program = self._as_often_as_possible(without_gradients, program)
        program = self._as_often_as_possible(plainer_memory, program)
        for k in range(len(program.inputs)):
            program = self._first(simpler_values(program, k), program)
        return program


def _fewer_results(program: Program) -> Iterator[Program]:
    if len(program.results) > 1:
        yield from (live(program, [r]) for r in reversed(program.results))


def _without(program: Program, away: set[int]) -> Iterator[Program]:
    smaller = cut(program, away, values_of(program))
    if smaller is not None:
        yield smaller


def _weight(program: Program) -> tuple[int, int, int, int]:
    """How large a program is: its text, the size of its inputs, those with gradients, how they lie in memory."""
    text = sum(1 for s in program.statements for _ in ast.walk(ast.parse(s.text)))
    numbers = sum(
        n.value for s in program.statements for n in ast.walk(ast.parse(s.text))
        if isinstance(n, ast.Constant) and type(n.value) is int
    )  # fmt: skip
    arrays = sum(i.array.size for i in program.inputs)
    memory = sum(100 * bool(i.view) + (0 if i.layout is None else i.layout.weight) for i in program.inputs)
    return text, arrays + numbers, sum(i.requires_grad for i in program.inputs), memory


def _asked(mode: str) -> str:
    """What `check` is to be asked for, to run this mode."""
    return PASSES if mode in {m.name for m in modes_named([PASSES])} else mode


def _draws(program: Program) -> bool:
    """Whether the program draws random numbers."""
    with default_generator.forked():
        state = default_generator.get_state()
        try:
            program.function(*program.arguments())
        except Exception:  # a program whose bug is that it raises
            return True
        return not eager.equal(default_generator.get_state(), state)


def _alike(found: Finding, bug: Finding | None) -> bool:
    """Whether two findings blame the same: without that a smaller program may show another bug."""
    if bug is None:
        return found.verdict is Verdict.BUG
    if (found.mode, found.verdict) != (bug.mode, bug.verdict):
        return False
    a, b = found.culprit, bug.culprit
    if b is None or not (b.op or b.rule or b.pass_name):  # no part of the program is named yet
        return _kind(found) == _kind(bug)
    return a is not None and (a.part, a.op, a.rule, a.pass_name) == (b.part, b.op, b.rule, b.pass_name)


def _kind(finding: Finding) -> str:
    """What the modes part in, whichever tensor it is: values, a gradient, "shape", "w after the call", ..."""
    label = finding.what.split(": ")[-1]
    before = finding.what.removesuffix(label)
    return before + ("after the call" if label.endswith("after the call") else label.split(" of ")[0].split(".")[0])


def search_of(report: Report, seed: int, checks: int, seconds: float | None = None) -> Search:
    """The search for what `report` has found. Raises MinimizeError if that is nothing."""
    bug = worst(report)
    if bug is None:
        raise MinimizeError(f"{report.name}: check() finds no bug to minimize, it is {report.verdict}")
    return Search([bug.mode], bug, seed, checks, seconds)
