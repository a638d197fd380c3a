"""Builds the site: `python -m docs.site [build]` runs the tutorials and reports, and writes build/site/index.html.

The pages are laid out in build/pages as they are in the repository, so that their links hold. A link that leads nowhere
ends the build with an error.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from docs.site import gallery, notebooks, reference
from docs.site.navigation import GALLERY, REFERENCE, TUTORIALS, listed, navigation
from graphc.display.as_html import SCRIPT, STYLE

ROOT = Path(__file__).resolve().parents[2]
_SESSION = re.compile(r"^```python\n(>>> .*?)^```", re.MULTILINE | re.DOTALL)


def main(folder: Path = ROOT / "build") -> int:
    """Lay out the pages, and build the site from them. Returns an exit code."""
    try:
        import nbclient  # noqa: F401
        from mkdocs.commands.build import build
        from mkdocs.config import load_config
    except ImportError as error:
        print(f"The site needs the extra `docs`: pip install -e '.[docs]' ({error})", file=sys.stderr)
        return 2
    pages = folder / "pages"
    shutil.rmtree(pages, ignore_errors=True)
    for path, text in _written():
        (pages / path).parent.mkdir(parents=True, exist_ok=True)
        (pages / path).write_text(text, encoding="utf-8")
    here = str(Path(__file__).parent / "mkdocs.yml")
    build(load_config(here, docs_dir=str(pages), site_dir=str(folder / "site"), nav=navigation()))
    print(f"open {folder / 'site' / 'index.html'}")
    return 0


def _written() -> Iterator[tuple[str, str]]:
    """Every file of the site, by its path."""
    import nbformat

    for page in listed():
        if (ROOT / page).exists() and "tutorials" not in page:
            yield page, _SESSION.sub(_session, (ROOT / page).read_text(encoding="utf-8"))
    yield "docs/graph.svg", (ROOT / "docs" / "graph.svg").read_text(encoding="utf-8")
    yield "site.css", (Path(__file__).parent / "site.css").read_text(encoding="utf-8") + STYLE
    yield "site.js", SCRIPT
    yield "iframe-worker.js", (Path(__file__).parent / "iframe-worker.js").read_text(encoding="utf-8")
    for name in TUTORIALS:
        print(f"running {name}", flush=True)
        notebook = notebooks.executed((ROOT / f"docs/tutorials/{name}.md").read_text(encoding="utf-8"), str(ROOT))
        download = f'\n<a class="md-button" href="{name}.ipynb" download>Download as a notebook</a>\n'
        yield f"docs/tutorials/{name}.md", notebooks.written(notebook) + download
        yield f"docs/tutorials/{name}.ipynb", nbformat.writes(notebook)
    for path in (path for paths in REFERENCE.values() for path in paths):
        yield f"reference/{path}.md", reference.page(path)
    yield "reference/index.md", reference.index()
    exhibits: dict[str, gallery.Exhibit] = {}
    for name in GALLERY:
        print(f"running {name}", flush=True)
        exhibits[name] = gallery.EXHIBITS[name]()
        yield f"gallery/{name}.md", gallery.page(name, exhibits[name])
        yield f"gallery/{name}.document.html", exhibits[name].document
    yield "gallery/index.md", gallery.index(exhibits)


def _session(found: re.Match[str]) -> str:
    """A block of Python's prompt, by the highlighter's name for it, and without what only doctest reads."""
    return f"```pycon\n{found[1].replace('<BLANKLINE>', '').rstrip()}\n```"


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:2])))
