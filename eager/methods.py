"""The public functions of `eager` that are no pointwise op, by name; and the table of Tensor's methods."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from eager.functional import (
    arithmetic,
    casts,
    creation,
    einsum,
    gathering,
    indexing,
    joining,
    linear,
    reductions,
    shapes,
    updates,
)
from eager.tensor import Tensor

Function = Callable[..., Any]


def _named(module: Any, names: str) -> dict[str, Function]:
    return {name: getattr(module, name) for name in names.split()}


# torch.<name>(input, ...) and input.<name>(...)
BOTH: dict[str, Function] = {
    **_named(
        arithmetic,
        "add sub rsub div float_power clamp clamp_min clamp_max addcmul addcdiv lerp isclose allclose equal",
    ),
    **_named(
        reductions,
        "sum mean prod amax amin max min argmax argmin any all count_nonzero var std norm logsumexp softmax "
        "log_softmax cumsum",
    ),
    **_named(
        shapes,
        "reshape flatten unflatten ravel squeeze unsqueeze permute transpose t movedim diagonal diag_embed diag trace "
        "tril triu broadcast_to",
    ),
    **_named(joining, "split chunk tensor_split unbind select narrow flip roll tile"),
    **_named(
        gathering,
        "gather scatter scatter_add take_along_dim index_select index_add index_copy index_fill index_put masked_fill "
        "masked_select nonzero repeat_interleave",
    ),
    **_named(linear, "matmul mm mv dot bmm addmm addmv addr baddbmm outer inner"),
    **_named(casts, "clone detach is_floating_point is_complex numel"),
    "pow": arithmetic.power, "subtract": arithmetic.sub, "divide": arithmetic.div, "true_divide": arithmetic.div,
    "clip": arithmetic.clamp, "swapaxes": shapes.transpose, "swapdims": shapes.transpose, "moveaxis": shapes.movedim,
    "ger": linear.outer,
}  # fmt: skip

# torch.<name>(...) only
FUNCTIONS: dict[str, Function] = {
    **BOTH,
    **_named(
        creation,
        "tensor as_tensor from_numpy scalar_tensor zeros ones empty full zeros_like ones_like empty_like full_like "
        "arange linspace logspace eye tril_indices triu_indices",
    ),
    **_named(joining, "cat stack vstack hstack dstack"),
    **_named(reductions, "var_mean std_mean"),
    **_named(shapes, "broadcast_tensors"),
    **_named(linear, "tensordot"),
    **_named(
        casts, "is_tensor promote_types result_type can_cast set_default_dtype get_default_dtype"
    ),
    "concat": joining.cat, "concatenate": joining.cat, "row_stack": joining.vstack, "einsum": einsum.einsum,
    "where": gathering.where, "broadcast_shapes": shapes.common_shape, "asarray": creation.as_tensor,
}  # fmt: skip

# pointwise ops of the registry under a second name
ALIASES = {
    "multiply": "mul", "negative": "neg", "absolute": "abs", "arcsin": "asin", "arccos": "acos", "arctan": "atan",
    "arctan2": "atan2", "greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le", "not_equal": "ne",
    "fix": "trunc",
}  # fmt: skip


def _where_method(self: Tensor, condition: Tensor, other: Any) -> Any:
    """`self` where `condition` is true, else `other`. As `torch.Tensor.where`."""
    return gathering.where(condition, self, other)


METHODS: dict[str, Function] = {
    **BOTH,
    **casts.CASTS,
    **updates.METHODS,
    **_named(
        shapes,
        "view view_as reshape_as expand expand_as contiguous is_contiguous stride size dim",
    ),
    **_named(creation, "new_zeros new_ones new_empty new_full new_tensor"),
    **_named(casts, "to type_as detach_"),
    "repeat": joining.repeat, "type": casts.type_, "where": _where_method, "ndimension": shapes.dim,
    "nelement": casts.numel, "__getitem__": indexing.getitem, "__setitem__": indexing.setitem,
    "__pow__": arithmetic.power,
}  # fmt: skip


def _cpu(self: Tensor, memory_format: Any = None) -> Tensor:
    """`self`, which is on the CPU. As `torch.Tensor.cpu`."""
    return self


def _iterate(self: Tensor) -> Iterator[Tensor]:
    """The slices along the first dim. TypeError for a 0-d tensor."""
    if not self._d.shape:
        raise TypeError("iteration over a 0-d tensor")
    return iter(joining.unbind(self))


def _element_size(self: Tensor) -> int:
    """Bytes in an element. As `torch.Tensor.element_size`."""
    return self._dtype().itemsize


def _random(name: str) -> Function:
    """A method that imports `eager.random` at its first call, which puts the real one in its place."""

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        from eager import random

        return getattr(random, name)(self, *args, **kwargs)

    method.__name__ = name
    return method


PROPERTIES: dict[str, Function] = {
    "T": shapes.reversed_dims, "mT": shapes.matrix_transpose, "itemsize": _element_size,
}  # fmt: skip


def install() -> None:
    """Give Tensor its methods and properties. Runs after `eager.install`, whose plain forms some of these replace."""
    for name, method in METHODS.items():
        setattr(Tensor, name, method)
    for name, target in ALIASES.items():
        setattr(Tensor, name, _alias(target))
    Tensor.cpu, Tensor.element_size, Tensor.__iter__ = _cpu, _element_size, _iterate  # type: ignore[attr-defined]
    for name in ("uniform_", "normal_", "bernoulli_", "random_", "exponential_"):
        setattr(Tensor, name, _random(name))
    for name, getter in PROPERTIES.items():
        setattr(Tensor, name, property(getter))


def _alias(target: str) -> Function:
    def method(self: Tensor, *operands: Any) -> Any:
        return getattr(self, target)(*operands)

    method.__name__ = target
    return method
