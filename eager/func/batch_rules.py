"""What an op on batched Tensors is in terms of ops on Tensors that have the batch dim in front: a table by op.

A rule is called with the op, the size of the batch, the operands (batched ones with the batch dim in front), which of
them are batched (at least one is), and the parameters. It returns the result, batch dim in front.
"""

from __future__ import annotations

import math
import string
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from eager.core.tensor import Tensor
from eager.engine.dispatch import SCALARS, apply, convert
from eager.engine.language import E
from graphc.ops.aval import results_of
from graphc.ops.dtypes import of_scalar
from graphc.ops.index import indexed_shape
from graphc.ops.interpret import operand_dtype
from graphc.ops.linalg import split_equation
from graphc.ops.references import Each
from graphc.ops.rules import broadcast_shapes
from graphc.ops.spec import OPS, Op

Flags = Sequence[bool]
Params = Mapping[str, Any]
Rule = Callable[[Op, int, list[Any], Flags, Params], Any]


def _rank(x: Tensor, batched: bool) -> int:
    """The number of dims, apart from the batch dim."""
    return len(x._d.shape) - batched


def _expanded(x: Tensor, size: int) -> Tensor:
    shape = tuple(x._d.shape)
    return E.expand(E.reshape(x, shape=(1, *shape)), shape=(size, *shape))


def _all_batched(size: int, operands: Sequence[Any], batched: Flags) -> list[Tensor]:
    return [x if b else _expanded(x, size) for x, b in zip(operands, batched, strict=True)]


def _padded(x: Tensor, rank: int) -> Tensor:
    """`x`, batched, with dims of size 1 after the batch dim, so that there are `rank` dims apart from it."""
    shape = tuple(x._d.shape)
    missing = rank - (len(shape) - 1)
    return E.reshape(x, shape=(shape[0], *(1,) * missing, *shape[1:])) if missing > 0 else x


def _moved(x: Tensor, source: int, to: int) -> Tensor:
    """`x` with dim `source` at place `to`."""
    order = [i for i in range(len(x._d.shape)) if i != source]
    order.insert(to, source)
    return x if source == to else E.permute(x, dims=tuple(order))


def _promoted(op: Op, operands: list[Any], batched: Flags) -> list[Any]:
    """`operands` in their common dtype, where a slice has no dims but the batch has one, and so another rank."""
    first = op.rule.first
    pairs = list(zip(operands, batched, strict=True))
    if not op.rule.promote or not any(b and _rank(x, b) == 0 for x, b in pairs[first:]):
        return operands
    kinds = [
        (x._dtype(), 2 if _rank(x, b) else 1) if isinstance(x, Tensor) else (of_scalar(x), 0)
        for x, b in pairs
        if isinstance(x, (Tensor, *SCALARS))
    ]
    dtype = operand_dtype(op, kinds) if len(kinds) == len(pairs) else None
    if dtype is None:
        return operands
    return [
        apply(OPS["cast"], (x,), {"dtype": dtype}) if k >= first and isinstance(x, Tensor) and x._dtype() != dtype
        else convert(x, dtype) if k >= first and not isinstance(x, Tensor) else x
        for k, x in enumerate(operands)
    ]  # fmt: skip


def pointwise(op: Op, size: int, operands: list[Any], batched: Flags, params: Params) -> Tensor:
    operands = _promoted(op, operands, batched)
    rank = max(_rank(x, b) for x, b in zip(operands, batched, strict=True) if isinstance(x, Tensor))
    return apply(op, [_padded(x, rank) if b else x for x, b in zip(operands, batched, strict=True)], params)


def _later(dims: Any) -> Any:
    """Dims as they are behind the batch dim."""
    return dims + 1 if isinstance(dims, int) else tuple(d + 1 for d in dims)


# parameter -> what it is with a batch of `size` in front
SHIFTS: dict[str, Callable[[Any, int], Any]] = {
    **dict.fromkeys(("axis", "axes", "dim1", "dim2"), lambda dims, size: _later(dims)),
    **dict.fromkeys(("shape", "stop"), lambda sizes, size: (size, *sizes)),
    **dict.fromkeys(("start", "low", "high", "interior"), lambda sizes, size: (0, *sizes)),
    "dims": lambda dims, size: (0, *_later(dims)),
    "step": lambda steps, size: (1, *steps),
}
# parameters that mean the same for a batch
KEPT = frozenset((
    "correction", "descending", "diagonal", "distinct", "first", "inverse", "keepdims", "largest", "n", "norm",
    "offset", "order", "places", "reduce", "reverse", "size", "twice", "weights",
))  # fmt: skip


