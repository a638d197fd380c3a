"""Ops as calls of NumPy, written out for operands whose shapes and dtypes are known.

The values are, to the last bit, those of the op's kernel: a row here leaves out only what the kernel asks about its
operands, and says where its result goes. An op whose kernel is a ufunc needs no row. What has no row, or other dtypes
than its row says, is a call of the kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from graphc.ir.graph import Node
from graphc.ops.aval import Aval
from graphc.ops.dtypes import is_half
from graphc.ops.sums import MANY

Bind = Callable[[str, Any], str]


class Form(NamedTuple):
    """How a value is computed.

    write    f(out): the expression, whose result is in the memory `out` if that is a name; "" for memory of its own
    out      whether memory can be given to it; `needs_out`: whether it must be
    each     each element follows from those at the same place: an operand's memory may be given to it, and operands
             may be smaller, as NumPy repeats them
    view     the result may lie in an operand's memory
    repeats  the result is the operand, repeated: where it is read by such as `each`, the operand will do
    scalar   without `out`, a result without dimensions is a NumPy scalar
    """

    write: Callable[[str], str]
    out: bool = False
    needs_out: bool = False
    each: bool = False
    view: bool = False
    repeats: bool = False
    scalar: bool = False


Writer = Callable[[Node, Sequence[str], Sequence[Aval], Bind], Form | None]


_BY_KEYWORD = (np.maximum, np.minimum)  # where a third operand may be meant


def _call(name: str, operands: Sequence[str], prefix: str = "") -> Callable[[str], str]:
    return lambda out: f"{name}({', '.join([*operands, *([prefix + out] if out else [])])})"


def ufunc(kernel: np.ufunc, node: Node, names: Sequence[str], avals: Sequence[Aval], bind: Bind) -> Form | None:
    """A call of the ufunc `kernel`; None if its result would have another dtype than the node's."""
    if node.params or kernel.nout != 1 or len(names) != kernel.nin or any(is_half(a.dtype) for a in avals):
        return None
    try:
        found = kernel.resolve_dtypes((*(a.dtype for a in avals), None))
    except TypeError:
        return None
    if found[-1] != node.dtype:
        return None
    call = _call(bind(kernel.__name__, kernel), names, "out=" if kernel in _BY_KEYWORD else "")
    return Form(call, out=True, each=kernel.signature is None, scalar=True)


def _swapped(kernel: np.ufunc) -> Writer:
    return lambda node, names, avals, bind: ufunc(kernel, node, names[::-1], avals[::-1], bind)


def _plain_floats(avals: Sequence[Aval]) -> bool:
    return all(a.dtype.kind == "f" and not is_half(a.dtype) for a in avals)


def _number(value: float, dtype: np.dtype, bind: Bind) -> str:
    array = np.array(value, dtype)
    array.flags.writeable = False
    return bind(f"c_{value}".replace(".", "p").replace("-", "m"), array)


def _relu(node: Node, names: Sequence[str], avals: Sequence[Aval], bind: Bind) -> Form | None:
    zero = _number(0, node.dtype, bind)
    return ufunc(np.maximum, node, [zero, *names], [Aval((), node.dtype), *avals], bind)


def _reciprocal(node: Node, names: Sequence[str], avals: Sequence[Aval], bind: Bind) -> Form | None:
    one = _number(1, node.dtype, bind)
    if not _plain_floats(avals):
        return None
    return ufunc(np.true_divide, node, [one, *names], [Aval((), node.dtype), *avals], bind)


def _rsqrt(node: Node, names: Sequence[str], avals: Sequence[Aval], bind: Bind) -> Form | None:
    if not _plain_floats(avals):
        return None
    one, divide, sqrt = _number(1, node.dtype, bind), bind("divide", np.true_divide), bind("sqrt", np.sqrt)
    return Form(lambda out: f"{divide}({one}, {sqrt}({names[0]}, {out}), {out})", True, True, each=True)


def _sigmoid(node: Node, names: Sequence[str], avals: Sequence[Aval], bind: Bind) -> Form | None:
    if not _plain_floats(avals) or not node.shape:
        return None
    one = _number(1, node.dtype, bind)
    negative, exp = bind("negative", np.negative), bind("exp", np.exp)
    add, reciprocal = bind("add", np.add), bind("reciprocal", np.reciprocal)
    return Form(
        lambda out: f"{reciprocal}({add}({exp}({negative}({names[0]}, {out}), {out}), {one}, {out}), {out})",
        True, True, each=True,
    )  # fmt: skip


def _reduction(kernel: np.ufunc, kinds: str) -> Writer:
    name = f"{kernel.__name__}_reduce"

    def write(node: Node, names: Sequence[str], avals: Sequence[Aval], bind: Bind) -> Form | None:
        (x,) = avals
        if x.dtype.kind not in kinds or is_half(x.dtype) or x.dtype != node.dtype:
            return None
        reduce, axis, keep = bind(name, kernel.reduce), node.params["axis"], node.params["keepdims"]
        return Form(lambda out: f"{reduce}({names[0]}, {axis}, None, {out or None}, {keep})", out=True, scalar=True)

    return write


