"""How the values of a graph lie on a mesh of devices: what is said, what follows from it, and what it costs.

Nothing here runs on devices: programs that do are made by `graphc.lowering`.
"""

from graphc.sharding.cluster import A100, H100, V100, Cluster
from graphc.sharding.collectives import Collective, compiled, total
from graphc.sharding.layout import Layout, layout_of
from graphc.sharding.mesh import Mesh, mesh_of
from graphc.sharding.propagation import Propagated, annotated, propagate, propagated
from graphc.sharding.sharding import P, Sharding, sharding_of

__all__ = [
    "A100", "H100", "V100", "Cluster", "Collective", "Layout", "Mesh", "P", "Propagated", "Sharding", "annotated",
    "compiled", "layout_of", "mesh_of", "propagate", "propagated", "sharding_of", "total",
]  # fmt: skip
