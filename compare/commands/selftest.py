"""`python -m compare selftest`: does the harness find planted faults, and raise no false alarms?"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace

from compare.commands.exit_codes import AGREE, DISAGREE
from compare.selftest.campaign import PROGRAMS, selftest
from compare.selftest.hunting import TRIES, Catch
from graphc.display.terminal import show

HELP = "plant faults and hunt them; check clean random programs"


def add_arguments(command: ArgumentParser) -> None:
    command.add_argument("--programs", type=int, default=PROGRAMS, help="clean random programs")
    command.add_argument(
        "--tries", type=int, default=TRIES, help="random programs for one fault that is not found else"
    )
    command.add_argument("--seconds", type=float, help="begin no more of those after that time")
    command.add_argument("--faults", help="parts of names or layers, separated by commas; all if left out")
    command.add_argument("--seed", type=int, help="of the clean programs; else it follows from the packages' code")
    command.add_argument("--workers", type=int, default=1, help="processes for the clean programs; 0: only this one")
    command.add_argument("--quiet", action="store_true", help="no line for each fault")
    command.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: Namespace) -> int:
    report = selftest(
        arguments.programs, arguments.seconds, arguments.faults.split(",") if arguments.faults else (),
        arguments.workers, None if arguments.quiet else _tell, tries=arguments.tries, seed=arguments.seed,
    )  # fmt: skip
    show(report, arguments.json)
    return AGREE if report.ok else DISAGREE


def _tell(catch: Catch) -> None:
    word = "localized" if catch.localized else "found" if catch.found else "survived"
    print(f"{word:<9}  {catch.seconds:6.1f} s  {catch.fault.name}", file=sys.stderr)
