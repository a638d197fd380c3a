"""`python -m compare localize`: where the modes part, with the op's inputs there and the line."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from compare.checking.localization import localize
from compare.commands.exit_codes import exit_code
from compare.commands.target import add_common, add_target, modes_of, target_of
from graphc.display.terminal import show

HELP = "find the first op, pass or rule at which the modes part, and the line"


def add_arguments(command: ArgumentParser) -> None:
    add_target(command)
    add_common(command)


def run(arguments: Namespace) -> int:
    fn, args = target_of(arguments)
    found = localize(fn, *args, modes=modes_of(arguments), seed=arguments.seed)
    show(found, arguments.json)
    return exit_code(found.report)
