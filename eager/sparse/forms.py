"""What ops do with sparse operands: with their places and values, by ordinary ops. What has no form raises.

`apply` is what the engine calls for an op that has met one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from eager.core import sparse
from eager.core.interpreter import on_arrays
from eager.core.layouts import layout_of
from eager.core.sparse import Sparse, is_sparse, not_implemented
from eager.core.state import grad_enabled, note_write
from eager.core.tensor import Tensor
from eager.engine.inplace import assign as assign_dense
from eager.engine.language import E
from eager.functional.scalars import common_dtype
from eager.sparse import products, shapes
from eager.sparse.access import dense_dim, kind_of
from eager.sparse.construction import zeros
from eager.sparse.conversion import like, to_dense
from eager.sparse.parts import (
    added,
    as_coo,
    coalesced,
    coo,
    elements,
    give_elements,
    known,
    linear,
    made,
    on_indices,
    taken,
)
from graphc.ops.interpret import with_defaults
from graphc.ops.rules import broadcast_shapes
from graphc.ops.spec import Op, Trait

Form = Callable[[Sequence[Any], Mapping[str, Any]], Any]
DENSE_ADDEND = "add(sparse, dense) is not supported. Use add(dense, sparse) instead."


def apply(op: Op, operands: Sequence[Any], params: Mapping[str, Any]) -> Any:
    """Run `op`, of whose operands at least one is sparse. NotImplementedError, PyTorch's, if it has no form."""
    params = with_defaults(op, params)
    form = FORMS.get(op.name)
    if form is not None:
        return form(operands, params)
    first = operands[0]
    if isinstance(first, Tensor) and is_sparse(first) and not any(map(_is_array, operands[1:])):
        if len(operands) == 1 and op.pointwise and op.traits & Trait.LINEAR:
            return _on_values(op, first, (), params)
        if op.pointwise and _keeps_zero(op, first._dtype(), operands[1:], tuple(params.items())):
            return _on_values(op, _unique(first), operands[1:], params)
    found = next(x for x in operands if isinstance(x, Tensor) and is_sparse(x))
    raise not_implemented(op.name, found._d)


def _is_array(x: Any) -> bool:
    """Whether an operand is more than a number."""
    return isinstance(x, Tensor) and bool(x._d.shape or is_sparse(x))


def _unique(x: Tensor) -> Tensor:
    return coalesced(x) if x._d.layout == "sparse_coo" else x


def _each_value(name: str) -> Form:
    """Of an op that does the same to a sum as to its terms, or is to see the values as they are stored."""
    return lambda operands, params: operands[0]._d.with_values(getattr(E, name)(operands[0]._d.values, **params))


def _on_values(op: Op, x: Tensor, others: Sequence[Any], params: Mapping[str, Any]) -> Tensor:
    function = getattr(E, op.name)
    return x._d.with_values(function(x._d.values, *others, **params))


def _keeps_zero(op: Op, dtype: np.dtype, others: Sequence[Any], params: tuple[Any, ...]) -> bool:
    """Whether `op` gives 0 for 0, with these numbers for other operands: then it is one of the values alone."""
    numbers = [known(x).item() if isinstance(x, Tensor) else x for x in others]
    try:
        numbers = [n.item() if isinstance(n, np.generic) else n for n in numbers]
        return _gives_zero(op, dtype, tuple(numbers), params)
    except TypeError:  # parameters that cannot be hashed
        return False


@functools.cache
def _gives_zero(op: Op, dtype: np.dtype, numbers: tuple[Any, ...], params: tuple[Any, ...]) -> bool:
    zero = Tensor._wrap(np.zeros(1, dtype))
    with np.errstate(all="ignore"):
        result = getattr(E, op.name)(zero, *numbers, **dict(params))
    return not bool(result._array()[0]) if not op.several else False


