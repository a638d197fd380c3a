"""Calls of functions that order, count and reduce into places; see tests/eager/function_cases.py."""

from __future__ import annotations

CASES = {
    "sort": (((3, 4),), lambda t, x: t.sort(x, 0, descending=True).values),
    "sort_last": (((2, 5),), lambda t, x: x.sort().values),
    "msort": (((3, 4),), lambda t, x: t.msort(x)),
    "topk": (((3, 4),), lambda t, x: x.topk(2, dim=0).values),
    "topk_smallest": (((3, 4),), lambda t, x: t.topk(x, 3, largest=False)[0]),
    "kthvalue": (((3, 4),), lambda t, x: t.kthvalue(x, 2, dim=1, keepdim=True).values),
    "median": (((3, 4),), lambda t, x: x.median()),
    "median_dim": (((3, 4),), lambda t, x: t.median(x, 0).values),
    "nanmedian": (((3, 4),), lambda t, x: t.nanmedian(x, 1)[0]),
    "mode": (((3, 4),), lambda t, x: t.mode(t.round(x), 1).values),
    "quantile": (((3, 4),), lambda t, x: t.quantile(x, 0.3)),
    "quantile_dim": (((3, 4),), lambda t, x: x.quantile(0.6, dim=1, keepdim=True)),
    "quantile_many": (
        ((3, 4),), lambda t, x: t.quantile(x, t.tensor([0.1, 0.5], dtype=x.dtype), 0, interpolation="midpoint")
    ),
    "nanquantile": (((3, 4),), lambda t, x: x.nanquantile(0.25, dim=0)),
    "cummax": (((3, 4),), lambda t, x: t.cummax(x, 1).values),
    "cummin": (((3, 4),), lambda t, x: x.cummin(0)[0]),
    "cumprod": (((3, 4),), lambda t, x: x.cumprod(1)),
    "logcumsumexp": (((3, 4),), lambda t, x: t.logcumsumexp(x, 0)),
    "put": (((3, 4), (2,)), lambda t, x, y: x.put(t.tensor([1, -2]), y)),
    "put_accumulate": (((3, 4), (3,)), lambda t, x, y: x.put(t.tensor([1, 1, 5]), y, accumulate=True)),
    "searchsorted": (((6,), (2, 3)), lambda t, x, y: t.searchsorted(x.sort().values, y)),
    "bucketize": (((2, 3),), lambda t, x: t.bucketize(x, t.tensor([-1.0, 0.0, 1.0], dtype=x.dtype), right=True)),
    "histc": (((20,),), lambda t, x: t.histc(x.detach(), 5, -1, 1)),
    "nonzero_static": (((3, 4),), lambda t, x: t.nonzero_static(x > 0, size=5)),
    **{
        f"scatter_reduce_{how}{'' if own else '_only'}": (
            ((3, 4), (3, 4)),
            lambda t, x, y, how=how, own=own: x.scatter_reduce(
                1, t.tensor([[0, 0, 1, 3], [2, 2, 2, 2], [3, 1, 0, 3]]), y, how, include_self=own),
        )
        for how in ("sum", "prod", "mean", "amax", "amin")
        for own in (True, False)
    },
}  # fmt: skip
