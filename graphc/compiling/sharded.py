"""Where the arguments, results and state of a compiled function lie on a mesh, from what its user has said of them."""

from __future__ import annotations

import fnmatch
import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, final

from eager.core.placed import Placed
from eager.core.tensor import Tensor
from eager.distributed.tensor import marks
from eager.distributed.tensor.placements import Placement
from graphc.capture.program import Program
from graphc.capture.sources import Argument, Captured, Computed, Draw, GradOf, Lifted, Source, ViewOf
from graphc.capture.tree import children, is_leaf
from graphc.compiling.signature import Call
from graphc.execution.on_mesh import OnMesh
from graphc.ir import Node
from graphc.ops import OPS
from graphc.sharding.followers import Followers
from graphc.sharding.gathering import Held, gathering
from graphc.sharding.mesh import Mesh, mesh_of
from graphc.sharding.propagation import propagate
from graphc.sharding.regions import owned
from graphc.sharding.sharding import Axes, P, Sharding, check_divides, sharding_of

_SHARD = OPS["shard"]


@final
class Shardings(NamedTuple):
    """What `graphc.compile` was told.

    inputs, outputs  nests of placements or specs, of which each stands for all tensors in its place
    state  of tensors that the function reaches by itself: {pattern of names: sharding}, or f(name, tensor)
    explicit  whether the user has said anything, or the tensors are on a mesh themselves
    """

    mesh: Mesh
    inputs: Any
    outputs: Any
    state: Any
    explicit: bool = True

    @classmethod
    def of(cls, mesh: Any, inputs: Any, outputs: Any, state: Any) -> Shardings | None:
        """None if there is no mesh. Raises ValueError for shardings without one."""
        if mesh is None:
            if not inputs is outputs is state is None:
                raise ValueError("shardings say how arrays lie on a mesh: mesh= is missing")
            return None
        return cls(mesh_of(mesh), inputs, outputs, state)

    def placed(self, fn: Callable[..., Any], program: Program, call: Call) -> tuple[Program, OnMesh]:
        """Where the inputs and results of `program` lie; and the program, with what is gathered before it is used."""
        arguments = self._of_arguments(fn, call)
        names, sources = program.graph.input_names, program.sources
        held = [self._of_source(s, names[k], call.tensors, arguments) for k, s in enumerate(sources)]
        state = Followers(program.graph)
        known = {i: h.held for i, h in zip(program.graph.inputs, held, strict=False) if h is not None}
        of_state = {i: h.state for i, h in zip(program.graph.inputs, held, strict=False) if h is not None}
        for k, source in enumerate(sources):
            own = held[k]
            if (own is None or self._is_free(source, names[k])) and isinstance(source, (Captured, Lifted)):
                leader = state.leader(program.graph.inputs[k], (i for i, s in of_state.items() if s.axes))
                # what an optimizer has laid as its parameter lay follows that when a program orders the parts anew
                if leader is not None and (own is None or own.held.has_parts_of(of_state[leader])):
                    followed = of_state[leader]
                    known[program.graph.inputs[k]] = followed
                    held[k] = Held.alike(followed)
        graph, added = gathering(
            program.graph, {i: h for i, h in zip(program.graph.inputs, held, strict=False) if h is not None}
        )
        recorded = program.recorded._replace(nodes=program.recorded.nodes.union(added))
        program = program._replace(graph=graph, recorded=recorded)
        own = self._owned(program, call.tensors)
        free = [k for k, h in enumerate(held) if not own and h is None and isinstance(sources[k], Draw)]
        if free:  # random numbers lie where what is computed with them does
            others = [i for k, i in enumerate(program.graph.inputs) if held[k] is None and k not in free]
            whole = {**known, **{i: Sharding.whole(len(program.graph.nodes[i].shape)) for i in others}}
            found = propagate(program.graph, self.mesh, whole).shardings
            known.update((program.graph.inputs[k], found[program.graph.inputs[k]]) for k in free)
        final = tuple(
            known.get(i, Sharding.whole(len(program.graph.nodes[i].shape))) for i in program.graph.inputs
        )  # fmt: skip
        for sharding, i in zip(final, program.graph.inputs, strict=True):
            node = program.graph.nodes[i]
            check_divides(sharding, node.shape, self.mesh, f"'{node.params['name']}'")
        grads: dict[Source, Sharding] = {
            s: h.state for s, h in zip(sources, held, strict=True) if h is not None and h.state != h.held
        }
        on_mesh = OnMesh(self.mesh, final, self._of_results(program), grads, own)
        return (program if own else _gathered_once(program, on_mesh)), on_mesh

    def _owned(self, program: Program, tensors: list[Tensor]) -> tuple[Axes, ...]:
        """For each input the axes along which each process has its own: all of them, for plain tensors. Empty where
        plain tensors are the same everywhere, since that was said, or since one process has all devices."""
        if self.explicit or self.mesh.ranks is None:
            return ()
        graph, known = program.graph, dict[int, Axes]()
        for id, source in zip(graph.inputs, program.sources, strict=True):
            if (tensor := _tensor_of(source, tensors)) is not None:
                mesh = tensor.device.mesh
                lies = () if mesh is None else mesh._own_axes
                known[id] = tuple(name for name in self.mesh.names if name not in lies)
        found = owned(graph, self.mesh.names, known)
        axes = tuple(found[id] for id in graph.inputs)
        return axes if any(axes) else ()

    def _of_arguments(self, fn: Callable[..., Any], call: Call) -> dict[int, Sharding]:
        found: dict[int, Sharding] = {}
        if self.inputs is None:
            return found
        if isinstance(self.inputs, Mapping):
            bound = inspect.signature(fn).bind(*call.args, **call.kwargs).arguments
            if unknown := [name for name in self.inputs if name not in inspect.signature(fn).parameters]:
                raise ValueError(f"in_shardings: the function has no parameter {unknown[0]!r}")
            pairs = [(wanted, bound[name]) for name, wanted in self.inputs.items() if name in bound]
        elif _is_spec(self.inputs):
            pairs = [(self.inputs, (call.args, call.kwargs))]
        else:
            if len(self.inputs) != len(call.args):
                raise ValueError(f"in_shardings has {len(self.inputs)} entries for {len(call.args)} arguments")
            pairs = [*zip(self.inputs, call.args, strict=True)]
        for wanted, tree in pairs:
            for spec, leaf in _spread(wanted, tree, "in_shardings"):
                if isinstance(leaf, Tensor):
                    found[id(leaf)] = sharding_of(spec, leaf.ndim, self.mesh)
        return found

    def _of_results(self, program: Program) -> dict[int, Sharding]:
        """By the node of a result. What is said of views is left to XLA."""
        found: dict[int, Sharding] = {}
        if self.outputs is None:
            return found
        for spec, slot in _spread(self.outputs, program.result.plain, "out_shardings"):
            leaf = program.result.leaves[slot.index]
            if spec is not None and isinstance(leaf, Computed):
                shape = program.graph.nodes[leaf.id].shape
                found[leaf.id] = sharding_of(spec, len(shape), self.mesh)
                check_divides(found[leaf.id], shape, self.mesh, f"result {slot.index}")
            elif spec is not None and isinstance(leaf, ViewOf):
                raise ValueError("out_shardings: this result is a view of another tensor, which lies where that does")
        return found

    def _of_source(
        self, source: Source, name: str, tensors: list[Tensor], arguments: Mapping[int, Sharding]
    ) -> Held | None:
        if isinstance(source, Argument):
            tensor = tensors[source.position]
            if (sharding := arguments.get(id(tensor))) is not None:
                return Held.alike(sharding)
            return self._marked(tensor) if isinstance(tensor, Tensor) else None
        if isinstance(source, GradOf):
            found = self._of_source(source.of, name, tensors, arguments)
            return None if found is None else Held.alike(found.state)
        tensor = source.tensor if isinstance(source, Captured) else None
        if isinstance(source, Lifted) and source.kind is None:
            tensor = source.get()
        if tensor is None:
            return None
        said = self._said(name, tensor)
        if said is not None:
            sharding = sharding_of(said, tensor.ndim, self.mesh)
            return Held.alike(sharding)
        return self._marked(tensor)

    def _is_free(self, source: Source, name: str) -> bool:
        """Whether nobody has said how the captured tensor behind a source lies."""
        return isinstance(source, Captured) and not marks.of(source.tensor) and self._said(name, source.tensor) is None

    def _said(self, name: str, tensor: Tensor) -> Any:
        if callable(self.state):
            return self.state(name, tensor)
        for pattern, sharding in (self.state or {}).items():
            if fnmatch.fnmatchcase(name, pattern):
                return sharding
        return None

    def _marked(self, tensor: Tensor) -> Held | None:
        found = marks.of(tensor)
        if not found:
            data = tensor._d
            if data.__class__ is not Placed or data.device.mesh is None:
                return None
            return Held.alike(Sharding(data.laid))
        plain = [m for m in found if not m.state]
        used = self._merged([m for m in plain if not m.gathered], tensor.ndim)
        held = self._merged([*[m for m in plain if not m.gathered], *[m for m in plain if m.gathered]], tensor.ndim)
        state = self._merged([*plain, *[m for m in found if m.state]], tensor.ndim)
        return Held(held, used, state)

    def _merged(self, found: list[marks.Mark], ndim: int) -> Sharding:
        """What marks on several dims of the mesh say together: the first is the major one."""
        dims: list[tuple[str, ...]] = [()] * ndim
        for mark in found:
            names = mark.mesh.mesh_dim_names or mesh_of(mark.mesh).names
            for axis, placement in zip(names, mark.placements, strict=True):
                if axis not in self.mesh.names:
                    raise ValueError(f"a parameter is placed on mesh axis {axis!r}, which {self.mesh} has not")
                if placement.is_shard():
                    dim = placement.dim % ndim  # type: ignore[attr-defined]
                    if axis not in dims[dim]:
                        dims[dim] = (*dims[dim], axis)
        return Sharding(tuple(dims))


