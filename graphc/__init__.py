"""graphc: trace a define-by-run program into a graph, differentiate and optimize it, and lower it to XLA.

The names below load their part of the compiler on first use, so that `import graphc.ops` stays light.
"""

from __future__ import annotations

import os

from graphc.lazy import lazy

__version__ = "0.1.0"

_NAMES = {
    "graphc.ir.graph": "Graph Node",
    "graphc.capture": "trace",
    "graphc.capture.assuming": "assume",
    "graphc.capture.building": "gradients placeholder",
    "graphc.session": "Session function",
    "graphc.passes": "optimize mechanisms",
    "graphc.explaining": "explain steps",
    "graphc.capture.flow.microbatches": "microbatched",
    "graphc.ir.files": "load",
    "graphc.lowering.standalone": "codegen",
    "graphc.lowering.export": "stablehlo export to_graphdef",
    "graphc.sharding.constraint": "shard",
    "graphc.sharding.simulation": "simulate",
    "graphc.sharding.planning": "plan",
    "graphc.lowering": "lower",
    "graphc.compiling.decorator": "compile",
    "graphc.compiling.memory": "memory",
    "graphc.capture.flow.control": "cond switch while_loop scan fori_loop map",
    "graphc.compiling.disable": "disable enable",
    "graphc.running.recording": "record",
    "graphc.logs": "set_logs",
    "graphc.running.torch_names": "torch_names",
}
_WHERE = {name: module for module, names in _NAMES.items() for name in names.split()}
# `from graphc import *` leaves out those of the classic static style, and switches
_BY_NAME_ONLY = ("Session", "disable", "enable", "function", "placeholder")
__all__ = sorted(_WHERE.keys() - _BY_NAME_ONLY)  # pyright: ignore[reportUnsupportedDunderAll]

__getattr__, __dir__ = lazy(__name__, _WHERE, ("errors", "ops"))

if os.environ.get("GRAPHC_LOGS"):
    from graphc.logs import set_logs

    set_logs(*os.environ["GRAPHC_LOGS"].replace(" ", "").split(","))
