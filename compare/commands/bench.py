"""`python -m compare bench`: time a function in every mode."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from typing import Any

from compare.benchmark import DisagreementError, bench
from compare.commands.exit_codes import AGREE, DISAGREE, exit_code
from compare.commands.target import add_common, add_target, modes_of, target_of

HELP = "time a function in every mode"


def add_arguments(command: ArgumentParser) -> None:
    add_target(command)
    add_common(command)
    command.add_argument("--force", action="store_true", help="time modes that do not agree")
    command.add_argument("--min-time", type=float, default=0.2, help="seconds of steady state for each row")


def run(arguments: Namespace) -> int:
    fn, args = target_of(arguments)
    options: dict[str, Any] = {"min_time": arguments.min_time, "force": arguments.force, "seed": arguments.seed}
    if arguments.modes:
        options["modes"] = modes_of(arguments)
    try:
        report = bench(fn, *args, **options)
    except DisagreementError as error:
        print(error, file=sys.stderr)
        return exit_code(error.report)
    print(report.to_json() if arguments.json else report)
    return AGREE if report.agree else DISAGREE
