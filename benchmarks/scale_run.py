"""Runs a program, and leaves in a file what it has computed and exchanged: see `benchmarks.scale`."""

from __future__ import annotations

import json
import os
import runpy
import sys
from pathlib import Path
from typing import Any

from graphc.ir import Graph, Node
from graphc.ops.spec import Trait
from graphc.sharding import Collective, compiled, propagated, total


def between_processes(graph: Graph) -> list[Collective]:
    """The collectives that a graph says itself, as one of several processes."""
    return [
        Collective(node.op.name.replace("_", "-"), max(_bytes(node), _bytes(graph.nodes[node.inputs[0]])))
        for node in graph.operations()
        if node.op.traits & Trait.COMMUNICATES
    ]


def _bytes(node: Node) -> int:
    return node.size * node.dtype.itemsize


def exchanged(step: Any) -> tuple[Any, Any]:
    """What a compiled step is predicted to exchange, and does; None for one that runs line by line."""
    if not hasattr(step, "explain"):
        return None, None
    program = step._last().runner.forward
    if program.layout is not None:
        return total(propagated(program.graph, program.layout).collectives), total(compiled(program.hlo))
    return total(between_processes(program.graph)), total(compiled(program.hlo))


if __name__ == "__main__":
    output, program = sys.argv[1:3]
    sys.argv = sys.argv[2:]
    names = runpy.run_path(program, run_name="__main__")
    predicted, real = exchanged(names["train_step"])
    if int(os.environ.get("RANK", 0)) == 0:
        progress = names["progress"]
        found = {"losses": progress.losses, "speeds": progress.speeds, "predicted": predicted, "real": real}
        Path(output).write_text(json.dumps(found))
