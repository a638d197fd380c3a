"""What PyTorch has by name and this package has not: the recorded names, and a reason for each that is missing.

    python -m tests.samples.names

writes `eager/core/pytorch_names.txt` anew from the PyTorch that is installed: the public names of `PLACES`, without
modules. docs/ops.md shows what is made of them.
"""

from __future__ import annotations

import importlib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from eager.core.missing import FILE, patterns, reason, recorded

PLACES = (
    "torch", "torch.Tensor", "torch.nn", "torch.nn.functional", "torch.linalg", "torch.fft", "torch.special",
    "torch.masked", "torch.optim",
)  # fmt: skip


def _object(root: ModuleType, place: str) -> Any:
    """torch.nn.functional of PyTorch or eager."""
    found: Any = root
    for part in place.split(".")[1:]:
        if isinstance(found, ModuleType) and not hasattr(found, part):
            found = importlib.import_module(f"{found.__name__}.{part}")
        else:
            found = getattr(found, part)
    return found


def public_names(torch: ModuleType) -> dict[str, list[str]]:
    """The public names of each place, without modules."""
    found = {}
    for place in PLACES:
        owner = _object(torch, place)
        names = (name for name in dir(owner) if not name.startswith("_"))
        found[place] = [name for name in names if not isinstance(getattr(owner, name, None), ModuleType)]
    return found


def missing() -> Iterator[tuple[str, str]]:
    """(place, name) of what eager has not."""
    import eager

    for place, names in recorded().items():
        owner = _object(eager, place)
        yield from ((place, name) for name in names if not hasattr(owner, name))


def table() -> str:
    """The part of docs/ops.md about names."""
    absent: dict[str, list[str]] = defaultdict(list)
    counts: dict[str, int] = defaultdict(int)
    for place, name in missing():
        counts[place] += 1
        absent[(reason(place, name) or ("?",))[0]].append(
            name if place == "torch" else f"{place.removeprefix('torch.')}.{name}"
        )
    lines = ["| place | names in PyTorch | here |", "|---|---|---|"]
    lines += [f"| `{place}` | {len(names)} | {len(names) - counts[place]} |" for place, names in recorded().items()]
    lines += ["", "| not here because of | names |", "|---|---|"]
    lines += [f"| {why} | {', '.join(f'`{n}`' for n in absent[why])} |" for why, *_ in patterns() if absent[why]]
    return "\n".join(lines) + "\n"


def main() -> None:
    import torch
    import torch.masked

    Path(FILE).write_text("".join(f"{place}: {' '.join(names)}\n" for place, names in public_names(torch).items()))


if __name__ == "__main__":
    main()
