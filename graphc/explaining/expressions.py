"""Parts of graphs as expressions, as people write them: what is read once stands where it is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from graphc.ir import Graph, Node
from graphc.ir.text import names_of, show_value
from graphc.ops import Literal

LONGEST = 200  # characters


def written(nodes: Mapping[int, Node], inside: Collection[int], roots: Sequence[int], names: Mapping[int, str]) -> str:
    """The nodes `inside`, one expression for each of the `roots` and for each node that is read more than once.

    names  of all nodes
    """
    uses = Counter(i for id in inside for i in nodes[id].inputs)
    several = {id for id in inside if uses[id] > 1 and nodes[id].inputs}

    def text(id: int, top: bool = False) -> str:
        node = nodes[id]
        if id not in inside or (id in several and not top):
            return _number(node) or names.get(id, f"v{id}")
        params = [f"{name}={show_value(value)}" for name, value in node.params.items() if _is_shown(value)]
        return _number(node) or f"{node.op.name}({', '.join([*map(text, node.inputs), *params])})"

    parts = [f"{names.get(id, f'v{id}')} = {text(id, top=True)}" for id in sorted(several - {*roots})]
    found = "; ".join([*parts, *[text(id, top=True) for id in dict.fromkeys(roots)]])
    return found if len(found) <= LONGEST else f"{found[: LONGEST - 4]} ..."


def _number(node: Node) -> str:
    """The number that a node is, "" for others."""
    value = node.params.get("value")
    if node.inputs or node.op.several or node.aval.shape:
        return ""
    if isinstance(value, Literal):
        return f"{value.array.item()!r}"
    return "" if value is None else repr(value)


def _is_shown(value: object) -> bool:
    """Whether a parameter says something to a reader: those that are None, or graphs, do not."""
    parts = value if isinstance(value, tuple) else (value,)
    return value is not None and not any(isinstance(part, Graph) for part in parts)


def names_in(*graphs: Graph) -> dict[int, str]:
    """The names of the nodes of several graphs that are one, changed: those of the first where they are in it."""
    found: dict[int, str] = {}
    for graph in graphs:
        found = {**names_of(graph), **found}
    return found
