"""One program on one device, on eight, and in two processes: `python -m benchmarks.scale [--quick] [folder]`.

examples/programs/char_gpt.py runs in every way of `WAYS`; then those of `RELAY` run one after the other, each from the
checkpoint of the one before. The losses have to be those of one device. Writes scale/index.html into the folder, and
exits with 1 if a loss differs.

The devices are parts of one CPU, so steps get no faster: what is scaled here is the program, not its speed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from graphc.display import Block, Displayed, Picture, Remark, Section, Table, bytes_text
from graphc.display.as_html import page

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = ROOT / "examples" / "programs" / "char_gpt.py"
TOLERANCE = 1e-5  # of a loss, relative
WAYS: dict[str, tuple[int, tuple[str, ...]]] = {  # processes, and arguments of the program
    "1 device": (1, ("--compiled",)),
    "1 device, eager": (1, ()),
    "8 devices, data": (1, ("--devices", "8")),
    "8 devices, data 4 x model 2": (1, ("--devices", "8", "--mesh", "4x2")),
    "8 devices, FSDP": (1, ("--devices", "8", "--fsdp")),
    "8 devices, FSDP 4 x model 2": (1, ("--devices", "8", "--mesh", "4x2", "--fsdp")),
    "2 processes": (2, ("--compiled",)),
    "2 processes, FSDP": (2, ("--compiled", "--fsdp")),
    "2 processes, eager": (2, ()),
}
RELAY = ("1 device, eager", "8 devices, FSDP 4 x model 2", "2 processes, FSDP", "8 devices, data", "1 device, eager")
QUICK = ("1 device, eager", "8 devices, FSDP 4 x model 2", "2 processes, eager")


class Ran(NamedTuple):
    """What one run has printed of itself: losses, steps a second, and {kind: (how many, bytes)} per device and step."""

    losses: list[float]
    speeds: list[float]
    predicted: dict[str, tuple[int, int]] | None
    real: dict[str, tuple[int, int]] | None


def ran(way: str, *arguments: str) -> Ran:
    """Run the program in a way. Raises RuntimeError with what it has printed if it fails."""
    processes, own = WAYS[way]
    with tempfile.TemporaryDirectory() as folder:
        target = ("-m", "benchmarks.scale_run", str(Path(folder, "ran")), str(PROGRAM))
        start = ("run",) if processes == 1 else ("launch", "--torch", "--processes", str(processes))
        done = subprocess.run(
            [sys.executable, "-m", "graphc", *start, *target, "--dropout", "0", "--every", "1", *own, *arguments],
            cwd=ROOT, env={**os.environ, "JAX_PLATFORMS": "cpu"}, capture_output=True, text=True,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{way}: {done.stdout}{done.stderr}")
        return Ran(**json.loads(Path(folder, "ran").read_text()))


class Scale(Displayed):
    """straight  each way by itself
    relay      ways one after the other, each from the checkpoint of the one before: of each, its steps
    """

    def __init__(self, straight: dict[str, Ran], relay: list[tuple[str, Ran]]):
        self.straight, self.relay = straight, relay

    @property
    def base(self) -> list[float]:
        """The losses that all others have to be."""
        return next(iter(self.straight.values())).losses

    @property
    def relay_off(self) -> list[float]:
        """Of each way of the relay, the largest relative difference of losses."""
        found: list[float] = []
        first = 0
        for _, run in self.relay:
            found.append(_off(run.losses, self.base[first : first + len(run.losses)]))
            first += len(run.losses)
        return found

    def off(self, way: str) -> float:
        """The largest relative difference of losses."""
        return _off(self.straight[way].losses, self.base)

    @property
    def ok(self) -> bool:
        """Whether all losses are those of the first way."""
        return max([*map(self.off, self.straight), *self.relay_off]) <= TOLERANCE

    def blocks(self) -> list[Block]:
        """The verdict, then losses, exchanges and times."""
        count = len(self.base)
        verdict = "the same losses" if self.ok else "other losses"
        rows = [(way, f"{run.losses[-1]:.6f}", _judged(self.off(way))) for way, run in self.straight.items()]
        relay = [(way, len(run.losses), _judged(d)) for (way, run), d in zip(self.relay, self.relay_off, strict=True)]
        exchanged = [
            (way, kind, *[f"{n} ({bytes_text(size)})" for n, size in (p.get(kind, (0, 0)), r.get(kind, (0, 0)))])
            for way, run in self.straight.items()
            if (p := run.predicted) is not None and (r := run.real) is not None
            for kind in {**p, **r}
        ]
        times = [_milliseconds(run) for run in self.straight.values()]
        slower = [(way, f"{t:.1f}", f"{t / times[0]:.2f}") for way, t in zip(self.straight, times, strict=True)]
        return [
            Remark(f"{PROGRAM.name} in {len(rows)} ways, {count} steps: {verdict}", "good" if self.ok else "bad"),
            Section("Losses", [Table(rows, ("way", "last loss", "off"))]),
            Section("Each from the checkpoint of the one before", [Table(relay, ("way", "steps", "off"))]),
            Section("Exchanges of a step, per device", [Table(exchanged, ("way", "kind", "predicted", "real"), 2)]),
            Section("Steps", [Table(slower, ("way", "ms a step", f"of {next(iter(self.straight))}")), *_chart(self)]),
        ]


def _off(found: Sequence[float], wanted: Sequence[float]) -> float:
    return max(abs(a / b - 1) for a, b in zip(found, wanted, strict=True))


def _judged(off: float) -> Remark:
    return Remark(f"{off:.1e}", "good" if off <= TOLERANCE else "bad")


def _milliseconds(run: Ran) -> float:
    """Of a step, of those that nothing is compiled for."""
    return 1e3 / median(run.speeds[len(run.speeds) // 2 :])


def _chart(report: Scale) -> list[Block]:
    from compare.benchmarking.plots import lines_figure, svg_of

    lines = {way: run.losses for way, run in report.straight.items()}
    steps = range(1, len(report.base) + 1)
    return [Picture(svg_of(lines_figure("Losses: one line if they are the same", "step", "loss", lines, [*steps])))]


def measured(ways: Sequence[str], relay: Sequence[str], steps: int, relay_steps: int) -> Scale:
    """Run the program in these ways. The relay takes as many steps for each of its ways."""
    straight: dict[str, Ran] = {}
    for way in ways:
        print(f"{way} ...", file=sys.stderr, flush=True)
        straight[way] = ran(way, "--steps", str(steps))
    resumed: list[tuple[str, Ran]] = []
    with tempfile.TemporaryDirectory() as folder:
        for k, way in enumerate(relay):
            print(f"{way}, from the checkpoint ...", file=sys.stderr, flush=True)
            own = ("--steps", str((k + 1) * relay_steps), "--out", folder)
            resumed.append((way, ran(way, *own, *(("--resume",) if k else ()))))
    return Scale(straight, resumed)


def main(arguments: Sequence[str]) -> int:
    """Measure, print and write. Returns the exit code."""
    folder = Path(next((a for a in arguments if not a.startswith("-")), "report")) / "scale"
    report = measured(QUICK, QUICK, 6, 2) if "--quick" in arguments else measured([*WAYS], RELAY, 12, 2)
    print(report.text())
    folder.mkdir(parents=True, exist_ok=True)
    data: dict[str, Any] = {way: run._asdict() for way, run in report.straight.items()}
    (folder / "index.html").write_text(page("One program, many devices", report.blocks()))
    (folder / "scale.json").write_text(json.dumps(data, indent=2))
    return 0 if report.ok else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
