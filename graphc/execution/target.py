"""What a program is made for: the device or mesh, the backend, the optimizer's settings and a budget of memory."""

from __future__ import annotations

from typing import Any, NamedTuple, final

from graphc.execution.on_mesh import OnMesh
from graphc.ir import Graph
from graphc.lowering import lower, platform_of, unsuitable
from graphc.passes import Settings
from graphc.passes.settings import PACKS
from graphc.rewrite import REASSOCIATES
from graphc.sharding.layout import Layout


@final
class Target(NamedTuple):
    """settings  of the optimizer
    device    "cpu", "gpu", ..., or None for JAX's default
    backend   "jax", or "numpy" where that is suitable
    memory    bytes that a program may take, or a fraction of what it takes by itself
    on_mesh   where its arrays lie on a mesh of devices
    offload   whether an optimizer's state lies on the host
    """

    settings: Settings = Settings()
    device: str | None = None
    backend: str = "jax"
    memory: int | float | None = None
    on_mesh: OnMesh | None = None
    offload: bool = False

    def on(self, where: Any) -> Target:
        """The target for tensors that lie there: a mesh of XLA's own devices says by itself which they are."""
        return self._replace(device=None if where.mesh is not None and where.type == "xla" else str(where))

    def suiting(self, graph: Graph) -> tuple[Target, str]:
        """The target for `graph`: XLA, and why, if NumPy is wanted and not suitable."""
        why = unsuitable(graph) if self.backend == "numpy" else ""
        return (self._replace(backend="jax"), why) if why else (self, "")

    def lower(self, graph: Graph, layout: Layout | None = None, **options: Any) -> Any:
        """The program of `graph`; options: as of `graphc.lowering.lower`."""
        settings = self.settings
        return lower(
            graph, self.device, strict=settings.strict, without=settings.not_lowered, backend=self.backend,
            mesh=layout, **options,
        )  # fmt: skip

    @property
    def packs(self) -> bool:
        """Whether small state may lie together in one buffer."""
        alone = self.backend == "jax" and self.on_mesh is None and not self.offload
        return alone and self.settings.allow(PACKS, REASSOCIATES)

    @property
    def loops_over_packs(self) -> bool:
        """Whether many layers whose state lies in packs become a loop: on a GPU each turn is a launch from the host
        (100 thin layers take 0.69 of hand-written JAX's time on an H100, and 0.45 side by side)."""
        return platform_of(self.device) == "cpu"
