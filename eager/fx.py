"""`torch.fx`, as far as libraries name it: graphs are those of `graphc.trace` here."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NoReturn

from eager.nn.module import Module

__all__ = ["Graph", "GraphModule", "Node", "Proxy", "Tracer", "symbolic_trace", "wrap"]

NO_FX = (
    "torch.fx.symbolic_trace: there is no FX graph here. Remedy: graphc.trace(fn, *inputs) gives the graph of a "
    "function, graph.nx its networkx graph."
)


class Graph:
    """FX's graphs. There are none: for `isinstance`, as the others are."""


class GraphModule(Module):
    """Modules that run an FX graph."""


class Node:
    """Nodes of FX graphs."""


class Proxy:
    """Values while FX traces."""


class Tracer:
    """What makes FX graphs."""


# the modules of torch.fx
graph, node = SimpleNamespace(Graph=Graph), SimpleNamespace(Argument=Any, Node=Node, Target=Any)
proxy = SimpleNamespace(Proxy=Proxy)


def wrap(fn_or_name: Any) -> Any:
    """`fn_or_name`: FX would make one node of the function; here what it runs is captured."""
    return fn_or_name


def symbolic_trace(root: Any, *unused: Any, **unused_settings: Any) -> NoReturn:
    """Raises NotImplementedError: `graphc.trace` captures functions."""
    raise NotImplementedError(NO_FX)


__path__: list[str] = []  # in PyTorch it has modules: `core/elsewhere.txt`
