"""`graphc memory`: what a graph, or a function, takes of memory."""

from __future__ import annotations

import json
from argparse import ArgumentParser, BooleanOptionalAction, Namespace

from graphc.commands.exit_codes import FINE
from graphc.commands.graphs import add_graph, graph_file
from graphc.commands.output import write
from graphc.targets import running, target_of


def add_memory(parser: ArgumentParser) -> None:
    add_graph(parser)
    asked = "ask XLA for its plan; without, the figures are an estimate"
    parser.add_argument("--exact", action=BooleanOptionalAction, default=True, help=asked)
    parser.add_argument("--json", action="store_true", help="print JSON")


def memory(given: Namespace) -> int:
    from graphc.compiling.memory import memory as memory_of

    file = graph_file(given)
    if file is not None:
        found = memory_of(file, exact=given.exact)
    else:
        function, arguments = target_of(given)
        with running(given.target):
            found = memory_of(function, *arguments, exact=given.exact)
    write(json.dumps(found.to_dict(), indent=1) + "\n" if given.json else f"{found}\n", "-")
    return FINE
