"""Runs a program over eager and over PyTorch, each in a process of its own, and says where the two part."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np

from graphc.display import Block, Displayed, Remark, Section, Table, plural, seconds_text
from graphc.errors import MissingExtraError
from graphc.running.texts import LineDifference, differences

RTOL, ATOL = 1e-4, 1e-6
SHOWN = 5  # differences of a kind
NO_TORCH = "--compare-with-torch needs PyTorch, which is not installed. Remedy: pip install torch"
_ROOT = Path(__file__).resolve().parents[2]
# graphc need not be installed
_PROGRAM = "import sys; sys.path.append({!r}); from graphc.running.recorded import main; sys.exit(main(sys.argv[1:]))"


class Ran(NamedTuple):
    """One run: what the program printed, its exit code and time, and what it has computed."""

    printed: str
    errors: str
    status: int
    seconds: float
    values: Mapping[str, np.ndarray]


class ValueDifference(NamedTuple):
    """A value that differs, and how."""

    name: str
    how: str


@final
@dataclass(repr=False)
class TorchReport(Displayed):
    """What two runs have in common. `ok`: they print and compute the same, and end alike."""

    program: str
    torch_version: str
    runs: dict[str, Ran]
    lines: list[LineDifference] = field(default_factory=list)
    values: list[ValueDifference] = field(default_factory=list)
    compared: int = 0
    largest: tuple[float, str] = (0.0, "")

    @property
    def ok(self) -> bool:
        ours, theirs = self.runs.values()
        return not self.lines and not self.values and ours.status == theirs.status

    def blocks(self) -> Iterator[Block]:
        """The verdict; what was printed, computed and taken; and what differs, at most five of a kind."""
        ours, theirs = self.runs.values()
        verdict = Remark(
            f"{self.program}: {'the same' if self.ok else 'not the same'} in eager and in PyTorch {self.torch_version}",
            "good" if self.ok else "bad",
        )
        size, name = self.largest
        largest = f" (the largest difference is {size:.1e} of {name})" if size else ""
        rows = [
            ("output", f"{plural(len(ours.printed.splitlines()), 'line')}, {_count(self.lines)}"),
            ("values", f"{self.compared} compared, {_count(self.values)}{largest}"),
            ("exit code", f"{ours.status} in eager, {theirs.status} in PyTorch"),
            ("time", f"{seconds_text(ours.seconds)} in eager, {seconds_text(theirs.seconds)} in PyTorch"),
        ]
        blocks: list[Block] = [Table([row for row in rows if row[0] != "exit code" or ours.status or theirs.status])]
        for line in self.lines[:SHOWN]:
            words = [("eager", _shown(line.first)), ("PyTorch", _shown(line.second))]
            blocks.append(Section(f"line {line.number}", [Table(words)]))
        blocks += [Remark(f"{value.name}: {value.how}") for value in self.values[:SHOWN]]
        ends = {name: run.errors.strip().rpartition("\n")[2] for name, run in self.runs.items() if run.status}
        blocks += [Remark(f"{name}: {line}") for name, line in ends.items()]
        yield Section(verdict, blocks)


def _count(differences: Sequence[object]) -> str:
    return f"{len(differences)} differ" if differences else "the same"


def _shown(line: str | None) -> str:
    return "(has ended)" if line is None else line


def compare_with_torch(
    target: str, arguments: Sequence[str] = (), *, module: bool = False, compiled: Sequence[str] = (),
    rtol: float = RTOL, atol: float = ATOL, ignored: Sequence[str] = (),
) -> TorchReport:  # fmt: skip
    """Run a program twice, and compare what it prints, and what it computes: the values that it gives to
    `graphc.record`, and its globals at the end.

    A value may differ by `atol` plus `rtol` of its largest element. Lines and names of values that match a pattern of
    `ignored` ("*seconds*", "start") are not compared. Raises MissingExtraError if PyTorch is not installed.
    """
    try:
        torch_version = version("torch")
    except PackageNotFoundError:
        raise MissingExtraError(NO_TORCH) from None
    given: dict[str, Any] = {"target": target, "arguments": [*arguments], "module": module}
    ours = _ran({**given, "compiled": [*compiled]}, {})
    # functions under torch.compile run as PyTorch's eager mode does: that is the reference
    theirs = _ran({**given, "names": False}, {"TORCHDYNAMO_DISABLE": "1"})
    report = TorchReport(target, torch_version, {"eager": ours, "PyTorch": theirs})
    report.lines = differences(ours.printed, theirs.printed, rtol, atol, tuple(ignored))
    _compare_values(report, ours.values, theirs.values, rtol, atol, ignored)
    return report


def _ran(given: Mapping[str, Any], settings: Mapping[str, str]) -> Ran:
    """Run the program in a process of its own, without input."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "values.npz"
        command = [sys.executable, "-c", _PROGRAM.format(str(_ROOT)), str(output), json.dumps(given)]
        start = time.perf_counter()
        done = subprocess.run(
            command, env={**os.environ, "PYTHONHASHSEED": "0", **settings},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, encoding="utf-8", errors="replace",
        )  # fmt: skip
        seconds = time.perf_counter() - start
        values: dict[str, np.ndarray] = {}
        if output.exists():
            with np.load(output, allow_pickle=False) as file:
                values = {name: file[name] for name in file.files}
        return Ran(done.stdout, done.stderr, done.returncode, seconds, values)


def _compare_values(
    report: TorchReport, ours: Mapping[str, np.ndarray], theirs: Mapping[str, np.ndarray], rtol: float, atol: float,
    ignored: Sequence[str],
) -> None:  # fmt: skip
    for name in dict.fromkeys([*ours, *theirs]):
        if any(fnmatch(name, pattern) for pattern in ignored):
            continue
        if name not in ours or name not in theirs:
            report.values.append(ValueDifference(name, f"only in {'eager' if name in ours else 'PyTorch'}"))
            continue
        report.compared += 1
        how, size = _difference(ours[name], theirs[name], rtol, atol)
        if how:
            report.values.append(ValueDifference(name, how))
        if size > report.largest[0]:
            report.largest = size, name


def _difference(a: np.ndarray, b: np.ndarray, rtol: float, atol: float) -> tuple[str, float]:
    """(how two arrays differ, "" if they do not; the largest difference, by the largest element)"""
    if a.shape != b.shape:
        return f"shape {a.shape}, {b.shape} in PyTorch", 0.0
    if a.dtype != b.dtype and (a.dtype.kind, b.dtype.kind) != ("U", "U"):
        return f"dtype {a.dtype}, {b.dtype} in PyTorch", 0.0
    if a.dtype.kind not in "fc":
        wrong = error = np.asarray(a != b)
        scale = 0.0
    else:
        x, y = a.astype(np.complex128), b.astype(np.complex128)
        with np.errstate(invalid="ignore"):
            error = np.where((x == y) | (np.isnan(x) & np.isnan(y)), 0.0, np.abs(x - y))
        scale = float(np.abs(y, where=np.isfinite(y), out=np.zeros(y.shape)).max(initial=0.0))
        wrong = ~(error <= atol + rtol * scale)
    if not wrong.any():
        return "", float(error.max(initial=0.0)) / scale if scale else 0.0
    at = np.unravel_index(int(np.argmax(np.where(wrong, np.nan_to_num(error, nan=np.inf), -1.0))), a.shape)
    where = f"[{', '.join(map(str, at))}]" if a.ndim else "it"
    return f"{int(wrong.sum())} of {a.size} elements differ; {where} is {a[at]!s}, {b[at]!s} in PyTorch", 0.0
