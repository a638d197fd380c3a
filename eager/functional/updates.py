"""In-place methods that take more than an op's operands. Where nothing is recorded they are a few NumPy calls.

`unrecorded(t, *operands)` is the test for that: no trace, no gradient wanted, arrays that NumPy combines as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from eager.core.dtypes import to_numpy
from eager.core.interpreter import current_interpreter, on_arrays
from eager.core.meta import is_meta
from eager.core.placed import is_elsewhere, is_placed
from eager.core.sparse import hooks, is_sparse
from eager.core.state import grad_enabled, note_write
from eager.core.tensor import Tensor, check_in_place
from eager.core.ufunc_writes import write, write_apart
from eager.engine.conversion import array_for, warn_of_loss
from eager.engine.crossing import transferred
from eager.engine.inplace import assign, before, has_history
from eager.engine.language import E
from eager.engine.node_names import whole
from eager.engine.overlap import check_apart, check_partial, combines, may_overlap
from eager.functional import arithmetic, gathering, linear, reductions, scattering, shapes, slices, strides
from eager.functional.arguments import fitting, shape_of
from eager.functional.gathering import check_mask, fill_value, masked_fill, scatter_add
from eager.functional.naming import called, signature_of
from eager.functional.scalars import filled, traced
from graphc.ops.dtypes import BOOL, COMPLEX128, FLOAT64
from graphc.ops.rules import broadcast_shapes, c_name, torch_name


def unrecorded(target: Tensor, *operands: Any) -> bool:
    """Whether `operands` (tensors of the dtype and shape of `target`, or 0-d) may be combined with NumPy alone."""
    if not on_arrays(target):
        return False
    recording = grad_enabled()
    data = target._d
    if data.__class__ is not np.ndarray or data.dtype.kind != "f" or (recording and target._n is not None):
        return False
    for x in operands:
        other = x._d
        if other.__class__ is not np.ndarray or other.dtype is not data.dtype or (recording and x._n is not None):
            return False
        if other.shape != data.shape and other.shape:
            return False
        if not ((other.base is None and data.base is None) or combines(data, other)):
            return False
    return True


def _moved(name: str, combine: np.ufunc, function: Callable[..., Tensor], sign: str) -> Callable[..., Tensor]:
    @called(f"{name}_", f"self {sign}= alpha * other.", "torch.Tensor")
    def method(self: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
        if isinstance(other, Tensor) and not isinstance(alpha, Tensor) and unrecorded(self, other):
            array = self._writable()
            scaled = other._d if alpha == 1 else other._d * alpha
            if array.flags.carray:
                combine(array, scaled, out=array)
            else:
                write_apart(combine, array, array, scaled)
            note_write(array)
            return self
        check_in_place(self)
        check_partial(self, (other,))
        if isinstance(other, Tensor) and is_sparse(other) and not is_sparse(self):
            return hooks["add_to"](self, other, alpha if sign == "+" else -alpha)
        return assign(self, function(self, other, alpha=alpha), name)

    return method


add_ = _moved("add", np.add, arithmetic.add, "+")
sub_ = _moved("sub", np.subtract, arithmetic.sub, "-")


def _fused(name: str, combine: Callable[..., Any], function: Callable[..., Tensor], text: str) -> Callable[..., Tensor]:
    @called(f"{name}_", f"self += value * {text}.", "torch.Tensor")
    def method(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
        if not isinstance(value, Tensor) and unrecorded(self, tensor1, tensor2):
            array = self._writable()
            # value * tensor1 first, as PyTorch rounds
            write(np.add, array, array, combine(tensor1._d if value == 1 else tensor1._d * value, tensor2._d))
            note_write(array)
            return self
        check_in_place(self)
        check_partial(self, (tensor1, tensor2))
        return assign(self, function(self, tensor1, tensor2, value=value), name)

    return method


addcmul_ = _fused("addcmul", np.multiply, arithmetic.addcmul, "tensor1 * tensor2")
addcdiv_ = _fused("addcdiv", np.divide, arithmetic.addcdiv, "tensor1 / tensor2")


def lerp_(self: Tensor, end: Tensor, weight: Any) -> Tensor:
    """Move `self` towards `end` by the fraction `weight` of the way. As `torch.Tensor.lerp_`."""
    if not isinstance(weight, Tensor) and unrecorded(self, end):
        array = self._writable()
        way = end._d - array
        if abs(weight) < 0.5:
            way *= weight
            write(np.add, array, array, way)
        else:
            way *= 1 - weight
            write(np.subtract, array, end._d, way)
        note_write(array)
        return self
    check_in_place(self)
    check_partial(self, (end, weight))
    return assign(self, arithmetic.lerp(self, end, weight), "lerp")


def clamp_(self: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """Limit `self` to [min, max]. As `torch.Tensor.clamp_`."""
    numbers = all(x is None or isinstance(x, (int, float)) for x in (min, max))
    if numbers and (min is not None or max is not None) and unrecorded(self):
        array = self._writable()
        if min is not None:
            write(np.maximum, array, array, min)
        if max is not None:
            write(np.minimum, array, array, max)
        note_write(array)
        return self
    check_in_place(self)
    check_partial(self, (min, max))
    return assign(self, arithmetic.clamp(before(self, min, max), min, max), "clamp")


_PLAIN = (int, float)


def fill_(self: Tensor, value: Any) -> Tensor:
    """Set every element to `value`, a number or a 0-d tensor. As `torch.Tensor.fill_`."""
    if isinstance(value, Tensor):
        _check_lone(value)
        check_in_place(self)
        return copy_(self, value, _name="fill_with")
    return _filled(self, value, "fill")


def _check_lone(value: Any) -> None:
    if isinstance(value, Tensor) and value._d.shape:
        raise RuntimeError(
            f"fill_ only supports 0-dimension value tensor but got tensor with {len(value._d.shape)} dimensions."
        )


def _filled(self: Tensor, value: Any, name: str) -> Tensor:
    if on_arrays(self) and not (grad_enabled() and self._n is not None):
        array = self._writable(repeated=True)
        array.fill(value if value.__class__ in _PLAIN and array.dtype.char in "fd" else fitting(value, array.dtype))
        note_write(array)
        return self
    check_in_place(self)
    shape, number = tuple(self._d.shape), traced(value)
    if number is None:
        return assign(self, E.full(shape=shape, value=value, dtype=self._dtype()), name)
    return assign(self, filled(shape, number, self._dtype(), limited=False), name)


def zero_(self: Tensor) -> Tensor:
    """Set every element to 0. As `torch.Tensor.zero_`."""
    return hooks["zero"](self) if is_sparse(self) else _filled(self, 0, "zero")


def copy_(self: Tensor, other: Tensor, non_blocking: bool = False, *, _name: str = "copy") -> Tensor:
    """Write `other`, broadcast and cast, into `self`. RuntimeError if it does not broadcast. As `Tensor.copy_`."""
    source, target = shape_of(other, "copy_", "other"), self._d.shape
    check_in_place(self)
    if _name == "copy" and may_overlap(self, other):
        check_partial(self, (other,))
    _check_expands(source, target)
    recorded = grad_enabled() and (self._n is not None or other._n is not None)
    if is_sparse(self) or is_sparse(other):
        return assign(self, other, _name)
    if is_elsewhere(other) and not is_meta(other):
        other = transferred(other, self.device)
    if on_arrays(self) and not recorded:
        array = self._writable()
        np.copyto(array, array_for(other, array.dtype), casting="unsafe")
        note_write(array)
        return self
    if not is_elsewhere(other) and is_placed(self):
        other = transferred(other, self.device)
    warn_of_loss(other, self._dtype())
    return assign(self, _copied(other, tuple(target), self._dtype()), _name)


def _check_expands(shape: tuple[int, ...], target: tuple[int, ...]) -> None:
    common = broadcast_shapes([tuple(target), tuple(shape)])
    if common != target:
        raise RuntimeError(f"output with shape {list(target)} doesn't match the broadcast shape {list(common)}")


@whole("CopyBackwards")
def _copied(src: Tensor, shape: tuple[int, ...], dtype: np.dtype) -> Tensor:
    """`src` as a new tensor of that shape and dtype."""
    if src._d.shape != shape:
        src = E.broadcast_to(src, shape=shape)
    return E.clone(src) if src._dtype() == dtype else E.cast(src, dtype=dtype)


def masked_fill_(self: Tensor, mask: Tensor, value: Any) -> Tensor:
    """Set the elements where `mask` is true to `value`. As `torch.Tensor.masked_fill_`."""
    check_mask(mask, "masked_fill_")
    if unrecorded(self) and not (isinstance(value, Tensor) and (is_elsewhere(value) or has_history(value))):
        if mask._d.shape != self._d.shape:
            _check_expands(mask._d.shape, self._d.shape)
        array = self._writable(repeated=True)
        np.copyto(array, fill_value(value, self)._array(), where=mask._array())
        note_write(array)
        return self
    check_in_place(self)
    filled = masked_fill(self, mask, value)
    repeats = current_interpreter().repeats(self)
    return assign(self, filled, "masked_fill", E.expand(mask, shape=tuple(self._d.shape)) if repeats else None)


def in_place_of(
    name: str, function: Callable[..., Tensor], check: Callable[[Tensor, Iterable[Any]], None] | None = check_partial
) -> Callable[..., Tensor]:
    """The in-place form of `function`: its result is written into the first argument.

    check: raises if another argument shows memory of it that must not be read meanwhile (`eager.engine.overlap`).
    """

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        check_in_place(self)
        others = (*args, *kwargs.values())
        value = function(before(self, *others), *args, **kwargs)
        if check is not None:
            check(self, others)
        return assign(self, value, name)

    method.__name__ = method.__qualname__ = f"{name}_"
    method.__doc__ = f"In-place form of `{name}`."
    method.__signature__ = signature_of(function, "self")  # type: ignore[attr-defined]
    return method


def _scan_(name: str, function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The in-place form of a scan, whose `dtype` may only be that of the tensor."""
    write = in_place_of(name, function, check=None)

    def method(self: Tensor, dim: int, dtype: Any = None) -> Tensor:
        if dtype is not None and (wanted := to_numpy(dtype)) != self._dtype():
            raise RuntimeError(
                f"Bad in-place call: input tensor dtype {c_name(self._dtype())} and output tensor dtype "
                f"{c_name(wanted)} should match"
            )
        return write(self, dim, dtype=self.dtype)

    method.__name__ = method.__qualname__ = f"{name}_"
    method.__doc__ = f"In-place form of `{name}`. RuntimeError for another `dtype`."
    return method