_any_sum = _reduction(np.add, "f")


def _sum(node: Node, names: Sequence[str], avals: Sequence[Aval], bind: Bind) -> Form | None:
    (x,) = avals
    count = x.size // max(node.size, 1)
    # the others are added in blocks, see `graphc.ops.sums.total`
    return _any_sum(node, names, avals, bind) if x.size < MANY or count < MANY or count == x.size else None


def _mean(node: Node, names: Sequence[str], avals: Sequence[Aval], bind: Bind) -> Form | None:
    total, count = _sum(node, names, avals, bind), avals[0].size // max(node.size, 1)
    if total is None or not node.size or count >= 1 << 24:
        return None
    divide, number = bind("divide", np.true_divide), _number(count, node.dtype, bind)
    return Form(
        lambda out: f"{divide}({total.write(out)}, {number}{', ' + out if out else ''})", out=True, scalar=True
    )  # fmt: skip


def _addmm(node: Node, names: Sequence[str], avals: Sequence[Aval], bind: Bind) -> Form | None:
    if not _plain_floats(avals):
        return None
    add, matmul = bind("add", np.add), bind("matmul", np.matmul)
    c, x, y = names
    return Form(lambda out: f"{add}({matmul}({x}, {y}, {out}), {c}, {out})", True, True)


def _reshape(node: Node, names: Sequence[str], avals: Sequence[Aval], bind: Bind) -> Form | None:
    return Form(lambda out: f"{names[0]}.reshape({node.shape})", view=True)


def _permute(node: Node, names: Sequence[str], avals: Sequence[Aval], bind: Bind) -> Form | None:
    return Form(lambda out: f"{names[0]}.transpose({node.params['dims']})", view=True)


def _itself(node: Node, names: Sequence[str], avals: Sequence[Aval], bind: Bind) -> Form | None:
    return Form(lambda out: names[0], view=True)


def _slice(node: Node, names: Sequence[str], avals: Sequence[Aval], bind: Bind) -> Form | None:
    start, stop, step = (node.params[name] for name in ("start", "stop", "step"))
    parts = [
        ":" if (a, b, s) == (0, n, 1) else f"{a}:{b}" + (f":{s}" if s != 1 else "")
        for a, b, s, n in zip(start, stop, step, avals[0].shape, strict=True)
    ]
    return Form(lambda out: f"{names[0]}[{', '.join([*parts, '...'])}]", view=True)


def _broadcast_to(node: Node, names: Sequence[str], avals: Sequence[Aval], bind: Bind) -> Form | None:
    if node.dtype.kind not in "fiu" or is_half(node.dtype):
        return None
    return Form(_call(bind("positive", np.positive), names), True, True, each=True, repeats=True)


def _cat(node: Node, names: Sequence[str], avals: Sequence[Aval], bind: Bind) -> Form | None:
    parts, axis = f"({', '.join(names)},)", node.params["axis"]
    return Form(_call(bind("concatenate", np.concatenate), [parts, str(axis)]), out=True)


def _where(node: Node, names: Sequence[str], avals: Sequence[Aval], bind: Bind) -> Form | None:
    return Form(lambda out: f"{bind('where', np.where)}({', '.join(names)})")


def _matmul(node: Node, names: Sequence[str], avals: Sequence[Aval], bind: Bind) -> Form | None:
    if avals[1].ndim == 2 < avals[0].ndim:
        return None  # the kernel makes one product of many
    return ufunc(np.matmul, node, names, avals, bind)


def _cast(node: Node, names: Sequence[str], avals: Sequence[Aval], bind: Bind) -> Form | None:
    if avals[0].dtype.kind == "c":
        return None
    return Form(lambda out: f"{names[0]}.astype({bind(node.dtype.name, node.dtype)})")


WRITERS: Mapping[str, Writer] = {
    "addmm": _addmm, "amax": _reduction(np.maximum, "fiu"), "amin": _reduction(np.minimum, "fiu"),
    "broadcast_to": _broadcast_to, "cast": _cast, "cat": _cat, "matmul": _matmul, "maximum": _swapped(np.maximum),
    "mean": _mean, "minimum": _swapped(np.minimum), "permute": _permute, "reciprocal": _reciprocal, "relu": _relu,
    "reshape": _reshape, "rsqrt": _rsqrt, "sigmoid": _sigmoid, "slice": _slice, "stop_gradient": _itself, "sum": _sum,
    "where": _where,
}  # fmt: skip


def form_of(node: Node, names: Sequence[str], avals: Sequence[Aval], bind: Bind) -> Form | None:
    """How `node`, which reads operands `names` of types `avals`, is written; None if its kernel has to be called.

    bind  f(stem, object): the name of an object in the source
    """
    write = WRITERS.get(node.op.name)
    if write is not None:
        return write(node, names, avals, bind)
    kernel = node.op.kernel
    return ufunc(kernel, node, names, avals, bind) if isinstance(kernel, np.ufunc) else None
