"""`graphc run`: a program that is written for PyTorch, over eager."""

from __future__ import annotations

import argparse
import os
from argparse import ArgumentParser, Namespace
from typing import Any

from graphc.commands.exit_codes import FINE, REFUSED

COMPARE = "--compare-with-torch"
ALONE = f"--rtol, --atol and --ignore are about what is compared, and nothing is. Remedy: add {COMPARE}"


def add_run(parser: ArgumentParser) -> None:
    from graphc.running.comparing import ATOL, RTOL

    options: dict[str, dict[str, Any]] = {
        "-m": dict(dest="module", action="store_true", help="the program is a module"),
        "--compile": dict(action="append", default=[], metavar="NAMES", help="apply graphc.compile to these of its "
                          "functions, as 'step' or 'Model.forward,loss'; may be repeated"),
        "--eager": dict(action="store_true", help="run compiled functions line by line, too"),
        COMPARE: dict(dest="compare", action="store_true", help="also run it over PyTorch, and say where the two part; "
                      "may stand behind the program"),
        "--rtol": dict(type=float, help=f"with it: what numbers may differ by ({RTOL})"),
        "--atol": dict(type=float, help=f"with it: the same, absolutely ({ATOL})"),
        "--ignore": dict(action="append", metavar="PATTERN", help="with it: lines and values that are not "
                         "compared, as '*seconds*'; may be repeated"),
    }  # fmt: skip
    for name, option in options.items():
        parser.add_argument(name, **option)
    parser.add_argument("program", help="a file of Python, a folder with __main__.py, or with -m a module")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="what the program is given")


def run(given: Namespace) -> int:
    if given.eager:
        os.environ["GRAPHC_DISABLE"] = "1"
    compiled = [name for names in given.compile for name in names.split(",") if name]
    settings = {"rtol": given.rtol, "atol": given.atol, "ignored": given.ignore}
    settings = {name: value for name, value in settings.items() if value is not None}
    if given.compare or COMPARE in given.arguments:
        from graphc.display.terminal import show
        from graphc.running.comparing import compare_with_torch

        arguments = [argument for argument in given.arguments if argument != COMPARE]
        report = compare_with_torch(given.program, arguments, module=given.module, compiled=compiled, **settings)
        show(report)
        return FINE if report.ok else REFUSED
    if settings:
        raise ValueError(ALONE)
    from graphc.running.script import run

    return run(given.program, given.arguments, module=given.module, compiled=compiled)
