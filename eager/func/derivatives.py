"""Derivatives as function transforms: `grad`, `vjp`, `jvp`, `linearize`, `jacrev`, `jacfwd`, `hessian`.

There are no forward rules: a vjp is linear in its cotangent, and the vjp of that is the jvp. Jacobians are batches of
vjps or jvps, one for each unit vector.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from eager.core.grad_mode import grad_enabled, set_grad_enabled
from eager.core.pytree import TreeSpec, flatten, unflatten
from eager.core.tensor import Tensor
from eager.engine.backward import seeds
from eager.engine.inplace import has_history
from eager.engine.language import E
from eager.func.argnums import Function, check_outputs, entered, numbers_of, refuse_complex, result_and_aux
from eager.func.levels import Level, left, level, or_zeros, pull, zeros_like
from eager.func.mapping import vmap
from eager.functional.casts import numel
from eager.functional.joining import cat, split
from eager.functional.shapes import movedim, reshape
from graphc.ops.dtypes import is_inexact


def grad(func: Function, argnums: Any = 0, has_aux: bool = False) -> Function:
    """A function that computes the gradient of `func`, which returns a 0-d Tensor. As `torch.func.grad`.

    With respect to the argument, or tuple of arguments, that `argnums` numbers; each may be a nest of Tensors. With
    `has_aux`, `func` returns (output, aux), and the function (gradient, aux). RuntimeError for an output that is no 0-d
    Tensor.
    """

    @functools.wraps(func, updated=())
    def gradient(*args: Any, **kwargs: Any) -> Any:
        found, value = _gradient_and_value(func, argnums, has_aux, args, kwargs)
        return (found, value[1]) if has_aux else found

    return gradient


def grad_and_value(func: Function, argnums: Any = 0, has_aux: bool = False) -> Function:
    """A function that returns (gradient, value of `func`). As `torch.func.grad_and_value`; see `grad`."""

    @functools.wraps(func, updated=())
    def both(*args: Any, **kwargs: Any) -> Any:
        return _gradient_and_value(func, argnums, has_aux, args, kwargs)

    return both


def value_and_grad(func: Function, argnums: Any = 0, has_aux: bool = False) -> Function:
    """A function that returns (value of `func`, gradient), in JAX's order. See `grad`."""

    @functools.wraps(func, updated=())
    def both(*args: Any, **kwargs: Any) -> Any:
        return _gradient_and_value(func, argnums, has_aux, args, kwargs)[::-1]

    return both


def _gradient_and_value(func: Function, argnums: Any, has_aux: bool, args: Any, kwargs: Any) -> tuple[Any, Any]:
    api = "grad_and_value(f)(*args)"
    with level() as new:
        inside, chosen = entered(new, args, argnums)
        output, aux = result_and_aux(func(*inside, **kwargs), has_aux, api)
        if not isinstance(output, Tensor):
            raise RuntimeError(f"{api}: Expected f(*args) to return a Tensor, got {type(output)}")
        if output._d.shape:
            raise RuntimeError(
                f"{api}: Expected f(*args) to return a scalar Tensor, got tensor with {len(output._d.shape)} dims. "
                "Maybe you wanted to use the vjp or jacrev APIs instead?"
            )
        inputs, spec = flatten(chosen)
        if output._n is None:
            found = or_zeros([None] * len(inputs), inputs)
        else:
            found = or_zeros(pull([output], inputs, seeds([output], None), new.is_shared([output])), inputs)
    gradient = left(new, unflatten(found, spec))
    value = new.leave(output)
    return gradient, (value, left(new, aux)) if has_aux else value


