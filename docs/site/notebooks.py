"""Tutorials: a page of Markdown is a notebook, whose cells are its blocks of Python.

A comment `<!-- true: expression -->` below a cell is a claim of the text: the expression must be true when the cell has
run. Readers do not see it; the suite and the build ask it.
"""

from __future__ import annotations

import ast
import html
import linecache
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

_PART = re.compile(r"^```python\n(?P<code>.*?)^```\n?|^<!-- true: (?P<claim>.*?) -->\n?", re.MULTILINE | re.DOTALL)
_STYLE = re.compile(r"<style>.*?</style>\n?", re.DOTALL)
_FILE = re.compile(r"[^\s\"'<>(]*/ipykernel_\d+/(\d+\.py)")
_KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}
SECONDS = 300  # that a cell may take


class Part(NamedTuple):
    """A piece of a page. kind: "text", "code" or "claim"."""

    kind: str
    source: str


class FalseClaim(AssertionError):
    """A tutorial says what is not so."""


def parts(page: str) -> Iterator[Part]:
    """The pieces of a page, in order; text that is only space is left out."""
    at = 0
    for found in _PART.finditer(page):
        if page[at : found.start()].strip():
            yield Part("text", page[at : found.start()].strip("\n"))
        yield Part("claim", found["claim"]) if found["code"] is None else Part("code", found["code"])
        at = found.end()
    if page[at:].strip():
        yield Part("text", page[at:].strip("\n"))


def run(page: str, name: str) -> dict[str, Any]:
    """Run a page as a notebook does, without Jupyter, and return its names.

    What ends a cell is shown as text and as HTML. Raises what a cell raises, and FalseClaim.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, part in enumerate(parts(page)):
        if part.kind == "code":
            shown = _executed(part.source, f"<{name}, part {number}>", names)
            if shown is not None:
                repr(shown), getattr(shown, "_repr_html_", str)()
        elif part.kind == "claim" and not eval(part.source, names):
            raise FalseClaim(f"{name}: {part.source}")
    return names


def _executed(source: str, file: str, names: dict[str, Any]) -> Any:
    """Run a cell; the value of its last line, None if that is no expression."""
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file  # tracebacks and traces read it
    tree = ast.parse(source, file)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, file, "exec"), names)
    return eval(compile(ast.Expression(last.value), file, "eval"), names) if isinstance(last, ast.Expr) else None


def executed(page: str, folder: str) -> Any:
    """The page as a notebook of nbformat, run by Jupyter in `folder`: outputs included.

    Raises nbclient's CellExecutionError for what a cell raises, and for a claim that is not true.
    """
    import nbformat
    from ipykernel.compiler import get_file_name
    from nbclient import NotebookClient

    make = nbformat.v4
    hidden = {"hidden": True}
    cells: list[Any] = [make.new_code_cell("%config InlineBackend.figure_formats = ['svg']", metadata=hidden)]
    for part in parts(page):
        if part.kind == "text":
            cells.append(make.new_markdown_cell(part.source))
        elif part.kind == "code":
            cells.append(make.new_code_cell(part.source.strip()))
        else:
            cells.append(make.new_code_cell(f"assert {part.source}", metadata=hidden))
    notebook = make.new_notebook(cells=cells, metadata={"kernelspec": _KERNEL})
    client = NotebookClient(notebook, timeout=SECONDS, coalesce_streams=True, resources={"metadata": {"path": folder}})
    client.create_kernel_manager().transport = "ipc"  # no port is open to others
    client.execute()
    notebook.cells = [cell for cell in notebook.cells if "hidden" not in cell.metadata]
    files = {Path(get_file_name(cell.source)).name: f"cell {cell.execution_count - 1}" for cell in notebook.cells
             if cell.cell_type == "code"}  # fmt: skip
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number}"  # the same file for the same run
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]  # progress
    for output in (output for cell in notebook.cells for output in cell.get("outputs", ())):
        if "text" in output:
            output.text = _FILE.sub(lambda found: files.get(found[1], found[1]), output.text)
        for kind, text in output.get("data", {}).items():
            output.data[kind] = _FILE.sub(lambda found: files.get(found[1], found[1]), text)
    return notebook


def written(notebook: Any) -> str:
    """An executed notebook as Markdown, with its outputs as HTML."""
    found: list[str] = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            found.append(cell.source)
            continue
        found.append(f"```python\n{cell.source}\n```")
        found += [f'<div class="output">\n{_shown(output)}\n</div>' for output in cell.outputs]
    return "\n\n".join(found) + "\n"


def _shown(output: Any) -> str:
    if output.output_type == "stream":
        return f"<pre>{html.escape(output.text)}</pre>"
    data = output.data
    if "text/html" in data:
        return boxed(data["text/html"])
    if "image/svg+xml" in data:
        svg = data["image/svg+xml"]
        return boxed(f'<div class="graphc"><div class="chart">{svg[svg.index("<svg") :]}</div></div>')
    return f"<pre>{html.escape(data['text/plain'])}</pre>"


def boxed(fragment: str) -> str:
    """HTML of ours for a page that has its style already, without empty lines, which would end it for Markdown."""
    return re.sub(r"\n(?=\s*\n)", "\n&#8203;" if "<pre" in fragment else "", _STYLE.sub("", fragment))
