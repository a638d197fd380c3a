"""`python -m compare report`: check and time a function, and write one HTML file about it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from compare.commands.bench import add_timing, timing_options
from compare.commands.exit_codes import exit_code
from compare.commands.target import add_target, check_writable, target_of
from compare.reporting import report
from graphc.display.terminal import show

HELP = "check and time a function, and write one HTML file about it"


def add_arguments(command: ArgumentParser) -> None:
    add_target(command)
    add_timing(command)
    command.add_argument("--out", default="report.html", metavar="FILE", help="the HTML file; %(default)s if left out")


def run(arguments: Namespace) -> int:
    check_writable(arguments.out)
    fn, args = target_of(arguments)
    found = report(fn, *args, **timing_options(arguments))
    written = found.write(arguments.out)
    show(found if arguments.json else found.bench or found.check, arguments.json)
    if not arguments.json:
        print(f"written to {written}")
    return exit_code(found.check)