def fill_diagonal_(self: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Set the main diagonal to a number; of a tall matrix, with `wrap`, that of each block. As in PyTorch."""
    shape = tuple(self._d.shape)
    if len(shape) < 2:
        raise RuntimeError("dimensions must larger than 1")
    if len(shape) > 2 and len(set(shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    length, steps = min(shape), strides.stride(self)
    if wrap and len(shape) == 2 and shape[0] > shape[1]:
        length = -(-shape[0] * shape[1] // (shape[1] + 1))
    if not on_arrays(self):  # a write to a view is not captured
        diagonal = np.zeros(shape, BOOL)
        diagonal.reshape(-1)[np.arange(length) * sum(steps)] = True
        fill = slices.cast_number(fill_value, self._dtype())
        mask = Tensor._wrap(diagonal)
        repeats = current_interpreter().repeats(self)
        return assign(self, E.where(mask, fill, before(self)), "fill", mask if repeats else None)
    _filled(strides.as_strided(self, (length,), (sum(steps),)), fill_value, "fill")
    return self


def float_power_(self: Tensor, exponent: Any) -> Tensor:
    """self ** exponent, for a tensor of float64 (complex128 included). As `torch.Tensor.float_power_`."""
    if self._dtype() not in (FLOAT64, COMPLEX128):
        raise RuntimeError(
            f"the base given to float_power_ has dtype {torch_name(self._dtype())} but the operation's result requires "
            "dtype Double"
        )
    check_in_place(self)
    check_partial(self, (exponent,))
    return assign(self, arithmetic.power(before(self, exponent), exponent), "pow")


# functions whose in-place form has no more to it, by what else they may read of the memory that they write
_FORMS: dict[Any, dict[str, Callable[..., Tensor]]] = {
    check_apart: {
        **{name: getattr(slices, name) for name in ("index_add", "index_copy")},
        **{name: getattr(scattering, name) for name in ("put", "scatter", "scatter_reduce", "index_reduce")},
        "scatter_add": scatter_add,
    },
    check_partial: {
        "clamp_min": arithmetic.clamp_min, "clamp_max": arithmetic.clamp_max, "div": arithmetic.div,
        "divide": arithmetic.div, "true_divide": arithmetic.div, "pow": arithmetic.power,
    },
    None: {
        "masked_scatter": gathering.masked_scatter, "tril": shapes.tril, "triu": shapes.triu,
        **{name: getattr(linear, name) for name in ("addmm", "addmv", "addr", "baddbmm")},
    },
}  # fmt: skip

METHODS: dict[str, Callable[..., Tensor]] = {
    "add_": add_, "sub_": sub_, "subtract_": sub_, "addcmul_": addcmul_, "addcdiv_": addcdiv_, "lerp_": lerp_,
    "clamp_": clamp_, "clip_": clamp_, "fill_": fill_, "zero_": zero_, "copy_": copy_,
    "masked_fill_": masked_fill_, "fill_diagonal_": fill_diagonal_,
    "float_power_": float_power_,
    **{f"{n}_": in_place_of(n, f, check) for check, forms in _FORMS.items() for n, f in forms.items()},
    "cumsum_": _scan_("cumsum", reductions.cumsum), "cumprod_": _scan_("cumprod", reductions.cumprod),
}  # fmt: skip
