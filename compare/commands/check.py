"""`python -m compare check`: judge a function in every mode."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from compare.checking.equivalence import check
from compare.commands.exit_codes import exit_code
from compare.commands.target import add_common, add_target, modes_of, target_of
from compare.judging.work import LIMIT
from graphc.display.terminal import show

HELP = "judge a function in every mode"


def add_arguments(command: ArgumentParser) -> None:
    add_target(command)
    add_common(command)
    command.add_argument("--order", type=int, default=1, choices=(1, 2), help="2: gradients of gradients, too")
    command.add_argument(
        "--limit", type=float, default=LIMIT, help="of the work of a mode, in numbers that are computed"
    )
    command.add_argument("--audit", action="store_true", help="also call the compiled function in other ways")


def run(arguments: Namespace) -> int:
    fn, args = target_of(arguments)
    report = check(fn, *args, modes=modes_of(arguments), seed=arguments.seed, order=arguments.order,
                   audit=arguments.audit, limit=arguments.limit)  # fmt: skip
    show(report, arguments.json)
    return exit_code(report)
