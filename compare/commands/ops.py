"""`python -m compare ops`: judge every op of the registry in every mode."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from compare.commands.exit_codes import AGREE, DISAGREE
from compare.commands.target import add_common, modes_of
from compare.declared.operations import check_ops
from graphc.display.terminal import show

HELP = "judge every op of the registry in every mode"


def add_arguments(command: ArgumentParser) -> None:
    command.add_argument("names", nargs="*", help="ops; all if none is named")
    add_common(command)


def run(arguments: Namespace) -> int:
    report = check_ops(arguments.names, modes_of(arguments), arguments.seed)
    show(report, arguments.json)
    return AGREE if report.ok else DISAGREE
