"""The site: its navigation is what there is, its tutorials run and say what is so, and it builds."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import pytest

from docs.site import reference
from docs.site.navigation import GALLERY, REFERENCE, TUTORIALS, listed
from docs.site.notebooks import FalseClaim, Part, parts, run
from tests.test_docs import PAGES

ROOT = Path(__file__).resolve().parent.parent
GENERATED = ("gallery/", "reference/")
FETCHED = re.compile(r"""<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)=["']?(?:https?:)?//[^>]*>""")
SLOW = ("first-model", "numerical-bugs", "from-pytorch")  # they time modes, or try many small programs
SITE = all(find_spec(name) for name in ("mkdocs", "material", "nbclient", "ipykernel"))


def test_the_navigation_has_every_page_once():
    written = [page for page in listed() if not page.startswith(GENERATED)]
    assert sorted(written) == PAGES
    assert len(set(listed())) == len(listed())


def test_tutorials_lead_to_each_other_and_are_short():
    pages = {name: (ROOT / f"docs/tutorials/{name}.md").read_text(encoding="utf-8") for name in TUTORIALS}
    for name, after in pairwise(TUTORIALS):
        assert f"({after}.md)" in pages[name].splitlines()[-1]
    for name, page in pages.items():
        kinds = [part.kind for part in parts(page)]
        assert kinds.count("code") >= 7 and kinds.count("claim") >= 3, name
        assert sum(len(part.source.split()) for part in parts(page) if part.kind == "text") < 1000, name


def test_every_entry_of_the_reference_has_a_page_with_its_names():
    paths = [path for paths in REFERENCE.values() for path in paths]
    for path in ("graphc", "compare", "eager.nn", "eager.special"):
        assert path in paths
        page = reference.page(path)
        for name in reference.public_names(reference.thing(path)):
            assert f".{name}}}" in page or f"`{name}`" in page, name


def test_text_of_docstrings_is_no_markup():
    assert reference.prose("a_b * c <d> `x_y`\n\nname  what\n      it_is\n\n>>> 1\n1") == [
        r"a\_b \* c \<d\> `x_y`", "", "| | |", "|---|---|", r"| `name` | what it\_is |", "",
        "```pycon", ">>> 1\n1", "```", "",
    ]  # fmt: skip


@pytest.mark.on_numpy
@pytest.mark.usefixtures("undeclared")
@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.deep] * (n in SLOW)) for n in TUTORIALS])
def test_tutorials_run_and_their_claims_are_true(name: str):
    plots = pytest.importorskip("matplotlib.pyplot")
    plots.switch_backend("agg")
    run((ROOT / f"docs/tutorials/{name}.md").read_text(encoding="utf-8"), name)
    plots.close("all")


def test_a_page_is_cells_and_a_false_claim_is_found():
    page = "# T\n\n```python\nx = 1\nx + 1\n```\n\n<!-- true: x == 1 -->\n\nmore\n\n```\nno cell\n```\n"
    assert [*parts(page)] == [Part("text", "# T"), Part("code", "x = 1\nx + 1\n"), Part("claim", "x == 1"),
                              Part("text", "more\n\n```\nno cell\n```")]  # fmt: skip
    assert run(page, "t")["x"] == 1
    with pytest.raises(FalseClaim, match="t: x == 2"):
        run(page.replace("x == 1", "x == 2"), "t")
    with pytest.raises(ZeroDivisionError):
        run("```python\n1 / 0\n```\n", "t")


def test_what_a_page_would_fetch_is_found():
    page = '<script src="https://x.org/a.js"><a href="https://x.org"><link href=//x.org/b.css><img src="c.svg">'
    assert FETCHED.findall(page) == ['<script src="https://x.org/a.js">', "<link href=//x.org/b.css>"]


@pytest.mark.deep
@pytest.mark.skipif(not SITE, reason="the extra `docs` is not installed")
def test_the_site_builds_and_needs_no_network(tmp_path: Path):
    done = subprocess.run([sys.executable, "-m", "docs.site", str(tmp_path)], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    site = tmp_path / "site"
    for page in (*GALLERY, "index"):
        assert (site / "gallery" / f"{page}.html").exists()
    assert (site / "search" / "search_index.js").exists()
    pages = [*site.rglob("*.html")]
    fetched = {page: found for page in pages if (found := FETCHED.findall(page.read_text(encoding="utf-8")))}
    assert len(pages) > 60 and not fetched
    notebook = (site / "docs/tutorials/first-model.ipynb").read_text(encoding="utf-8")
    assert '"output_type"' in notebook and "claim" not in notebook
