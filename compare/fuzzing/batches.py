"""Checking a batch of random programs: in this process, or in several."""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import operator
import traceback
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, NamedTuple

from compare.checking.equivalence import check
from compare.checking.findings import Finding, Report
from compare.fuzzing.generator import generate
from compare.fuzzing.program import Program
from compare.judging.tolerance import Verdict
from eager.tensor import Tensor
from graphc.lowering.stages import forget_programs
from graphc.lowering.timing import unannounced

HARNESS = "the harness itself"  # what findings call it where `check` raises
PROCESS = "process"  # what findings are about where a program has ended its process
FORGET = 64  # programs, after which what JAX keeps of them is dropped
AHEAD = 2  # batches for each process that wait for it


class Settings(NamedTuple):
    """What makes two campaigns the same but for their numbers: modes, ops of a program, ops that are left out."""

    modes: tuple[str, ...]
    size: int
    without: tuple[str, ...]


class Failure(NamedTuple):
    """A program whose modes part, or of which one mode cannot say anything."""

    seed: int
    program: Program
    report: Report


class Result(NamedTuple):
    """What came of a batch: how many programs had which verdict, what they covered, those that are not ok.

    crashes  numbers of programs that have ended a process together, and none of them alone
    """

    verdicts: Counter[Verdict]
    ops: list[str]
    pairs: list[tuple[str, str]]
    failures: list[Failure]
    crashes: list[tuple[int, ...]]


def checked(settings: Settings, numbers: Sequence[int]) -> Result:
    """Check the programs of these numbers as one, for one compilation; where modes part, each by itself."""
    programs = [generate(number, settings.size, settings.without) for number in numbers]
    with unannounced():
        reports = list(_reports(programs, settings.modes))
    if any(number % FORGET == 0 for number in numbers):
        forget_programs()
    found = [Failure(*f) for f in zip(numbers, programs, reports, strict=True) if not f[2].ok]
    ops, pairs = [op for p in programs for op in p.ops], [pair for p in programs for pair in p.pairs]
    return Result(Counter(r.verdict for r in reports), ops, pairs, found, [])


def _reports(programs: Sequence[Program], modes: Sequence[str]) -> Iterator[Report]:
    """The report of each program: that of all of them together, if that is good."""
    if not programs:
        return
    report = _check(together(programs), [p.arguments() for p in programs], modes, locate=False)
    for k, program in enumerate(programs):
        yield _part(report, k) if report.ok else _check(program.function, program.arguments(), modes)


def _part(report: Report, k: int) -> Report:
    """What the report of a batch says of program number `k`: its results, gradients and arguments."""
    names = f"result.{k}.", f"arguments_{k}."
    findings = tuple(f for f in report.findings if any(name in f"{f.what}." for name in names))
    return Report(report.name, report.modes, findings, report.seed)


def _check(fn: Callable[..., Any], arguments: Sequence[Any], modes: Sequence[str], locate: bool = True) -> Report:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numbers beyond a function's domain are among the inputs
        try:
            return check(fn, *arguments, modes=modes, locate=locate)
        except Exception as error:  # a fault of the harness itself is a finding like others: the rest goes on
            text = "".join(traceback.format_exception(error))
            return Report(fn.__name__, tuple(modes), (Finding(HARNESS, "exception", Verdict.BUG, text),), 0)


def together(programs: Sequence[Program]) -> Callable[..., Any]:
    """One function that calls each program with its own arguments, given as a list each."""

    def batch(*arguments: list[Tensor]) -> Any:
        return tuple(p.function(*a) for p, a in zip(programs, arguments, strict=True))

    return batch


def in_processes(workers: int, settings: Settings, batches: Iterable[Sequence[int]]) -> Iterator[Result]:
    """`checked` for each of `batches`, in order, in so many processes. A batch is taken when a process is free for it.

    If a process dies (compilers crash), each batch that was under way is checked again in a process of its own.
    """
    running: deque[tuple[Sequence[int], Future[Result]]] = deque()

    def oldest() -> Result:
        numbers, future = running.popleft()
        try:
            return future.result()
        except BrokenProcessPool:
            return _alone(settings, numbers)

    with contextlib.ExitStack() as stack:
        pool = stack.enter_context(_processes(workers))
        for numbers in batches:
            try:
                future = pool.submit(checked, settings, numbers)
            except BrokenProcessPool:
                pool = stack.enter_context(_processes(workers))
                future = pool.submit(checked, settings, numbers)
            running.append((numbers, future))
            if len(running) > AHEAD * workers:
                yield oldest()
        while running:
            yield oldest()


def _processes(workers: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"))


def _alone(settings: Settings, numbers: Sequence[int]) -> Result:
    """`checked` in a process of its own; if that dies, each program in one. A program that ends its process fails."""
    with _processes(1) as pool:
        try:
            return pool.submit(checked, settings, numbers).result()
        except BrokenProcessPool:
            pass
    if len(numbers) > 1:
        columns = zip(*(_alone(settings, [number]) for number in numbers), strict=True)
        found = Result(*(functools.reduce(operator.add, column) for column in columns))
        one_did = any(finding.what == PROCESS for f in found.failures for finding in f.report.findings)
        return found if one_did else found._replace(crashes=[tuple(numbers)])
    program = generate(numbers[0], settings.size, settings.without)
    finding = Finding(HARNESS, PROCESS, Verdict.BUG, "the process ended: the compiler crashed, or memory ran out")
    report = Report(program.name, settings.modes, (finding,), 0)
    failure = Failure(numbers[0], program, report)
    return Result(Counter([Verdict.BUG]), list(program.ops), list(program.pairs), [failure], [])
