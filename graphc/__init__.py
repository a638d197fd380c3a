"""graphc: trace a define-by-run program into a graph, differentiate and optimize it, and lower it to XLA.

The names below load their part of the compiler on first use, so that `import graphc.ops` stays light.
"""

from __future__ import annotations

import os

from graphc.lazy import lazy

__version__ = "0.1.0"

_WHERE = {
    "Graph": "graphc.ir.graph",
    "Node": "graphc.ir.graph",
    "trace": "graphc.capture",
    "assume": "graphc.capture.assuming",
    "gradients": "graphc.capture.building",
    "placeholder": "graphc.capture.building",
    "Session": "graphc.session",
    "function": "graphc.session",
    "optimize": "graphc.passes",
    "explain": "graphc.explaining",
    "steps": "graphc.explaining",
    "mechanisms": "graphc.passes",
    "microbatched": "graphc.capture.flow.microbatches",
    "load": "graphc.ir.files",
    "codegen": "graphc.lowering.standalone",
    "stablehlo": "graphc.lowering.export",
    "export": "graphc.lowering.export",
    "to_graphdef": "graphc.lowering.export",
    "shard": "graphc.sharding.constraint",
    "simulate": "graphc.sharding.simulation",
    "plan": "graphc.sharding.planning",
    "lower": "graphc.lowering",
    "compile": "graphc.compiling.decorator",
    "memory": "graphc.compiling.memory",
    "cond": "graphc.capture.flow.control",
    "switch": "graphc.capture.flow.control",
    "while_loop": "graphc.capture.flow.control",
    "scan": "graphc.capture.flow.control",
    "fori_loop": "graphc.capture.flow.control",
    "map": "graphc.capture.flow.control",
    "disable": "graphc.compiling.disable",
    "enable": "graphc.compiling.disable",
    "record": "graphc.running.recording",
    "set_logs": "graphc.logs",
    "torch_names": "graphc.running.torch_names",
}
# `from graphc import *` leaves out those of the classic static style, and switches
_BY_NAME_ONLY = ("Session", "disable", "enable", "function", "placeholder")
__all__ = sorted(_WHERE.keys() - _BY_NAME_ONLY)  # pyright: ignore[reportUnsupportedDunderAll]

__getattr__, __dir__ = lazy(__name__, _WHERE, ("errors", "ops"))

if os.environ.get("GRAPHC_LOGS"):
    from graphc.logs import set_logs

    set_logs(*os.environ["GRAPHC_LOGS"].replace(" ", "").split(","))
