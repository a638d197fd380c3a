"""`python -m compare minimize`: the smallest program with the bug that `check` finds."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from compare.commands.exit_codes import DISAGREE
from compare.commands.target import add_common, add_target, check_writable, modes_of, target_of
from compare.minimizing import CHECKS, minimize
from graphc.display.terminal import show
from graphc.files import writing

HELP = "find the smallest program that shows the bug which check finds"


def add_arguments(command: ArgumentParser) -> None:
    add_target(command)
    add_common(command)
    command.add_argument("--checks", type=int, default=CHECKS, help="how many smaller programs are checked")
    command.add_argument("--seconds", type=float, help="how long the search may take, if that is to be bounded, too")
    command.add_argument("--out", help="a file for the script; else it is printed")


def run(arguments: Namespace) -> int:
    check_writable(arguments.out)
    fn, args = target_of(arguments)
    found = minimize(
        fn, *args, modes=modes_of(arguments), seed=arguments.seed, checks=arguments.checks, seconds=arguments.seconds
    )
    if arguments.out is not None:
        writing.write(arguments.out, found.script)
    if arguments.json or arguments.out is not None:
        show(found, arguments.json)
    else:
        print(found.script)
    return DISAGREE
