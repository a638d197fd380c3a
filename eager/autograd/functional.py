"""Jacobians, Hessians and their products with vectors, of functions of tensors. As `torch.autograd.functional`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eager.autograd import grad
from eager.core.grad_mode import enable_grad, grad_enabled, set_grad_enabled
from eager.core.interpreter import current_interpreter
from eager.core.tensor import Tensor
from eager.functional.casts import numel
from eager.functional.creation import zeros_like
from eager.functional.joining import split, stack
from eager.functional.shapes import reshape

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

Function = Callable[..., Any]
Tensors = tuple[Tensor, ...]

STRICT = " This is not allowed in strict mode."
SINGLE_INPUT = (
    "The vector v can only be None if the input to the user-provided function is a single Tensor with a single element."
)
SINGLE_OUTPUT = (
    "The vector v can only be None if the user-provided function returns a single Tensor with a single element."
)
OUTPUTS = "outputs of the user-provided function"
# what is asked to require grad -> what it means if it does not
NOT_DEPENDING = {
    "outputs": "Output {} of the user-provided function does not require gradients. The outputs must be computed in a "
    "differentiable manner from the input when running in strict mode.",
    "grad_inputs": "The gradient with respect to input {} is independent of the inputs of the user-provided function."
    + STRICT,
    "jacobian": "While computing the hessian, found that the jacobian of the user-provided function with respect to "
    "input {} is independent of the input. This is not allowed in strict mode. You should ensure that your function is "
    "twice differentiable and that the jacobian depends on the inputs (this would be violated by a linear function for "
    "example).",
    "hessian": "The hessian of the user-provided function with respect to input {} is independent of the input. This "
    "is not allowed in strict mode. You should ensure that your function is thrice differentiable and that the hessian "
    "depends on the inputs.",
}
# stage of the computation -> what a missing gradient means
MISSING = {
    "back": "The output of the user-provided function is independent of input {}." + STRICT,
    "back_trick": "The gradient with respect to the input is independent of entry {} in the grad_outputs when using "
    "the double backward trick to compute forward mode gradients." + STRICT,
    "double_back": "The jacobian of the user-provided function is independent of input {}." + STRICT,
    "double_back_trick": "The hessian of the user-provided function is independent of entry {} in the grad_jacobian. "
    "This is not allowed in strict mode as it prevents from using the double backward trick to replace forward mode "
    "AD.",
}
CONSTANT = (
    "The {} of the user-provided function is independent of input {}. This is not allowed in strict mode when "
    "create_graph=True."
)


def vjp(
    func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """(output of `func`, product of `v` with its Jacobian). As `torch.autograd.functional.vjp`.

    RuntimeError for a `v` that is not like the output, and with `strict` for what does not depend on the inputs.
    """
    with enable_grad():
        several, given, outputs, several_outputs = _run(func, inputs, "vjp", create_graph, strict)
        vectors = _vectors(v, outputs, several_outputs, "vjp", SINGLE_OUTPUT, create_graph)
    with set_grad_enabled(create_graph or grad_enabled()):
        found = _zero_filled(_gradients(outputs, given, vectors, create_graph), given, strict, create_graph, "back")
    return _as_given(_final(outputs, create_graph), several_outputs), _as_given(_final(found, create_graph), several)


def jvp(
    func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """(output of `func`, product of its Jacobian with `v`). As `torch.autograd.functional.jvp`; see `vjp`."""
    with enable_grad():
        several, given = _as_tuple(inputs, "inputs", "jvp")
        given = _prepared(given, create_graph, True)
        vectors = _vectors(v, given, several, "jvp", SINGLE_INPUT, create_graph)
        several_outputs, outputs = _outputs(func, given, "jvp", strict)
        # the vjp is linear in its cotangent, whatever that is: its derivative is the jvp
        cotangents = tuple(zeros_like(t, requires_grad=True) for t in outputs)
        pulled = _gradients(outputs, given, cotangents, True)
        _check_requires_grad(pulled, "grad_inputs", strict)
    with set_grad_enabled(create_graph or grad_enabled()):
        found = _gradients(pulled, cotangents, vectors, create_graph)
        found = _zero_filled(found, outputs, strict, create_graph, "back_trick")
    return (
        _as_given(_final(outputs, create_graph), several_outputs),
        _as_given(_final(found, create_graph), several_outputs),
    )


def vhp(
    func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """(output of `func`, product of `v` with its Hessian). As `torch.autograd.functional.vhp`; see `vjp`."""
    with enable_grad():
        several, given, vectors, outputs, jac = _first_order(func, inputs, v, "vhp", create_graph, strict)
    with set_grad_enabled(create_graph or grad_enabled()):
        found = _zero_filled(_gradients(jac, given, vectors, create_graph), given, strict, create_graph, "double_back")
    return _final(outputs, create_graph)[0], _as_given(_final(found, create_graph), several)


def hvp(
    func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """(output of `func`, product of its Hessian with `v`). As `torch.autograd.functional.hvp`; see `vjp`."""
    with enable_grad():
        several, given, vectors, outputs, jac = _first_order(func, inputs, v, "hvp", create_graph, strict)
        cotangents = tuple(zeros_like(x, requires_grad=True) for x in given)
        double = _gradients(jac, given, cotangents, True)
        _check_requires_grad(jac, "hessian", strict)
    with set_grad_enabled(create_graph or grad_enabled()):
        found = _gradients(double, cotangents, vectors, create_graph)
        found = _zero_filled(found, given, strict, create_graph, "double_back_trick")
    return _final(outputs, create_graph)[0], _as_given(_final(found, create_graph), several)


def jacobian(
    func: Function,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian of `func`: a Tensor, or tuples of them by output and input. As `torch.autograd.functional.jacobian`.

    `vectorize` computes all rows at once, by vmap; `strategy` "forward-mode" columns in place of rows.
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more outputs '
            'than inputs, "forward-mode" tends to be more performant. Otherwise, prefer to use "reverse-mode".'
        )
    if strategy == "forward-mode":
        return _forward_jacobian(func, inputs, create_graph, strict, vectorize)
    with enable_grad():
        several, given, outputs, several_outputs = _run(func, inputs, "jacobian", create_graph, strict)
        if vectorize and strict:
            raise RuntimeError(
                "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together. "
                "Please either set `strict=False` or `vectorize=False`."
            )
        if vectorize or (current_interpreter().capturing and not strict):  # a program is not to grow with the rows
            rows = _all_rows(outputs, given, create_graph)
        else:
            rows = tuple(_rows(k, t, given, create_graph, strict) for k, t in enumerate(outputs))
    found = tuple(_final(row, create_graph) for row in rows)
    return _as_given(tuple(_as_given(row, several) for row in found), several_outputs)


def _rows(number: int, output: Tensor, inputs: Tensors, create_graph: bool, strict: bool) -> Tensors:
    """The Jacobian of one output, a gradient for each element."""
    columns: list[list[Tensor]] = [[] for _ in inputs]
    flat = reshape(output, (-1,))
    for j in range(numel(output)):
        found = _gradients((flat[j],), inputs, None, create_graph, retain_graph=True)
        for k, (column, g, x) in enumerate(zip(columns, found, inputs, strict=True)):
            if g is None and strict:
                raise RuntimeError(
                    f"Output {number} of the user-provided function is independent of input {k}.{STRICT}"
                )
            if g is not None and strict and create_graph and g._n is None:
                raise RuntimeError(CONSTANT.format("jacobian", number))
            column.append(zeros_like(x) if g is None else g)
    return tuple(
        reshape(stack(column), (*output._d.shape, *x._d.shape)) if column
        else zeros_like(x).new_zeros((*output._d.shape, *x._d.shape))
        for column, x in zip(columns, inputs, strict=True)
    )  # fmt: skip


def _all_rows(outputs: Tensors, inputs: Tensors, create_graph: bool) -> tuple[Tensors, ...]:
    """The Jacobian of all outputs, a batch of gradients."""
    from eager.func.derivatives import unit_vectors

    (units,) = unit_vectors(outputs, None)
    flat = tuple(reshape(t, (-1,)) for t in outputs)
    cotangents = tuple(reshape(u, (u._d.shape[0], -1)) for u in units)
    found = _gradients(flat, inputs, cotangents, create_graph, is_grads_batched=True)
    sizes = [numel(t) for t in outputs]
    columns = [
        x.new_zeros((sum(sizes), *x._d.shape)) if g is None else g  # type: ignore[attr-defined]
        for g, x in zip(found, inputs, strict=True)
    ]
    pieces = [split(column, sizes, 0) for column in columns]
    return tuple(
        tuple(reshape(piece[k], (*t._d.shape, *x._d.shape)) for piece, x in zip(pieces, inputs, strict=True))
        for k, t in enumerate(outputs)
    )


def _forward_jacobian(func: Function, inputs: Any, create_graph: bool, strict: bool, vectorize: bool) -> Any:
    if create_graph:
        raise NotImplementedError(
            'torch.autograd.functional.jacobian: `create_graph=True` and `strategy="forward-mode"` are not supported '
            'together (yet). Please either set `create_graph=False` or `strategy="reverse-mode"`.'
        )
    if strict:
        raise RuntimeError(
            'torch.autograd.functional.jacobian: `strict=True` and `strategy="forward-mode"` are not supported '
            'together (yet). Please either set `strict=False` or `strategy="reverse-mode"`.'
        )
    several, given = _as_tuple(inputs, "inputs", "jacobian")
    if not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian isonly implemented for "
            "`vectorize=True`."
        )
    from eager.func.derivatives import jacfwd

    found: Any = jacfwd(func, tuple(range(len(given))))(*given)
    several_outputs = not isinstance(found[0], Tensor)
    rows = found if several_outputs else (found,)
    rows = tuple(_final(tuple(row), create_graph) for row in rows)
    return _as_given(tuple(_as_given(row, several) for row in rows), several_outputs)


def hessian(
    func: Function,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The second derivatives of `func`, which returns one element. As `torch.autograd.functional.hessian`.

    A Tensor, or tuples of them by input and input. RuntimeError for a function with another output.
    """
    several, given = _as_tuple(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')

    def scalar(*xs: Tensor) -> Any:
        several_outputs, outputs = _outputs(func, xs, "hessian", strict)
        return _scalar(outputs, several_outputs, "hessian").squeeze()  # type: ignore[attr-defined]

    def first(*xs: Tensor) -> Any:
        jac = jacobian(scalar, xs, create_graph=True)
        _check_requires_grad(jac, "jacobian", strict)
        return jac

    result = jacobian(first, given, create_graph, strict, vectorize, outer_jacobian_strategy)
    return _as_given(tuple(_as_given(row, several) for row in result), several)


def _as_tuple(x: Any, what: str, name: str) -> tuple[bool, Tensors]:
    """Whether `x` is a tuple, and it as one. TypeError unless it is of Tensors."""
    several = isinstance(x, tuple)
    tensors = x if several else (x,)
    for k, t in enumerate(tensors):
        if not isinstance(t, Tensor):
            which = f"value at index {k}" if several else f"given {what}"
            raise TypeError(
                f"The {what} given to {name} must be either a Tensor or a tuple of Tensors but the {which} has type "
                f"{type(t)}."
            )
    return several, tensors


def _as_given(result: tuple[Any, ...], several: bool) -> Any:
    return result if several else result[0]


def _prepared(tensors: Tensors, create_graph: bool, differentiated: bool) -> Tensors:
    """New tensors to differentiate with respect to: with the history of the given ones if `create_graph`."""
    return tuple(
        t.view_as(t) if create_graph and t._n is not None  # type: ignore[attr-defined]
        else t.detach().requires_grad_(differentiated)  # type: ignore[attr-defined]
        for t in tensors
    )  # fmt: skip


def _final(tensors: Tensors, create_graph: bool) -> Tensors:
    return tensors if create_graph else tuple(t.detach() for t in tensors)  # type: ignore[attr-defined]


def _outputs(func: Function, given: Tensors, name: str, strict: bool) -> tuple[bool, Tensors]:
    several, outputs = _as_tuple(func(*given), OUTPUTS, name)
    _check_requires_grad(outputs, "outputs", strict)
    return several, outputs


def _run(
    func: Function, inputs: Any, name: str, create_graph: bool, strict: bool
) -> tuple[bool, Tensors, Tensors, bool]:
    several, given = _as_tuple(inputs, "inputs", name)
    given = _prepared(given, create_graph, True)
    several_outputs, outputs = _outputs(func, given, name, strict)
    return several, given, outputs, several_outputs


def _first_order(
    func: Function, inputs: Any, v: Any, name: str, create_graph: bool, strict: bool
) -> tuple[bool, Tensors, Tensors | None, Tensors, Tensors]:
    """The parts that `vhp` and `hvp` begin with: the gradient, and what they need besides."""
    several, given = _as_tuple(inputs, "inputs", name)
    given = _prepared(given, create_graph, True)
    vectors = _vectors(v, given, several, name, SINGLE_INPUT, create_graph)
    several_outputs, outputs = _outputs(func, given, name, strict)
    _scalar(outputs, several_outputs, name)
    jac = _gradients(outputs, given, None, True)
    _check_requires_grad(jac, "jacobian", strict)
    return several, given, vectors, outputs, jac


def _scalar(outputs: Tensors, several: bool, name: str) -> Tensor:
    if several:
        raise RuntimeError(f"The function given to {name} should return a single Tensor")
    if numel(outputs[0]) != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {name} should contain a single element")
    return outputs[0]


def _vectors(v: Any, like: Tensors, several: bool, name: str, missing: str, create_graph: bool) -> Tensors | None:
    """`v` as a tuple, checked against the tensors that it must be like; None if it may be and is left out."""
    if v is None:
        if len(like) != 1 or numel(like[0]) != 1:
            raise RuntimeError(missing)
        return None
    vectors = _prepared(_as_tuple(v, "v", name)[1], create_graph, False)
    if len(vectors) != len(like):
        if several:
            raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(vectors)}.")
        raise RuntimeError("The given v should contain a single Tensor.")
    for k, (mine, other) in enumerate(zip(vectors, like, strict=True)):
        if mine._d.shape != other._d.shape:
            where = f"Entry {k} in " if several else ""
            raise RuntimeError(f"{where}v has invalid size: should be {other.shape} but got {mine.shape}.")
    return vectors


