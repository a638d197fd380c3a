"""The tables of names, read: public name -> (module, attribute)."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Any

from eager.surface import names


def _entries(table: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """(public name, module, attribute) of each entry."""
    for module, text in table.items():
        for entry in text.split():
            name, _, attribute = entry.partition("=")
            yield name, module, attribute or name


FUNCTIONS = {name: (m, a) for table in (names.BOTH, names.FUNCTIONS) for name, m, a in _entries(table)}
METHODS = {name: (m, a) for table in (names.BOTH, names.METHODS) for name, m, a in _entries(table)}
PROPERTIES = {name: (m, a) for name, m, a in _entries(names.PROPERTIES)}


def found(module: str, attribute: str) -> Any:
    """The object behind an entry: an attribute of the module, or an entry of its table METHODS."""
    loaded = importlib.import_module(f"eager.{module}")
    table = vars(loaded).get("METHODS", {})
    return table[attribute] if attribute in table else getattr(loaded, attribute)
