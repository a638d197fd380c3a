"""`fuzz`: random programs by the thousand, each checked in every mode, until something disagrees or time is up."""

from __future__ import annotations

import json
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, final

from compare.equivalence import check
from compare.fuzzing.coverage import Coverage, vocabulary
from compare.fuzzing.generator import SIZE, generate
from compare.fuzzing.program import Program
from compare.modes import EAGER, modes_named
from compare.report import Finding, Report
from compare.tolerance import Verdict
from eager.tensor import Tensor
from graphc.lowering.stages import forget_programs
from graphc.lowering.timing import unannounced
from graphc.ops import OPS

BATCH = 8  # programs that share a compilation
FORGET = 64  # programs, after which what JAX keeps of them is dropped
HARNESS = "the harness itself"  # what findings call it where `check` raises
MODES = ("graph", "compiled")  # with eager, which is always there: three


class Failure(NamedTuple):
    """A program whose modes part, or of which one mode cannot say anything."""

    seed: int
    program: Program
    report: Report


@final
@dataclass(frozen=True)
class FuzzReport:
    """What `fuzz` has found.

    first, count  the seeds: first, first + 1, ..., `count` of them
    verdicts      how many programs had which verdict at worst
    failures      those that are bugs, or not supported
    coverage      ops and pairs of ops
    seconds       that it took
    """

    first: int
    count: int
    verdicts: Counter[Verdict]
    failures: tuple[Failure, ...]
    coverage: Coverage
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether no program is a bug."""
        return not self.verdicts[Verdict.BUG]

    @property
    def rate(self) -> float:
        """Programs an hour."""
        return 3600 * self.count / self.seconds if self.seconds else 0.0

    def as_dict(self) -> dict[str, Any]:
        """The report for `json`."""
        return {
            "ok": self.ok,
            "first": self.first,
            "count": self.count,
            "seconds": self.seconds,
            "per_hour": self.rate,
            "verdicts": {str(v): n for v, n in sorted(self.verdicts.items())},
            "op_coverage": self.coverage.op_share(),
            "pair_coverage": self.coverage.pair_share(),
            "failures": [
                {"seed": f.seed, "source": f.program.source, "report": f.report.as_dict()} for f in self.failures
            ],
        }

    def to_json(self) -> str:
        """The report as JSON text."""
        return json.dumps(self.as_dict(), indent=2)

    def __str__(self) -> str:
        lines = [
            f"{self.count} programs (seeds {self.first} to {self.first + self.count - 1}) in {self.seconds:.0f} s, "
            f"{self.rate:,.0f} an hour",
            "  " + ", ".join(f"{n} {v}" for v, n in sorted(self.verdicts.items())),
            f"  ops {self.coverage.op_share():.1%} of {len(vocabulary())}, "
            f"pairs of ops {self.coverage.pair_share():.1%}",
        ]
        for failure in self.failures:
            lines += ["", f"seed {failure.seed}", failure.program.source, str(failure.report)]
        return "\n".join(lines)


def fuzz(
    count: int | None = None,
    *,
    seconds: float | None = None,
    seed: int = 0,
    modes: Sequence[str] = MODES,
    size: int = SIZE,
    batch: int = BATCH,
    without: Collection[str] = (),
    corpus: str | Path | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> FuzzReport:
    """Check random programs, number `seed` and the following, in `modes`: values, gradients, what they change.

    count     how many; None: as many as there is time for
    seconds   no further batch is begun after that time
    modes     names of registered modes, compared with eager
    size      steps of a program
    batch     programs that are checked as one, for one compilation; where those part, each is checked alone
    without   names of ops to leave out
    corpus    a folder: for each failure the program as a script, `<seed>.py`, which fails in a fresh process
    progress  called with (programs done, failures) after each batch

    Program number k is the same only after the same numbers before it, as those decide what it should cover.
    Raises ValueError without a bound, or for an unknown mode or op.

    >>> import compare
    >>> compare.fuzz(2, modes=["graph"]).ok
    True
    """
    if count is None and seconds is None:
        raise ValueError("fuzz() needs count= or seconds=: it would never end")
    if size < 1 or batch < 1:
        raise ValueError(f"fuzz() needs size and batch of at least 1, got {size} and {batch}")
    coverage, verdicts, failures = Coverage(), Counter[Verdict](), list[Failure]()
    modes = list(dict.fromkeys((EAGER.name, *modes)))
    modes_named(modes)
    if unknown := sorted(set(without) - OPS.keys()):
        raise ValueError(f"no op named '{unknown[0]}'")
    start = time.perf_counter()
    done = 0
    while (count is None or done < count) and (seconds is None or time.perf_counter() - start < seconds):
        numbers = range(seed + done, seed + done + (batch if count is None else min(batch, count - done)))
        programs = [generate(number, coverage, size, without) for number in numbers]
        with unannounced():
            reports = list(_checked(programs, modes))
        for number, program, report in zip(numbers, programs, reports, strict=True):
            verdicts[report.verdict] += 1
            if not report.ok:
                failures.append(Failure(number, program, report))
                if corpus is not None:
                    _keep(Path(corpus), failures[-1], modes)
        done += len(programs)
        if done // FORGET > (done - len(programs)) // FORGET:
            forget_programs()
        if progress is not None:
            progress(done, len(failures))
    return FuzzReport(seed, done, verdicts, tuple(failures), coverage, time.perf_counter() - start)


def _checked(programs: Sequence[Program], modes: Sequence[str]) -> Iterator[Report]:
    """The report of each program: that of all of them together, if that is good."""
    report = _check(together(programs), [p.arguments() for p in programs], modes)
    for program in programs:
        yield report if report.ok else _check(program.function, program.arguments(), modes)


def _check(fn: Callable[..., Any], arguments: Sequence[Any], modes: Sequence[str]) -> Report:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numbers beyond a function's domain are among the inputs
        try:
            return check(fn, *arguments, modes=modes)
        except Exception as error:  # a fault of the harness itself is a finding like others: the rest goes on
            text = "".join(traceback.format_exception(error))
            return Report(fn.__name__, tuple(modes), (Finding(HARNESS, "exception", Verdict.BUG, text),), 0)


def together(programs: Sequence[Program]) -> Callable[..., Any]:
    """One function that calls each program with its own arguments, given as a list each."""

    def batch(*arguments: list[Tensor]) -> Any:
        return tuple(p.function(*a) for p, a in zip(programs, arguments, strict=True))

    return batch


def _keep(corpus: Path, failure: Failure, modes: Sequence[str]) -> None:
    corpus.mkdir(parents=True, exist_ok=True)
    (corpus / f"{failure.seed}.py").write_text(failure.program.script(modes))
