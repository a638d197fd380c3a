"""In-place operations: compute the new value, check that it fits, write it into the tensor's own memory.

A recorded write to a view is a write to a region of its base: the base gets a `CopySlices` node, whose gradient goes
to the base as it was (without the region) and to the new values (the region). All views of the base then read it anew,
as `AsStrided` nodes. Both are ops of the registry that address the base by place in memory, so a write can be
differentiated like anything else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from eager.core import sparse, state, tape
from eager.core.interpreter import current_interpreter, on_arrays
from eager.core.placed import data_of, is_placed
from eager.core.sparse import is_sparse
from eager.core.state import grad_enabled, sequence
from eager.core.tensor import Tensor, check_in_place
from eager.core.ufunc_writes import write_apart
from eager.core.views import NO_GRAD, Views, geometry
from eager.engine.dispatch import record
from eager.engine.language import E, by_rule, zeros
from eager.engine.overlap import check_partial, combines
from graphc.ops.dtypes import category, kind, of_scalar, result_type
from graphc.ops.rules import broadcast_shapes, c_name, modulus, torch_name
from graphc.ops.spec import OPS, Op

_STRIDED, _SCATTER = OPS["as_strided"], OPS["as_strided_scatter"]
_AS_REAL, _AS_COMPLEX = OPS["view_as_real"], OPS["view_as_complex"]
# the nodes of tensors whose values have all been replaced, where the name of the function does not give it
_OVERWRITES = {"copy": "CopyBackwards", "fill": "FillBackward2", "fill_with": "FillBackward3"}
# writes of one value, which may go several times to the same place
FILLS = ("fill", "zero")
_COPIES = ("copy", "fill_with")  # writes of values that have a history of their own


def assign(target: Tensor, value: Tensor, name: str, where: Tensor | None = None) -> Tensor:
    """Write `value` into `target`, which takes over its history. Raises before anything is written.

    where: for a trace, in which elements of `target` share places in memory: those that are written.

    RuntimeError: `target` is a leaf that requires grad, the shapes differ, or the dtype cannot be cast back.
    """
    check_in_place(target)
    if is_sparse(target) or is_sparse(value):
        return sparse.hooks["assign"](target, value, name)
    interpreter = current_interpreter()
    if interpreter.replace(target, value):
        return target
    check_fits(target, value, name)
    return interpreter.assign(target, value, name, where)


def take_over(target: Tensor, value: Tensor, array: np.ndarray, name: str) -> None:
    """Give `target`, whose `array` has got the values of `value` in place, its history, too."""
    if value._n is not None and name not in _COPIES:
        _save_written(value._n, value._d, array)
    rebase(target, value, name)


def _save_written(node: tape.Node, result: Any, array: np.ndarray) -> None:
    """Let `node`, just made, have saved `array` where it has saved `result`: the same values, where they are now.

    So a later write to the tensor is a write to what the node saved.
    """
    saved = node[tape.SAVED]
    if saved.__class__ is not tuple or not any(x is result for x in tape.arrays_in(saved)):
        return

    def moved(value: Any) -> Any:
        return (
            {k: moved(v) for k, v in value.items()} if value.__class__ is dict else array if value is result else value
        )

    node[tape.SAVED] = tuple(map(moved, saved))
    node[0] = -next(sequence)  # it has been made after this write


def rebase(target: Tensor, value: Tensor, name: str) -> None:
    """`target` has been written in place: give it, its base and all views of that the history of `value`."""
    about: Any = getattr(target, "_v", None)
    if about.__class__ is tuple and _share_memory(about[0], target):
        base = about[0]
        _record_write(base, target, value)
        tape.rename(base._n, "torch::autograd::CopySlices")
    else:
        base = target
        if value._n is None:
            base._n = _overwritten(base._n, name)
        else:
            base._n = _copied(base, value) if name in _COPIES else value._n
            if name == "fill_with":
                tape.rename(base._n, _OVERWRITES[name])
    state.note_writer(data_of(base), tape.name_of(base._n).rpartition("::")[2])
    if base is target and about.__class__ is not Views:
        return
    for view in base._v.live():
        seen_from: Any = getattr(view, "_v", None)
        if seen_from is None or not _share_memory(base, view):  # not one any more, or of another memory
            continue
        if seen_from[1] != NO_GRAD:
            _record_view(base, view)
        elif view._n is None:
            view._n = tape.dead_end(None)


def _share_memory(base: Tensor, view: Tensor) -> bool:
    """Not so, if one has been given another memory since: its `.data` was assigned to."""
    return state.memory_of(data_of(base)) is state.memory_of(data_of(view))


def _record_write(base: Tensor, target: Tensor, value: Tensor) -> None:
    """Give `base` the history of a write of `value` to the region that `target` shows."""
    if is_complex(base) == is_complex(target):
        record(_SCATTER, (base, value), geometry(data_of(base), data_of(target)), base)
        return
    whole, region = _reals(base), _reals(target)
    written = Tensor._wrap(data_of(whole))
    record(_SCATTER, (whole, _reals(value)), geometry(data_of(whole), data_of(region)), written)
    _record_from_reals(written, base)


def _record_view(base: Tensor, view: Tensor) -> None:
    """Give `view` the history of reading `base` anew."""
    if is_complex(base) == is_complex(view):
        record(_STRIDED, (base,), geometry(data_of(base), data_of(view)), view)
        tape.rename(view._n, "AsStridedBackward0")
        return
    whole, region = _reals(base), Tensor._wrap(data_of(_reals(view)))
    record(_STRIDED, (whole,), geometry(data_of(whole), data_of(region)), region)
    _record_from_reals(region, view)
    # PyTorch takes such views again as they were taken
    tape.rename(view._n, "ViewAsComplexBackward0" if is_complex(view) else "ViewAsRealBackward0")


def _reals(x: Tensor) -> Tensor:
    """The numbers that complex ones are made of, in the same memory, with their history; real ones as they are."""
    if not is_complex(x):
        return x
    if is_placed(x):
        return E.view_as_real(x)
    result = Tensor._wrap(_AS_REAL.kernel(x._array()))
    record(_AS_REAL, (x,), {}, result)
    return result


def _record_from_reals(reals: Tensor, result: Tensor) -> None:
    """Give `result` the history of what it is, or is made of."""
    if is_complex(result):
        record(_AS_COMPLEX, (reals,), {}, result)
    else:
        result._n = reals._n


def is_complex(x: Tensor) -> bool:
    return kind(x._dtype()) == "c"


def _overwritten(old: tape.Node, name: str) -> tape.Node:
    """The node of a tensor whose values have all been replaced by ones without history: its past gets zeros."""
    node = tape.new_node(_OVERWRITTEN, (), old)
    return tape.rename(node, _OVERWRITES.get(name, f"{name.capitalize()}Backward0"))


def _copied(old: Tensor, value: Tensor) -> tape.Node:
    """The node of a tensor that has been given the values of another: its past, if it has one, gets zeros."""
    if old._n is None:
        return value._n
    return tape.new_node(_COPIED, (), old._n, value._n)


_COPIED = by_rule("CopyBackwards", lambda F, node, g: [zeros(F, g), g])
_OVERWRITTEN = by_rule("ZeroBackward0", lambda F, node, g: [zeros(F, g)])


def before(target: Tensor, *operands: Any) -> Tensor:
    """`target` as it is now, with its history, in memory of its own: what an op saves must survive the write.

    It is saved if it has a history, or for the gradient of one of the `operands`.
    """
    return copied(target) if grad_enabled() and any(map(has_history, (target, *operands))) else target


def has_history(x: Any) -> bool:
    """Whether a gradient may flow to `x`, here or in the graph that is being traced."""
    return isinstance(x, Tensor) and (x._n is not None or (x._d.__class__ is not np.ndarray and x._d.has_history))


def copied(target: Tensor) -> Tensor:
    """`target` with its history in memory of its own; itself under a trace, where nothing is overwritten."""
    return current_interpreter().copied(target)


_TOO_MANY = "Tensor.{name}_() takes {takes} arguments ({given} given)"
_C_WORDED = ("clamp", "clamp_min", "clamp_max")  # whose errors name dtypes as C++ does


def check_fits(target: Tensor, value: Tensor, name: str = "") -> None:
    """Raise PyTorch's RuntimeError unless the result `value` of an in-place op has a shape and dtype for `target`."""
    if value._d.shape != target._d.shape:
        raise RuntimeError(
            f"output with shape {list(target._d.shape)} doesn't match the broadcast shape {list(value._d.shape)}"
        )
    check_castable(value._dtype(), target._dtype(), c_name if name in _C_WORDED else torch_name)


