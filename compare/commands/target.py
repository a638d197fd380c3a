"""Options that commands have in common, beside the function that they are about (`graphc.targets`)."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from pathlib import Path

from graphc.targets import TargetError, add_target, callable_named, target_of

__all__ = ["TargetError", "add_common", "add_target", "callable_named", "check_writable", "modes_of", "target_of"]


def add_common(command: ArgumentParser, modes: str = "all", seed: int | None = 0) -> None:
    """The options that all commands have. seed: the default; None: a number that follows from the packages' code."""
    command.add_argument("--modes", help=f"names separated by commas; {modes} if left out")
    of_code = "a number that follows from the packages' code" if seed is None else seed
    command.add_argument("--seed", type=int, default=seed, help=f"{of_code} if left out")
    command.add_argument("--json", action="store_true", help="print JSON")


def modes_of(arguments: Namespace) -> list[str] | None:
    """The modes that were asked for, or None."""
    return arguments.modes.split(",") if arguments.modes else None


def check_writable(path: str | None) -> None:
    """Raises TargetError if a file that is to be written at the end cannot be there."""
    if path is None:
        return
    folder = Path(path).absolute().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK) or Path(path).is_dir():
        raise TargetError(f"'{path}' cannot be written. Remedy: name a file in a folder that is there.")
