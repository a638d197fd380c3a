"""The parts of a program between processes in which each computes for itself.

Along some axes of the mesh (`own`) a value may be each process's own: what follows from a `to_local` is so along all of
them, and of a tensor on a part of the mesh along the other axes. Such nodes are put together, into one `local_map` for
all that need not wait for an exchange. Everything else is of the whole program, which XLA divides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from graphc.errors import GraphError
from graphc.ir import INPUT, Graph, Node, Ref
from graphc.ir.structure import bodies, every_node
from graphc.ops import OPS
from graphc.sharding.mesh import Mesh
from graphc.sharding.sharding import Axes

TO_LOCAL, FROM_LOCAL, LOCAL_MAP, _ITEM = OPS["to_local"], OPS["from_local"], OPS["local_map"], OPS["item"]
CROSSING = (TO_LOCAL, FROM_LOCAL)
IN_A_BODY = (
    "{name}: {op} in the body of a loop or a branch ({where}), in a program between processes. Remedy: convert before "
    "and after it"
)
Spec = tuple[Axes, ...]


def crosses(graph: Graph) -> bool:
    """Whether a program has parts in which each process computes for itself."""
    return any(node.op in CROSSING for node in graph.nodes.values())


def owned(graph: Graph, names: Axes, given: Mapping[int, Axes]) -> dict[int, Axes]:
    """For each node the axes, of those with these `names`, along which each process has a value of its own.

    given  those of inputs; others are what they are used for, as constants are
    """
    found: dict[int, Axes | None] = {}
    for id, node in graph.nodes.items():
        if node.op is INPUT:
            found[id] = given.get(id)
        elif node.op is TO_LOCAL:
            found[id] = names
        elif node.op is FROM_LOCAL:
            found[id] = tuple(axis for axis in names if axis not in node.params["mesh"][0])
        else:
            known = [axes for i in node.inputs if (axes := found[i]) is not None]
            # of a number beside a tensor on the mesh, which all processes have alike, the tensor decides
            found[id] = tuple(a for a in names if all(a in axes for axes in known)) if known else None
    users = graph.users()
    for id in reversed([*graph.nodes]):
        if found[id] is None:
            wanted = {axis for user in users[id] for axis in _at_work(graph.nodes[user], names, found) or ()}
            found[id] = tuple(axis for axis in names if axis in wanted)
    return {id: axes or () for id, axes in found.items()}


def _at_work(node: Node, names: Axes, found: Mapping[int, Axes | None]) -> Axes | None:
    """Along which axes the processes compute a node by themselves."""
    if node.op is TO_LOCAL:
        return names
    return found[node.inputs[0]] if node.op is FROM_LOCAL else found[node.id]


def with_regions(graph: Graph, mesh: Mesh, given: Mapping[int, Axes]) -> Graph:
    """The graph with a `local_map` in place of all that processes compute by themselves; itself, if there is nothing.

    given: see `owned`. GraphError for a `to_local` or `from_local` inside a loop.
    """
    if not crosses(graph) and not any(given.values()):
        return graph
    for node in graph.nodes.values():
        for inner in (n for body in bodies(node) for n in every_node(body) if n.op in CROSSING):
            raise GraphError(IN_A_BODY.format(name=graph.name, op=inner.op.name, where=inner.where))
    found: dict[int, Axes | None] = {**owned(graph, mesh.names, given)}
    homes = {id: _at_work(node, mesh.names, found) or () for id, node in graph.nodes.items()}
    free = {id for id, node in graph.nodes.items() if not node.inputs and node.op is not INPUT and not node.op.impure}
    steps: dict[int, int] = {}
    for id, node in graph.nodes.items():
        steps[id] = -1 if node.op is INPUT or id in free else max(
            (steps[i] + (homes[i] != homes[id] or graph.nodes[i].op is FROM_LOCAL or steps[i] < 0)
             for i in node.inputs), default=0,
        )  # fmt: skip
    groups: dict[tuple[int, Axes], list[int]] = {}
    for id in graph.nodes:
        groups.setdefault((steps[id], () if steps[id] < 0 else homes[id]), []).append(id)
    nodes: dict[int, Node] = {}
    new = max(graph.nodes) + 1
    outside = {*graph.outputs, *(i for id, node in graph.nodes.items() for i in node.inputs
               if (steps[i], homes[i]) != (steps[id], homes[id]) or graph.nodes[i].op is FROM_LOCAL)}  # fmt: skip
    for (_, axes), ids in sorted(groups.items(), key=lambda group: group[0][0]):
        if not axes:
            nodes.update((id, graph.nodes[id]) for id in ids)
            continue
        returned = [id for id in ids if id in outside]
        if returned:
            nodes.update(_region(graph, mesh, axes, ids, returned, free, new))
            new += 1
    return graph.replace(nodes, graph.result)


def _region(
    graph: Graph, mesh: Mesh, axes: Axes, ids: Sequence[int], returned: Sequence[int], free: set[int], new: int
) -> dict[int, Node]:  # fmt: skip
    """The node number `new`, which computes `ids`, and one for each of those that are `returned`."""
    own = {*ids}
    places: dict[tuple[int, Spec], int] = {}  # operand, and how it is cut -> its input in the body
    body: dict[int, Node] = {}
    names: dict[int, int] = {}  # node -> its number in the body
    inputs = max(graph.nodes) + 1
    given: list[Spec] = []

    def operand(id: int, node: Node, spec: Spec) -> int:
        """The input of the body that is a part of node `id`, of the type that `node` has."""
        if (id, spec) not in places:
            number = places[id, spec] = inputs + len(places)
            body[number] = Node(number, INPUT, (), {"name": f"x{len(places) - 1}"}, node.results)
            given.append(spec)
        return places[id, spec]

    def inside(id: int) -> int:
        if id in names or id in own:
            return names[id]
        if id in free:
            body[id] = graph.nodes[id]
            return id
        return operand(id, graph.nodes[id], ((),) * len(graph.nodes[id].shape))

    kept: list[int] = []
    specs: list[Spec] = []
    for id in ids:
        node = graph.nodes[id]
        if node.op is TO_LOCAL:
            names[id] = operand(node.inputs[0], node, spec_of(node))
            continue
        values = tuple(map(inside, node.inputs))
        names[id] = id
        body[id] = node.on(values)
    for id in returned:
        node = graph.nodes[id]
        kept.append(names[id])
        specs.append(spec_of(node) if node.op is FROM_LOCAL else ((),) * len(node.shape))
    numbers = [*places.values()]
    program = Graph(graph.name, {**{k: body[k] for k in numbers}, **{k: n for k, n in body.items() if k not in places}},
                    tuple(numbers), tuple(map(Ref, kept)))  # fmt: skip
    params = {
        "body": program, "axes": axes, "ranks": mesh.ranks or (), "given": tuple(given), "returned": tuple(specs),
        "results": tuple((tuple(graph.nodes[id].shape), graph.nodes[id].dtype) for id in returned),
    }  # fmt: skip
    operands = tuple(id for id, _ in places)
    made = {new: Node(new, LOCAL_MAP, operands, params, tuple(graph.nodes[id].aval for id in returned))}
    for k, id in enumerate(returned):
        node = graph.nodes[id]
        made[id] = Node(id, _ITEM, (new,), {"index": k}, node.results, node.where, node.scope)
    return made


def spec_of(node: Node) -> Spec:
    """The axes that each dim of the whole is split over, of a `to_local` or `from_local`."""
    found: list[list[str]] = [[] for _ in node.shape]
    for axis, how in zip(node.params["mesh"][0], node.params["dims"], strict=True):
        dim = how[1] if isinstance(how, tuple) else how
        if dim >= 0:
            found[dim].append(axis)
    return tuple(map(tuple, found))
