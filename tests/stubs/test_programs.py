"""pyright, in strict mode, finds the errors that are marked in the programs of users, and nothing else."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.stubs.__main__ import ROOT

PROGRAMS = Path(__file__).parent / "programs"
MARK = re.compile(r"# error: (\w+(?:, \w+)*)$")
# what pyright adds on a line that has another error
FOLLOWS = {
    "reportUnknownMemberType",
    "reportUnknownArgumentType",
    "reportUnknownVariableType",
    "reportUnusedExpression",
}
Place = tuple[str, int]


def marked() -> dict[Place, set[str]]:
    """(file, line) -> the rules that pyright is to name there."""
    found = {}
    for path in PROGRAMS.glob("*.py"):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if mark := MARK.search(line):
                found[path.name, number] = set(mark[1].split(", "))
    return found


def differences(diagnostics: list[dict[str, Any]], wanted: dict[Place, set[str]]) -> list[str]:
    """Where pyright has found other errors than those marked."""
    found, texts = defaultdict[Place, set[str]](set), {}
    for each in diagnostics:
        place = Path(each["file"]).name, each["range"]["start"]["line"] + 1
        found[place].add(each.get("rule", "syntax"))
        texts.setdefault(place, each["message"])
    wrong = []
    for place in sorted({*found, *wanted}):
        rules = found[place] - FOLLOWS if place in wanted else found[place]
        if rules != wanted.get(place, set()):
            wrong.append(f"{place}: {sorted(rules)}, not {sorted(wanted.get(place, ()))}: {texts.get(place, '')}")
    return wrong


def test_each_program_has_three_errors():
    counts = defaultdict[str, int](int)
    for name, _ in marked():
        counts[name] += 1
    assert len(counts) == len(list(PROGRAMS.glob("*.py"))) >= 20 and min(counts.values()) >= 3


def test_differences_are_told():
    here = {"file": "a.py", "range": {"start": {"line": 2}}, "rule": "reportCallIssue", "message": "no"}
    assert differences([here], {("a.py", 3): {"reportCallIssue"}}) == []
    assert len(differences([here], {})) == len(differences([], {("a.py", 3): {"reportCallIssue"}})) == 1


@pytest.mark.deep
def test_pyright_finds_the_marked_errors_and_nothing_else(tmp_path: Path):
    pytest.importorskip("pyright")
    for path in PROGRAMS.glob("*.py"):
        shutil.copy(path, tmp_path)
    settings = {"typeCheckingMode": "strict", "pythonVersion": "3.11", "extraPaths": [str(ROOT)], "include": ["."]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "-p", str(tmp_path), "--outputjson"]
    told = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    report = json.loads(told)
    assert report["summary"]["filesAnalyzed"] == len(list(PROGRAMS.glob("*.py")))
    assert not differences(report["generalDiagnostics"], marked())
