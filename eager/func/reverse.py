"""Reverse mode as function transforms: `grad`, `grad_and_value`, `vjp`."""

from __future__ import annotations

import functools
from typing import Any

from eager.core.grad_mode import grad_enabled, set_grad_enabled
from eager.core.pytree import flatten, unflatten
from eager.core.tensor import Tensor
from eager.engine.backward import seeds
from eager.engine.inplace import has_history
from eager.func.arguments import Function, check_outputs, entered, result_and_aux
from eager.func.levels import Level, left, level, or_zeros, pull
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
