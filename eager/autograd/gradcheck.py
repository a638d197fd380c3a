"""`gradcheck` and `gradgradcheck`: gradients against finite differences. As `torch.autograd.gradcheck`."""

from __future__ import annotations

import sys
import types
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from eager.autograd import grad
from eager.autograd.comparisons import (
    Function,
    GradcheckError,
    Tolerance,
    as_tuple,
    compare_parts,
    differentiated,
    pulled,
)
from eager.core import tape
from eager.core.grad_mode import no_grad
from eager.core.tensor import Tensor
from eager.engine.function import Rule
from graphc.ops.dtypes import FLOAT64, is_inexact, real_of

NOT_DOUBLE = (
    "Input #{} requires gradient and is not a double precision floating point or complex. This check will likely fail "
    "if all the inputs are not of double precision floating point or complex. "
)
STRIDE_0 = (
    "The {}th input has a dimension with stride 0. gradcheck only supports inputs that are non-overlapping to be able "
    "to compute the numerical gradients correctly. You should call .contiguous on the input before passing it to "
    "gradcheck."
)
UNDEFINED = (
    'Expected backward function to handle undefined output grads. Please look at "Notes about undefined output '
    'gradients" in "tools/autograd/derivatives.yaml"'
)
UNDEFINED_RESULT = (
    "Expected all input grads to be undefined or zero when all output grads are undefined or zero. Please look at "
    '"Notes about undefined output gradients" in "tools/autograd/derivatives.yaml"'
)
OLD_CALLERS = (
    "Backwards compatibility: New undefined gradient support checking feature is enabled by default, but it may break "
    "existing callers of this function. If this is true for you, you can call this function with "
    '"check_undefined_grad=False" to disable the feature'
)
BATCHED = "gradcheck or gradgradcheck failed while testing batched gradient computation."


def gradcheck(
    func: Function,
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Check gradients of `func` at `inputs` against central differences. As `torch.autograd.gradcheck`.

    Returns True; raises GradcheckError where they differ, or returns False then if not `raise_exception`. ValueError if
    no input requires grad.
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    tolerance = Tolerance(eps, atol, rtol, nondet_tol, check_grad_dtypes, fast_mode)
    given = as_tuple(inputs)
    try:
        _check_inputs(given)
        outputs = _outputs(func, given)
        compare_parts(func, given, tolerance, check_forward_ad, check_backward_ad)
        if check_batched_forward_grad:
            _check_batched_forward(func, given)
        if check_backward_ad:
            for number, output in enumerate(outputs):
                if check_batched_grad:
                    _check_batched(output, differentiated(given), number)
            _check_multiplied(outputs, differentiated(given))
            if check_undefined_grad:
                _check_undefined(_outputs(func, given))
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Function,
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Check second derivatives: `gradcheck` of the gradient. As `torch.autograd.gradgradcheck`.

    `grad_outputs` are the cotangents, random if None (`gen_non_contig_grad_outputs`: not contiguous).
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    if check_undefined_grad and not check_rev_over_rev:
        raise AssertionError("Setting check_undefined_grad=True requires check_rev_over_rev to be True")
    if check_batched_grad and not check_rev_over_rev:
        raise AssertionError("Setting check_batched_grad=True requires check_rev_over_rev to be True")
    given = as_tuple(inputs)
    if grad_outputs is None:
        cotangents = tuple(_random_like(t, gen_non_contig_grad_outputs) for t in _outputs(func, given))
    else:
        cotangents = as_tuple(grad_outputs)
    wanted = [k for k, x in enumerate(given) if isinstance(x, Tensor) and x._n is not None]

    def gradient(*args: Any) -> tuple[Any, ...]:
        xs, gs = list(args[: len(given)]), args[len(given) :]
        for k in wanted:
            if xs[k]._n is None:
                xs[k] = xs[k].detach().requires_grad_()
        from eager.core.grad_mode import enable_grad

        with enable_grad():
            found = grad(_outputs(func, xs), tuple(xs[k] for k in wanted), gs, create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None)

    return gradcheck(
        gradient, given + cotangents, eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception,
        nondet_tol=nondet_tol, check_undefined_grad=check_undefined_grad, check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad, fast_mode=fast_mode, check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev, masked=masked,
    )  # fmt: skip


def _random_like(t: Tensor, strided: bool) -> Tensor:
    from eager.rng import functions

    dtype = t.dtype if is_inexact(t._dtype()) else FLOAT64
    g = functions.rand(t.shape, dtype=dtype) * 2 - 1  # type: ignore[operator]
    if strided and g._d.shape:
        g = Tensor._wrap(np.repeat(g._array(), 2, axis=-1)[..., ::2])
    return g.detach().requires_grad_()  # type: ignore[attr-defined]


def _check_inputs(inputs: tuple[Any, ...]) -> None:
    found = False
    for number, x in enumerate(inputs):
        if isinstance(x, Tensor) and x._n is not None:
            found = True
            if real_of(x._dtype()) != FLOAT64:
                warnings.warn(NOT_DOUBLE.format(number), UserWarning, stacklevel=3)
            array = x._array()
            if array.size and any(s == 0 and n > 1 for s, n in zip(array.strides, array.shape, strict=True)):
                raise RuntimeError(STRIDE_0.format(number))
    if not found:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        )


