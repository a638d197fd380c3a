"""Jacobians by finite differences and by autograd, compared: element by element, or in random directions.

They are matrices (elements of the input, elements of the output). Of a complex input z = x + iy, an entry is
d(output)/dx + i d(output)/dy, which is what autograd calls the gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from typing import Any, NamedTuple

import numpy as np

from eager.autograd import grad
from eager.core.grad_mode import no_grad
from eager.core.tensor import Tensor
from eager.core.ufunc_writes import write
from eager.engine.language import E
from eager.func.derivatives import unit_vectors
from eager.rng.generator import Generator
from graphc.ops.dtypes import is_inexact, real_of

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


NOT_REENTRANT = (
    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives different "
    "values, although analytical gradient matches numerical gradient.The tolerance for nondeterminism was {}."
)
SLOW_TOO = (
    "\nThe above quantities relating the numerical and analytical jacobians are computed \n"
    "in fast mode. See: https://github.com/pytorch/pytorch/issues/53876 for more background \n"
    "about fast mode. Below, we recompute numerical and analytical jacobians in slow mode:\n\n"
    "Numerical:\n {}\nAnalytical:\n{}\n\nThe max per-element difference (slow mode) is: {}.\n"
)
ZERO_EXPECTED = "Numerical gradient for function expected to be zero"


class GradcheckError(RuntimeError):
    """Raised by `gradcheck` and `gradgradcheck`."""


class Tolerance(NamedTuple):
    """What a check compares with."""

    eps: float
    atol: float
    rtol: float
    nondet: float
    dtypes: bool  # whether gradients must have the dtypes of their inputs
    fast: bool


def compare_parts(func: Function, inputs: tuple[Any, ...], tol: Tolerance, forward: bool, backward: bool) -> None:
    """Check each part, real and imaginary, of what is complex: outputs backward, inputs forward."""
    found = as_tuple(func(*inputs))
    complex_outputs = {k for k, t in enumerate(found) if t._dtype().kind == "c"}
    complex_inputs = [k for k, x in enumerate(inputs) if isinstance(x, Tensor) and x._dtype().kind == "c"]
    if backward and complex_outputs:
        for part in ("imag", "real"):
            _compare(_part_of_outputs(func, part), inputs, tol, complex_outputs, part)
    elif backward:
        _compare(func, inputs, tol)
    if forward and complex_inputs:
        for part in ("imag", "real"):
            of_part, parts = _part_of_inputs(func, inputs, complex_inputs, part)
            _compare_forward(of_part, parts, tol, set(complex_inputs), part)
    elif forward:
        _compare_forward(func, inputs, tol)


def _part_of_outputs(func: Function, part: str) -> Function:
    def of_part(*inputs: Any) -> tuple[Any, ...]:
        return tuple(getattr(t, part) if t._dtype().kind == "c" else t for t in as_tuple(func(*inputs)))

    return of_part


def _part_of_inputs(
    func: Function, inputs: tuple[Any, ...], places: list[int], part: str
) -> tuple[Function, tuple[Any, ...]]:
    from eager.functional.complexes import complex as join

    def of_part(*args: Any) -> Any:
        whole = list(args)
        for k in places:
            z = inputs[k].detach()
            whole[k] = join(args[k], z.imag) if part == "real" else join(z.real, args[k])
        return func(*whole)

    parts = list(inputs)
    for k in places:
        parts[k] = getattr(inputs[k].detach(), part).clone().requires_grad_(inputs[k].requires_grad)
    return of_part, tuple(parts)


def _mismatch(
    analytic: Any, numeric: Any, output: int, number: int, complex_places: Set[int], part: str, forward: bool = False
) -> str:
    about_complex = (number if forward else output) in complex_places
    what = "inputs" if forward else "outputs"
    name = {"real": "real", "imag": "imaginary"}.get(part)
    prefix = f"While considering the {name} part of complex {what} only, " if about_complex else ""
    mode = "computed with forward mode " if forward else ""
    return (
        f"{prefix}Jacobian {mode}mismatch for output {output} with respect to input {number},\n"
        f"numerical:{_shown(numeric)}\nanalytical:{_shown(analytic)}\n"
    )


def _shown(x: Any) -> str:
    return repr(Tensor._wrap(x)) if isinstance(x, np.ndarray) and x.ndim else str(x.item())


def _close(analytic: np.ndarray, numeric: np.ndarray, rtol: float, atol: float) -> bool:
    return bool(np.allclose(analytic, numeric, rtol=rtol, atol=atol))


def _compare(
    func: Function, inputs: tuple[Any, ...], tol: Tolerance, complex_places: Set[int] = frozenset(), part: str = ""
) -> None:
    xs = differentiated(inputs)
    found = as_tuple(func(*inputs))
    live = [k for k, t in enumerate(found) if t.requires_grad]
    if tol.fast and live:
        _compare_fast(func, inputs, tol, complex_places, part)
        return
    numeric = [numerical(func, inputs, x, tol.eps) for x in xs]
    if not live:
        if any(np.any(jacobian) for jacobians in numeric for jacobian in jacobians):
            raise GradcheckError(ZERO_EXPECTED)
        return
    for place, k in enumerate(live):
        jacobians = _reentrant(found[k], xs, tol)
        for number, analytic in enumerate(jacobians):
            if not _close(analytic, numeric[number][k], tol.rtol, tol.atol):
                raise GradcheckError(_mismatch(analytic, numeric[number][k], place, number, complex_places, part))


def _reentrant(output: Tensor, xs: list[Tensor], tol: Tolerance) -> list[np.ndarray]:
    """The Jacobian by autograd, twice: GradcheckError if the two differ, or gradients are not like their inputs."""
    first, gradients = analytical(output, xs)
    second, _ = analytical(output, xs)
    _check_attributes(gradients, xs, tol)
    _check_equal(first, second, tol)
    return first


def _check_attributes(gradients: list[list[Tensor | None]], xs: list[Tensor], tol: Tolerance) -> None:
    pairs = [(g, x) for row in gradients for g, x in zip(row, xs, strict=True) if g is not None]
    if tol.dtypes and any(g._dtype() != x._dtype() for g, x in pairs):
        raise GradcheckError("Gradient has dtype mismatch")
    if any(g._d.shape != x._d.shape for g, x in pairs):
        raise GradcheckError("Analytical gradient has incorrect size")


def _check_equal(first: list[np.ndarray], second: list[np.ndarray], tol: Tolerance) -> None:
    if any(a.size and np.abs(a - b).max() > tol.nondet for a, b in zip(first, second, strict=True)):
        raise GradcheckError(NOT_REENTRANT.format(tol.nondet))


def _direction(like: Tensor, source: Generator, real: bool) -> np.ndarray:
    """A random unit vector, flat: in the dtype of `like`, or of its real part."""
    dtype = real_of(like._dtype()) if real else like._dtype()
    vector = source.uniform((like._array().size,), np.dtype(np.float32)).astype(dtype)
    return vector / np.linalg.norm(vector) if vector.size else vector


def _compare_fast(func: Function, inputs: tuple[Any, ...], tol: Tolerance, complex_places: Set[int], part: str) -> None:
    """Compare v . J u for random v and u."""
    source = Generator()  # not the default one, whose state is the user's
    xs, found = differentiated(inputs), as_tuple(func(*inputs))
    live = [k for k, t in enumerate(found) if t.requires_grad]
    us = [(_direction(x, source, True), _direction(x, source, True) if x._dtype().kind == "c" else None) for x in xs]
    vs = [_direction(found[k], source, False) for k in live]
    first = [[pulled(found[k], xs, _like(v, found[k]))] for k, v in zip(live, vs, strict=True)]
    second = [[pulled(found[k], xs, _like(v, found[k]))] for k, v in zip(live, vs, strict=True)]
    for a, b in zip(first, second, strict=True):
        _check_attributes(a, xs, tol)
        columns = [[stacked([row[0][k]], x, 1) for k, x in enumerate(xs)] for row in (a, b)]
        _check_equal(columns[0], columns[1], tol)
    for number, (x, (u, w)) in enumerate(zip(xs, us, strict=True)):
        moved = directional(func, inputs, x, (u * tol.eps).reshape(x._array().shape), tol.eps)
        if w is not None:
            other = directional(func, inputs, x, (1j * w * tol.eps).reshape(x._array().shape), tol.eps)
            moved = [a + 1j * b for a, b in zip(moved, other, strict=True)]
        for place, k in enumerate(live):
            column = stacked([first[place][0][number]], x, 1)[:, 0]
            analytic = column @ u if w is None else column.real @ u + 1j * (column.imag @ w)
            numeric = vs[place] @ moved[k].reshape(-1)
            scale = float((u.sum() + (0 if w is None else w.sum())) * vs[place].sum().real)
            if not _close(np.asarray(analytic), np.asarray(numeric), tol.rtol, tol.atol * scale):
                slow = numerical(func, inputs, x, tol.eps)[k], analytical(found[k], xs)[0][number]
                shown = *(repr(Tensor._wrap(j)) for j in slow), np.abs(slow[0] - slow[1]).max()
                raise GradcheckError(
                    _mismatch(np.asarray(analytic), np.asarray(numeric), place, number, complex_places, part)
                    + SLOW_TOO.format(*shown)
                )


def _like(vector: np.ndarray, t: Tensor) -> Tensor:
    return Tensor._wrap(vector.reshape(t._array().shape))


def _compare_forward(
    func: Function, inputs: tuple[Any, ...], tol: Tolerance, complex_places: Set[int] = frozenset(), part: str = ""
) -> None:
    live = [k for k, t in enumerate(as_tuple(func(*inputs))) if t.requires_grad]
    for number, x in enumerate(differentiated(inputs)):
        numeric, forward = numerical(func, inputs, x, tol.eps), pushed(func, inputs, x)
        for place, k in enumerate(live):
            if not _close(forward[k], numeric[k], tol.rtol, tol.atol):
                raise GradcheckError(
                    _mismatch(forward[k], numeric[k], place, number, complex_places, part, forward=True)
                )