def _summed(x: Any, y: Any, signed: Callable[[Tensor], Tensor]) -> Tensor:
    """x + y, or x - y."""
    if not isinstance(y, Tensor) or not is_sparse(y):
        if x._d.layout == "sparse_coo":
            raise RuntimeError(DENSE_ADDEND)
        y = y if isinstance(y, Tensor) else Tensor._wrap(np.asarray(y, common_dtype(x, y)))
        return E.add(signed(y), x)
    if not isinstance(x, Tensor):
        x = Tensor._wrap(np.asarray(x, common_dtype(y, x)))
    if not is_sparse(x):
        return _onto(x, y, signed)
    if x._d.shape != y._d.shape:
        raise RuntimeError(
            f"add: expected sizes of 'self' and 'other' to match, but {list(x._d.shape)} != {list(y._d.shape)}"
        )
    if x._d.layout != y._d.layout:
        raise RuntimeError(f"add: expected operands of one layout, but got {kind_of(x)} and {kind_of(y)}")
    if x._d.has_pattern_of(y._d):
        return x._d.with_values(E.add(x._d.values, signed(y._d.values)))
    if x._d.sparse_dim != y._d.sparse_dim:
        raise RuntimeError(
            "add: expected 'self' and 'other' to have same number of sparse dimensions, but "
            f"{x._d.sparse_dim} != {y._d.sparse_dim}"
        )
    one, two = as_coo(x)._d, as_coo(y)._d
    dtype = common_dtype(x, y)
    values = [v if v._dtype() == dtype else E.cast(v, dtype=dtype) for v in (one.values, signed(two.values))]
    indices = on_indices(lambda a, b: E.cat(a, b, axis=1), one.parts[0], two.parts[0])
    both = coo(indices, E.cat(*values, axis=0), one.shape)
    if x._d.layout != "sparse_coo":
        return like(both, x._d)
    return coalesced(both) if one.coalesced and two.coalesced else both


def _onto(dense: Tensor, x: Tensor, signed: Callable[[Tensor], Tensor]) -> Tensor:
    """dense + x, or dense - x: dense."""
    shape = x._d.shape
    if dense._d.shape != shape:
        raise RuntimeError(
            f"add: expected 'self' and 'other' to have same size, but self has size {list(dense._d.shape)} while "
            f"other has size {list(shape)} (FYI: op2-sparse addition does not currently support broadcasting)"
        )
    dtype = common_dtype(dense, x)
    places, values = elements(x)
    dense, values = (t if t._dtype() == dtype else E.cast(t, dtype=dtype) for t in (dense, signed(values)))
    if not places:
        return E.add(dense, added(shape, values))
    return E.index_put(dense, values, *places, spec=tuple(range(len(places))), accumulate=True)


def _mul(operands: Sequence[Any], params: Mapping[str, Any]) -> Tensor:
    x, y = operands
    if not isinstance(x, Tensor) or not is_sparse(x):
        x, y = y, x
    if not _is_array(y):
        return x._d.with_values(E.mul(x._d.values, y))
    if not is_sparse(y):
        return x._d.with_values(E.mul(x._d.values, at_elements(x, y)))
    if x._d.shape != y._d.shape:
        raise RuntimeError(f"mul operands have incompatible sizes: {list(x._d.shape)} and {list(y._d.shape)}")
    if x._d.layout != y._d.layout:
        raise RuntimeError(f"mul: expected operands of one layout, but got {kind_of(x)} and {kind_of(y)}")
    one, two = _unique(x), _unique(y)
    if x is y:
        two = one
    if one._d.has_pattern_of(two._d):
        return one._d.with_values(E.mul(one._d.values, two._d.values))
    one, two = coalesced(as_coo(x)), coalesced(as_coo(y))
    keys = [linear(list(known(t._d.parts[0])), t._d.shape) for t in (one, two)]
    _, first, second = np.intersect1d(*keys, assume_unique=True, return_indices=True)
    values = E.mul(taken(one._d.values, made(first)), taken(two._d.values, made(second)))
    result = coo(made(known(one._d.parts[0])[:, first]), values, x._d.shape, True)
    return like(result, x._d)


def at_elements(x: Tensor, dense: Tensor) -> Tensor:
    """The elements of `dense`, which broadcasts, where `x` has elements, in the shape of the values of `x`."""
    shape = x._d.shape
    if dense._d.shape != shape:
        if broadcast_shapes([dense._d.shape, shape]) != shape:
            raise RuntimeError(f"mul(sparse, dense): {list(dense._d.shape)} does not broadcast to {list(shape)}")
        dense = E.expand(dense, shape=shape)
    places, _ = elements(x)
    found = E.index(dense, *places, spec=tuple(range(len(places)))) if places else E.reshape(dense, shape=(1, *shape))
    values = x._d.values._d.shape
    return found if found._d.shape == values else E.reshape(found, shape=tuple(values))


