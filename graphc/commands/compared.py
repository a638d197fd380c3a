"""`graphc check`, `graphc localize` and `graphc bench`: the commands of `compare`."""

from __future__ import annotations

import os
from collections.abc import Sequence


def run(arguments: Sequence[str]) -> int:
    """Run a command line of compare. `check` without a function is about graph files."""
    if arguments[0] == "check" and _are_files(arguments[1:]):
        from graphc.commands.graphs import check

        return check(arguments[1:])
    from compare.command_line import main

    return main(arguments, "graphc")


def _are_files(arguments: Sequence[str]) -> bool:
    """Whether the arguments are names of files, not of a function: "a.py:f"."""
    return bool(arguments) and not any(a.startswith("-") or (a.rpartition(":")[1] and not os.path.exists(a)) or
                                       a.endswith(".py") for a in arguments)  # fmt: skip
