"""A graph in Graphviz's language, with a cluster for each module."""

from __future__ import annotations

import html
from collections.abc import Iterator

from graphc.ir.draw import COLORS, detail, family, inlined, tip
from graphc.ir.graph import INPUT, Graph
from graphc.ir.opened import opened
from graphc.ir.scopes import Group, scope_tree


def to_dot(graph: Graph) -> str:
    """The text of `graph` for Graphviz: `dot -Tsvg`. Clusters are modules, and what loops and switches run;
    tooltips have types and the user's lines.

    >>> print(to_dot(Graph.parse("def f(x: f32[3]):\\n    v1: f32[3] = tanh(x)\\n    return v1\\n")))
    digraph "f" {
    ...
      n0 -> n1;
    }
    """
    graph, names = opened(graph)
    hidden = inlined(graph)
    lines = [f"digraph {_quoted(graph.name)} {{", "  node [shape=box, style=filled, fontname=Helvetica, fontsize=10];"]
    lines += _members(graph, names, scope_tree(graph, hidden, most=len(graph) + 1), "  ")
    for id, node in graph.nodes.items():
        lines += [f"  n{operand} -> n{id};" for operand in dict.fromkeys(node.inputs) if operand not in hidden]
    return "\n".join([*lines, "}"]) + "\n"


def _members(graph: Graph, names: dict[int, str], group: Group, indent: str) -> Iterator[str]:
    outputs = set(graph.outputs)
    for member in group.members:
        if isinstance(member, Group):
            yield f"{indent}subgraph {_quoted(f'cluster_{member.path}')} {{"
            yield f"{indent}  label={_quoted(member.name)}; tooltip={_quoted(member.path)}; color=gray;"
            yield from _members(graph, names, member, f"{indent}  ")
            yield f"{indent}}}"
            continue
        node = graph.nodes[member]
        fill, stroke, _ = COLORS[family(node)]
        label = f"{names[member] if node.op is INPUT else node.op.name}\n{detail(graph, node)}"
        width = ", penwidth=2.5" if member in outputs else ""
        yield (
            f"{indent}n{member} [label={_quoted(label)}, tooltip={_quoted(tip(graph, names, node))}, "
            f'fillcolor="{fill}", color="{stroke}"{width}];'
        )


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return '"' + html.escape(escaped, quote=False) + '"'
