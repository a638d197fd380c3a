"""Programs with their recorded output, one Markdown file an area.

    ## title

    ```python
    print(torch.ones(2))
    ```

    ```text
    tensor([1., 1.])
    ```

The text is what PyTorch prints. Where eager differs by decision, a line `Differs: reason` and a block
```` ```eager ```` with eager's own output follow. A program sees `torch` (PyTorch or eager), `np` and `math`, starts
from `torch.manual_seed(0)`, and ends with the type and message of an error it does not catch.

    python -m tests.eager.snippet_files [area ...]

records the text blocks anew from the PyTorch that is installed, and prints the programs that eager runs differently.
"""

from __future__ import annotations

import contextlib
import difflib
import io
import math
import re
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np

import eager
from tests import rounding

FOLDER = Path(__file__).parent / "snippets"
_BLOCK = re.compile(r"^```(python|text|eager)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass
class Snippet:
    area: str
    title: str
    program: str
    recorded: str | None  # what PyTorch prints
    own: str | None  # what eager prints, where it differs by decision
    reason: str | None

    @property
    def expected(self) -> str | None:
        return self.recorded if self.own is None else self.own

    def __str__(self) -> str:
        parts = [f"## {self.title}\n", f"```python\n{self.program}```\n", f"```text\n{self.recorded or ''}```\n"]
        if self.own is not None:
            parts += [f"Differs: {self.reason}\n", f"```eager\n{self.own}```\n"]
        return "\n".join(parts)


def read(path: Path) -> tuple[str, list[Snippet]]:
    """The text before the first snippet, and the snippets."""
    head, *sections = re.split(r"^## ", path.read_text(), flags=re.MULTILINE)
    return head, [_snippet(path.stem, section) for section in sections]


def _snippet(area: str, section: str) -> Snippet:
    title = section.partition("\n")[0].strip()
    blocks = dict(_BLOCK.findall(section))
    if "python" not in blocks:
        raise ValueError(f"{area}: '{title}' has no program")
    reason = re.search(r"^Differs: (.*)$", section, re.MULTILINE)
    if (reason is None) != ("eager" not in blocks):
        raise ValueError(f"{area}: '{title}' needs both a reason and eager's output, or neither")
    return Snippet(area, title, blocks["python"], blocks.get("text"), blocks.get("eager"), reason and reason.group(1))


def every_snippet() -> Iterator[Snippet]:
    for path in sorted(FOLDER.glob("*.md")):
        yield from read(path)[1]


def output_of(snippet: Snippet, torch: ModuleType) -> str:
    """What the program prints when `torch` is the given module; it starts and ends with that module's defaults."""
    out = io.StringIO()
    program = re.sub(r"^(\s*(?:import|from)) torch\b", rf"\1 {torch.__name__}", snippet.program, flags=re.MULTILINE)
    scope = {"torch": torch, "np": np, "math": math, "__name__": "__main__"}
    _settle(torch)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(out), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                exec(compile(program, f"<{snippet.area}: {snippet.title}>", "exec"), scope)
            except Exception as error:
                print(f"{type(error).__name__}: {error}")
    finally:
        _settle(torch)
    return "".join(line.rstrip() + "\n" for line in out.getvalue().splitlines())


def _settle(torch: ModuleType) -> None:
    torch.set_default_dtype(torch.float32)
    torch.set_printoptions(profile="default")
    torch.set_grad_enabled(True)
    torch.autograd.set_detect_anomaly(False)
    torch.manual_seed(0)


def difference(expected: str, got: str) -> str:
    """A readable account of how two outputs differ; empty if they do not."""
    return "\n".join(difflib.unified_diff(expected.splitlines(), got.splitlines(), "expected", "eager", lineterm=""))


def disagreement(snippet: Snippet, torch: ModuleType, expected: str) -> str:
    """`difference` of a text and what the program prints, unless that is a matter of rounding.

    The last digits of PyTorch are its machine's, too; eager's rounding stands for its.
    """
    got = output_of(snippet, torch)
    found = difference(expected, got)
    if found and rounding.text_explained(expected, got, rounding.runs(lambda: output_of(snippet, eager))):
        return ""
    return found


def main(areas: list[str]) -> int:
    try:
        import torch
    except ImportError:
        torch = None
    failed = 0
    for path in sorted(FOLDER.glob("*.md")):
        if areas and path.stem not in areas:
            continue
        head, snippets = read(path)
        for snippet in snippets:
            if torch is not None:
                snippet.recorded = output_of(snippet, torch)
            if text := disagreement(snippet, eager, snippet.expected or ""):
                failed += 1
                print(f"--- {snippet.area}: {snippet.title}\n{text}\n")
        path.write_text(head + "\n".join(f"{snippet}" for snippet in snippets))
        print(f"{path.stem}: {len(snippets)} programs")
    print(f"{failed} differ")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
