"""`selftest`: hunt all planted faults, check clean random programs, and say how many were found, named, and false."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, final

from compare.fuzzing import FuzzReport, fuzz
from compare.selftest.fault import Fault
from compare.selftest.faults import every_fault
from compare.selftest.hunting import TRIES, Catch, hunt
from graphc.display import Block, Displayed, Remark, Table

RATE = 0.95  # of the faults that are found, and of those found that are localized
PROGRAMS = 500


class Row(NamedTuple):
    """The figures of one layer."""

    layer: str
    planted: int
    found: int
    localized: int


@final
@dataclass(frozen=True, repr=False)
class SelftestReport(Displayed):
    """What has become of the faults, and of the programs without any (None if there were none)."""

    catches: tuple[Catch, ...]
    clean: FuzzReport | None

    @property
    def found(self) -> float:
        """The share of the faults that were found."""
        return _share(sum(c.found for c in self.catches), len(self.catches))

    @property
    def localized(self) -> float:
        """The share of the found faults that were localized."""
        return _share(sum(c.localized for c in self.catches), sum(c.found for c in self.catches))

    @property
    def alarms(self) -> int:
        """How many clean programs were called bugs, or not supported."""
        return 0 if self.clean is None else len(self.clean.failures)

    @property
    def ok(self) -> bool:
        """Whether the rates hold, and there is no false alarm."""
        return self.found >= RATE and self.localized >= RATE and not self.alarms

    def rows(self) -> list[Row]:
        """One row for each layer."""
        layers = dict.fromkeys(c.fault.layer for c in self.catches)
        return [_row(layer, [c for c in self.catches if c.fault.layer == layer]) for layer in layers]

    def blocks(self) -> Iterator[Block]:
        """How much was found, layer by layer, what was not, and each false alarm with its program."""
        rates = f"found {self.found:.1%}, of these localized {self.localized:.1%} (at least {RATE:.0%} each)"
        yield Remark(rates, "good" if self.ok else "bad")
        yield Table([*self.rows(), _row("all", self.catches)], Row._fields)
        yield from (Remark(f"survived: {c.fault.name}", "bad") for c in self.catches if not c.found)
        yield from (Remark(_mistaken(c), "bad") for c in self.catches if c.found and not c.localized)
        if self.clean is not None:
            first = f"from seed {self.clean.first}"
            yield Remark(f"false alarms: {self.alarms} in {self.clean.count:,} clean random programs, {first}")
            for failure in self.clean.failures:
                yield from failure.blocks()

    def to_dict(self) -> dict[str, Any]:
        """The report for `json`."""
        return {
            "ok": self.ok,
            "found": self.found,
            "localized": self.localized,
            "layers": [row._asdict() for row in self.rows()],
            "faults": [c.to_dict() for c in self.catches],
            "false_alarms": self.alarms,
            "clean": None if self.clean is None else self.clean.to_dict(),
        }


def selftest(
    programs: int = PROGRAMS,
    seconds: float | None = None,
    faults: Collection[str] = (),
    workers: int = 0,
    progress: Callable[[Catch], object] | None = None,
    *,
    tries: int = TRIES,
    seed: int | None = None,
) -> SelftestReport:
    """Plant each fault and hunt it; then check clean random programs.

    programs  how many of those; 0 for none
    seconds   after which no random program is begun for one fault that nothing else has found; None: no such bound
    faults    parts of the names of those to plant, or of their layers; none for all
    workers   processes for the clean programs; 0: none but this one
    progress  called with what has become of each fault
    tries     how many random programs are tried for one fault that nothing else has found
    seed      of the clean programs; None: a number that follows from the code of the packages

    Raises ValueError for a name that no fault has.
    """
    catches: list[Catch] = []
    for fault in chosen(faults):
        catches.append(hunt(fault, seconds, tries))
        if progress is not None:
            progress(catches[-1])
    return SelftestReport(tuple(catches), fuzz(programs, seed=seed, workers=workers) if programs else None)


def chosen(names: Collection[str]) -> list[Fault]:
    """The faults with one of `names` in their name or layer; all of them without names. Raises ValueError."""
    known = every_fault()
    for name in names:
        if not any(name in f.name or name in f.layer for f in known):
            layers = ", ".join(dict.fromkeys(f.layer for f in known))
            raise ValueError(f"no fault is called '{name}'; layers are {layers}")
    return [f for f in known if not names or any(name in f.name or name in f.layer for name in names)]


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 1.0


def _row(layer: str, catches: Collection[Catch]) -> Row:
    return Row(layer, len(catches), sum(c.found for c in catches), sum(c.localized for c in catches))


def _mistaken(catch: Catch) -> str:
    return f"mistaken: {catch.fault.name}: the report names {catch.culprit or 'nothing'}, not {catch.fault.culprit}"
