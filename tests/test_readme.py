"""The examples of README.md and of pages of docs/ run, in order, in one namespace a page, and print what it says."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@pytest.mark.quick_xla
@pytest.mark.parametrize(("page", "least"), [
    ("README.md", 5), ("docs/graphs.md", 5), ("docs/compile.md", 6), ("docs/findings.md", 3), ("docs/compare.md", 5),
])  # fmt: skip
def test_examples_print_what_the_page_says(page: str, least: int):
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= least
    example = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, page, str(ROOT / page), 0)
    failures: list[str] = []
    doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(example, out=failures.append)
    assert not failures, "".join(failures)