def _tensor_of(source: Source, tensors: list[Tensor]) -> Tensor | None:
    """The tensor behind a source; None for numbers, and for what is drawn."""
    source = source.of if isinstance(source, GradOf) else source
    if isinstance(source, Argument):
        found: Any = tensors[source.position]
        return found if isinstance(found, Tensor) else None
    if isinstance(source, Captured):
        return source.tensor
    return source.get() if isinstance(source, Lifted) and source.kind is None else None


def _gathered_once(program: Program, on_mesh: OnMesh) -> Program:
    """The program with gradients gathered where they are made, of those that are computed in parts and held whole.

    XLA would rather update in parts, and gather the gradient, the new moments and the new parameter.
    """
    made = {e.id: e for e in program.effects.tensors if isinstance(e.target, GradOf) and e.id is not None}
    graph, sources = program.graph, program.sources
    layout = on_mesh.forward(graph.replace(graph.nodes, [*made]), (), [*made.values()], sources)
    wanted = {id: s for id, s in zip(made, layout.outputs, strict=True) if s is not None}
    given = dict(zip(graph.inputs, on_mesh.sources, strict=True))
    exchanged = propagate(graph, on_mesh.mesh, given, wanted).collectives
    split = {c.node for c in exchanged if c.kind == "all-gather" and c.node in wanted}
    new = max(graph.nodes) + 1
    nodes: dict[int, Node] = {}
    for id, node in graph.nodes.items():
        if id in split and node.op is not _SHARD and not node.op.several:
            nodes[new] = Node(new, node.op, node.inputs, node.params, node.results, node.where, node.scope)
            node = Node(id, _SHARD, (new,), {"spec": wanted[id].dims}, node.results, node.where, node.scope)
            new += 1
        nodes[id] = node
    recorded = program.recorded._replace(nodes=program.recorded.nodes.union(nodes.keys() - graph.nodes.keys()))
    return program._replace(graph=graph.replace(nodes, graph.result), recorded=recorded)


def _is_spec(x: Any) -> bool:
    if isinstance(x, (P, Sharding, Placement)) or x is None:
        return True
    if type(x).__name__ == "PartitionSpec":
        return True
    return isinstance(x, (tuple, list)) and bool(x) and all(isinstance(e, Placement) for e in x)


def _spread(prefix: Any, tree: Any, what: str) -> list[tuple[Any, Any]]:
    """(spec, leaf) for each leaf of `tree`, of which `prefix` is the beginning."""
    if is_leaf(tree):
        if not _is_spec(prefix):
            raise ValueError(f"{what}: expected placements or a spec for a tensor, got {prefix!r}")
        return [(prefix, tree)]
    inside = children(tree)
    if inside is None:
        return []
    if _is_spec(prefix):
        return [pair for _, value in inside for pair in _spread(prefix, value, what)]
    own = children(prefix)
    if own is None or [n for n, _ in own] != [n for n, _ in inside]:
        raise ValueError(f"{what}: {prefix!r} is no beginning of the structure {type(tree).__name__} it stands for")
    return [pair for (_, p), (_, v) in zip(own, inside, strict=True) for pair in _spread(p, v, what)]
