"""Writes every stub anew: `python -m tests.stubs`. With `--json`, prints them and what else a fresh process finds."""

from __future__ import annotations

import importlib
import inspect
import json
import sys
from pathlib import Path
from types import ModuleType

from tests.stubs import forms
from tests.stubs.files import STUBS

ROOT = Path(__file__).resolve().parents[2]


def undocumented(name: str) -> list[str]:
    """What a module lists that has no docstring. ValueError if something has no signature."""
    module, wrong = importlib.import_module(name), []
    for public in (n for n in dir(module) if not n.startswith("_")):
        value = getattr(module, public)
        if isinstance(value, ModuleType) or not callable(value) or type(value).__module__ in ("types", "typing"):
            continue
        if not inspect.getdoc(value):
            wrong.append(public)
        if not (isinstance(value, type) and issubclass(value, BaseException)):
            inspect.signature(value)
    return wrong


def main(arguments: list[str]) -> None:
    stubs = {path: make() for path, make in STUBS.items()}
    if arguments[:1] == ["--json"]:
        unused = sorted(forms.BY_NAME.keys() - forms.used)
        wrong = {name: undocumented(name) for name in arguments[1:]}
        print(json.dumps({"stubs": stubs, "unused": unused, "undocumented": wrong}))
        return
    for path, text in stubs.items():
        (ROOT / path).write_text(text)


if __name__ == "__main__":
    main(sys.argv[1:])
