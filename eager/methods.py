"""The public functions of `eager` that are no pointwise op, by name; and the table of Tensor's methods."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any

from eager import hooks, reshaping
from eager.functional import (
    arithmetic,
    casts,
    creation,
    data,
    einsum,
    gathering,
    indexing,
    joining,
    linear,
    rearranging,
    reductions,
    shapes,
    strides,
    updates,
)
from eager.outputs import with_out
from eager.tensor import Tensor
from eager.views import base_of

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
        "log_softmax cumsum cumprod",
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
        "masked_scatter masked_select nonzero repeat_interleave",
    ),
    **_named(rearranging, "hsplit vsplit dsplit fliplr flipud rot90 diagflat take argwhere kron addbmm"),
    "as_strided": strides.as_strided,
    **_named(linear, "matmul mm mv dot bmm addmm addmv addr baddbmm outer inner"),
    **_named(casts, "clone detach is_floating_point is_complex numel"),
    "pow": arithmetic.power, "subtract": arithmetic.sub, "divide": arithmetic.div, "true_divide": arithmetic.div,
    "clip": arithmetic.clamp, "swapaxes": shapes.transpose, "swapdims": shapes.transpose, "moveaxis": shapes.movedim,
    "ger": linear.outer, "positive": arithmetic.positive,
}  # fmt: skip

# torch.<name>(...) only
FUNCTIONS: dict[str, Function] = {
    **BOTH,
    **_named(
        creation,
        "scalar_tensor zeros ones empty full zeros_like ones_like empty_like full_like arange linspace logspace eye "
        "range empty_strided empty_permuted",
    ),
    **_named(data, "tensor as_tensor asarray from_numpy frombuffer"),
    **_named(joining, "cat stack vstack hstack dstack"),
    **_named(rearranging, "atleast_1d atleast_2d atleast_3d column_stack"),
    **_named(reductions, "var_mean std_mean"),
    **_named(shapes, "broadcast_tensors"),
    **_named(linear, "tensordot"),
    **_named(
        casts, "is_tensor promote_types result_type can_cast set_default_dtype get_default_dtype"
    ),
    "concat": joining.cat, "concatenate": joining.cat, "row_stack": joining.vstack, "einsum": einsum.einsum,
    "where": gathering.where, "broadcast_shapes": shapes.common_shape,
}  # fmt: skip

# torch.<name>(..., out=tensor); the functions that are called most have an `out` of their own
FUNCTIONS.update({
    name: with_out(name, FUNCTIONS[name])
    for name in (
        "rsub float_power clamp clamp_min clamp_max clip addcmul addcdiv lerp pow prod amax amin max min argmax argmin any "
        "all var std norm logsumexp softmax log_softmax cumsum cumprod diag tril triu gather scatter scatter_add take_along_dim "
        "index_select index_add index_copy masked_select mv dot bmm addmm addmv addr baddbmm outer ger inner tensordot "
        "vstack hstack dstack row_stack where"
    ).split()
})  # fmt: skip

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
    **reshaping.METHODS,
    **hooks.METHODS,
    **_named(
        shapes,
        "view view_as reshape_as expand expand_as size dim",
    ),
    **_named(strides, "contiguous is_contiguous stride storage_offset unfold"),
    **_named(creation, "new_zeros new_ones new_empty new_full new_empty_strided"),
    **_named(data, "new_tensor"),
    **_named(casts, "to type_as detach_"),
    "_is_view": lambda self: base_of(self) is not None, "repeat": joining.repeat, "type": casts.type_, "where": _where_method, "ndimension": shapes.dim,
    "nelement": casts.numel, "__getitem__": indexing.getitem, "__setitem__": indexing.setitem,
    "__pow__": arithmetic.power, "__pos__": arithmetic.positive,
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


def _random(name: str, module: str = "random") -> Function:
    """A method whose module is imported at its first call."""

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return getattr(importlib.import_module(f"eager.{module}"), name)(self, *args, **kwargs)

    method.__name__ = name
    return method


PROPERTIES: dict[str, Function] = {
    "retains_grad": hooks.retains_grad, "_base": base_of,
    "T": shapes.reversed_dims, "mT": shapes.matrix_transpose, "itemsize": _element_size,
    "nbytes": lambda self: casts.numel(self) * self._dtype().itemsize,
}  # fmt: skip


# method -> module that has it, imported at its first call
LATER: dict[str, str] = {
    name: module
    for module, names in {
        "eager.functional.complexes": "conj conj_physical resolve_conj resolve_neg is_conj is_neg is_signed is_nonzero "
        "angle sgn adjoint heaviside",
        "eager.storage": "dim_order untyped_storage storage data_ptr is_set_to set_ apply_ map_",
        "eager.functional.creation": "new_empty_strided",
        "eager.functional.sorting": "argsort cummax cummin kthvalue logcumsumexp median mode msort nanmedian sort topk",
        "eager.functional.quantiles": "nanquantile quantile",
        "eager.functional.counting": "bincount histc histogram nonzero_static unique unique_consecutive",
        "eager.functional.scattering": "index_reduce index_reduce_ put put_ scatter_reduce scatter_reduce_",
        "eager.tensor_types": "new",
        "eager.placement": "cuda xpu get_device pin_memory is_pinned",
        "eager.interop": "__array_ufunc__ __array_function__ __dlpack__ __dlpack_device__",
    }.items()
    for name in names.split()
}
LATER_PROPERTIES: dict[str, tuple[str, str]] = {
    "real": ("eager.functional.complexes", "real"), "imag": ("eager.functional.complexes", "imag"),
    "H": ("eager.functional.complexes", "matrix_adjoint"), "mH": ("eager.functional.complexes", "adjoint"),
    "layout": ("eager.layouts", "layout_of"),
}  # fmt: skip
# what is the same of every tensor here
ALIKE: dict[str, Any] = {
    **dict.fromkeys(
        "is_sparse is_cuda is_quantized is_meta is_mkldnn is_nested is_xpu is_mps is_vulkan is_xla is_ipu is_hpu "
        "is_sparse_csr".split(), False,
    ),
    "is_cpu": True, "__array_priority__": 1000,
}  # fmt: skip


def _later(name: str, module: str) -> Function:
    """A method that imports `module` at its first call, and puts the real one in its place."""

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        real = getattr(importlib.import_module(module), name)
        setattr(Tensor, name, real)
        return real(self, *args, **kwargs)

    method.__name__ = name
    return method


def _later_property(name: str, module: str, function: str) -> property:
    """A property that imports `module` when it is first read, and puts the real one in its place."""

    def get(self: Tensor) -> Any:
        real = getattr(importlib.import_module(module), function)
        setattr(Tensor, name, property(real))
        return real(self)

    return property(get)


def install() -> None:
    """Give Tensor its methods and properties. Runs after `eager.install`, whose plain forms some of these replace."""
    for name, method in METHODS.items():
        setattr(Tensor, name, method)
    for name, target in ALIASES.items():
        setattr(Tensor, name, _alias(target))
        if hasattr(Tensor, f"{target}_"):
            setattr(Tensor, f"{name}_", _alias(f"{target}_"))
    Tensor.cpu, Tensor.element_size, Tensor.__iter__ = _cpu, _element_size, _iterate  # type: ignore[attr-defined]
    for name in ("uniform_", "normal_", "bernoulli_", "multinomial", "random_", "exponential_", "cauchy_",
                 "log_normal_", "geometric_"):
        setattr(Tensor, name, _random(name))
    for name in ("stft", "istft"):
        setattr(Tensor, name, _random(name, "spectral"))
    for name, module in LATER.items():
        setattr(Tensor, name, _later(name, module))
    for name, getter in PROPERTIES.items():
        setattr(Tensor, name, property(getter))
    for name, (module, function) in LATER_PROPERTIES.items():
        setattr(Tensor, name, _later_property(name, module, function))
    for name, value in ALIKE.items():
        setattr(Tensor, name, value)


def _alias(target: str) -> Function:
    def method(self: Tensor, *operands: Any) -> Any:
        return getattr(self, target)(*operands)

    method.__name__ = target
    return method
