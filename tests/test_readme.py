"""The examples of README.md run, in order, in one namespace, and print what it says."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

README = Path(__file__).resolve().parent.parent / "README.md"
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def test_examples_print_what_the_readme_says():
    text = README.read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 5
    example = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "README", str(README), 0)
    failures: list[str] = []
    doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(example, out=failures.append)
    assert not failures, "".join(failures)
