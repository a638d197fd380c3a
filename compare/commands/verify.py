"""`python -m compare verify`: replay a certificate. Exit code 0: it holds; 1: it does not; 2: it could not be read."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from compare.certificates.verification import verify
from compare.commands.exit_codes import AGREE, DISAGREE
from compare.commands.target import add_target, target_of
from graphc.display.terminal import show

HELP = "replay a certificate: the same graph, inputs and verdicts"


def add_arguments(command: ArgumentParser) -> None:
    command.add_argument("certificate", help="the file that `certify` has written")
    add_target(command)
    command.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: Namespace) -> int:
    fn, args = target_of(arguments)
    found = verify(arguments.certificate, fn, *args)
    show(found, arguments.json)
    return AGREE if found.ok else DISAGREE
