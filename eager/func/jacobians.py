"""Jacobians and Hessians: a batch of vjps or jvps, one for each unit vector."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from eager.core.pytree import flatten, unflatten
from eager.core.tensor import Tensor
from eager.func.arguments import Function, numbers_of, refuse_complex
from eager.func.forward import linearized
from eager.func.mapping import vmap
from eager.func.reverse import pulled_back
from eager.functional.casts import numel
from eager.functional.joining import cat, split
from eager.functional.shapes import movedim, reshape


def jacrev(func: Function, argnums: Any = 0, *, has_aux: bool = False, chunk_size: int | None = None) -> Function:
    """A function that computes the Jacobian of `func`, row by row. As `torch.func.jacrev`.

    The result is a nest like the output, of nests like the arguments that `argnums` numbers, of Tensors of shape
    (*output shape, *argument shape). `chunk_size` rows are computed at a time, all if None.
    """
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func, updated=())
    def jacobian(*args: Any) -> Any:
        refuse_complex("jacrev", args, "inputs")
        output, vjp_fn, *aux = pulled_back(func, args, argnums, has_aux)
        outputs, spec = flatten(output)
        refuse_complex("jacrev", outputs, "outputs")
        inputs, input_spec = flatten(_chosen(args, argnums))
        rows = []
        for units in unit_vectors(outputs, chunk_size):
            if chunk_size == 1:
                row = vjp_fn(unflatten([u[0] for u in units], spec))
                rows.append([g.unsqueeze(0) for g in flatten(row)[0]])
            else:
                rows.append(flatten(vmap(vjp_fn)(unflatten(units, spec)))[0])
        columns = [parts[0] if len(parts) == 1 else cat(list(parts), 0) for parts in zip(*rows, strict=True)]
        sizes = [numel(t) for t in outputs]
        by_output = zip(*(split(column, sizes, 0) for column in columns), strict=True)
        found = unflatten(_blocks(outputs, inputs, by_output, input_spec), spec)
        return (found, aux[0]) if has_aux else found

    return jacobian


def jacfwd(func: Function, argnums: Any = 0, has_aux: bool = False, *, randomness: str = "error") -> Function:
    """A function that computes the Jacobian of `func`, column by column. As `torch.func.jacfwd`; see `jacrev`."""

    @functools.wraps(func, updated=())
    def jacobian(*args: Any) -> Any:
        refuse_complex("jacfwd", args, "inputs")
        inputs, input_spec = flatten(_chosen(args, argnums))
        output, spec, push, aux = linearized(func, args, argnums, has_aux)
        outputs = flatten(output)[0]
        refuse_complex("jacfwd", outputs, "outputs")
        (units,) = unit_vectors(inputs, None)
        moved = vmap(lambda *tangents: tuple(push(tangents)), randomness=randomness)(*units)
        sizes = [numel(x) for x in inputs]
        by_output = (split(movedim(column, 0, -1), sizes, -1) for column in moved)
        found = unflatten(_blocks(outputs, inputs, by_output, input_spec), spec)
        return (found, aux) if has_aux else found

    return jacobian


def _blocks(outputs: list[Tensor], inputs: list[Tensor], by_output: Iterable[Sequence[Tensor]], spec: Any) -> list[Any]:
    """The derivatives of each output, a nest like the inputs; `by_output` has those for each input, flattened."""
    found = []
    for t, parts in zip(outputs, by_output, strict=True):
        shaped = [reshape(part, (*t._d.shape, *x._d.shape)) for part, x in zip(parts, inputs, strict=True)]
        found.append(unflatten(shaped, spec))
    return found


def hessian(func: Function, argnums: Any = 0) -> Function:
    """A function that computes the second derivatives of `func`. As `torch.func.hessian`."""
    return jacfwd(jacrev(func, argnums), argnums)


def _chosen(args: tuple[Any, ...], argnums: Any) -> Any:
    numbers = numbers_of(argnums, len(args))
    return args[numbers[0]] if isinstance(argnums, int) else tuple(args[k] for k in numbers)


def unit_vectors(tensors: Sequence[Tensor], chunk_size: int | None) -> Iterator[list[Tensor]]:
    """The unit vectors of the space that `tensors` together are in, `chunk_size` at a time, all if None.

    Each chunk is a Tensor for each of `tensors`, with the numbers of the unit vectors along a first dim.
    """
    sizes = [numel(t) for t in tensors]
    total = sum(sizes)
    step = chunk_size or max(total, 1)
    starts = np.cumsum([0, *sizes])
    for first in range(0, max(total, 1), step):
        count = min(step, total - first)
        chunk = []
        for t, n, start in zip(tensors, sizes, starts, strict=False):
            rows = np.zeros((count, n), t._dtype())
            at = np.arange(first, first + count) - start
            inside = (at >= 0) & (at < n)
            rows[inside.nonzero()[0], at[inside]] = 1
            chunk.append(Tensor._wrap(rows.reshape(count, *t._d.shape)))
        yield chunk