def shifted(op: Op, size: int, operands: list[Any], batched: Flags, params: Params) -> Any:
    values = _all_batched(size, operands, batched)
    if isinstance(params.get("axis"), int) and len(values[0]._d.shape) == 1:  # slices without dims count as 1-d
        result = apply(op, [E.reshape(v, shape=(size, 1)) for v in values], {**params, "axis": 1})
        flat = tuple(E.reshape(r, shape=(size,)) for r in results_of(result))
        return flat if op.several else flat[0]
    return apply(op, values, {k: SHIFTS[k](v, size) if k in SHIFTS else v for k, v in params.items()})


def repeated(op: Op, size: int, operands: list[Any], batched: Flags, params: Params) -> Tensor:
    (x,) = operands
    return apply(op, [_padded(x, len(params["shape"]))], {"shape": (size, *params["shape"])})


def unchanged(op: Op, size: int, operands: list[Any], batched: Flags, params: Params) -> Tensor:
    return apply(op, operands, params)


def matmul(op: Op, size: int, operands: list[Any], batched: Flags, params: Params) -> Tensor:
    x, y = operands
    (left, right), ranks = batched, [_rank(v, b) for v, b in zip(operands, batched, strict=True)]
    if min(ranks) == 0:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {ranks[0]}D and {ranks[1]}D")
    if left and not right and ranks[0] == 1 and ranks[1] <= 2:
        return apply(op, (x, y), params)  # the vectors are the rows of a matrix
    if right and not left and ranks == [2, 1]:
        return apply(op, (y, _moved(x, 0, 1)), params)
    drop = []
    if left and ranks[0] == 1:
        x = E.reshape(x, shape=(size, 1, x._d.shape[1]))
        drop.append(-2 if ranks[1] > 1 or right else -1)
    if right and ranks[1] == 1:
        y = E.reshape(y, shape=(*y._d.shape, 1))
        drop.append(-1)
    rank = max(2 if b and r == 1 else r for r, b in zip(ranks, batched, strict=True))
    x, y = (_padded(v, rank) if b else v for v, b in ((x, left), (y, right)))
    result = apply(op, (x, y), params)
    shape = tuple(result._d.shape)
    places = {d + len(shape) for d in drop}
    return E.reshape(result, shape=tuple(n for i, n in enumerate(shape) if i not in places)) if drop else result


def einsum(op: Op, size: int, operands: list[Any], batched: Flags, params: Params) -> Tensor:
    terms, out = split_equation(params["equation"])
    letter = next(c for c in string.ascii_letters if c not in params["equation"])
    inside = ",".join(letter + term if b else term for term, b in zip(terms, batched, strict=True))
    return apply(op, operands, {"equation": f"{inside}->{letter}{out}"})


def _index_arrays(indices: Sequence[Tensor], batched: Flags, rank: int) -> list[Tensor]:
    return [_padded(i, rank) if b else i for i, b in zip(indices, batched, strict=True)]


def _is_run(places: list[int]) -> bool:
    return places == list(range(places[0], places[-1] + 1))


def _places(spec: Sequence[int | None]) -> list[int]:
    return [axis for axis, s in enumerate(spec) if s is not None]


def index(op: Op, size: int, operands: list[Any], batched: Flags, params: Params) -> Tensor:
    (x, *indices), (of_x, *of_indices), spec = operands, batched, params["spec"]
    places = _places(spec)
    rank = max(_rank(i, b) for i, b in zip(indices, of_indices, strict=True))
    at = places[0] if _is_run(places) else 0  # where the picked dims are, in a slice
    if not any(of_indices):
        result = apply(op, operands, {"spec": (None, *spec)})
        return result if _is_run(places) else _moved(result, rank, 0)
    indices = _index_arrays(indices, of_indices, rank)
    if not of_x:
        return _moved(apply(op, (x, *indices), {"spec": spec}), at, 0)
    result = apply(op, (x, *indices, _numbers(size, rank)), {"spec": (len(indices), *spec)})
    for _ in range(rank if at else 0):  # the picked dims stand behind the batch dim: move them behind `at` others
        result = _moved(result, 1, at + rank)
    return result


