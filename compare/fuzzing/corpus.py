"""The folder of a campaign: its failures as scripts, and how far it has come."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any, final

from compare.fuzzing.batches import Failure, Result, Settings
from compare.fuzzing.coverage import Coverage
from compare.judging.tolerance import Verdict
from graphc.errors import ReportFileError
from graphc.files import writing
from graphc.files.contents import contents
from graphc.files.json_text import Limits, parsed
from graphc.files.schema import Flag, Number, OneOf, Record, Row, Table, Text, Tuple, Whole

STATE = "campaign.json"
LIMITS = Limits(2**26, 8, 4_000_000)
_NAME, _COUNT, _VERDICT = Text(most=1000), Whole(0), OneOf(tuple(v.name for v in Verdict))
SCHEMA = Record(
    {
        "settings": Record({"modes": Row(_NAME), "size": Whole(1), "without": Row(_NAME), "quick": Flag()}),
        "first": Whole(),
        "done": _COUNT,
        "seconds": Number(0),
        "failed": Table(Text(r"-?[0-9]{1,19}", "the number of a program"), _VERDICT),
        "crashes": Row(Row(Whole())),
        "verdicts": Table(_VERDICT, _COUNT),
        "ops": Table(_NAME, _COUNT),
        "pairs": Row(Tuple((_NAME, _NAME, _COUNT))),
    }
)


class CampaignFileError(ReportFileError):
    """The file of a campaign says something that no campaign has written: names the file and the place in it."""


@final
class Corpus:
    """How far a campaign has come and what it has found: in a folder, if there is one.

    first, done  the campaign's first number, and how many programs have been checked
    seconds      that this took before now
    failed       the numbers of those that failed before now, and their verdicts: they are checked again
    failures     those that have failed now
    crashes      see `Result`
    """

    def __init__(self, folder: Path | None, settings: Settings, first: int, resume: bool):
        self._folder, self._settings = folder, settings
        self.first, self.done, self.seconds = first, 0, 0.0
        self.failed: dict[int, Verdict] = {}
        self.failures: list[Failure] = []
        self.crashes: list[tuple[int, ...]] = []
        self.verdicts, self.coverage = Counter[Verdict](), Coverage()
        if resume:
            if folder is None:
                raise ValueError("fuzz(resume=True) needs corpus=: the folder of the campaign")
            self._read(folder)

    def add(self, result: Result) -> None:
        """Note what came of a batch of new programs."""
        self.again(result)
        self.done += result.verdicts.total()
        self.coverage.add(result.ops, result.pairs)
        self.crashes += result.crashes

    def again(self, result: Result) -> None:
        """Note what came of programs that had failed before."""
        self.verdicts.update(result.verdicts)
        self.failures += result.failures

    def _read(self, folder: Path) -> None:
        file = folder / STATE
        refuse = CampaignFileError.of(str(file))
        try:
            state = parsed(contents(file, LIMITS.size, refuse), LIMITS, refuse)
        except FileNotFoundError:
            raise ValueError(f"no campaign to resume in '{folder}'") from None
        SCHEMA.check(state, "", refuse)
        if state["settings"] != _plain(self._settings):
            raise ValueError(f"the campaign in '{folder}' had other settings: {state['settings']}")
        self.first, self.done, self.seconds = state["first"], state["done"], state["seconds"]
        self.failed = {int(number): Verdict[name] for number, name in state["failed"].items()}
        self.crashes = [tuple(numbers) for numbers in state["crashes"]]
        self.verdicts.update({Verdict[name]: n for name, n in state["verdicts"].items()})
        self.coverage.ops.update(state["ops"])
        self.coverage.pairs.update({(a, b): n for a, b, n in state["pairs"]})
        if any(not self.first <= number < self.first + self.done for number in self.failed):
            raise refuse("the number of a program that this campaign has not had", "failed")
        if self.verdicts.total() != self.done:
            raise refuse(f"{self.verdicts.total()} verdicts on {self.done} programs", "verdicts")
        if Counter(self.failed.values()) - self.verdicts:
            raise refuse("more failures than verdicts", "failed")

    def write(self, seconds: float) -> None:
        """Write down the state after `seconds` in all. What is there is replaced as a whole."""
        if self._folder is None:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        for failure in self.failures:
            script = self._folder / f"{failure.seed}.py"
            if not script.exists():
                writing.write(script, failure.program.script(self._settings.modes), durable=False)
        state = {
            "settings": _plain(self._settings),
            "first": self.first,
            "done": self.done,
            "seconds": seconds,
            "failed": {f.seed: f.report.verdict.name for f in self.failures},
            "crashes": self.crashes,
            "verdicts": {v.name: n for v, n in self.verdicts.items()},
            "ops": self.coverage.ops,
            "pairs": [[a, b, n] for (a, b), n in self.coverage.pairs.items()],
        }
        writing.write(self._folder / STATE, json.dumps(state), durable=False)


def _plain(settings: Settings) -> Any:
    return {name: list(v) if isinstance(v, tuple) else v for name, v in settings._asdict().items()}
