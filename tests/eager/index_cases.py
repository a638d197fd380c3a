"""Calls of index functions, on tensors without dims among others; see tests/eager/function_cases.py."""

from __future__ import annotations


def _stored(x, index, value):
    x[index] = value
    return x


CASES = {
    "gather_scalar": (((),), lambda t, x: x.gather(0, t.tensor([0, 0]))),
    "gather_scalar_index": (((4,),), lambda t, x: x.gather(0, t.tensor(2))),
    "gather_nothing": (((4,),), lambda t, x: x.gather(0, t.zeros(2, 0, dtype=t.int64))),
    "scatter_scalar": (((), ()), lambda t, x, y: x.scatter(0, t.tensor(0), y)),
    "scatter_tensor": (((3, 4), (2, 4)), lambda t, x, y: x.scatter(0, t.tensor([[0, 1, 2, 1], [2, 0, 1, 2]]), y)),
    "scatter_number": (((3, 4),), lambda t, x: x.scatter(1, t.tensor([[0, 1], [3, 1]]), 2.5)),
    "scatter_add_scalar": (((), ()), lambda t, x, y: x.scatter_add(0, t.tensor(0), y)),
    "scatter_reduce_scalar": (((3,), ()), lambda t, x, y: x.scatter_reduce(0, t.tensor(1), y, "prod")),
    "index_select_scalar": (((),), lambda t, x: x.index_select(0, t.tensor([0]))),
    "index_add_scalar": (((), ()), lambda t, x, y: x.index_add(0, t.tensor([0]), y, alpha=2)),
    "index_copy_scalar": (((3,), ()), lambda t, x, y: x.index_copy(0, t.tensor(1), y)),
    "index_fill_tensor": (((3, 2), ()), lambda t, x, y: x.index_fill(0, t.tensor([1, 1, 0]), y)),
    "index_put_accumulate": (((3, 2), (2, 2)), lambda t, x, y: x.index_put((t.tensor([1, 1]),), y, accumulate=True)),
    "take_along_dim_round": (((2, 3),), lambda t, x: t.take_along_dim(x, t.tensor([[0, -1, 4]]), 1)),
    "diag_embed_dims": (((2, 3),), lambda t, x: t.diag_embed(x, 1, 2, 0)),
    "logcumsumexp_far": (((3, 2),), lambda t, x: t.logcumsumexp(x + t.tensor([3e4, 0.0], dtype=x.dtype), 0)),
    "as_strided_overlap": (((2, 3),), lambda t, x: x.as_strided((3, 2), (1, 2), 1)),
    "unfold_scalar": (((),), lambda t, x: x.unfold(0, 1, 1)),
    "cat_hollow": (((0,), (2, 3)), lambda t, x, y: t.cat([x, y], 1)),
    "fill": (((2, 3), ()), lambda t, x, y: t.fill(x, y)),
    "set_leading_ones": (((3, 2), (1, 2, 2)), lambda t, x, y: _stored(x * 1, t.tensor([0, 2]), y)),
}
