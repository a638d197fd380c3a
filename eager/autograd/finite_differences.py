"""Jacobians by finite differences and by autograd, as matrices (elements of the input, elements of the output).

Of a complex input z = x + iy, an entry is d(output)/dx + i d(output)/dy, which is what autograd calls the gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from eager.autograd import grad
from eager.core.grad_mode import no_grad
from eager.core.tensor import Tensor
from eager.core.ufunc_writes import write
from eager.engine.language import E
from eager.func.jacobians import unit_vectors
from graphc.ops.dtypes import is_inexact

Function = Callable[..., Any]


def as_tuple(x: Any) -> tuple[Any, ...]:
    return x if isinstance(x, tuple) else tuple(x) if isinstance(x, list) else (x,)


def differentiated(inputs: Sequence[Any]) -> list[Tensor]:
    """Those of `inputs` that gradients are checked for."""
    return [x for x in inputs if isinstance(x, Tensor) and x._n is not None and is_inexact(x._dtype())]


def shifted_outputs(func: Function, inputs: Sequence[Any], x: Tensor, shift: np.ndarray) -> list[np.ndarray]:
    """The outputs of `func` while `shift` is added to `x`, which is changed in place and restored."""
    array = x._writable()
    before = array.copy()
    write(np.add, array, array, shift)  # not noted as a write: what a graph has saved is as it was when this returns
    try:
        with no_grad():
            return [t._array().copy() for t in as_tuple(func(*inputs)) if isinstance(t, Tensor)]
    finally:
        array[...] = before


def directional(func: Function, inputs: Sequence[Any], x: Tensor, shift: np.ndarray, eps: float) -> list[np.ndarray]:
    """The central difference quotient of each output, in direction `shift` / eps. AssertionError if a shape changes."""
    below, above = shifted_outputs(func, inputs, x, -shift), shifted_outputs(func, inputs, x, shift)
    for number, (a, b) in enumerate(zip(above, below, strict=True)):
        for what, mine, other in (("shape", a.shape, b.shape), ("dtype", a.dtype, b.dtype)):
            if mine != other:
                raise AssertionError(
                    f"Expected `func` to return outputs with the same {what} when inputs are perturbed on index "
                    f"{number} by {eps}, but got: {what}s {mine} and {other}."
                )
    # on Tensors, for PyTorch's errors where there is no difference
    pairs = zip(map(Tensor._wrap, above), map(Tensor._wrap, below), strict=True)
    return [(E.sub(b, a)._array()) / (2 * eps) for b, a in pairs]


def numerical(func: Function, inputs: Sequence[Any], x: Tensor, eps: float) -> list[np.ndarray]:
    """The Jacobian of each output with respect to `x`, by central differences."""
    columns = []
    for k in range(x._array().size):
        unit = np.zeros(x._array().size, x._dtype())
        unit[k] = eps
        shift = unit.reshape(x._array().shape)
        found = directional(func, inputs, x, shift, eps)
        if x._dtype().kind == "c":
            found = [d + 1j * e for d, e in zip(found, directional(func, inputs, x, 1j * shift, eps), strict=True)]
        columns.append(found)
    if not columns:
        return [np.zeros((0, t._array().size), t._dtype()) for t in as_tuple(func(*inputs)) if isinstance(t, Tensor)]
    return [
        np.stack([d.reshape(-1) for d in column]).astype(_kind(x, column[0])) for column in zip(*columns, strict=True)
    ]


def _kind(x: Tensor, column: np.ndarray) -> Any:
    return np.result_type(column.dtype, x._dtype()) if x._dtype().kind == "c" else column.dtype


def pulled(output: Tensor, inputs: Sequence[Tensor], cotangent: Tensor) -> list[Tensor | None]:
    """The gradients of `output`; the graph is kept."""
    return list(grad(output, tuple(inputs), cotangent, retain_graph=True, allow_unused=True))


def analytical(output: Tensor, inputs: Sequence[Tensor]) -> tuple[list[np.ndarray], list[list[Tensor | None]]]:
    """The Jacobian of `output` with respect to each of `inputs`, by autograd; and the gradients that it is made of."""
    ((rows,),) = unit_vectors([output], None)
    found = [pulled(output, inputs, row) for row in rows]
    return [stacked([g[k] for g in found], x, output._array().size) for k, x in enumerate(inputs)], found


def stacked(gradients: Sequence[Tensor | None], x: Tensor, count: int) -> np.ndarray:
    """Gradients with respect to `x` as the columns of a matrix; zeros for None."""
    result = np.zeros((x._array().size, count), x._dtype())
    for k, g in enumerate(gradients):
        if g is not None and g._d.shape == x._d.shape:
            result[:, k] = g._array().reshape(-1)
    return result


def pushed(func: Function, inputs: Sequence[Any], x: Tensor) -> list[np.ndarray]:
    """The Jacobian of each output with respect to the real input `x`, by forward mode."""
    from eager.func import jvp

    place = next(k for k, y in enumerate(inputs) if y is x)

    def of_x(value: Tensor) -> tuple[Any, ...]:
        return as_tuple(func(*inputs[:place], value, *inputs[place + 1 :]))

    ((units,),) = unit_vectors([x], None)
    columns = [[t._array().reshape(-1) for t in jvp(of_x, (x.detach(),), (unit,))[1]]  # type: ignore[attr-defined]
               for unit in units]  # fmt: skip
    if not columns:
        return [np.zeros((0, t._array().size), t._dtype()) for t in as_tuple(func(*inputs)) if isinstance(t, Tensor)]
    return [np.stack(column) for column in zip(*columns, strict=True)]
