"""The folder of a campaign: its failures as scripts, and how far it has come."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, final

from compare.fuzzing.batches import Failure, Settings
from compare.fuzzing.coverage import Coverage
from compare.judging.tolerance import Verdict

STATE = "campaign.json"


@final
class Corpus:
    """What the folder holds.

    first, done  the campaign's first number, and how many programs have been checked
    seconds      that this took
    failed       the numbers of those that failed, and their verdicts
    crashes      see `Result`
    """

    def __init__(self, folder: Path, settings: Settings, first: int, resume: bool):
        self._folder, self._settings = folder, settings
        self.first, self.done, self.seconds = first, 0, 0.0
        self.failed: dict[int, Verdict] = {}
        self.crashes: list[tuple[int, ...]] = []
        self.verdicts, self.coverage = Counter[Verdict](), Coverage()
        if resume:
            self._read()

    def _read(self) -> None:
        try:
            state = json.loads((self._folder / STATE).read_text())
        except FileNotFoundError:
            raise ValueError(f"no campaign to resume in '{self._folder}'") from None
        if state["settings"] != _plain(self._settings):
            raise ValueError(f"the campaign in '{self._folder}' had other settings: {state['settings']}")
        self.first, self.done, self.seconds = state["first"], state["done"], state["seconds"]
        self.failed = {int(number): Verdict[name] for number, name in state["failed"].items()}
        self.crashes = [tuple(numbers) for numbers in state["crashes"]]
        self.verdicts.update({Verdict[name]: n for name, n in state["verdicts"].items()})
        self.coverage.ops.update(state["ops"])
        self.coverage.pairs.update({(a, b): n for a, b, n in state["pairs"]})

    def note(self, done: int, seconds: float, failures: Iterable[Failure]) -> None:
        """Write down how far the campaign is, with `failures` so far. What is there is replaced as a whole."""
        self._folder.mkdir(parents=True, exist_ok=True)
        for failure in failures:
            script = self._folder / f"{failure.seed}.py"
            if not script.exists():
                script.write_text(failure.program.script(self._settings.modes))
        state = {
            "settings": _plain(self._settings),
            "first": self.first,
            "done": done,
            "seconds": seconds,
            "failed": {f.seed: f.report.verdict.name for f in failures},
            "crashes": self.crashes,
            "verdicts": {v.name: n for v, n in self.verdicts.items()},
            "ops": self.coverage.ops,
            "pairs": [[a, b, n] for (a, b), n in self.coverage.pairs.items()],
        }
        new = self._folder / f"{STATE}.new"
        new.write_text(json.dumps(state))
        new.replace(self._folder / STATE)


def _plain(settings: Settings) -> Any:
    return {name: list(v) if isinstance(v, tuple) else v for name, v in settings._asdict().items()}
