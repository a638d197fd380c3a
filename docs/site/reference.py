"""The reference: a page for each public module, made from signatures and docstrings as they are.

Docstrings here are plain text with aligned columns and examples. What has columns is shown as it is written; the rest
are paragraphs. Most of `eager` is made from the op registry, so modules are imported, not read.
"""

from __future__ import annotations

import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from docs.site.navigation import REFERENCE

_COLUMNS = re.compile(r"^ *\S+( \S+)*  +\S", re.MULTILINE)
_COLUMN = re.compile(r"(\S+(?: \S+)*)  +(\S.*)")
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_QUOTED = re.compile(r"((?:: |-> ))'([^']*)'")  # annotations that are text


def thing(path: str) -> Any:
    """A module or class by its dotted name."""
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError:
        owner, _, name = path.rpartition(".")
        return getattr(importlib.import_module(owner), name)


def public_names(owner: Any) -> list[str]:
    """What a module or class offers; without its submodules, which have pages of their own."""
    if inspect.isclass(owner) or "__dir__" in vars(owner):
        found = [name for name in dir(owner) if not name.startswith("_")]
    else:
        found = getattr(owner, "__all__", None) or [name for name in dir(owner) if _belongs(owner, name)]
    return sorted((n for n in found if not isinstance(getattr(owner, n, None), ModuleType)), key=str.lower)


def _belongs(module: ModuleType, name: str) -> bool:
    """Whether a name of a module without `__all__` is its own."""
    value = None if name.startswith("_") else getattr(module, name, None)
    return callable(value) and (getattr(value, "__module__", None) or "").startswith(("eager", "graphc", "compare"))


def page(path: str) -> str:
    """The reference page of a module or class."""
    owner = thing(path)
    shown = path.replace("eager", "torch", 1) if path.startswith("eager") else path
    lines = [f"# {path}", "", *prose(_words(owner))]
    if path.startswith("eager"):
        lines += ["", f"Names are written as after `import eager as torch`: `{shown}`."]
    values: list[str] = []
    for name in public_names(owner):
        value = inspect.getattr_static(owner, name, None) if inspect.isclass(owner) else getattr(owner, name)
        if callable(value) or isinstance(value, property | staticmethod | classmethod):
            lines += ["", *_entry(f"{shown}.{name}", getattr(owner, name) if inspect.isclass(owner) else value)]
        else:
            values.append(f"`{name}`")
    if values:
        lines += ["", "## Values", "", ", ".join(values)]
    return "\n".join(lines) + "\n"


def index() -> str:
    """The page that leads to all others."""
    lines = ["# API", ""]
    for title, paths in REFERENCE.items():
        lines += [f"## {title}", "", "| module | names | what it is |", "|---|---|---|"]
        for path in paths:
            first = _words(owner := thing(path)).split("\n\n")[0].replace("\n", " ").replace("|", "\\|")
            lines.append(f"| [{path}]({path}.md) | {len(public_names(owner))} | {first} |")
        lines.append("")
    return "\n".join(lines)


def _entry(path: str, value: Any) -> Iterator[str]:
    """One name: heading, signature, text, and the methods of a class of ours."""
    name = path.rpartition(".")[2]
    # the id is HTML's, as links and search have it
    yield f"### {_literal(name)} {{#{path}}}"
    yield ""
    signature = _signature(value)
    if signature:
        yield from ("```python", _fitted(f"{path}{signature}"), "```", "")
    yield from prose(_words(value))


def _signature(value: Any) -> str:
    try:
        return _QUOTED.sub(r"\1\2", _ADDRESS.sub("", str(inspect.signature(value)))) if callable(value) else ""
    except (ValueError, TypeError):
        return ""


def _fitted(call: str) -> str:
    """A signature on lines that fit the page."""
    return call if len(call) <= 90 else "\n".join(textwrap.wrap(call, 90, subsequent_indent="    "))


def _words(value: Any) -> str:
    """The docstring that a thing has itself."""
    found = inspect.getdoc(value) or ""
    return "" if inspect.isclass(value) and value.__doc__ is None else found


def prose(docstring: str) -> list[str]:
    """Lines of Markdown: paragraphs; columns and examples as they are."""
    lines: list[str] = []
    for block in filter(str.strip, re.split(r"\n\s*\n", docstring)):
        if block.lstrip().startswith(">>>"):
            lines += ["```pycon", textwrap.dedent(block), "```", ""]
        elif rows := _rows(block):
            lines += ["| | |", "|---|---|", *(f"| `{name}` | {_literal(words)} |" for name, words in rows), ""]
        elif _COLUMNS.search(block) or block.startswith(" "):
            lines += ["```text", block, "```", ""]
        else:
            lines += [_literal(block), ""]
    return lines


def _rows(block: str) -> list[tuple[str, str]]:
    """The rows of a block that is columns throughout, "name  words" with further words indented; else none."""
    rows: list[tuple[str, str]] = []
    for line in textwrap.dedent(block).splitlines():
        if (found := _COLUMN.fullmatch(line)) and "`" not in found[1]:
            rows.append((found[1].replace("|", "\\|"), found[2]))
        elif rows and line.startswith("    "):
            rows[-1] = rows[-1][0], f"{rows[-1][1]} {line.strip()}"
        else:
            return []
    return rows


def _literal(block: str) -> str:
    """Text in which only code in backticks is Markdown."""
    pieces = re.split(r"(`[^`]*`)", block)
    return "".join(p if k % 2 else re.sub(r"([\\*_<>\[\]#|~^])", r"\\\1", p) for k, p in enumerate(pieces))
