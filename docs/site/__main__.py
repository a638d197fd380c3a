"""Builds the site: `python -m docs.site` runs the tutorials and reports, and writes build/site/index.html.

The pages are laid out in build/pages as they are in the repository, so that their links hold. A link that leads nowhere
ends the build with an error.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

from docs.site import gallery, notebooks, reference
from docs.site.navigation import GALLERY, REFERENCE, TUTORIALS, listed, navigation

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "build" / "pages"
_SESSION = re.compile(r"^```python\n(?=>>> )", re.MULTILINE)  # Python's prompt: the highlighter has a name of its own for it


def main() -> int:
    """Lay out the pages, and build the site from them."""
    try:
        import nbformat
        from mkdocs.commands.build import build
        from mkdocs.config import load_config
    except ImportError as error:
        print(f"The site needs the extra `docs`: pip install -e '.[docs]' ({error})", file=sys.stderr)
        return 2
    shutil.rmtree(PAGES, ignore_errors=True)
    for page in listed():
        if (ROOT / page).exists() and "tutorials" not in page:
            _write(page, _SESSION.sub("```pycon\n", (ROOT / page).read_text(encoding="utf-8")))
    for name in TUTORIALS:
        print(f"running {name}", flush=True)
        notebook = notebooks.executed((ROOT / f"docs/tutorials/{name}.md").read_text(encoding="utf-8"), str(ROOT))
        download = f'\n<a class="md-button" href="{name}.ipynb" download>Download as a notebook</a>\n'
        _write(f"docs/tutorials/{name}.md", notebooks.written(notebook) + download)
        _write(f"docs/tutorials/{name}.ipynb", nbformat.writes(notebook))
    for path in (path for paths in REFERENCE.values() for path in paths):
        _write(f"reference/{path}.md", reference.page(path))
    _write("reference/index.md", reference.index())
    print("running the gallery", flush=True)
    exhibits = {name: gallery.EXHIBITS[name]() for name in GALLERY}
    for name, exhibit in exhibits.items():
        _write(f"gallery/{name}.md", gallery.page(name, exhibit))
        _write(f"gallery/{name}.document.html", exhibit.document)
    _write("gallery/index.md", gallery.index(exhibits))
    from graphc.display.as_html import STYLE

    _write("site.css", (Path(__file__).parent / "site.css").read_text(encoding="utf-8") + STYLE)
    shutil.copy(ROOT / "docs" / "graph.svg", PAGES / "docs")
    build(load_config(str(Path(__file__).parent / "mkdocs.yml"), nav=navigation(), strict=True))
    print(f"open {ROOT / 'build' / 'site' / 'index.html'}")
    return 0


def _write(path: str, text: str) -> None:
    (PAGES / path).parent.mkdir(parents=True, exist_ok=True)
    (PAGES / path).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
