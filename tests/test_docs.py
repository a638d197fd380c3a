"""The pages are true: examples print what they say, links and file names lead somewhere, pages stay short."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

from tests.test_architecture import COMPARE, EAGER, GRAPHC

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(str(p.relative_to(ROOT)) for p in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
INTERNALS = [page for page in PAGES if page.startswith("docs/internals/")]
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
EXAMPLE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#([^)\s]*))?\)")
FILE = re.compile(r"(?<![\w./])(?:graphc|eager|compare|tests|docs|examples|benchmarks)/[\w./-]*\w/?")


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def anchors(page: str) -> set[str]:
    """The names by which links reach the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", text_of(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def dead_links(page: str) -> list[str]:
    dead = []
    for target, anchor in LINK.findall(text_of(page)):
        path = (ROOT / page).parent.joinpath(target).resolve()
        if not path.exists() or (anchor and anchor not in anchors(str(path.relative_to(ROOT)))):
            dead.append(f"{target}#{anchor}")
    return dead


def missing_files(page: str) -> list[str]:
    """What a page names as a file or folder of the project, and is none."""
    return [name for name in FILE.findall(text_of(page)) if not (ROOT / name).exists()]


@pytest.mark.usefixtures("undeclared")
@pytest.mark.parametrize("page", [page for page in PAGES if ">>> " in text_of(page)])
def test_examples_print_what_the_page_says(page: str):
    """The examples of a page run in order, in one namespace."""
    text = text_of(page)
    example = doctest.DocTestParser().get_doctest("\n".join(EXAMPLE.findall(text)), {}, page, page, 0)
    assert len(example.examples) == len(re.findall("^>>> ", text, re.MULTILINE)), "an example outside ```python"
    failures: list[str] = []
    doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(example, out=failures.append)
    assert not failures, "".join(failures)


def test_pages_that_promise_examples_have_them():
    promised = ("README", "ARCHITECTURE", "docs/extending", "docs/compile", "docs/compare", "docs/graphs")
    assert [name for name in promised if not EXAMPLE.search(text_of(f"{name}.md"))] == []


@pytest.mark.parametrize("page", PAGES)
def test_links_and_file_names_lead_somewhere(page: str):
    assert dead_links(page) + missing_files(page) == []


def test_dead_links_are_found(monkeypatch: pytest.MonkeyPatch):
    text = "# One\n[a](README.md) [b](NONE.md) [c](README.md#one) [d](README.md#two) `graphc/none.py` `graphc/ops/`"
    monkeypatch.setattr("tests.test_docs.text_of", lambda page: text)
    assert dead_links("README.md") == ["NONE.md#", "README.md#two"]
    assert missing_files("README.md") == ["graphc/none.py"]


def test_the_architecture_page_has_every_room_in_order():
    """tests/test_architecture.py holds the imports to the same order."""
    rooms_of = re.findall(r"^((?:graphc|eager|compare)/.*)$", text_of("ARCHITECTURE.md"), re.MULTILINE)
    picture = "\n".join(rooms_of)
    files = {"errors", "forking", "lazy", "scoped", "logs", "session", "targets"}
    files |= {"return_types", "random", "environment"}
    for package, rooms in (("graphc", GRAPHC), ("eager", EAGER), ("compare", COMPARE)):
        found = re.findall(rf"{package}/(\w+)/", picture)
        assert found == [room for room in rooms if room not in files]


@pytest.mark.parametrize(("page", "most"), [("ARCHITECTURE.md", 100), *((page, 120) for page in INTERNALS)])
def test_pages_are_short(page: str, most: int):
    """Printed examples do not count."""
    assert len(EXAMPLE.sub("", text_of(page)).splitlines()) <= most


@pytest.mark.parametrize("page", INTERNALS)
def test_the_architecture_page_leads_to_every_page_of_internals(page: str):
    assert f"({page})" in text_of("ARCHITECTURE.md")
