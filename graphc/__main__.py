"""`python -m graphc`: see `python -m graphc --help`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence

from graphc.errors import GraphcError
from graphc.files import writing
from graphc.ir.graph import Graph
from graphc.passes.settings import LEVELS, USUAL
from graphc.targets import add_target, target_of

FINE, REFUSED = 0, 1  # and 2 for wrong arguments, by argparse


def _tensorboard(graph: Graph) -> bytes:
    from graphc.lowering.export import to_graphdef

    return to_graphdef(graph).SerializeToString()


def _jax(graph: Graph) -> str:
    from graphc.lowering.standalone import codegen

    return codegen(graph)


def _stablehlo(graph: Graph) -> str:
    from graphc.lowering.export import stablehlo

    return stablehlo(graph)


def _artifact(graph: Graph) -> bytes:
    from graphc.lowering.export import export

    return bytes(export(graph))


# format -> what makes it
FORMATS: dict[str, Callable[[Graph], str | bytes]] = {
    "text": str,
    "svg": Graph.to_svg,
    "html": Graph.to_html,
    "dot": Graph.to_dot,
    "tensorboard": _tensorboard,
    "jax": _jax,
    "stablehlo": _stablehlo,
    "artifact": _artifact,
}


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m graphc",
        description="Look at graphs that were saved with graph.save(path), and at what the optimizer does.",
        epilog="exit status: 0, or 1 if the file is not a graph or cannot be written so, or 2 for wrong arguments",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="show|check|export|optimize")
    show = commands.add_parser("show", help="print a graph as text")
    check = commands.add_parser("check", help="say whether files are well-formed graphs")
    export = commands.add_parser("export", help="write a graph in another format")
    show.add_argument("file", help="a graph file")
    check.add_argument("files", nargs="+", metavar="file", help="a graph file")
    export.add_argument("file", help="a graph file")
    export.add_argument("--to", choices=FORMATS, required=True, help="the format: %(choices)s", metavar="FORMAT")
    export.add_argument("-o", "--output", default="-", help="where to write it; by default to the terminal")
    optimize = commands.add_parser("optimize", help="optimize a graph or a function, and say what was done")
    add_target(optimize, "a graph file, or a function: ")
    optimize.add_argument("--step", action="store_true", help="print what each pass and each rule changes, in order")
    optimize.add_argument("--details", action="store_true", help="also each region, and what was kept and why")
    optimize.add_argument("--measure", action="store_true", help="also the time of each region, before and after")
    optimize.add_argument("--json", action="store_true", help="print JSON")
    optimize.add_argument("--strict", action="store_true", help="only what keeps every bit")
    optimize.add_argument("--level", type=int, default=USUAL, choices=LEVELS, help="0 to 3; %(default)s if left out")
    optimize.add_argument("--without", default="", help="names of passes, rules, ..., separated by commas")
    return parser


def _optimized(given: argparse.Namespace) -> str:
    """What the optimizer does to the graph that was asked for."""
    from graphc.explaining import Explanation, explain, steps
    from graphc.passes import optimize

    graph = _graph(given)
    how = {"strict": given.strict, "level": given.level, "without": [n for n in given.without.split(",") if n]}
    if given.step:
        return "".join(f"{k}. {step}\n" for k, step in enumerate(steps(graph, **how), 1))
    after = optimize(graph, **how)
    found = explain(after, details=given.details, measured=given.measure, **how)
    if given.json and isinstance(found, Explanation):
        return json.dumps(found.to_dict(), indent=1) + "\n"
    return f"{after}\n{found}\n"


def _graph(given: argparse.Namespace) -> Graph:
    """The graph of a file, or of a function on its arguments."""
    if ":" not in given.target or os.path.exists(given.target):
        return Graph.load(given.target)
    from graphc.capture import trace

    function, arguments = target_of(given)
    return trace(function, *arguments)


def _write(made: str | bytes, output: str) -> None:
    data = made.encode() if isinstance(made, str) else made
    if output == "-":
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    else:
        writing.write(output, data)


def _check(files: Sequence[str]) -> int:
    status = FINE
    for file in files:
        try:
            print(f"{file}: {Graph.load(file)!r}")
        except (GraphcError, OSError) as error:
            print(_one_line(file, error), file=sys.stderr)
            status = REFUSED
    return status


def _one_line(file: str, error: Exception) -> str:
    text = error.strerror or str(error) if isinstance(error, OSError) else str(error)
    first = " ".join(text.split())
    return first if first.startswith(file) else f"{file}: {first}"


def main(arguments: Sequence[str]) -> int:
    """Run the command line. Returns the exit status."""
    given = _arguments().parse_args(arguments)
    if given.command == "check":
        return _check(given.files)
    try:
        if given.command == "optimize":
            _write(_optimized(given), "-")
            return FINE
        graph = Graph.load(given.file)
        _write(FORMATS["text" if given.command == "show" else given.to](graph), getattr(given, "output", "-"))
    except BrokenPipeError:  # the reader has seen enough; what is left must not be flushed at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (GraphcError, OSError, ValueError) as error:
        name = given.target if given.command == "optimize" else given.file
        print(_one_line(str(getattr(error, "filename", None) or name), error), file=sys.stderr)
        return REFUSED
    return FINE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
