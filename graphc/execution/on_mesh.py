"""Where what a program takes and returns lies on a mesh."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, final

from graphc.capture.sources import Effect, GradOf, Source
from graphc.ir import Graph
from graphc.sharding.layout import Layout
from graphc.sharding.mesh import Mesh
from graphc.sharding.sharding import Sharding


@final
class OnMesh(NamedTuple):
    """sources  of each input of the program
    results  of those of its nodes that were asked for
    grads    of the gradient of the tensor behind a source, where that lies otherwise than the tensor
    """

    mesh: Mesh
    sources: tuple[Sharding, ...]
    results: Mapping[int, Sharding]
    grads: Mapping[Source, Sharding]

    def forward(
        self, graph: Graph, outputs: Sequence[int], effects: Sequence[Effect], sources: Sequence[Source]
    ) -> Layout:
        """Of a program that returns `outputs` (nodes), then the values of `effects`, then what is for itself."""
        held: dict[Any, Sharding] = dict(zip(sources, self.sources, strict=True))
        kept: list[Sharding | None] = [self.results.get(id) for id in outputs]
        for effect in effects:
            target = effect.target
            own = held.get(target)
            if own is None and isinstance(target, GradOf):
                own = self.grads.get(target.of) or held.get(target.of)
            kept.append(own)
        rest = (None,) * (len(graph.outputs) - len(kept))
        given = (*self.sources, *(None,) * (len(graph.inputs) - len(self.sources)))
        return Layout(self.mesh, given, (*kept, *rest))

    def backward(self, graph: Graph, residuals: int, saved: Sequence[int], wrt: Sequence[int]) -> Layout:
        """Of the program of the gradients of the inputs `wrt`, which lie as those do."""
        own = [self.sources[k] for k in saved]
        rest = (None,) * (len(graph.inputs) - residuals - len(own))
        kept = tuple(self.sources[k] if k < len(self.sources) else None for k in wrt)
        return Layout(self.mesh, (*(None,) * residuals, *own, *rest), kept)
