"""The command `graphc`, also `python -m graphc`: see `graphc --help`."""

from __future__ import annotations

import argparse
import difflib
import importlib
import os
import sys
from collections.abc import Sequence
from typing import NamedTuple

from graphc.commands.exit_codes import REFUSED, WRONG
from graphc.commands.output import one_line
from graphc.errors import GraphcError


class Command(NamedTuple):
    """A command: its help, and where it is done: in a module of `graphc.commands`, or in one beside that."""

    help: str
    module: str
    add: str
    run: str


COMMANDS = {
    "run": Command("run a PyTorch program, unchanged, over eager", "running", "add_run", "run"),
    "launch": Command("start the processes of a job, and watch them", ".launch.options", "add_options", "run_options"),
    "show": Command("print a graph, or that of a function, as text", "graphs", "add_graph", "show"),
    "export": Command("write a graph, or that of a function, in another format", "graphs", "add_export", "export"),
    "optimize": Command("optimize a graph or function, and say what was done", "optimizing", "add_explain", "optimize"),
    "explain": Command("say what the optimizer does to a graph or function", "optimizing", "add_explain", "explain"),
    "memory": Command(
        "what a graph or function takes of memory, and at which lines", "remembering", "add_memory", "memory"
    ),
    "doctor": Command("what is installed, which devices, where programs are kept", "doctor", "add_doctor", "doctor"),
}
# commands of compare, which has their options
OF_COMPARE = {
    "check": "judge a function in every mode; or say whether files are well-formed graphs",
    "localize": "where the modes part",
    "bench": "time a function in every mode",
}


def _parser(asked: str | None) -> argparse.ArgumentParser:
    """The parser. Only the command that is `asked` for is loaded."""
    from graphc import __version__

    parser = argparse.ArgumentParser(
        prog="graphc",
        description="Run PyTorch programs on NumPy and XLA, look at graphs and what the optimizer does, and compare.",
        epilog="exit status: 0, or 1 if it is not so, or 2 for wrong arguments; `graphc run` has the program's",
    )
    parser.add_argument("--version", action="version", version=f"graphc {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="|".join([*COMMANDS, *OF_COMPARE]))
    for name, command in COMMANDS.items():
        added = commands.add_parser(name, help=command.help, description=command.help)
        if name == asked:
            getattr(importlib.import_module(f".{command.module}", "graphc.commands"), command.add)(added)
    for name, text in OF_COMPARE.items():
        commands.add_parser(name, help=text, description=text, add_help=False)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, that of the process if `arguments` is None. Returns the exit status."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if not arguments:
        _parser(None).print_help()
        return WRONG
    asked = arguments[0]
    if asked in OF_COMPARE:
        from graphc.commands import compared

        return compared.run(arguments)
    if not asked.startswith("-") and asked not in COMMANDS:
        near = difflib.get_close_matches(asked, [*COMMANDS, *OF_COMPARE], 1)
        hint = f"Did you mean '{near[0]}'? " if near else ""
        print(f"graphc: no command '{asked}'. {hint}`graphc --help` lists them.", file=sys.stderr)
        return WRONG
    given = _parser(asked).parse_args(arguments)
    command = COMMANDS[given.command]
    try:
        return getattr(importlib.import_module(f".{command.module}", "graphc.commands"), command.run)(given)
    except BrokenPipeError:  # the reader has seen enough; what is left must not be flushed at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (GraphcError, OSError, ValueError) as error:
        name = getattr(error, "filename", None) or getattr(given, "target", None)
        print(one_line(str(name or "graphc"), error), file=sys.stderr)
        return WRONG if given.command == "run" else REFUSED


if __name__ == "__main__":
    sys.exit(main())
