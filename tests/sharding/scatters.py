"""Functions that scatter seven elements of an array that lies in parts of another number."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import eager as torch
import eager.nn.functional as F
import graphc
from eager import Tensor
from graphc.sharding.sharding import P

AT = [3, 4, 5, 6, 3, 2, 1]


def _embedded(w: Tensor, s: Tensor) -> Tensor:
    return torch.func.grad(lambda w: (F.embedding(torch.tensor(AT), w[:, None])[:, 0] * s[:7]).sum())(w)


FUNCTIONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "index_put": lambda x, s: x.index_put((torch.tensor(AT),), s[:7], accumulate=True),
    "last write": lambda x, s: x.index_put((torch.tensor(AT),), s[:7]),
    "scatter_add": lambda x, s: x.scatter_add(0, torch.tensor(AT), s),
    "scatter": lambda x, s: x.scatter(0, torch.tensor([1, 2, 3, 4, 5, 6, 7]), s),
    "amax": lambda x, s: x.scatter_reduce(0, torch.tensor(AT), s[:7], "amax"),
    "prod": lambda x, s: x.scatter_reduce(0, torch.tensor(AT), s[:7], "prod"),
    "embedding": _embedded,
    "pool": lambda x, s: torch.func.grad(lambda s: F.max_pool1d(s[None, None, :7], 3, 1, 1).sum())(s),
    "strided": lambda x, s: torch.func.grad(lambda s: (s[:7].as_strided((3, 3), (2, 1)) ** 2).sum())(s),
    "steps": lambda x, s: x.repeat(2).slice_scatter(s[:7], 0, 1, 15, 2),
    "sparse": lambda x, s: (torch.sparse_coo_tensor([AT, AT], s[:7], (8, 8)) @ x[:, None])[:, 0],
}
PARTS = P("data")  # of a mesh with another axis: XLA pads them


def wrong(mesh: dict[str, int]) -> list[str]:
    """The functions, and how their operands lie, of which the result is not that of one device."""
    found: list[str] = []
    x, s = torch.arange(8.0), torch.arange(1.0, 9.0)
    for name, f in FUNCTIONS.items():
        wanted = f(x, s).numpy()
        for target in (PARTS, P(None)):
            result = graphc.compile(f, mesh=mesh, in_shardings=(target, PARTS))(x, s).numpy()
            if not np.array_equal(result, wanted):
                found.append(f"{name} into {target}: {result}, not {wanted}")
    return found
