"""Forward mode as function transforms: `jvp`, `linearize`.

There are no forward rules: a vjp is linear in its cotangent, and the vjp of that is the jvp.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from eager.core.grad_mode import grad_enabled, set_grad_enabled
from eager.core.pytree import TreeSpec, flatten, unflatten
from eager.core.tensor import Tensor
from eager.engine.inplace import has_history
from eager.engine.language import E
from eager.func.arguments import Function, check_outputs, entered, result_and_aux
from eager.func.levels import Level, left, level, or_zeros, pull, zeros_like
from graphc.ops.dtypes import is_inexact

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
