"""`minimize`: the smallest program that still shows what `check` has found: a few ops on literal inputs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from compare.case import Case
from compare.equivalence import check
from compare.fuzzing.program import Input, Program, Statement, literal, names
from compare.report import Finding, Report
from compare.tolerance import Verdict
from eager.tensor import Tensor
from graphc.ir import INPUT
from graphc.lowering.timing import unannounced
from graphc.ops import OPS
from graphc.ops.dtypes import is_inexact


class MinimizeError(ValueError):
    """There is nothing to minimize, or no straight-line program shows the same."""


@final
@dataclass(frozen=True)
class Minimized:
    """A small program that shows a finding, and what `check` says of it.

    checks  how many programs were tried
    """

    program: Program
    report: Report
    checks: int

    @property
    def script(self) -> str:
        """A file that shows the finding in a fresh process: its exit code is 1."""
        return self.program.script(self.report.modes)

    def __str__(self) -> str:
        return f"{self.program.source}\n{self.report}"


def minimize(
    fn: Callable[..., Any], *args: Any, modes: Sequence[str] | None = None, seed: int = 0, **kwargs: Any
) -> Minimized:
    """The smallest program found that has the same bug as `fn(*args, **kwargs)`: the same mode, op, pass and rule.

    The captured graph of `fn` is written as a program and made smaller: fewer results, fewer statements, inputs in
    place of what was computed, rounder numbers. Each step is kept only if `check` still names the same culprit.

    modes, seed  as for `check`

    Raises MinimizeError if `check` finds no bug, if `fn` cannot be captured, if it has control flow (whose bodies are
    no statements), or if the graph alone does not show the bug.
    """
    report = check(fn, *args, modes=modes, seed=seed, **kwargs)
    bug = _bug(report)
    if bug is None:
        raise MinimizeError(f"{report.name}: check() finds no bug to minimize, it is {report.verdict}")
    return minimize_program(program_of(Case(fn, args, kwargs, seed)), [m for m in report.modes if m == bug.mode], bug)


def minimize_program(program: Program, modes: Sequence[str], bug: Finding | None = None) -> Minimized:
    """The smallest part of `program` that has the same bug; `bug`: which one, else the first that `check` finds."""
    search = _Search(modes, bug)
    if not search.shows(program):
        raise MinimizeError(f"{program.name}: the program by itself does not show the bug")
    return search.smallest(program)


def program_of(case: Case) -> Program:
    """The captured graph of a case as a program on its inputs. Raises MinimizeError."""
    if case.program is None:
        raise MinimizeError(f"{case.name}: the program cannot be captured") from case.failure
    graph = case.program.graph
    with case.preserved():
        arrays = case.arrays()
    known = {id: f"v{id}" for id in graph.nodes}
    wanted = {id(i.tensor) for i in case.wrt}
    leaf_ids = {node for i in case.inputs if id(i.tensor) in wanted for node in case.input_ids(i)}
    inputs = [Input(known[id], a, id in leaf_ids) for id, a in zip(graph.inputs, arrays, strict=True)]
    statements: list[Statement] = []
    for node in graph.nodes.values():
        if node.op is INPUT:
            continue
        if node.op.structured:
            raise MinimizeError(f"{case.name}: '{node.op.name}' at {node.where} runs programs of its own")
        reads = tuple(known[i] for i in node.inputs)
        if node.op is OPS["constant"]:
            inputs.append(Input(known[node.id], node.params["value"].array, False))
            continue
        params = "".join(f", {name}={literal(value)}" for name, value in node.params.items())
        call = f"E.{node.op.name}({', '.join(reads)}{params})".replace("(, ", "(")
        statements.append(Statement(f"{known[node.id]} = {call}", (known[node.id],), reads, (node.op.name,)))
    return Program(graph.name, inputs, statements, list(dict.fromkeys(known[id] for id in graph.outputs)))


class _Search:
    """What is asked of a smaller program, and how many have been asked."""

    def __init__(self, modes: Sequence[str], bug: Finding | None):
        self._modes = list(modes)
        self._bug = bug
        self.report: Report | None = None
        self.checks = 0

    def shows(self, program: Program) -> bool:
        """Whether the program has the bug."""
        self.checks += 1
        try:
            with warnings.catch_warnings(), unannounced():
                warnings.simplefilter("ignore")
                report = check(program.function, *program.arguments(), modes=self._modes)
        except Exception:  # a part of a program may not run, in any mode
            return False
        found = next((f for f in report.findings if f.verdict is Verdict.BUG and _alike(f, self._bug)), None)
        if found is None:
            return False
        self._bug, self.report = self._bug or found, report
        return True

    def smallest(self, program: Program) -> Minimized:
        """The smallest program that still shows the bug, from `program`, which does."""
        while True:
            before = program
            for smaller in (self._fewer_results, self._fewer_statements, self._rounder):
                program = smaller(program)
            if len(program.statements) == len(before.statements):
                break
        assert self.shows(program) and self.report is not None
        return Minimized(program, self.report, self.checks)

    def _first(self, candidates: Sequence[Program], otherwise: Program) -> Program:
        return next((p for p in candidates if self.shows(p)), otherwise)

    def _fewer_results(self, program: Program) -> Program:
        if len(program.results) == 1:
            return program
        return self._first([_live(program, [r]) for r in reversed(program.results)], program)

    def _fewer_statements(self, program: Program) -> Program:
        """Replace what statements compute by inputs: as many from the front as possible, then one at a time."""
        low, high = 0, len(program.statements)  # without the first `low` it shows
        best = program
        while high - low > 1:
            middle = (low + high) // 2
            cut = _cut(program, set(range(middle)))
            if cut is not None and self.shows(cut):
                low, best = middle, cut
            else:
                high = middle
        k = 0
        while k < len(best.statements):
            cut = _cut(best, {k})
            if cut is not None and self.shows(cut):
                best = cut
            else:
                k += 1
        return best

    def _rounder(self, program: Program) -> Program:
        """Inputs with fewer digits, and without gradients that are not needed."""
        for k, given in enumerate(program.inputs):
            choices: list[Input] = []
            if given.requires_grad:
                choices.append(given._replace(requires_grad=False))
            if is_inexact(given.array.dtype) and given.array.size:
                with np.errstate(all="ignore"):
                    choices.append(given._replace(array=np.round(given.array, 1).astype(given.array.dtype)))
            for choice in choices:
                inputs = [choice if j == k else i for j, i in enumerate(program.inputs)]
                changed = Program(program.name, inputs, program.statements, program.results)
                if choice.array.tobytes() != given.array.tobytes() or choice.requires_grad is not given.requires_grad:
                    program = self._first([changed], program)
        return program


def _bug(report: Report) -> Finding | None:
    return next((f for f in report.findings if f.verdict is Verdict.BUG), None)


def _alike(found: Finding, bug: Finding | None) -> bool:
    """Whether two findings blame the same: without that a smaller program may show another bug."""
    if bug is None:
        return True
    if found.mode != bug.mode:
        return False
    a, b = found.culprit, bug.culprit
    if a is None or b is None:
        return a is b and found.what.split(" of ")[0].split(".")[0] == bug.what.split(" of ")[0].split(".")[0]
    return (a.part, a.op, a.rule, a.pass_name) == (b.part, b.op, b.rule, b.pass_name)


def _live(program: Program, results: Sequence[str]) -> Program:
    """The program for `results` only, with the statements and inputs that they need."""
    needed, kept = set(results), list[Statement]()
    for statement in reversed(program.statements):
        if needed & {*statement.makes, *statement.writes}:
            needed.update(statement.reads)
            kept.append(statement)
    return Program(program.name, [i for i in program.inputs if i.name in needed], kept[::-1], results)


def _cut(program: Program, away: set[int]) -> Program | None:
    """The program with inputs in place of the variables that the statements `away` make; None if it does not run."""
    try:
        values = _values(program)
    except Exception:  # the part that is left may not run
        return None
    left = [s for k, s in enumerate(program.statements) if k not in away]
    if not left:
        return None
    made = {n for s in left for n in s.makes}
    results = [r for r in program.results if r in made] or list(left[-1].makes)
    needed = {r for s in left for r in s.reads}
    fresh = [
        Input(name, *values[name])
        for k in sorted(away)
        for name in program.statements[k].makes
        if name in needed
    ]  # fmt: skip
    return _live(Program(program.name, [*program.inputs, *fresh], left, results), results)


def _values(program: Program) -> Mapping[str, tuple[np.ndarray, bool]]:
    """What each variable is when it has just been made: (array, whether it has a gradient)."""
    scope = names()
    found: dict[str, tuple[np.ndarray, bool]] = {}
    for i in program.inputs:
        scope[i.name] = i.tensor()
    for statement in program.statements:
        exec(statement.text, scope)
        for name in statement.makes:
            value = scope[name]
            if isinstance(value, Tensor):
                found[name] = value._array().copy(), value.requires_grad
    return found