def _check_requires_grad(tensors: Any, what: str, strict: bool) -> None:
    """In strict mode, raise RuntimeError if one of `tensors` does not depend on the inputs."""
    for k, t in enumerate(tensors if strict else ()):
        if t is None:
            raise RuntimeError(MISSING["back"].format(k))
        if t._n is None:
            raise RuntimeError(NOT_DEPENDING[what].format(k))


def _gradients(
    outputs: Any, inputs: Tensors, cotangents: Any, create_graph: bool, retain_graph: bool | None = None,
    is_grads_batched: bool = False,
) -> Any:  # fmt: skip
    """`grad` of those outputs that have a history, with None for inputs that get nothing."""
    given = cotangents if cotangents is not None else (None,) * len(outputs)
    pairs = [(t, c) for t, c in zip(outputs, given, strict=True) if t is not None and t._n is not None]
    if not pairs:
        return (None,) * len(inputs)
    return grad(
        tuple(t for t, _ in pairs), inputs, tuple(c for _, c in pairs), retain_graph, create_graph,
        allow_unused=True, is_grads_batched=is_grads_batched,
    )  # fmt: skip


def _zero_filled(found: Any, like: Tensors, strict: bool, create_graph: bool, stage: str) -> Tensors:
    """`found` with zeros for None; in strict mode, RuntimeError for None and for constants."""
    for k, g in enumerate(found if strict else ()):
        if g is None:
            raise RuntimeError(MISSING[stage].format(k))
        if create_graph and g._n is None:
            raise RuntimeError(CONSTANT.format("hessian" if "double" in stage else "jacobian", k))
    return tuple(zeros_like(x) if g is None else g for g, x in zip(found, like, strict=True))
