"""The slow path: every op call that the generated code does not take.

`apply` hands the op to the interpreter in force. The immediate one takes the generated code of another dtype, or
`plain`, the unshortened interpretation of the declaration on NumPy: promote, check, compute, record.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from eager.core import sparse, tape
from eager.core.devices import META
from eager.core.dtypes import type_name
from eager.core.grad_mode import GradMode
from eager.core.interpreter import current_interpreter, on_arrays
from eager.core.meta import Meta, NoDataError
from eager.core.overriding import handled, in_use, is_unhandled, local, overloaded, public_of
from eager.core.placed import Placed, common_device, data_of, run
from eager.core.sparse import SparseOperandError
from eager.core.stand_ins import SEALED_SAVE, Sealed
from eager.core.state import anomaly, grad_enabled, saved_hooks, version_of
from eager.core.tensor import Tensor
from eager.core.views import note_view
from eager.engine.anomaly import traced
from graphc.ops.aval import Aval, aval_of
from graphc.ops.dtypes import FLOAT64, is_inexact, of_scalar, scalar_array
from graphc.ops.gradient import rule_values, share
from graphc.ops.interpret import F, operand_dtype, run_kernel, with_defaults
from graphc.ops.operators import BINARY, COMPARISON
from graphc.ops.spec import OPS, Op

cast = OPS["cast"]
GENERATED = "eager.generated_"  # how modules of generated functions are called
SCALARS = (bool, int, float, complex, np.generic)
# set by eager.engine.language: the GeneratedOps for float64, and f(op, dtype), that for integers or bools
double_ops: Any = None
whole_ops: Any = None


def apply(op: Op, operands: Sequence[Any], params: Mapping[str, Any]) -> Any:
    """Run `op` on Tensors and Python scalars, or let a class with `__torch_function__` do so."""
    if in_use and (found := _asked(operands)):
        return handled(public_of[0](op.name), found, operands, params)
    try:
        return current_interpreter().apply(op, operands, params)
    except SparseOperandError:
        form = sparse.hooks["apply"]
    except TypeError:
        # a function that is more than this op is told itself, by whoever catches this
        if not (found := _asked(operands)) or not is_generated(public := public_of[0](op.name, method=False)):
            raise
        return handled(public, found, operands, params)
    return form(op, operands, params)


def is_generated(function: Any) -> bool:
    """Whether it is the function of an op itself."""
    return str(getattr(function, "__module__", "")).startswith(GENERATED)


def _asked(operands: Sequence[Any]) -> list[Any]:
    return overloaded(operands) if local.classes else []


def apply_operator(op: Op, operands: Sequence[Any], params: Mapping[str, Any]) -> Any:
    """`apply` for Python's operators: an ndarray joins in as a tensor, what is no operand is left to Python.

    TypeError for `Tensor.__add__(2, t)`, as the operators of PyTorch are methods of tensors alone.
    """
    if not isinstance(operands[0], Tensor):
        raise _not_a_tensors(op, operands[0])
    return _apply_known(op, operands, params)


def apply_reflected(op: Op, operands: Sequence[Any], params: Mapping[str, Any]) -> Any:
    """`apply_operator` for the reflected operators, whose tensor is the last operand."""
    if op.commutative and not isinstance(operands[-1], Tensor):
        raise _not_a_tensors(op, operands[-1], "r")
    return _apply_known(op, operands, params)


def _not_a_tensors(op: Op, operand: Any, prefix: str = "") -> TypeError:
    operators = {**BINARY, **COMPARISON, "invert": "bitwise_not"}
    dunders = {name: f"__{prefix}{dunder}__" for dunder, name in operators.items()}
    name, kind = dunders.get(op.name, op.name), type(operand).__name__
    return TypeError(f"descriptor '{name}' for 'torch._C.TensorBase' objects doesn't apply to a '{kind}' object")


def _apply_known(op: Op, operands: Sequence[Any], params: Mapping[str, Any]) -> Any:
    if any(x.__class__ is np.ndarray for x in operands):
        operands = with_arrays(op, operands)
    known = (Tensor, *SCALARS) if op.rule.promote and op.rule.scalars else Tensor
    try:
        if all(isinstance(x, known) for x in operands):
            return apply(op, operands, params)
        found = _asked(operands)
        return handled(public_of[0](op.name), found, operands, params) if found else NotImplemented
    except TypeError as error:
        if is_unhandled(error):
            return NotImplemented
        raise


def with_arrays(op: Op, operands: Sequence[Any]) -> list[Any]:
    """The operands with ndarrays among them as tensors, in the dtype in which NumPy computes: in PyTorch it is NumPy
    that computes a tensor and an array.
    """
    tensors = [Tensor._wrap(x) if x.__class__ is np.ndarray else x for x in operands]
    kinds = [t._dtype() for t in tensors if isinstance(t, Tensor)]
    if len(kinds) < len(tensors) or any(kind.kind not in "biufc" for kind in kinds):
        return tensors
    dtype = np.result_type(*kinds)
    if op.rule.promote == "float" and not is_inexact(dtype):
        dtype = FLOAT64
    cast = OPS["cast"]
    return [t if t._dtype() == dtype else apply(cast, [t], {"dtype": dtype}) for t in tensors]


def plain_or_trace(op: Op, operands: Sequence[Any], params: Mapping[str, Any]) -> Any:
    """Where the float64 fast path ends up when it does not apply."""
    if not on_arrays() or (in_use and _asked(operands)):
        return apply(op, operands, params)
    return plain(op, operands, params)


def plain(op: Op, operands: Sequence[Any], params: Mapping[str, Any]) -> Any:
    """Interpret the declaration of `op` without shortcuts; record it if a gradient may be wanted.

    Returns a Tensor, or a tuple of them from an op with several results.
    """
    params = with_defaults(op, params)
    try:
        tensors = promote(op, operands)
        arrays = [t._array() for t in tensors]
        op.rule.infer(op, [aval_of(a) for a in arrays], params)
    except NoDataError:
        return _elsewhere(op, operands, params)
    except SparseOperandError:
        raise  # to `apply`, without a note
    except Exception as error:
        error.add_note(f"in {call_text(op, operands)}")
        raise
    if op.check is not None and not op.check.ok(np, *arrays, **params):
        raise op.check.failure(params, None, arrays)
    if op.several:
        results = tuple(map(Tensor._wrap, run_kernel(op, arrays, params)))
        if op.vjp and grad_enabled():
            record_several(op, tensors, params, results)
        return results
    result = Tensor._wrap(run_kernel(op, arrays, params))
    if op.vjp and grad_enabled() and is_inexact(result._d.dtype):
        record(op, tensors, params, result)
        if result._n is not None and len(operands) == 2 and op.pointwise:
            _name_overload(op, operands, result)
    if op.view and op.vjp and shares_memory(result._d, arrays[0]):
        note_view(result, tensors[0])
        if tensors[0]._d.__class__ is Sealed:
            result._d = Sealed(result._d)
    return result


def _elsewhere(op: Op, operands: Sequence[Any], params: dict[str, Any]) -> Any:
    """`plain` on tensors whose values lie elsewhere: run there, or on meta tensors what `op` has a shape rule for.

    RuntimeError if they are on different devices.
    """
    try:
        tensors = promote(op, operands)
        where = common_device(op, tensors)
        inferred = op.rule.infer(op, [Aval(tuple(t._d.shape), t._dtype()) for t in tensors], params)
    except Exception as error:
        error.add_note(f"in {call_text(op, operands)}")
        raise
    if where is META:
        found: list[Any] = [Meta(aval.shape, aval.dtype) for aval in (inferred if op.several else (inferred,))]
    else:
        found = list(run(op, list(map(data_of, tensors)), params, where))
    results = [Tensor._wrap(data) for data in found]
    if op.vjp and grad_enabled():
        if op.several:
            record_several(op, tensors, params, results)
        elif is_inexact(results[0]._dtype()):
            record(op, tensors, params, results[0])
            if results[0]._n is not None and len(operands) == 2 and op.pointwise:
                _name_overload(op, operands, results[0])
    source = tensors[0]._d
    if op.view and source.__class__ is Placed and found[0].memory is source.memory and op.vjp:
        note_view(results[0], tensors[0])
    return tuple(results) if op.several else results[0]


def shares_memory(result: np.ndarray, source: np.ndarray) -> bool:
    """Whether `result`, made from `source` by a movement op, is a view of it."""
    base = result.base
    return base is not None and (base is source or base is source.base)


def call_text(op: Op, operands: Sequence[Any]) -> str:
    """A call as error notes show it: matmul(f32[2,3], f32[4,5])."""
    shown = [str(Aval(tuple(x._d.shape), x._dtype())) if isinstance(x, Tensor) else repr(x) for x in operands]
    return f"{op.name}({', '.join(shown)})"


def promote(op: Op, operands: Sequence[Any]) -> list[Tensor]:
    """The operands as Tensors of the dtype that `op` computes in. Raises TypeError for what is no operand."""
    first, rule = op.rule.first, op.rule
    if not rule.promote and rule.accepts is None and all(isinstance(x, Tensor) for x in operands):
        return list(operands)
    kinds: list[tuple[np.dtype, int]] = []
    for i, x in enumerate(operands):
        if isinstance(x, Tensor):
            kinds.append((x._dtype(), 2 if x._d.shape else 1))
        elif isinstance(x, SCALARS) and rule.promote and rule.scalars and i >= first and len(operands) > 1:
            kinds.append((of_scalar(x), 0))
            if rule.scalars != "any" and (i == len(operands) - 1) != (rule.scalars == "last"):
                _check_scalars(op, operands)
        else:
            raise TypeError(
                f"{op.name}(): argument '{op.arg_of(i)}' (position {i + 1}) must be Tensor, not {type_name(x)}"
            )
    dtype = operand_dtype(op, kinds)
    if dtype is None:
        return list(operands)
    return [x if i < first else convert(x, dtype) for i, x in enumerate(operands)]


def _check_scalars(op: Op, operands: Sequence[Any]) -> None:
    """Raise PyTorch's TypeError if Python scalars stand where `op` takes none."""
    tensors = [isinstance(x, Tensor) for x in operands]
    if tensors[0] or (op.rule.scalars == "one" and any(tensors)):
        return
    (first, last), number = op.args, f"Number {op.args[1]}"
    forms = [f"Tensor {first}, Tensor {last}, *, Tensor out = None", f"Tensor {first}, {number}, *, Tensor out = None"]
    if op.rule.scalars == "one":
        forms.insert(1, f"Number self, Tensor {last}, *, Tensor out = None")
    listed = "".join(f" * ({form})\n" for form in forms)
    kinds = ", ".join(map(type_name, operands))
    raise TypeError(
        f"{op.name}() received an invalid combination of arguments - got ({kinds}), but expected one of:\n{listed}"
    )