def vjp(func: Function, *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """The output of `func` at `primals`, and a function from cotangents to gradients. As `torch.func.vjp`.

    Cotangents are a nest like the output, the gradients a tuple like the primals. RuntimeError for outputs that are no
    floating Tensors, and for cotangents of another structure.
    """
    return pulled_back(func, primals, None, has_aux)


def pulled_back(func: Function, primals: tuple[Any, ...], argnums: Any, has_aux: bool) -> tuple[Any, ...]:
    """`vjp` with respect to the arguments that `argnums` numbers."""
    with level() as new:
        inside, chosen = entered(new, primals, argnums)
        result, aux = result_and_aux(func(*inside), has_aux, "vjp(f, *primals)")
        outputs, spec = flatten(result)
        check_outputs(outputs, "vjp(f, *primals)")
        for t in outputs:
            if not is_inexact(t._dtype()):
                raise RuntimeError(
                    "vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got Tensor "
                    f"with dtype {t.dtype}"
                )
        inputs, input_spec = flatten(chosen)
        shared = new.is_shared(outputs)
    visible = left(new, result)

    def vjp_fn(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        given, given_spec = flatten(cotangents)
        if given_spec != spec:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the "
                f"function. cotangents: {given_spec.pattern()}, primal output: {spec.pattern()}"
            )
        pairs = [(t, c) for t, c in zip(outputs, given, strict=True) if t._n is not None]
        recording = grad_enabled() and (shared or any(has_history(c) for c in given))
        seeds([t for t, _ in pairs], [c for _, c in pairs])  # raises for shapes that differ
        found = pull(outputs, inputs, given, recording)
        after = Level()
        with set_grad_enabled(recording):
            gradients = or_zeros(found, inputs)
        return left(after, unflatten(gradients, input_spec))

    return (visible, vjp_fn, left(new, aux)) if has_aux else (visible, vjp_fn)


API = "jvp(f, primals, tangents)"
Push = Callable[[Sequence[Tensor]], list[Tensor]]


def jvp(func: Function, primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> tuple[Any, ...]:
    """The output of `func` at `primals`, and its derivative in the direction `tangents`. As `torch.func.jvp`.

    `strict`: an output that does not depend on the inputs is a RuntimeError. RuntimeError for primals that are no
    tuple, or tangents of another structure.
    """
    if not isinstance(primals, tuple):
        raise RuntimeError(f"{API}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals).")
    leaves, spec = flatten(primals)
    given, given_spec = flatten(tangents)
    if spec != given_spec:
        raise RuntimeError(
            f"{API}: Expected primals and tangents to have the same python structure. For example, if primals is a "
            f"tuple of 3 tensors, tangents also must be. Got primals with structure {spec} and tangents with structure "
            f"{given_spec}"
        )
    for name, values in (("primals", leaves), ("tangents", given)):
        if not values:
            raise RuntimeError(f"{API}: Expected {name} to contain at least one Tensor.")
        for x in values:
            if not isinstance(x, Tensor):
                raise RuntimeError(f"{API}: Expected {name} to only contain Tensors, got {type(x)}")
    for x, t in zip(leaves, given, strict=True):
        if x._d.shape != t._d.shape:
            raise RuntimeError(
                f"Trying to set a forward gradient that has a different size than that of the original Tensor, this is "
                f"not supported. Tensor is of size {list(x._d.shape)} while the given forward gradient is of size "
                f"{list(t._d.shape)}."
            )
    output, out_spec, push, aux = linearized(func, primals, None, has_aux, strict)
    moved = unflatten(push(given), out_spec)
    return (output, moved, aux) if has_aux else (output, moved)


def linearized(
    func: Function, primals: tuple[Any, ...], argnums: Any, has_aux: bool, strict: bool = False
) -> tuple[Any, TreeSpec, Push, Any]:
    """(output of `func`, its TreeSpec, function from flat tangents to flat derivatives, aux)."""
    with level() as new:
        inside, chosen = entered(new, primals, argnums)
        result, aux = result_and_aux(func(*inside), has_aux, API)
        outputs, spec = flatten(result)
        check_outputs(outputs, API.replace("f(*primals)", "f(*args)"))
        push = pushforward(new, outputs, flatten(chosen)[0], strict)
    return left(new, result), spec, push, left(new, aux) if has_aux else None


def pushforward(new: Level, outputs: Sequence[Tensor], inputs: Sequence[Tensor], strict: bool) -> Push:
    """The derivative of `outputs` with respect to `inputs`, both of the level `new`, as a function of tangents."""
    live = [t for t in outputs if has_history(t) and is_inexact(t._dtype())]
    # their values are of no importance, but a rule that takes their logarithm needs them to be positive
    cotangents = [new.enter(E.full(shape=tuple(t._d.shape), value=1, dtype=t._dtype())) for t in live]
    pulled = pull(live, inputs, cotangents, True)
    shared = new.is_shared(live)

    if strict:
        for t in outputs:
            alone = pull([t], inputs, [zeros_like(t)], False) if has_history(t) else [None]
            if all(g is None for g in alone):
                raise RuntimeError(
                    "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not "
                    "allowed with strict=True."
                )

    def push(tangents: Sequence[Tensor]) -> list[Tensor]:
        pairs = [(g, t) for g, t in zip(pulled, tangents, strict=True) if g is not None]
        recording = grad_enabled() and (shared or any(has_history(t) for t in tangents))
        moved = pull([g for g, _ in pairs], cotangents, [t for _, t in pairs], recording)
        after = Level()
        with set_grad_enabled(recording):
            found = {id(t): m for t, m in zip(live, moved, strict=True)}
            return [after.leave(m) for m in or_zeros([found.get(id(t)) for t in outputs], outputs)]

    return push


def linearize(func: Function, *primals: Any) -> tuple[Any, Function]:
    """The output of `func` at `primals`, and its derivative there, a linear function. As `torch.func.linearize`.

    RuntimeError for tangents that are not like the primals in structure, shape and dtype.
    """
    leaves, spec = flatten(primals)
    output, out_spec, push, _ = linearized(func, primals, None, False)

    def jvp_fn(*tangents: Any) -> Any:
        given, given_spec = flatten(tangents)
        if given_spec != spec:
            raise RuntimeError(f"Expected the tangents {given_spec} to have the same argspec as the primals {spec}")
        for k, (t, x) in enumerate(zip(given, leaves, strict=True)):
            for name, mine, wanted in (("shape", t.shape, x.shape), ("dtype", t.dtype, x.dtype)):
                if mine != wanted:
                    raise RuntimeError(
                        f"tangent:{k} with {name} {mine} in flattened pytree doesn't match the {name} {wanted} of the "
                        "corresponding primal."
                    )
        return unflatten(push(given), out_spec)

    return output, jvp_fn


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
