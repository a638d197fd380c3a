"""Where what a program takes and returns lies on a mesh."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, final

from eager.core.devices import CPU, device_of_mesh
from graphc.capture.sources import Effect, GradOf, Source
from graphc.ir import Graph, Node
from graphc.sharding.layout import Layout
from graphc.sharding.mesh import Mesh
from graphc.sharding.regions import owned
from graphc.sharding.sharding import Axes, Sharding


@final
class OnMesh(NamedTuple):
    """sources  of each input of the program
    results  of those of its nodes that were asked for
    grads    of the gradient of the tensor behind a source, where that lies otherwise than the tensor
    own      between processes, for each source: the axes along which each process has its own value; empty if none has
    """

    mesh: Mesh
    sources: tuple[Sharding, ...]
    results: Mapping[int, Sharding]
    grads: Mapping[Source, Sharding]
    own: tuple[Axes, ...] = ()

    def owned(self, graph: Graph) -> dict[int, Axes]:
        """What each process has of its own, of a graph that has the sources."""
        return owned(graph, self.mesh.names, dict(zip(graph.inputs, self.own, strict=False)))

    def device(self, axes: Axes, where: Any) -> Any:
        """Where a tensor is of which each process along these axes has its own, in a program that runs at `where`."""
        names = tuple(name for name in self.mesh.names if name not in axes)
        return where if names == self.mesh.names else device_of_mesh(where.mesh[names]) if names else CPU

    def forward(
        self, graph: Graph, outputs: Sequence[int], effects: Sequence[Effect], sources: Sequence[Source]
    ) -> Layout:
        """Of a program that returns `outputs` (nodes), then the values of `effects`, then what is for itself."""
        held: dict[Any, Sharding] = dict(zip(sources, self.sources, strict=True))
        kept: list[Sharding | None] = [self.results.get(id) for id in outputs]
        for effect in effects:
            target = effect.target
            lies = held.get(target)
            if lies is None and isinstance(target, GradOf):
                lies = self.grads.get(target.of) or held.get(target.of)
            kept.append(lies)
        made: tuple[Axes, ...] = ()
        if self.own:
            own = self.owned(graph)
            made = tuple(own[id] for id in graph.outputs[: len(kept)])
            kept = [_own(k, graph.nodes[id]) if len(axes) == len(self.mesh.names) else k
                    for k, id, axes in zip(kept, graph.outputs, made, strict=False)]  # fmt: skip
        rest = (None,) * (len(graph.outputs) - len(kept))
        given = (*self.sources, *(None,) * (len(graph.inputs) - len(self.sources)))
        return Layout(self.mesh, given, (*kept, *rest), self.own, made)

    def backward(
        self, graph: Graph, residuals: int, saved: Sequence[int], wrt: Sequence[int], own: Sequence[Axes] = ()
    ) -> Layout:
        """Of the program of the gradients of the inputs `wrt`, which lie as those do.

        own  what each process has of its own of the residuals, the inputs that are saved, and the cotangents
        """
        lie = [self.sources[k] for k in saved]
        rest = (None,) * (len(graph.inputs) - residuals - len(lie))
        kept = tuple(self.sources[k] if k < len(self.sources) else None for k in wrt)
        given = (*(None,) * residuals, *lie, *rest)
        if not own:
            return Layout(self.mesh, given, kept)
        every = len(self.mesh.names)
        given = tuple(
            _own(s, graph.nodes[i]) if len(axes) == every and k >= residuals else s
            for k, (s, i, axes) in enumerate(zip(given, graph.inputs, own, strict=True))
        )
        made = tuple(self.own[k] if k < len(self.own) else () for k in wrt)
        return Layout(self.mesh, given, kept, tuple(own), made)


def _own(known: Sharding | None, node: Node) -> Sharding:
    """How JAX is told that a value lies which each process has of its own."""
    return known or Sharding.whole(len(node.shape))
