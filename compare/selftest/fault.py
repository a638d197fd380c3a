"""A planted fault: a change of one part of the library that a check has to find, and to name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, final

from compare.checking.findings import Report
from compare.locating.culprit import Culprit
from compare.selftest.planting import Plant


class Trial(NamedTuple):
    """One look at the library: `how` it was done, and what came of it."""

    how: str
    report: Report


Trials = Callable[[], Iterator[Trial]]


class Expected(NamedTuple):
    """What localization has to name: whatever is given here. `part` may be the beginning of the culprit's."""

    op: str = ""
    part: str = ""
    rule: str = ""
    pass_name: str = ""

    def is_named_by(self, culprit: Culprit) -> bool:
        """Whether `culprit` is this one."""
        return (
            self.op in ("", culprit.op)
            and self.rule in ("", culprit.rule)
            and self.pass_name in ("", culprit.pass_name.partition(": ")[2] or culprit.pass_name)
            and culprit.part.startswith(self.part)
        )

    def __str__(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in self._asdict().items() if value)


@final
@dataclass(frozen=True)
class Fault:
    """A fault that can be planted.

    name    unique: "gradient of sin: scaled"
    layer   the kind of thing that is at fault: "gradient rules", "kernels", ...
    plant   a context in which the library has the fault; afterwards it is as before
    culprit what a report has to name
    trials  what is tried to find it, in this order, made one by one while the fault is there
    op      the op that random programs are made of if all that fails; "" for programs of any ops
    """

    name: str
    layer: str
    plant: Plant
    culprit: Expected
    trials: Trials
    op: str = ""


def of_part(layer: str, part: str) -> Callable[[str, Plant, Trials], Fault]:
    """What makes faults of a layer of which a report has to name `part`."""
    return lambda what, plant, trials: Fault(f"{layer}: {what}", layer, plant, Expected(part=part), trials)


def of_lowering(what: str, op: str, plant: Plant, trials: Trials, layer: str = "lowerings") -> Fault:
    """A fault of what the op becomes under XLA."""
    return Fault(f"lowering of {op}: {what}", layer, plant, Expected(op, "lowering"), trials)


def of_pass(what: str, name: str, plant: Plant, trials: Trials) -> Fault:
    """A fault of the pass `name`."""
    return Fault(f"pass '{name}': {what}", "passes", plant, Expected(pass_name=name), trials)
