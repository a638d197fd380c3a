"""A line for the user where a compilation takes long: how long it will take, why, and what to do."""

from __future__ import annotations

import contextlib
import statistics
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator
from typing import final

from graphc.ir import Graph

PATIENCE = 1.0  # seconds, after which a line says what is going on
LONG = 10.0  # seconds, from which on it says why, and what to do
# Programs of 200 to 2,000 nodes that took longer took about FIRST * (n / 200) ** POWER seconds. Compilations in this
# process correct the factor.
FIRST, POWER = 0.5, 1.55
LEAST = 100
MANY = 50  # nodes that one line has made: a loop of Python, unrolled
REMEDY = (
    "Remedy: a loop in the graph (graphc.scan, fori_loop) is compiled once, whatever its length; backend='auto' begins "
    "on NumPy. The cache on disk keeps the program for the next process."
)
_running = threading.local()
_measured: deque[float] = deque(maxlen=20)  # seconds of the latest compilations, as parts of what is usual


def estimate(nodes: int) -> float:
    """About how many seconds XLA takes for a graph of so many nodes, by what it took before in this process."""
    return _usual(nodes) * (statistics.median(_measured) if _measured else 1.0)


def learn(nodes: int, seconds: float) -> None:
    """Take in what a compilation took, unless the program is so small that it tells nothing of large ones."""
    if nodes >= LEAST:
        _measured.append(seconds / _usual(nodes))


def _usual(nodes: int) -> float:
    return FIRST * (max(nodes, 1) / 200) ** POWER


def reason(graph: Graph) -> str:
    """Why a graph is large: the line that has made most of its nodes. "" if no line has made many."""
    lines = Counter(node.where for node in graph.nodes.values() if node.where)
    line, count = lines.most_common(1)[0] if lines else ("", 0)
    if count < MANY:
        return ""
    return f"{count:,} of its nodes come from {line}: from a loop of Python, perhaps"


@final
class Announced:
    """Context: after a second stderr shows that the program of `graph` is being compiled, and about how long that will
    take; at the end, how long it took."""

    def __init__(self, graph: Graph):
        self._graph = graph

    def __enter__(self) -> Announced:
        self._start = time.perf_counter()
        self._shown = False
        self._timer = threading.Timer(PATIENCE, self._show)
        self._timer.daemon = True
        if not getattr(_running, "unannounced", False):
            self._timer.start()
        return self

    def _show(self) -> None:
        self._shown = True
        print(announcement(self._graph), file=sys.stderr, end="", flush=True)

    def __exit__(self, *error: object) -> None:
        self._timer.cancel()
        if self._shown:
            print(f" {time.perf_counter() - self._start:.1f} s", file=sys.stderr, flush=True)


def announcement(graph: Graph) -> str:
    """What is shown while a graph is compiled."""
    nodes = len(graph)
    seconds = estimate(nodes)
    left = f", perhaps {seconds:.0f} s" if seconds >= 2 * PATIENCE else ""  # what is over already says nothing
    text = f"graphc: compiling {graph.name} ({nodes:,} nodes{left})"
    if seconds >= LONG:
        why = reason(graph)
        text += "\n  " + (f"{why}.\n  " if why else "") + REMEDY + "\n "
    return f"{text} ..."


@contextlib.contextmanager
def unannounced() -> Iterator[None]:
    """Context: stderr shows nothing of compilations in this thread."""
    before = getattr(_running, "unannounced", False)
    _running.unannounced = True
    try:
        yield
    finally:
        _running.unannounced = before
