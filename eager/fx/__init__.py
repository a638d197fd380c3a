"""Graphs of Python programs that are Python programs again: traced, changed, and run. As `torch.fx`.

`graphc.trace` makes graphs that are optimized and compiled; those here are for programs that change programs.
"""

from __future__ import annotations

from eager.fx._symbolic_trace import PH, ProxyableClassMeta, Tracer, symbolic_trace, wrap
from eager.fx.graph import CodeGen, Graph
from eager.fx.graph_module import GraphModule
from eager.fx.interpreter import Interpreter, Transformer
from eager.fx.node import Node, has_side_effect, map_arg
from eager.fx.proxy import Proxy
from eager.fx.subgraph_rewriter import replace_pattern

__all__ = [
    "PH", "CodeGen", "Graph", "GraphModule", "Interpreter", "Node", "Proxy", "ProxyableClassMeta", "Tracer",
    "Transformer", "has_side_effect", "map_arg", "replace_pattern", "symbolic_trace", "wrap",
]  # fmt: skip
