"""Where the processes of a mesh part ways: each has a value of its own, and their program has whole ones.

`to_local` and `from_local` are PyTorch's methods of DTensors in a graph. What follows from a `to_local` is computed by
each process for itself, until a `from_local`; `local_map` is such a part of a program, once it is lowered.

mesh  (names, sizes, ranks): the axes of the mesh, their lengths, and the numbers of its processes in row-major order
dims  for each axis the dim that is split over it, -1 for none; if the processes have terms of a whole, what these are
      reduced by and the dim along which the whole is then split, ("avg", 0)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphc.ops.aval import Aval
from graphc.ops.collectives import NOT_INITIALIZED, carrier
from graphc.ops.index_maps import itself
from graphc.ops.samples import Sample
from graphc.ops.spec import Op, Rule, Trait, op

ALONE = (("data",), (1,), (0,))
NOT_DIVIDED = "{op}: a dim of {length} elements cannot be split evenly over {count} processes"
Dims = Sequence[Any]


def terms(dims: Dims) -> list[tuple[int, str, int]]:
    """(number of the axis, "sum" or "avg", the dim of the whole that is split) of axes along which there are terms."""
    return [(k, *how) for k, how in enumerate(dims) if isinstance(how, tuple)]


def splits(dims: Dims, sizes: Sequence[int]) -> list[tuple[int, int, int]]:
    """(number of the axis, its length, dim) of the axes that split a dim."""
    return [(k, n, d) for k, (n, d) in enumerate(zip(sizes, dims, strict=True)) if isinstance(d, int) and d >= 0]


def _counts(mesh: Any, dims: Dims, ndim: int) -> list[int]:
    """In how many parts each dim is."""
    counts = [1] * ndim
    for _, size, dim in splits(dims, mesh[1]):
        counts[dim] *= size
    return counts


def _part(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    (x,) = avals
    counts = _counts(params["mesh"], params["dims"], len(x.shape))
    for n, count in zip(x.shape, counts, strict=True):
        if n % count:
            raise NotImplementedError(NOT_DIVIDED.format(op=op.name, length=n, count=count))
    return Aval(tuple(n // count for n, count in zip(x.shape, counts, strict=True)), x.dtype)


def _whole(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    (x,) = avals
    counts = _counts(params["mesh"], params["dims"], len(x.shape))
    return Aval(tuple(n * count for n, count in zip(x.shape, counts, strict=True)), x.dtype)


def _at(mesh: Any, dims: Dims, rank: int, shape: Sequence[int]) -> tuple[slice, ...]:
    """Where the part of a process is in a whole of this shape: of several axes, the first is the major one."""
    coordinate = np.argwhere(np.reshape(mesh[2], mesh[1]) == rank)[0].tolist()
    starts, lengths = [0] * len(shape), list(shape)
    for k, size, dim in splits(dims, mesh[1]):
        lengths[dim] //= size
        starts[dim] += coordinate[k] * lengths[dim]
    return tuple(slice(a, a + n) for a, n in zip(starts, lengths, strict=True))


def _cut(x: np.ndarray, mesh: Any, dims: Dims, gradients: Dims = ()) -> np.ndarray:
    rank = mesh[2][0] if math.prod(mesh[1]) == 1 else _transport().rank
    return x[_at(mesh, dims, rank, x.shape)].copy()


def _joined(x: np.ndarray, mesh: Any, dims: Dims) -> np.ndarray:
    if math.prod(mesh[1]) == 1:
        return x.copy()
    parts = _transport().run("all_gather", x, {"ranks": mesh[2]})
    parts = parts.reshape(*mesh[1], *x.shape)
    for k, how, _ in terms(dims):  # the first of copies, and the sum of terms, is what all have
        total = parts.sum(k, keepdims=True) / (mesh[1][k] if how == "avg" else 1)
        parts = np.broadcast_to(total.astype(x.dtype), parts.shape)
    shape = [n * count for n, count in zip(x.shape, _counts(mesh, dims, x.ndim), strict=True)]
    found = np.empty(shape, x.dtype)
    for rank, part in reversed([*zip(mesh[2], parts.reshape(-1, *x.shape), strict=True)]):
        found[_at(mesh, dims, rank, shape)] = part
    return found


def _transport() -> Any:
    if carrier.transport is None:
        raise ValueError(NOT_INITIALIZED)
    return carrier.transport


def _back_to_parts(F: Any, g: Any, mesh: Any, dims: Dims) -> Any:
    found = F.to_local(g, mesh=mesh, dims=tuple(-1 if isinstance(how, tuple) else how for how in dims))
    count = math.prod(mesh[1][k] for k, how, _ in terms(dims) if how == "avg")
    return found if count == 1 else found / count


to_local = op(
    "to_local", "x", params={"mesh": ALONE, "dims": (-1,), "gradients": ()}, impl=lambda xp, x, **_: x, numpy=_cut,
    rule=Rule(_part), ref=lambda x, **_: itself(x), samples=(Sample((4, 3), mesh=ALONE, dims=(0,)),),
    traits=Trait.IMPURE | Trait.MOVES,
    vjp=dict(x=lambda F, g, mesh, dims, gradients: F.from_local(g, mesh=mesh, dims=gradients or dims)),
    doc="The part of a process, as its own value. gradients: the `dims` of the gradient; (): those of the part.",
)  # fmt: skip
from_local = op(
    "from_local", "x", params={"mesh": ALONE, "dims": (-1,)}, impl=lambda xp, x, **_: x, numpy=_joined,
    rule=Rule(_whole), ref=lambda x, **_: itself(x), samples=(Sample((4, 3), mesh=ALONE, dims=(0,)),),
    traits=Trait.IMPURE | Trait.MOVES, vjp=dict(x=_back_to_parts),
    doc="The whole of which each process has a part, or a term; along other axes all have the same value.",
)  # fmt: skip


def _mapped(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> tuple[Aval, ...]:
    return tuple(Aval(tuple(shape), dtype) for shape, dtype in params["results"])


local_map = op(
    "local_map", "*operands", results=None, traits=Trait.STRUCTURED, rule=Rule(_mapped),
    params={"body": None, "axes": (), "ranks": (), "given": (), "returned": (), "results": ()},
    impl=lambda xp, *operands, body, **_: body(*operands), ref=lambda *operands, body, **_: body(*operands),
    doc="What `body` makes, in each of the processes `ranks` along the `axes`, of its parts of the operands. `given` "
        "and `returned` say for each dim the axes that it is split over; `results` are shapes and dtypes of wholes.",
)  # fmt: skip