def _numbers(size: int, rank: int) -> Tensor:
    """0 to size - 1 along a batch dim with `rank` dims behind it."""
    return Tensor._wrap(np.arange(size).reshape(size, *(1,) * rank))


def index_put(op: Op, size: int, operands: list[Any], batched: Flags, params: Params) -> Tensor:
    (x, values, *indices), (of_x, of_values, *of_indices), spec = operands, batched, params["spec"]
    x = x if of_x else _expanded(x, size)
    picked = [tuple(i._d.shape[1:] if b else i._d.shape) for i, b in zip(indices, of_indices, strict=True)]
    rank = len(broadcast_shapes(picked))
    target = indexed_shape(tuple(x._d.shape[1:]), spec, picked)
    values = _padded(values, len(target)) if of_values else values
    values = E.broadcast_to(values, shape=(size, *target))
    places = _places(spec)
    at = places[0] if _is_run(places) else 0
    for _ in range(at):  # beside the number of the slice, the picked dims come first
        values = _moved(values, 1, at + rank)
    arrays = [*_index_arrays(indices, of_indices, rank), _numbers(size, rank)]
    return apply(op, (x, values, *arrays), {**params, "spec": (len(indices), *spec)})


def folded(op: Op, size: int, operands: list[Any], batched: Flags, params: Params) -> Tensor:
    """The batch dim joins the first dim: for ops that treat what is along that one alike."""
    values = [_joined(v, 0) for v in _all_batched(size, operands, batched)]
    if "shape" in params:
        params = {**params, "shape": (size * params["shape"][0], *params["shape"][1:])}
    return _parted(apply(op, values, params), 0, size)


def _joined(x: Tensor, axis: int) -> Tensor:
    """The batch dim joined to dim `axis` of the slices."""
    x = _moved(x, 0, axis)
    shape = tuple(x._d.shape)
    return E.reshape(x, shape=(*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :]))