def check_castable(source: np.dtype, goal: np.dtype, called: Callable[[np.dtype], str] = torch_name) -> None:
    """Raise PyTorch's RuntimeError unless results of the dtype `source` may be written as `goal`."""
    if category(source) > category(goal):
        raise RuntimeError(f"result type {torch_name(source)} can't be cast to the desired output type {called(goal)}")


def _check_promoted(target: Tensor, operands: Sequence[Any]) -> None:
    """`check_fits` for the shape and dtype that a pointwise op would give `target` and `operands`."""
    tensors = [x for x in (target, *operands) if isinstance(x, Tensor)]
    kinds = [(t._dtype(), 2 if t._d.shape else 1) for t in tensors]
    kinds += [(of_scalar(x), 0) for x in operands if not isinstance(x, Tensor)]
    shape = broadcast_shapes([tuple(t._d.shape) for t in tensors])
    check_fits(target, Tensor._wrap(np.broadcast_to(np.zeros((), result_type(kinds)), shape)))


def in_place(name: str, failed: Callable[..., Tensor] | None = None) -> Callable[..., Tensor]:
    """The in-place form of pointwise op `name`: `add` -> `add_(self, other)`.

    failed: called in the place of a method that has raised, with the error, its name, itself and the arguments.
    """
    op = OPS[name]
    kernel = op.kernel
    ufunc = kernel if isinstance(kernel, np.ufunc) and any(t.startswith("d") for t in kernel.types) else None
    count = len(op.args) - 1

    def method(self: Tensor, *operands: Any, **named: Any) -> Tensor:
        given = operands, named
        try:
            if named:
                operands = _in_order(op, operands, named)
            if ufunc is not None and len(operands) == count and on_arrays() and (self._n is None or not grad_enabled()):
                other = _plain_operand(self, operands[0]) if operands else () if is_float(self) else None
                if other is not None:
                    array = self._writable()
                    if not array.flags.carray:
                        write_apart(ufunc, array, array, *((other,) if operands else ()))
                    elif operands:
                        ufunc(array, other, out=array)
                    else:
                        ufunc(array, out=array)
                    state.note_write(array)
                    return self
            check_in_place(self)
            check_partial(self, operands)
            if op.rule is modulus and is_complex(self):
                raise RuntimeError(f"In-place {name} is not supported for complex tensors.")
            if len(operands) >= len(op.args) > 0:
                raise TypeError(_TOO_MANY.format(name=name, takes=len(op.args) - 1 or "no", given=len(operands)))
            # what the gradient needs of the old value must survive the write
            source = copied(self) if grad_enabled() and not is_sparse(self) else self
            try:
                value = getattr(E, name)(source, *operands)
            except NotImplementedError:  # of the kernel, which PyTorch asks last
                _check_promoted(self, operands)
                raise
            return assign(self, value, name)
        except Exception as error:
            if failed is None:
                raise
            return failed(error, f"{name}_", method, (self, *given[0]), given[1], True)

    method.__name__ = method.__qualname__ = f"{name}_"
    method.__doc__ = f"In-place form of `{name}`."
    return method


def _in_order(op: Op, operands: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, ...]:
    """The operands after the first one, of which some were given by name. TypeError for a name that is not free."""
    free = op.args[1 + len(operands) :]
    unknown = [name for name in named if name not in free]
    if unknown:
        raise TypeError(f"{op.name}_() got an unexpected keyword argument '{unknown[0]}'")
    return (*operands, *(named[name] for name in free if name in named))


def is_float(target: Tensor) -> bool:
    """Whether `target` is a float array in NumPy's memory."""
    dtype = target._d.dtype
    return dtype is not None and dtype.kind == "f"


def _plain_operand(target: Tensor, x: Any) -> Any:
    """`x` for a ufunc that writes into `target`, or None if the general path must look at it."""
    if not is_float(target):
        return None
    data = target._d
    if x.__class__ is float or x.__class__ is int:
        return x
    if isinstance(x, Tensor) and (x._n is None or not grad_enabled()):
        other = x._d
        if other.dtype is data.dtype and (other.shape == data.shape or not other.shape):
            return other if (other.base is None and data.base is None) or combines(data, other) else None
    return None