def _quotient(name: str) -> Form:
    def form(operands: Sequence[Any], params: Mapping[str, Any]) -> Tensor:
        x, y = operands
        if not isinstance(x, Tensor) or not is_sparse(x):
            raise not_implemented("reciprocal", y._d)
        if _is_array(y):
            raise RuntimeError(
                "Sparse division requires a scalar or zero-dim dense tensor divisor (got shape "
                f"{list(y._d.shape)} for divisor)"
            )
        x = x if name == "div" else _unique(x)
        return x._d.with_values(getattr(E, name)(x._d.values, y, **params))

    return form


def _where(operands: Sequence[Any], params: Mapping[str, Any]) -> Tensor:
    """Where the condition and what is taken if it is false are sparse: nothing new is stored."""
    condition, x, y = operands
    alike = is_sparse(condition) and isinstance(y, Tensor) and is_sparse(y)
    if alike:
        condition, y = _unique(condition), _unique(y)
        pairs = zip(condition._d.pattern, y._d.pattern, strict=True)
        alike = condition._d.has_pattern_of(y._d) or (
            condition._d.layout == y._d.layout and all(np.array_equal(known(a), known(b)) for a, b in pairs)
        )
    if not alike:
        raise not_implemented("where", next(t for t in operands if isinstance(t, Tensor) and is_sparse(t))._d)
    if _is_array(x):
        x = x._d.values if is_sparse(x) and x._d.has_pattern_of(y._d) else at_elements(y, x)
    return y._d.with_values(E.where(condition._d.values, x, y._d.values))


def _pow(name: str) -> Form:
    def form(operands: Sequence[Any], params: Mapping[str, Any]) -> Tensor:
        x, *rest = operands
        if not isinstance(x, Tensor) or not is_sparse(x) or any(map(_is_array, rest)):
            raise not_implemented("pow", next(t for t in operands if isinstance(t, Tensor) and is_sparse(t))._d)
        exponent = rest[0] if rest else params["exponent"]
        if not isinstance(exponent, Tensor) and exponent == 0:
            raise RuntimeError(
                "pow: cannot raise to zeroth power on sparse tensor; it would make the result tensor dense"
            )
        return _unique(x)._d.with_values(getattr(E, name)(_unique(x)._d.values, *rest, **params))

    return form


def _any(operands: Sequence[Any], params: Mapping[str, Any]) -> Tensor:
    x = _unique(operands[0])
    if len(params["axis"]) not in (0, len(x._d.shape)) or params["keepdims"]:
        raise not_implemented("any", x._d)
    values = x._d.values
    return E.any(values, axis=tuple(range(len(values._d.shape))), keepdims=False)


def _index(operands: Sequence[Any], params: Mapping[str, Any]) -> Tensor:
    x, *indices = operands
    axes = [axis for axis, number in enumerate(params["spec"]) if number is not None]
    if not is_sparse(x) or len(axes) != 1:
        raise not_implemented("index", next(t for t in operands if is_sparse(t))._d)
    return shapes.selected(x, indices[0], axes[0])


def _refused(text: str) -> Form:
    def form(operands: Sequence[Any], params: Mapping[str, Any]) -> Tensor:
        raise RuntimeError(text.format(kind_of(next(x for x in operands if isinstance(x, Tensor) and is_sparse(x)))))

    return form


FORMS: dict[str, Form] = {
    **{name: _each_value(name) for name in ("cast", "clone", "conj", "imag", "real", "stop_gradient")},
    "add": lambda operands, params: _summed(operands[0], operands[1], lambda values: values),
    "sub": lambda operands, params: _summed(operands[0], operands[1], E.neg),
    "mul": _mul,
    "div": _quotient("div"),
    "where": _where,
    "floor_divide": _quotient("floor_divide"),
    "pow": _pow("pow"),
    "pow_scalar": _pow("pow_scalar"),
    "integer_pow": _pow("integer_pow"),
    "sum": lambda operands, params: shapes.summed(operands[0], tuple(params["axis"]), params["keepdims"]),
    "any": _any,
    "matmul": lambda operands, params: products.matmul(*operands),
    "addmm": lambda operands, params: products.addmm(*operands),
    "cat": lambda operands, params: shapes.joined(operands, params["axis"]),
    "permute": lambda operands, params: shapes.permuted(operands[0], tuple(params["dims"])),
    "basic_index": lambda operands, params: shapes.basic_part(operands[0], **params),
    "slice": lambda operands, params: shapes.basic_part(operands[0], **params),
    "index": _index,
    "reshape": lambda operands, params: shapes.reshaped(operands[0], params["shape"]),
    "expand": _refused("expand is unsupported for {} tensors"),
}


