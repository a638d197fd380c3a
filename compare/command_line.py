"""The command line. Exit code 0: the modes agree; 1: they do not; 2: it could not be found out."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from compare.cases.binding import ArgumentsError
from compare.checking.findings import DisagreementError
from compare.commands.exit_codes import UNKNOWN, exit_code
from graphc.errors import MissingExtraError

# modules of compare.commands
COMMANDS = ("check", "localize", "certify", "verify", "minimize", "fuzz", "ops", "bench", "report", "selftest")


def main(argv: Sequence[str], program: str = "python -m compare") -> int:
    """Run the command line `argv` of `program`; returns the exit code."""
    arguments = _parser(program).parse_args(argv)
    try:
        return arguments.run(arguments)
    except DisagreementError as error:
        print(error, file=sys.stderr)
        return exit_code(error.report)
    except (ValueError, OSError, ArgumentsError, MissingExtraError) as error:
        print(f"{program.rpartition(' ')[2]}: {error}", file=sys.stderr)
        return UNKNOWN


def _parser(program: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=program, description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="|".join(COMMANDS))
    for name in COMMANDS:
        module = importlib.import_module(f"compare.commands.{name}")
        command = commands.add_parser(name, help=module.HELP, description=module.HELP)
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    return parser