def convert(x: Any, dtype: np.dtype) -> Tensor:
    """`x` in `dtype`: a scalar becomes a 0-d Tensor, a Tensor is cast (and the cast recorded)."""
    if not isinstance(x, Tensor):
        array = scalar_array(x, dtype)
        array.flags.writeable = False  # which tells it from a 0-d tensor of the user's
        return Tensor._wrap(array)
    return x if x._dtype() == dtype else apply(cast, (x,), {"dtype": dtype})


# the tape node of `plain`: saved = (params, values by name, [(operand index, shape)]), parents in that order
def record(op: Op, tensors: Sequence[Tensor], params: Mapping[str, Any], result: Tensor) -> None:
    """Give `result` a node if an operand that `op` differentiates requires grad."""
    result._n = _node_of(op, tensors, params, result._d)


def record_several(op: Op, tensors: Sequence[Tensor], params: Mapping[str, Any], results: Sequence[Tensor]) -> None:
    """`record` for an op with several results: one node, the owner of those of the results that are inexact."""
    owner = _node_of(op, tensors, params, [t._d for t in results])
    if owner is not None:
        for result, node in zip(results, tape.output_nodes(owner, len(results)), strict=True):
            if is_inexact(result._dtype()):
                result._n = node


def _node_of(op: Op, tensors: Sequence[Tensor], params: Mapping[str, Any], result: Any) -> tape.Node | None:
    """The node of what has just been computed from `tensors`, an array or several; None if none requires grad."""
    live = [(i, t) for i, t in enumerate(tensors) if t._n is not None and op.arg_of(i) in op.vjp]
    if not live:
        return None
    wanted = {name for i, _ in live for name in op.vjp[op.arg_of(i)].names}
    values = rule_values(op, wanted, [t._d for t in tensors], result, params)
    if any(v.__class__ is Sealed for v in values.values()):
        raise RuntimeError(SEALED_SAVE)
    shapes = [(i, t._d.shape) for i, t in live]
    packing = saved_hooks()
    if packing:
        values = {name: _packed(value, op, name, tensors, packing[-1]) for name, value in values.items()}
    saved = (params, values, shapes)
    packed = saved if any(True for _ in tape.arrays_in(values.values())) or packing else list(saved)
    node = tape.new_node(_about(op), packed, *[t._n for _, t in live])
    return traced(node) if anomaly.enabled else node


def _name_overload(op: Op, operands: Sequence[Any], result: Tensor) -> None:
    """The node of `result` gets the name it has where one of the two operands is a Python scalar."""
    if op.overloads:
        scalar = "sf" if not isinstance(operands[0], Tensor) else "fs" if not isinstance(operands[1], Tensor) else ""
        if scalar in op.overloads:
            tape.rename(result._n, op.overloads[scalar])


PACK_WRITES = (
    "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook cannot be "
    "modified by in-place operations as this can lead to unexpected side-effects. Please open an issue if you need to "
    "perform in-place operations on the input to a pack hook."
)


class Packed:
    """What a pack hook made of a saved array."""

    __slots__ = ("kept", "unpack")

    def __init__(self, kept: Any, unpack: Callable[[Any], Any]):
        self.kept = kept
        self.unpack = unpack


def _packed(value: Any, op: Op, name: str, tensors: Sequence[Tensor], hooks: Any) -> Any:
    """A value that a node saves, as the saved-tensor hooks in force want it kept."""
    if isinstance(value, list) and value and isinstance(value[0], (np.ndarray, Placed)):
        return [_packed(v, op, name, tensors, hooks) for v in value]
    if value.__class__ is not Placed and (
        not isinstance(value, np.ndarray) or (not value.ndim and not value.flags.writeable)
    ):
        return value
    pack, unpack = hooks
    tensor = next((t for t in tensors if t._d is value), None)
    version = version_of(value)
    with GradMode(False):
        kept = pack(Tensor._wrap(value) if tensor is None else tensor)
    if version_of(value) != version:
        raise RuntimeError(PACK_WRITES)
    return Packed(kept, unpack)


def _unpacked(values: dict[str, Any]) -> dict[str, Any]:
    if any(v.__class__ is Packed or v.__class__ is list for v in values.values()):
        return {name: _unpack(value) for name, value in values.items()}
    return values


def _unpack(value: Any) -> Any:
    if value.__class__ is list:
        return [_unpack(v) for v in value]
    if value.__class__ is not Packed:
        return value
    tensor = value.unpack(value.kept)
    if not isinstance(tensor, Tensor):
        kind = type(tensor).__name__
        raise TypeError(f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {kind}")
    return data_of(tensor)


@functools.cache
def _about(op: Op) -> tape.Backward:
    """What the nodes that `plain` records for `op` have in common."""

    def backward(node: tape.Node, g: Any, heap: list[tape.Node]) -> None:
        _, values, shapes = node[tape.SAVED]
        values = _unpacked(values)
        for (index, shape), parent in zip(shapes, node[tape.PARENTS :], strict=True):
            tape.give(parent, share(F, op, index, g, values, shape), heap)

    def decode(node: tape.Node) -> tape.Decoded:
        if node[tape.SAVED] is None:
            raise RuntimeError(tape.FREED)
        params, values, shapes = node[tape.SAVED]
        values = _unpacked(values)
        parents = zip(shapes, node[tape.PARENTS :], strict=True)
        return op, params, values, [(index, parent, shape) for (index, shape), parent in parents]

    return tape.Backward(backward, op.node_name, decode=decode, naming=op.naming)
