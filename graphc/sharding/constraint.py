"""`graphc.shard`: where a value inside a program is to lie."""

from __future__ import annotations

from typing import Any

from eager.core.tensor import Tensor
from eager.distributed.tensor.placements import Placement
from eager.engine.language import E
from graphc.sharding.mesh import Mesh, mesh_of
from graphc.sharding.sharding import sharding_of


def shard(x: Tensor, placements: Any, mesh: Any = None) -> Tensor:
    """`x`, which compiled programs on a mesh hold in this way. Its gradient is held alike. Elsewhere nothing happens.

    placements  one for each axis of the mesh (`[Shard(0), Replicate()]`), or the mesh axes of each dim (`P("data")`)
    mesh        to check `placements` against; else that is done when the program is compiled on its mesh

    Raises ValueError for `Partial`: a value that is there cannot be turned into terms of a sum.

    >>> import eager as torch, graphc
    >>> from graphc.sharding import P
    >>> print(graphc.trace(lambda x: graphc.shard(x * 2, P("data")), torch.ones(4, 2)))
    def lambda_(x: f32[4,2]):
        ...
        v3: f32[4,2] = shard(v2, spec=(('data',), ()))  # ...
        return v3
    <BLANKLINE>
    """
    if not isinstance(x, Tensor):
        raise TypeError(f"shard: expected a Tensor, got {type(x).__name__}")
    on = None if mesh is None else mesh_of(mesh)
    spec = _spec_of(placements, x.ndim, on)
    return E.shard(x, spec=spec)


def _spec_of(given: Any, ndim: int, mesh: Mesh | None) -> tuple[tuple[Any, ...], ...]:
    """For each dim, the axes of the mesh: by name, or by number where placements say which without naming them."""
    if mesh is None:
        parts: tuple[Any, ...] = (given,) if isinstance(given, Placement) else tuple(given or ())
        if parts and all(isinstance(p, Placement) for p in parts):
            unnamed = Mesh((1,) * len(parts), tuple(map(str, range(len(parts)))))
            return tuple(tuple(map(int, axes)) for axes in _dims(parts, ndim, unnamed))
        names = [a for e in parts for a in ((e,) if isinstance(e, str) else e or ())]
        mesh = Mesh((1,) * len(set(names)), tuple(dict.fromkeys(names)))
    return _dims(given, ndim, mesh)


def _dims(given: Any, ndim: int, mesh: Mesh) -> tuple[tuple[str, ...], ...]:
    sharding = sharding_of(given, ndim, mesh)
    if sharding.partial:
        raise ValueError("shard: a value that is there cannot be turned into terms of a sum (Partial)")
    return sharding.dims
