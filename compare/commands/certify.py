"""`python -m compare certify`: check a function and write a certificate."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from compare.certificates.certificate import certify
from compare.commands.exit_codes import AGREE
from compare.commands.target import add_common, add_target, check_writable, modes_of, target_of

HELP = "check a function, and write a certificate that `verify` can replay"


def add_arguments(command: ArgumentParser) -> None:
    add_target(command)
    add_common(command)
    command.add_argument("--out", default="certificate.json", metavar="FILE", help="%(default)s if left out")


def run(arguments: Namespace) -> int:
    check_writable(arguments.out)
    fn, args = target_of(arguments)
    made = certify(fn, *args, path=arguments.out, modes=modes_of(arguments), seed=arguments.seed)
    print(made.to_json() if arguments.json else f"{made.name}: the modes agree; written to {arguments.out}")
    return AGREE
