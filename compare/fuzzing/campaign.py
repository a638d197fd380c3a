"""`fuzz`: random programs by the thousand, each checked in every mode, until something disagrees or time is up."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from compare.fuzzing.batches import Failure, Result, Settings, checked, in_processes
from compare.fuzzing.corpus import Corpus
from compare.fuzzing.coverage import Coverage
from compare.fuzzing.design import vocabulary
from compare.fuzzing.generator import SIZE
from compare.fuzzing.seeds import seed_of_code
from compare.fuzzing.workers import MIB, Limits, checked_limits
from compare.judging.tolerance import Verdict
from compare.modes import EAGER, modes_named
from graphc.display import Block, Displayed, Remark, Section, plain
from graphc.ops import OPS

BATCH = 8  # programs that share a compilation
MODES = ("graph", "compiled")  # with eager, which is always there: three


@final
@dataclass(frozen=True, repr=False)
class FuzzReport(Displayed):
    """What `fuzz` has found.

    first, count  the seeds: first, first + 1, ..., `count` of them
    verdicts      how many programs had which verdict at worst
    failures      those that are bugs, or not supported
    coverage      ops and pairs of ops
    seconds       that it took
    crashes       seeds of programs that have ended a process together, and none of them alone, which is a failure
    """

    first: int
    count: int
    verdicts: Counter[Verdict]
    failures: tuple[Failure, ...]
    coverage: Coverage
    seconds: float
    crashes: tuple[tuple[int, ...], ...] = ()

    @property
    def ok(self) -> bool:
        """Whether no program is a bug."""
        return not self.verdicts[Verdict.BUG]

    @property
    def rate(self) -> float:
        """Programs an hour."""
        return 3600 * self.count / self.seconds if self.seconds else 0.0

    def to_dict(self) -> dict[str, Any]:
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
            "crashes": plain(self.crashes),
            "failures": [
                {"seed": f.seed, "source": f.program.source, "report": f.report.to_dict()} for f in self.failures
            ],
        }

    def blocks(self) -> Iterator[Block]:
        """How many programs and what they cover, and below that each failure with its program."""
        seeds = f"seeds {self.first} to {self.first + self.count - 1}" if self.count else f"from seed {self.first}"
        lines = [
            ", ".join(f"{n} {v}" for v, n in sorted(self.verdicts.items())),
            f"ops {self.coverage.op_share():.1%} of {len(vocabulary())}, pairs of ops {self.coverage.pair_share():.1%}",
            *(f"seeds {', '.join(map(str, seeds))} together: a process ended" for seeds in self.crashes),
        ]
        head = f"{self.count} programs ({seeds}) in {self.seconds:.0f} s, {self.rate:,.0f} an hour"
        yield Section(Remark(head, "good" if self.ok else "bad"), [*map(Remark, lines)])
        for failure in self.failures:
            yield from failure.blocks()


def fuzz(
    count: int | None = None,
    *,
    seconds: float | None = None,
    seed: int | None = None,
    modes: Sequence[str] = MODES,
    size: int = SIZE,
    batch: int = BATCH,
    without: Collection[str] = (),
    quick: bool = False,
    workers: int = 0,
    time_limit: float = Limits().seconds,
    memory_limit: float = Limits().memory / MIB,
    corpus: str | Path | None = None,
    resume: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> FuzzReport:
    """Check random programs, number `seed` and the following, in `modes`: values, gradients, what they change.

    count     how many; None: as many as there is time for
    seconds   no further batch is begun after that time
    seed      None: a number that follows from the code of the packages, so that each state of the code is tried on
              programs of its own; `.first` of the report is what it was
    modes     names of registered modes, compared with eager
    size      ops of a program
    batch     programs that are checked as one, for one compilation; where those part, each is checked alone
    without   names of ops to leave out
    quick     XLA compiles the programs of a batch without its optimizations, in a third of the time
    workers   processes; 0: none but this one, which a program that hangs or crashes takes with it. With others, `fuzz`
              is called below `if __name__ == "__main__":`, as in any such program
    time_limit, memory_limit
              of a batch in a process: seconds of processor time, and MiB that are resident. A program that passes
              them, or ends its process, is a failure ("hang", "memory", "process"), and the campaign goes on
    corpus    a folder: for each failure the program as a script, `<seed>.py`, which fails in a fresh process; and
              how far this campaign has come
    resume    go on where the campaign in `corpus` has stopped (`count` and `seconds` are those of this call); what
              failed then is checked again
    progress  called with (programs done, failures) after each batch

    Program number k depends on k, `size` and `without` only. Raises ValueError without a bound, for a number that is
    too small, for an unknown mode or op, and for a campaign to resume that is not there or had other settings.

    >>> import compare
    >>> compare.fuzz(2, seed=0, modes=["graph"]).ok
    True
    """
    if count is None and seconds is None:
        raise ValueError("fuzz() needs count= or seconds=: it would never end")
    _at_least(1, size=size, batch=batch)
    _at_least(0, workers=workers, count=count, seconds=seconds)
    modes = tuple(dict.fromkeys((EAGER.name, *modes)))
    modes_named(modes)
    if unknown := sorted(set(without) - OPS.keys()):
        raise ValueError(f"no op named '{unknown[0]}'")
    limits = checked_limits(time_limit, memory_limit)
    settings = Settings(modes, size, tuple(sorted(without)), quick)
    start = time.perf_counter()
    found = Corpus(None if corpus is None else Path(corpus), settings, seed_of_code() if seed is None else seed, resume)
    begun = found.first + found.done

    def took() -> float:
        return found.seconds + time.perf_counter() - start

    def results(groups: Iterable[Sequence[int]]) -> Iterator[Result]:
        if not workers:
            return (checked(settings, g) for g in groups)
        return in_processes(workers, settings, groups, limits)

    def batches() -> Iterator[range]:
        for k in itertools.count(begun, batch):
            if count is not None and k >= begun + count:
                return
            if seconds is not None and time.perf_counter() - start >= seconds:
                return
            yield range(k, k + batch if count is None else min(k + batch, begun + count))

    found.verdicts -= Counter(found.failed.values())  # they are judged anew
    for result in results([number] for number in found.failed):
        found.again(result)
    for result in results(batches()):
        found.add(result)
        found.write(took())
        if progress is not None:
            progress(found.first + found.done - begun, len(found.failures))
    return FuzzReport(
        found.first, found.done, found.verdicts, tuple(found.failures), found.coverage, took(), tuple(found.crashes)
    )


def _at_least(bound: int, **given: float | None) -> None:
    for name, value in given.items():
        if value is not None and not value >= bound:
            raise ValueError(f"fuzz() needs {name} of at least {bound}, got {value}")
