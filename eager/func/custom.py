"""`autograd.Function` inside function transforms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from eager.core.grad_mode import no_grad
from eager.core.interpreter import under
from eager.core.pytree import broadcast_leaves, flatten, unflatten
from eager.core.state import active_transforms, grad_enabled
from eager.core.tensor import Tensor
from eager.engine.function import Function
from eager.functional.shapes import movedim

if TYPE_CHECKING:
    from eager.func.batching import BatchInterpreter

NOTES = "For more details, please see https://pytorch.org/docs/main/notes/extending.func.html"
NO_RULE = (
    "You tried to vmap over {name}, but it does not have vmap support. Please override and implement the vmap "
    "staticmethod or set generate_vmap_rule=True. " + NOTES
)
TWO_RULES = (
    "You tried to vmap over {name}, but it has both generate_vmap_rule=True and an overridden vmap staticmethod. "
    "Please set generate_vmap_rule=False or delete the overridden vmap staticmethod to avoid ambiguity. " + NOTES
)
NO_PAIR = (
    "Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure compatible "
    "with the output. "
)
BAD_DIMS = (
    "The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) tuple. Expected "
    "out_dims={dims} to be compatible with the structure of `output`. out_dims has structure {dim_spec} but output has "
    "structure {spec}. " + NOTES
)


class VmapInfo(NamedTuple):
    """What a Function's `vmap` gets to know of the vmap."""

    batch_size: int
    randomness: str


def applied(interpreter: BatchInterpreter, cls: type[Function], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`cls.apply` inside a vmap. Raises RuntimeError for a Function that has no rule for it."""
    if not any(interpreter.batch_of(a) is not None for a in args):
        with interpreter.below():
            return cls.apply(*args, **kwargs)
    has_rule = cls.vmap is not Function.vmap
    if cls.generate_vmap_rule and has_rule:
        raise RuntimeError(TWO_RULES.format(name=cls.__name__))
    if cls.generate_vmap_rule:
        return cls._applied(args, kwargs)
    if not has_rule:
        raise RuntimeError(NO_RULE.format(name=cls.__name__))
    active = active_transforms()
    differentiated = interpreter in active and active[-1].differentiates
    if differentiated and grad_enabled() and any(isinstance(a, Tensor) and a._n is not None for a in args):
        # the gradient transform is the inner one: it takes the Function's own gradient
        return cls._applied(args, kwargs, lambda *inputs: _by_rule(interpreter, cls, inputs))
    return _by_rule(interpreter, cls, args)


def _by_rule(interpreter: BatchInterpreter, cls: type[Function], args: tuple[Any, ...]) -> Any:
    """The outputs, by the Function's own `vmap`."""
    in_dims = tuple(None if interpreter.batch_of(a) is None else 0 for a in args)
    values = [a if (v := interpreter.batch_of(a)) is None else v for a in args]
    with interpreter.below():
        result = cls.vmap(VmapInfo(interpreter.size, interpreter.randomness), in_dims, *values)
        if not isinstance(result, tuple):
            raise RuntimeError(NO_PAIR + f"Got a {type(result)} instead")
        if len(result) != 2:
            raise RuntimeError(NO_PAIR + f"Got {len(result)} returns instead")
        output, out_dims = result
        leaves, spec = flatten(output)
        dims = broadcast_leaves(out_dims, spec)
        if dims is None:
            raise RuntimeError(BAD_DIMS.format(dims=out_dims, dim_spec=flatten(out_dims)[1], spec=spec))
        found = [movedim(x, d, 0) if d else x for x, d in zip(leaves, dims, strict=True)]
    return unflatten([x if d is None else interpreter.wrap(x) for x, d in zip(found, dims, strict=True)], spec)


def recorded_below(
    interpreter: BatchInterpreter, rule: Any, inputs: Sequence[Tensor], outputs: Sequence[Any], wanted: Sequence[bool]
) -> list[Any]:
    """`outputs` of a Function, recorded outside the vmap as those of one whose gradient is `rule` on each slice."""
    saved, rule.ctx.to_save = rule.ctx.to_save, ()
    is_batched = [interpreter.batch_of(t) is not None for t in inputs]
    tensors = [k for k, t in enumerate(outputs) if isinstance(t, Tensor)]

    class Slices(Function):
        @staticmethod
        def forward(ctx: Any, *values: Tensor) -> Any:
            ctx.mark_non_differentiable(*(t for t, k in zip(physical, tensors, strict=True) if not wanted[k]))
            return tuple(physical)

        @staticmethod
        def backward(ctx: Any, *grads: Tensor) -> Any:
            with under(interpreter):
                cotangents = {k: interpreter.wrap(g) for k, g in zip(tensors, grads, strict=True)}
                found = rule.run(cotangents, saved)
            return tuple(
                None if g is None else interpreter.physical(g) if b else interpreter.physical(g).sum(0)
                for g, b in zip(found, is_batched, strict=True)
            )

    Slices._backward_name = rule.name
    with interpreter.below():
        physical = [interpreter.physical(outputs[k]) for k in tensors]
        with no_grad():
            physical = [t.detach() for t in physical]  # type: ignore[attr-defined]
        recorded = Slices._applied(tuple(interpreter._behind(t) for t in inputs), {})
    result = list(outputs)
    for k, t in zip(tensors, recorded, strict=True):
        result[k] = interpreter.wrap(t)
    return result
