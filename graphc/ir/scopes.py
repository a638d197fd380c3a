"""The nodes of a graph by module: scopes such as "encoder.0.linear1" as a tree of groups, for drawings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from graphc.ir.graph import Graph

MOST = 100  # members of a group; where there are more, runs of them become groups


@dataclass(eq=False)
class Group:
    """A module's nodes (ids) and inner modules, in program order.

    path   as in `Node.scope`; of a run of members, the path of its module with their numbers
    first  the position in the program of its first node
    """

    path: str
    name: str
    first: int = 0
    members: list[int | Group] = field(default_factory=list)
    depth: int = 0

    def groups(self) -> Iterator[Group]:
        return (member for member in self.members if isinstance(member, Group))

    def every_group(self) -> Iterator[Group]:
        """This group and those inside it."""
        yield self
        for group in self.groups():
            yield from group.every_group()

    def ids(self) -> Iterator[int]:
        """The nodes of this group and of those inside it."""
        for member in self.members:
            if isinstance(member, Group):
                yield from member.ids()
            else:
                yield member


def scope_tree(graph: Graph, hidden: set[int] = frozenset(), most: int = MOST) -> Group:  # type: ignore[assignment]
    """The nodes of `graph` but the `hidden` ones, by scope. No group has more than `most` members."""
    root = Group("", graph.name)
    known = {"": root}
    for position, (id, node) in enumerate(graph.nodes.items()):
        if id not in hidden:
            _group(node.scope, position, known).members.append(id)
    for group in list(root.every_group()):
        _split(group, most)
    _number(root, 0)
    return root


def _group(path: str, position: int, known: dict[str, Group]) -> Group:
    parts = path.split(".") if path else []
    group = known[""]
    for k, part in enumerate(parts):
        inner = ".".join(parts[: k + 1])
        if inner not in known:
            known[inner] = Group(inner, part, position)
            group.members.append(known[inner])
        group = known[inner]
    return group


def _split(group: Group, most: int) -> None:
    while len(group.members) > most:
        size = max(-(-len(group.members) // most), min(most, 20))
        runs: list[int | Group] = []
        for start in range(0, len(group.members), size):
            part = group.members[start : start + size]
            name = f"{start + 1}–{start + len(part)}"
            runs.append(Group(f"{group.path} [{name}]".strip(), name, members=part))
        group.members = runs


def _number(group: Group, depth: int) -> None:
    group.depth = depth
    for inner in group.groups():
        _number(inner, depth + 1)


def owners(root: Group) -> dict[int, list[Group]]:
    """For each node, the groups that it is in, from the root down."""
    found: dict[int, list[Group]] = {}

    def walk(group: Group, chain: list[Group]) -> None:
        for member in group.members:
            if isinstance(member, Group):
                walk(member, [*chain, member])
            else:
                found[member] = chain

    walk(root, [root])
    return found
