"""`graphc show`, `graphc export`, and `graphc check` of graph files; which graph a command line means."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence

import graphc
from graphc.commands.exit_codes import FINE, REFUSED
from graphc.commands.output import one_line, write
from graphc.errors import GraphcError
from graphc.ir.graph import Graph
from graphc.targets import add_target, running, target_of

# format -> what makes it
FORMATS: dict[str, Callable[[Graph], str | bytes]] = {
    "text": str,
    "svg": Graph.to_svg,
    "html": Graph.to_html,
    "dot": Graph.to_dot,
    "tensorboard": lambda graph: graphc.to_graphdef(graph).SerializeToString(),
    "jax": lambda graph: graphc.codegen(graph),
    "stablehlo": lambda graph: graphc.stablehlo(graph),
    "artifact": lambda graph: bytes(graphc.export(graph)),
}


def add_graph(parser: ArgumentParser) -> None:
    add_target(parser, "a graph file, or a function: ")


def graph_file(given: Namespace) -> Graph | None:
    """The graph of the file that was named; None if it was no file."""
    if ":" not in given.target or os.path.exists(given.target):
        return Graph.load(given.target)
    return None


def graph_of(given: Namespace) -> Graph:
    """The graph of the file that was named, or of the function on its arguments."""
    file = graph_file(given)
    if file is not None:
        return file
    function, arguments = target_of(given)
    with running(given.target):
        return graphc.trace(function, *arguments)


def show(given: Namespace) -> int:
    write(f"{graph_of(given)}", "-")
    return FINE


def add_export(parser: ArgumentParser) -> None:
    add_graph(parser)
    parser.add_argument("--to", choices=FORMATS, required=True, help="the format: %(choices)s", metavar="FORMAT")
    parser.add_argument("-o", "--output", default="-", help="where to write it; by default to the terminal")


def export(given: Namespace) -> int:
    write(FORMATS[given.to](graph_of(given)), given.output)
    return FINE


def check(files: Sequence[str]) -> int:
    """Say of each file whether it is a well-formed graph."""
    status = FINE
    for file in files:
        try:
            print(f"{file}: {Graph.load(file)!r}")
        except (GraphcError, OSError) as error:
            print(one_line(file, error), file=sys.stderr)
            status = REFUSED
    return status