def _parted(x: Tensor, axis: int, size: int) -> Tensor:
    """Undo `_joined`."""
    shape = tuple(x._d.shape)
    parted = E.reshape(x, shape=(*shape[:axis], size, shape[axis] // size, *shape[axis + 1 :]))
    return _moved(parted, axis, 0)


def _windows(joins: tuple[int, int], shape_axis: int, result_axis: int) -> Rule:
    """A convolution or a transpose of it: the batch becomes groups. `joins`: the dim of each operand that it joins."""

    def rule(op: Op, size: int, operands: list[Any], batched: Flags, params: Params) -> Tensor:
        if not batched[1] and shape_axis != 0:  # one kernel for all slices
            other = operands[1]
            first = _joined(operands[0], 0)
            if "shape" in params:
                params = {**params, "shape": (size * params["shape"][0], *params["shape"][1:])}
            return _parted(apply(op, (first, other), params), 0, size)
        values = _all_batched(size, operands, batched)
        values = [_joined(v, axis) for v, axis in zip(values, joins, strict=True)]
        params = {**params, "groups": size * params["groups"]}
        if "shape" in params:
            shape = list(params["shape"])
            shape[shape_axis] *= size
            params["shape"] = tuple(shape)
        return _parted(apply(op, values, params), result_axis, size)

    return rule


def leading(op: Op, size: int, operands: list[Any], batched: Flags, params: Params) -> Tensor:
    """The batch dim is one more dim in front of the matrices or rows, for ops that take any number of those."""
    return apply(op, _all_batched(size, operands, batched), params)


def with_numbers(op: Op, size: int, operands: list[Any], batched: Flags, params: Params) -> Tensor:
    """As `leading`, for ops whose further operands are numbers of each matrix."""
    matrices, *numbers = _all_batched(size, operands, batched)
    rank = len(matrices._d.shape) - 2
    return apply(op, [matrices, *(_trailing(v, rank) for v in numbers)], params)


def _trailing(x: Tensor, rank: int) -> Tensor:
    shape = tuple(x._d.shape)
    return E.reshape(x, shape=(*shape, *(1,) * (rank - len(shape))))


def searchsorted(op: Op, size: int, operands: list[Any], batched: Flags, params: Params) -> Tensor:
    """One sequence for all values of a slice: these in a row, as the rows of several sequences are."""
    sequence, values = operands
    if not batched[0] and len(sequence._d.shape) == 1:
        return apply(op, operands, params)
    sequence, values = _all_batched(size, operands, batched)
    shape = tuple(values._d.shape)
    if len(sequence._d.shape) == 2:
        values = E.reshape(values, shape=(size, math.prod(shape[1:])))
    return E.reshape(apply(op, (sequence, values), params), shape=shape)


def one_by_one(op: Op, size: int, operands: list[Any], batched: Flags, params: Params) -> Any:
    """The op on each slice."""
    from eager.functional.joining import stack

    if not size:
        avals = [_slice_aval(x, b) for x, b in zip(operands, batched, strict=True)]
        inferred = op.rule.infer(op, avals, params)
        inferred = inferred if op.several else (inferred,)
        made = tuple(E.full(shape=(0, *aval.shape), value=0, dtype=aval.dtype) for aval in inferred)
    else:
        slices = ([x[k] if b else x for x, b in zip(operands, batched, strict=True)] for k in range(size))
        made = tuple(map(stack, zip(*(results_of(apply(op, each, params)) for each in slices), strict=True)))
    return made if op.several else made[0]


def _slice_aval(x: Any, batched: bool) -> Any:
    from graphc.ops.aval import Aval

    return Aval(tuple(x._d.shape[batched:]), x._dtype())


_CONVOLUTIONS = {"": _windows((1, 0), 1, 1), "_input": _windows((1, 0), 1, 1), "_weight": _windows((1, 1), 0, 0)}
RULES: dict[str, Rule] = {
    **dict.fromkeys(("reshape", "slice", "basic_index", "diagonal"), shifted),
    **dict.fromkeys(("broadcast_to", "expand"), repeated),
    **dict.fromkeys(
        (
            "angle", "clone", "conj", "frexp", "imag", "real", "stop_gradient", "tril", "triu", "view_as_complex",
            "view_as_real",
        ),
        unchanged,
    ),
    **dict.fromkeys(
        (
            "cholesky", "cofactor", "det", "eig", "eigh", "inv", "lu", "matrix_exp", "permutation", "qr", "quadratic",
            "slogdet", "solve", "solve_triangular", "svd",
        ),
        leading,
    ),
    "pinv": with_numbers, "searchsorted": searchsorted, "complex": pointwise, "matmul": matmul, "einsum": einsum,
    "index": index, "index_put": index_put,
    **{f"conv{n}d{part}": rule for n in (1, 2, 3) for part, rule in _CONVOLUTIONS.items()},
    **{
        f"{kind}_pool{n}d{part}": folded
        for n in (1, 2, 3)
        for kind, parts in {"max": ("", "_spread", "_pick", "_index"), "avg": ("", "_spread")}.items()
        for part in parts
    },
}  # fmt: skip


def addmm(F: Any, input: Any, mat1: Any, mat2: Any) -> Any:
    """addmm by simpler ops."""
    return F.add(F.matmul(mat1, mat2), input)


DEFINITIONS: dict[str, Callable[..., Any]] = {"addmm": addmm}


def rule_of(op: Op) -> Rule | None:
    """The rule for `op`; None for an op to be taken apart into others."""
    rule = RULES.get(op.name)
    if rule is not None:
        return rule
    if op.pointwise or isinstance(op.ref, Each):  # also what is defined by others: its gradients are its own rule's
        return pointwise
    if op.name in DEFINITIONS or op.definition is not None:
        return None
    names_dims = all(k in SHIFTS or k in KEPT for k in op.params) and any(k in SHIFTS for k in op.params)
    return shifted if names_dims else one_by_one


def is_batched_as_one(op: Op) -> bool:
    """Whether `op` on the slices of a batch is the same op, or one like it, on the batch."""
    return op.name in DEFINITIONS or rule_of(op) in (pointwise, shifted, repeated, unchanged, matmul, einsum)


def definition_of(op: Op) -> Callable[..., Any]:
    """`op` in terms of others, in the op language."""
    return DEFINITIONS.get(op.name, op.definition)  # type: ignore[return-value]
