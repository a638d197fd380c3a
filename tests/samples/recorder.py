"""The recorded samples: calls of every public function, and what PyTorch gave.

    python -m tests.samples.recorder [family ...]

writes `recorded/<family>.txt` anew from the tables `calls/<family>.txt`, with PyTorch. A line of a table is

    names | call of {} | operands

for example `gather | t.{}(x, 0, i) | x:A[5,4] i:i64[3,4]<5`; the notation of operands is explained in `operands.py`.
A recorded line is the call, its operands, and the digests of results and gradients (`digest.py`) or the error's type.
"""

from __future__ import annotations

import itertools
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.samples.digest import run
from tests.samples.operands import Operand, expand

HERE = Path(__file__).parent
FAMILIES = sorted(path.stem for path in (HERE / "calls").glob("*.txt"))


class Sample(NamedTuple):
    """A call, its operands, and the recorded digests."""

    name: str
    call: str
    operands: tuple[Operand, ...]
    recorded: tuple[str, ...] = ()

    @property
    def told(self) -> str:
        """The operands as the recorded files write them."""
        return " ".join(f"{o.name}:{o.notation}" for o in self.operands)


def calls(family: str) -> Iterator[Sample]:
    """The samples of a family's table."""
    for line in (HERE / "calls" / f"{family}.txt").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            names, call, operands = (part.strip() for part in line.split(" | "))
            for name, chosen in itertools.product(names.split(), list(expand(operands))):
                yield Sample(name, call.replace("{}", name), chosen)


def recorded(family: str) -> Iterator[Sample]:
    """The samples of a family with what PyTorch gave."""
    name = ""
    for line in (HERE / "recorded" / f"{family}.txt").read_text().splitlines():
        if line.startswith("= "):
            name, call = line[2:].split(" | ")
        elif line:
            operands, digests = line.split(" -> ")
            chosen = tuple(Operand(*text.split(":", 1)) for text in operands.split())
            yield Sample(name, call, chosen, tuple(digests.split("; ")))


def record(torch: Any, family: str) -> str:
    """The recorded file of a family."""
    lines, last = [], None
    for sample in calls(family):
        if (sample.name, sample.call) != last:
            last = sample.name, sample.call
            lines.append(f"= {sample.name} | {sample.call}")
        found = "; ".join(map(str, run(torch, sample.call, sample.operands)))
        if "complex32" in found:  # a dtype that eager does not have
            continue
        lines.append(f"{sample.told} -> {found}")
    return "\n".join(lines) + "\n"


def main() -> None:
    import torch

    warnings.simplefilter("ignore")
    for family in sys.argv[1:] or FAMILIES:
        text = record(torch, family)
        (HERE / "recorded" / f"{family}.txt").write_text(text)
        print(f"{family}: {text.count(' -> ')} samples, {len(text) // 1024} KiB")


if __name__ == "__main__":
    main()