def accumulated(x: Any, y: Any, out: np.ndarray | None = None) -> Any:
    """The sum of two gradients, of which one may be an ndarray; in `out`, an ndarray, if that is given."""
    if x.__class__ is Sparse and y.__class__ is Sparse:
        return E.add(sparse.tensor(y), sparse.tensor(x))._d  # the latest first, as PyTorch has it
    dense, data = (x, y) if y.__class__ is Sparse else (y, x)
    result = np.array(dense) if out is None else out
    if out is not None and out is not dense:
        np.copyto(out, dense)
    add_at(result, sparse.tensor(data))
    return result


def add_at(array: np.ndarray, x: Tensor, scale: Any = None) -> None:
    """Add the elements of `x`, perhaps times `scale`, to `array` in place: work for those alone."""
    places, values = elements(x)
    found = values._array() if scale is None else values._array() * array.dtype.type(scale)
    if not places:
        array += found.sum(0)
        return
    where = tuple(p._array() for p in places)
    if x._d.coalesced:
        array[where] += found
    else:
        np.add.at(array, where, found)


def in_pattern(x: Tensor, data: Sparse) -> Tensor:
    """The values of `x`, a gradient that is given, at the elements of `data`."""
    if not is_sparse(x):
        return at_elements(sparse.tensor(data), x)
    if data.has_pattern_of(x._d):
        return x._d.values
    return at_elements(sparse.tensor(data), to_dense(x))


def assign(target: Tensor, value: Tensor, name: str) -> Tensor:
    """Write `value` into `target` in place, of which one is sparse, or both. RuntimeError if only one is."""
    if not is_sparse(target) or not is_sparse(value):
        if name == "copy":
            raise RuntimeError(
                "copy_() between dense and sparse Tensors is not implemented! Found self type = "
                f"{target.type()} and src type = {value.type()}"  # type: ignore[attr-defined]
            )
        raise not_implemented(f"{name}_", (target if is_sparse(target) else value)._d)
    if value._dtype() != target._dtype():
        value = E.cast(value, dtype=target._dtype())
    if target._d.has_pattern_of(value._d):
        if value._d.values is not target._d.values:
            assign_dense(target._d.values, value._d.values, name)
        target._n = target._d.values._n
    else:
        give_elements(target, value._d, name)
        target._n = value._n
    return target


def add_to(target: Tensor, x: Tensor, alpha: Any) -> Tensor:
    """target += alpha * x, for a strided `target` and a sparse `x`: in place, at the elements of `x`."""
    recorded = grad_enabled() and (target._n is not None or x._n is not None)
    alike = target._d.shape == x._d.shape and target._dtype() == x._dtype()
    if on_arrays(target) and not recorded and alike and not isinstance(alpha, Tensor):
        array = target._writable()
        add_at(array, x, None if alpha == 1 else alpha)
        note_write(array)
        return target
    return assign_dense(target, E.add(target, x if alpha is None or alpha == 1 else E.mul(x, alpha)), "add")


def zero(x: Tensor) -> Tensor:
    """Leave a sparse tensor without elements."""
    nothing = zeros(x._d.shape, x._d.numpy_dtype, layout_of(x), dense_dim(x))._d
    give_elements(x, Sparse(nothing.layout, nothing.parts, nothing.shape, True), "zero")
    x._n = None
    return x


def gradient(data: Sparse, g: Tensor) -> Tensor:
    """`g`, the gradient of the values, as that of the sparse tensor: an element in several parts has one gradient."""
    if data.layout == "sparse_coo" and not data.coalesced and data.parts[0]._d.__class__ is np.ndarray:
        where = known(data.parts[0])
        keys = linear(list(where), data.shape)
        unique, first = np.unique(keys, return_index=True)
        if len(unique) < len(keys):
            return coo(made(where[:, first]), taken(g, made(first)), data.shape)
    return data.with_values(g)


sparse.hooks.update(
    apply=apply, accumulated=accumulated, in_pattern=in_pattern, assign=assign,
    add_to=add_to, zero=zero, gradient=gradient, dense=lambda data: to_dense(sparse.tensor(data))._array(),
)  # fmt: skip
