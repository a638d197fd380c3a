"""The ways in which an op meets memory: its kernel, eager's code for it, in place, and `out=`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from compare.layouts.layout import Layout
from eager import autograd
from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.surface.operators import functions
from graphc.ops import Op
from graphc.ops.aval import results_of
from graphc.ops.dtypes import is_inexact
from graphc.ops.interpret import run_kernel, with_defaults

Relayout = Callable[[np.ndarray], np.ndarray]
Way = Callable[[Op, Sequence[np.ndarray], Mapping[str, Any], Relayout], list[np.ndarray]]
RESULT = 0  # the place of the op's value among what a way gives; its other values and the gradients follow


def count_of(op: Op) -> int:
    """How many values of the op a way gives before the gradients."""
    return len(op.results) or 1


def by_kernel(op: Op, operands: Sequence[np.ndarray], params: Mapping[str, Any], place: Relayout) -> list[np.ndarray]:
    """What the kernel gives."""
    return list(results_of(run_kernel(op, operands, with_defaults(op, params))))


def by_tape(op: Op, operands: Sequence[np.ndarray], params: Mapping[str, Any], place: Relayout) -> list[np.ndarray]:
    """What eager gives, and its gradients for cotangents that are laid out by `place`."""
    tensors = [Tensor._wrap(a) for a in operands]
    leaves = [t for k, t in enumerate(tensors) if op.arg_of(k) in op.vjp and is_inexact(t._dtype())]
    for leaf in leaves:
        leaf.requires_grad_()
    results = results_of(getattr(E, op.name)(*tensors, **params))
    values = [t._array() for t in results]
    recorded = [t for t in results if t._n is not None]
    if not recorded:
        return values
    given = [Tensor._wrap(place(cotangent(t._array()))) for t in recorded]
    found = autograd.grad(recorded, leaves, given, materialize_grads=True)
    return [*values, *(d._array() for d in found if d is not None)]


def cotangents(values: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The cotangents of an op's values that are inexact."""
    return [cotangent(value) for value in values if is_inexact(value.dtype)]


def cotangent(value: np.ndarray) -> np.ndarray:
    """Numbers for each element of a result, none of them alike."""
    numbers = 0.5 + np.arange(value.size).reshape(value.shape) % 61 / 61
    return np.asarray(numbers * (1 + 0.5j) if value.dtype.kind == "c" else numbers).astype(value.dtype)


def in_place(op: Op, operands: Sequence[np.ndarray], params: Mapping[str, Any], place: Relayout) -> list[np.ndarray]:
    """What the in-place form leaves in its first operand."""
    tensors = [Tensor._wrap(a) for a in operands]
    getattr(Tensor, f"{op.name}_")(*tensors, **params)
    return [tensors[0]._array()]


def with_itself(op: Op, operands: Sequence[np.ndarray], params: Mapping[str, Any], place: Relayout) -> list[np.ndarray]:
    """The same where all operands are the first."""
    target = Tensor._wrap(operands[0])
    getattr(Tensor, f"{op.name}_")(*[target] * len(operands), **params)
    return [target._array()]


def into_out(op: Op, operands: Sequence[np.ndarray], params: Mapping[str, Any], place: Relayout) -> list[np.ndarray]:
    """What is written to an `out` that is laid out by `place`."""
    tensors = [Tensor._wrap(a) for a in operands]
    value = functions[op.name](*tensors)._array()
    out = Tensor._wrap(place(np.zeros_like(value)))
    functions[op.name](*tensors, out=out)
    return [out._array()]


def ways_of(op: Op) -> dict[str, Way]:
    """The ways that there are for `op`, by name."""
    found: dict[str, Way] = {"kernel": by_kernel, "eager": by_tape}
    if hasattr(Tensor, f"{op.name}_") and op.pointwise and not op.params:
        found |= {"in place": in_place}
        if len(op.args) > 1:
            found |= {"in place, with itself": with_itself}
    if op.name in functions:
        found |= {"out": into_out}
    return found


def writes(way: Way) -> bool:
    """Whether a way writes to its first operand."""
    return way in (in_place, with_itself)


def contiguous(array: np.ndarray) -> np.ndarray:
    """The same values, row by row in memory of their own."""
    return np.array(array, order="C")


def overlapping(layout: Layout, array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two arrays of the shape of `array` in one memory, of which the second lies one step before the first."""
    n = array.shape[-1]
    whole = layout.placed(np.concatenate([array, array[..., :1]], -1))
    return whole[..., 1:], whole[..., :n]
