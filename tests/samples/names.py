"""What PyTorch has by name and this package has not: the recorded names, and a reason for each that is missing.

    python -m tests.samples.names

writes two files anew from the PyTorch that is installed: `eager/core/pytorch_names.txt`, the public names of `PLACES`
without modules, of which docs/ops.md shows what is made, and `graphc/running/pytorch_modules.txt`, the modules.
"""

from __future__ import annotations

import importlib
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from eager.core.missing import FILE, patterns, reason, recorded
from graphc.running.placeholders import FILE as MODULES_FILE

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


COMPILED = "_C."
TESTS_OF_PYTORCH = {"testing", "bin", "lib", "include", "share"}


def modules_of(root: Path) -> Iterator[str]:
    """The paths of the modules below a folder: "nn.modules.conv"."""
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        if parts and parts[0] not in TESTS_OF_PYTORCH:
            yield ".".join(parts)


def compiled_modules() -> Iterator[str]:
    """The paths of the modules that are in PyTorch's library, without those that eager has: "_C._functorch"."""
    from eager import _C

    for name in sorted(name for name in sys.modules if name.startswith(f"torch.{COMPILED}")):
        if name.split(".")[2] not in vars(_C):
            yield name.removeprefix("torch.")


def modules_by_package(torch: ModuleType) -> dict[str, list[str]]:
    """Package of PyTorch -> its modules."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in (*modules_of(Path(torch.__path__[0])), *compiled_modules()):
        package, _, name = path.rpartition(".")
        found[package].append(name)
    return found


def main() -> None:
    import torch
    import torch.masked

    listed = sorted(modules_by_package(torch).items())
    MODULES_FILE.write_text("".join(f"{package}: {' '.join(names)}\n" for package, names in listed))
    Path(FILE).write_text("".join(f"{place}: {' '.join(names)}\n" for place, names in public_names(torch).items()))


if __name__ == "__main__":
    main()
