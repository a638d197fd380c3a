"""`graphc optimize` and `graphc explain`: what the optimizer does to a graph, or to a function."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from graphc.commands.exit_codes import FINE
from graphc.commands.graphs import add_graph, graph_of
from graphc.commands.output import write
from graphc.display.terminal import colors, columns
from graphc.passes.settings import LEVELS, USUAL


def add_explain(parser: ArgumentParser) -> None:
    add_graph(parser)
    parser.add_argument("--step", action="store_true", help="print what each pass and each rule changes, in order")
    parser.add_argument("--details", action="store_true", help="also each region, and what was kept and why")
    parser.add_argument("--measure", action="store_true", help="also the time of each region, before and after")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--strict", action="store_true", help="only what keeps every bit")
    parser.add_argument("--level", type=int, default=USUAL, choices=LEVELS, help="0 to 3; %(default)s if left out")
    parser.add_argument("--without", default="", help="names of passes, rules, ..., separated by commas")


def optimize(given: Namespace) -> int:
    write(_optimized(given, graph_too=True), "-")
    return FINE


def explain(given: Namespace) -> int:
    write(_optimized(given, graph_too=False), "-")
    return FINE


def _optimized(given: Namespace, graph_too: bool) -> str:
    """What the optimizer does to the graph that was asked for, and the graph."""
    from graphc.explaining import explain as explanation
    from graphc.explaining import steps
    from graphc.passes import optimize as optimized

    graph = graph_of(given)
    how = {"strict": given.strict, "level": given.level, "without": [n for n in given.without.split(",") if n]}
    if given.step:
        return "".join(f"{k}. {step}\n" for k, step in enumerate(steps(graph, **how), 1))
    after = optimized(graph, **how)
    found = explanation(after, details=given.details, measured=given.measure, **how)
    if given.json:
        return f"{found.to_json()}\n"
    said = found.text(columns(), color=colors())
    return f"{after}\n{said}\n" if graph_too else f"{said}\n"
