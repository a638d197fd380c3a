"""What in-place writes become in a graph, where values never change; and `decided`, what Python has made of a value."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphc.errors import PathChanged
from graphc.ops.index_maps import itself
from graphc.ops.references import everywhere
from graphc.ops.rules import same
from graphc.ops.samples import Ints, Sample
from graphc.ops.spec import Check, Rule, Trait, op


def _np_put_slice(x, src, start, stop, step):
    result = np.array(x, order="C")
    result[tuple(map(slice, start, stop, step))] = src
    return result


def _put_slice(xp: Any, x: Any, src: Any, start: Any, stop: Any, step: Any) -> Any:
    return x.at[tuple(map(slice, start, stop, step))].set(src)


_FIRST = Rule(lambda op, avals, params: avals[0])


@everywhere
def _ref_put_slice(x, src, start, stop, step):
    result = x.copy()
    for at in np.ndindex(src.shape):
        result[tuple(a + k * s for k, a, s in zip(at, start, step, strict=True))] = src[at]
    return result


# `input` with `src` in the place of what `slice` would read
put_slice = op(
    "put_slice", "input src", params={"start": None, "stop": None, "step": None}, impl=_put_slice,
    numpy=_np_put_slice, rule=_FIRST, traits=Trait.MOVES,
    ref=_ref_put_slice,
    samples=(
        Sample((5, 4), (4, 2), start=(1, 0), stop=(5, 3), step=(1, 2)),
        Sample((3,), (1,), start=(1,), stop=(2,), step=(1,)),
        Sample((6, 2), (3, 2), start=(0, 0), stop=(6, 2), step=(2, 1)),
    ),
    vjp=dict(
        input=lambda F, g, src_shape, src_dtype, start, stop, step: F.put_slice(
            g, F.full(shape=src_shape, value=0, dtype=src_dtype), start=start, stop=stop, step=step),
        src=lambda F, g, start, stop, step: F.slice(g, start=start, stop=stop, step=step),
    ),
)  # fmt: skip


# `input` after a write that autograd did not see (under no_grad, or to `.data`): its past keeps its gradient
overwritten = op(
    "overwritten", "input value", impl=lambda xp, x, value: value, numpy=lambda x, value: value.copy(), rule=_FIRST,
    ref=everywhere(lambda x, value: value), samples=(Sample((3, 2), (3, 2)),), traits=Trait.SURROGATE | Trait.MOVES,
    vjp=dict(input=lambda F, g: g),
)  # fmt: skip


def _agrees(xp: Any, x: Any, expected: Any) -> Any:
    return xp.all((x == expected) | ((x != x) & (expected != expected)))


# a value on which Python has decided something while the program was traced: right only while the value is the same
decided = op(
    "decided", "input expected", impl=lambda xp, x, expected: x, numpy=lambda x, expected: x.copy(), rule=same,
    ref=itself, traits=Trait.IMPURE | Trait.MOVES,
    check=Check(_agrees, PathChanged, "the program takes another path here"),
    samples=(Sample(Ints((3,), 3, 2), Ints((3,), 3, 2)),),
)  # fmt: skip
