"""Checking a batch of random programs: in this process, or in others, which may hang, crash or take all memory."""

from __future__ import annotations

import contextlib
import functools
import operator
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from multiprocessing.connection import wait
from typing import Any, NamedTuple

from compare.checking.equivalence import check
from compare.checking.findings import Finding, Report
from compare.fuzzing.generator import generate
from compare.fuzzing.program import Program
from compare.fuzzing.workers import HANG, MEMORY, POLL, PROCESS, Ended, Limits, Worker
from compare.judging.tolerance import Verdict
from eager.core.tensor import Tensor
from graphc.display import Block, Code, Section
from graphc.lowering.quick import quickly
from graphc.lowering.stages import forget_programs
from graphc.lowering.timing import unannounced

HARNESS = "the harness itself"  # what findings call it where `check` raises
FORGET = 64  # programs, after which what JAX keeps of them is dropped


class Settings(NamedTuple):
    """What makes two campaigns the same but for their numbers: modes, ops of a program, ops that are left out, and
    whether batches are compiled quickly.
    """

    modes: tuple[str, ...]
    size: int
    without: tuple[str, ...]
    quick: bool = False


class Failure(NamedTuple):
    """A program whose modes part, or of which one mode cannot say anything."""

    seed: int
    program: Program
    report: Report

    def blocks(self) -> tuple[Block, ...]:
        """The program, and what is wrong with it."""
        return (Section(f"seed {self.seed}", [Code(self.program.source), *self.report.blocks()]),)


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
        reports = list(_reports(programs, settings))
    if any(number % FORGET == 0 for number in numbers):
        forget_programs()
    found = [Failure(*f) for f in zip(numbers, programs, reports, strict=True) if not f[2].ok]
    ops, pairs = [op for p in programs for op in p.ops], [pair for p in programs for pair in p.pairs]
    return Result(Counter(r.verdict for r in reports), ops, pairs, found, [])


def _reports(programs: Sequence[Program], settings: Settings) -> Iterator[Report]:
    """The report of each program: that of all of them together, if that is good. Alone they have XLA's own options."""
    if not programs:
        return
    with quickly() if settings.quick else nullcontext():
        report = _check(together(programs), [p.arguments() for p in programs], settings.modes, locate=False)
    for k, program in enumerate(programs):
        yield _part(report, k) if report.ok else _check(program.function, program.arguments(), settings.modes)


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


def in_processes(
    workers: int, settings: Settings, batches: Iterable[Sequence[int]], limits: Limits
) -> Iterator[Result]:
    """`checked` for each of `batches`, in order, in so many processes. A batch is taken when a process is free for it.

    Where a process dies (compilers crash), hangs or takes too much memory, each program of its batch is checked again
    in a process of its own.
    """
    with contextlib.ExitStack() as stack:
        idle = [Worker(limits, __name__) for _ in range(workers)]
        for worker in idle:
            stack.callback(worker.end)
        waiting, begun = iter(batches), list[Sequence[int]]()
        running: dict[Worker, int] = {}  # and the number of the batch that it has
        done: dict[int, Result] = {}
        after = 0  # the number of the next result to be yielded
        while True:
            while idle and (numbers := next(waiting, None)) is not None:
                worker = idle.pop()
                worker.begin(checked, settings, numbers)
                running[worker] = len(begun)
                begun.append(numbers)
            if not running:
                return
            wait([worker.connection for worker in running], POLL)
            for worker, k in [pair for pair in running.items() if pair[0].done()]:
                del running[worker]
                idle.append(worker)
                try:
                    done[k] = worker.result()
                except Ended:
                    done[k] = _alone(worker, settings, begun[k])
            while after in done:
                yield done.pop(after)
                after += 1


def _alone(worker: Worker, settings: Settings, numbers: Sequence[int]) -> Result:
    """`checked` of each program by itself. One that hangs, or ends its process, is a failure."""
    found = [_one(worker, settings, number) for number in numbers]
    whole = Result(*(functools.reduce(operator.add, column) for column in zip(*found, strict=True)))
    ended = any(f.what in (HANG, MEMORY, PROCESS) for failure in whole.failures for f in failure.report.findings)
    return whole if ended or len(numbers) == 1 else whole._replace(crashes=[tuple(numbers)])


def _one(worker: Worker, settings: Settings, number: int) -> Result:
    name = f"program{number}"
    program = Program(name, [], [], [])  # unless there is one: making a program runs it
    try:
        program = worker.call(generate, number, settings.size, settings.without)
        return worker.call(checked, settings, [number])
    except Ended as end:
        finding = Finding(HARNESS, end.kind, Verdict.BUG, str(end))
    report = Report(name, settings.modes, (finding,), 0)
    failure = Failure(number, program, report)
    return Result(Counter([Verdict.BUG]), list(program.ops), list(program.pairs), [failure], [])