def _outputs(func: Function, inputs: Sequence[Any]) -> tuple[Tensor, ...]:
    return tuple(t for t in as_tuple(func(*inputs)) if t.requires_grad)


def _check_batched(output: Tensor, xs: list[Tensor], number: int) -> None:
    def pull(v: Tensor) -> tuple[Tensor, ...]:
        return tuple(
            Tensor._wrap(np.zeros(x._d.shape, x._dtype())) if g is None else g
            for g, x in zip(pulled(output, xs, v), xs, strict=True)
        )

    _check_vmapped(pull, output, number)


def _check_batched_forward(func: Function, inputs: tuple[Any, ...]) -> None:
    from eager.func import jvp

    for place, x in enumerate(differentiated(inputs)):

        def of_x(value: Tensor, x: Tensor = x) -> tuple[Any, ...]:
            return as_tuple(func(*(value if y is x else y for y in inputs)))

        def push(tangent: Tensor, of_x: Function = of_x, x: Tensor = x) -> tuple[Any, ...]:
            return jvp(of_x, (x.detach(),), (tangent,))[1]  # type: ignore[attr-defined]

        _check_vmapped(push, x, place)


def _check_vmapped(function: Function, like: Tensor, number: int) -> None:
    """Raise GradcheckError unless `vmap(function)` gives of two tensors like this one what `function` gives of each."""
    from eager.func import vmap
    from eager.functional.joining import stack
    from eager.rng import fills

    given = [fills.randn_like(like).detach() for _ in range(2)]  # type: ignore[attr-defined]
    expected = [stack(list(column)) for column in zip(*(function(t) for t in given), strict=True)]
    try:
        result = vmap(function)(stack(given))
    except RuntimeError as error:
        raise GradcheckError(f"While computing batched gradients, got: {error}\n\n{BATCHED}") from error
    for place, (mine, wanted) in enumerate(zip(result, expected, strict=True)):
        if not np.allclose(mine._array(), wanted._array(), rtol=1e-5, atol=1e-8):
            raise GradcheckError(
                f"For output {number} and input {place}:\n\n{BATCHED}\n\nGot:\n{mine}\n\nExpected:\n{wanted}"
            )


def _check_multiplied(outputs: Sequence[Tensor], xs: list[Tensor]) -> None:
    """Raise GradcheckError unless the gradients of zero cotangents are zeros, like their inputs."""
    if not outputs:
        return
    zeros = [Tensor._wrap(np.zeros(t._d.shape, t._dtype())) for t in outputs]
    for g, x in zip(grad(outputs, tuple(xs), zeros, retain_graph=True, allow_unused=True), xs, strict=True):
        if g is None:
            continue
        if np.any(g._array() != 0):
            raise GradcheckError("backward not multiplied by grad_output")
        if g._dtype() != x._dtype():
            raise GradcheckError("grad is incorrect type")
        if g._d.shape != x._d.shape:
            raise GradcheckError("grad is incorrect size")


def _check_undefined(outputs: Sequence[Tensor]) -> None:
    """Run the gradients of user Functions behind `outputs` without cotangents: they must take it, and pass nothing on.

    Ops of the registry never see a cotangent that is missing.
    """
    for output in outputs:
        node = output._n
        if node[tape.ABOUT].number is not None:
            node = node[tape.PARENTS]
        rule = node[tape.ABOUT]
        if not isinstance(rule, Rule):
            continue
        given = [{}] if len(rule.outputs) == 1 else [{}, *({k: _zeros(rule, k)} for k in range(len(rule.outputs)))]
        for cotangents in given:
            try:
                with no_grad():
                    found = rule.run(cotangents, rule.unpacked(node))
            except RuntimeError as error:
                warnings.warn(OLD_CALLERS, UserWarning, stacklevel=4)
                raise GradcheckError(UNDEFINED) from error
            if any(g is not None and np.any(g._array() != 0) for g in found):
                warnings.warn(OLD_CALLERS, UserWarning, stacklevel=4)
                raise GradcheckError(UNDEFINED_RESULT)


def _zeros(rule: Any, number: int) -> Tensor:
    shape, dtype = rule.outputs[number]
    return Tensor._wrap(np.zeros(shape, dtype))


gradcheck.GradcheckError = GradcheckError  # type: ignore[attr-defined]
gradcheck.gradcheck, gradcheck.gradgradcheck = gradcheck, gradgradcheck  # type: ignore[attr-defined]


class _Callable(types.ModuleType):
    """This module: it and the function in it have one name in the package, and either may be there."""

    def __call__(self, *args: Any, **kwargs: Any) -> bool:
        return gradcheck(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable
