"""`E`: the op language on Tensors, `E.sum(x, axis=(0,), keepdims=False)`.

Gradient rules run on it, and `eager.functional` is written in it. Each name is the op's generated fast path.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from eager.core import tape
from eager.core.parameter import Parameter
from eager.core.state import grad_enabled
from eager.core.tensor import Tensor
from eager.engine import dispatch
from eager.engine.dispatch import apply, plain_or_trace
from eager.engine.generated_ops import GeneratedOps
from graphc.ops.dtypes import BOOL, FLOAT32, FLOAT64, INT64
from graphc.ops.gradient import numpy_dtype
from graphc.ops.interpret import F, with_defaults
from graphc.ops.spec import OPS, Op, Trait

single = GeneratedOps(FLOAT32, Tensor, Parameter, apply)
single.scope["miss_operator"] = dispatch.apply_operator
single.scope["miss_reflected"] = dispatch.apply_reflected
double = dispatch.double_ops = GeneratedOps(FLOAT64, Tensor, Parameter, plain_or_trace)
whole = {dtype: GeneratedOps(dtype, Tensor, Parameter, plain_or_trace) for dtype in (INT64, BOOL)}


@functools.lru_cache(maxsize=2048)
def whole_ops(op: Op, dtype: np.dtype) -> GeneratedOps | None:
    """The generated functions of `op` for whole numbers or bools; None if it makes other numbers of them first, or may
    refuse them."""
    convert = op.rule.promote == "float" or (op.rule.promote == "number" and dtype == BOOL)
    if dtype not in whole or convert or op.structured or op.check or not (op.pointwise or op.traits & Trait.MOVES):
        return None
    try:
        if op.rule.accepts is not None:
            op.rule.accepts(op, [dtype] * len(op.args))
    except (TypeError, RuntimeError):
        return None
    return whole[dtype]


dispatch.whole_ops = whole_ops


def function_of(op: Op) -> Callable[..., Any]:
    """The fastest function that runs `op` on Tensors."""
    if op.definition is not None and not op.vjp:
        return _by_definition(op)
    if op.args and not op.variadic and not op.several:
        return single.get(op)

    def generic(*operands: Any, **params: Any) -> Any:
        return apply(op, operands, params)

    generic.__name__, generic.__doc__ = op.name, op.doc
    return generic


def _by_definition(op: Op) -> Callable[..., Any]:
    """`op`, as which several ops are recorded where a gradient may be wanted: it has no rule of its own."""

    def function(*operands: Any, **params: Any) -> Any:
        if grad_enabled() and any(x._n is not None for x in operands):
            assert op.definition is not None
            return op.definition(E, *operands, **with_defaults(op, params))
        return apply(op, operands, params)

    function.__name__, function.__doc__ = op.name, op.doc
    return function


class TensorLanguage:
    """Attributes are ops, as functions of Tensors; each is generated at first use."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        try:
            function = function_of(OPS[name])
        except KeyError:
            raise AttributeError(f"no op named '{name}'") from None
        setattr(self, name, function)
        return function


E = TensorLanguage()


def by_rule(name: str, rule: Callable[[Any, tape.Node, Any], list[Any]]) -> tape.Backward:
    """The backward function of nodes that are no op of the registry: `rule(F, node, g)`, in the op language, gives the
    share of each parent.
    """

    def on_arrays(node: tape.Node, g: Any, heap: list[tape.Node]) -> None:
        for parent, share in zip(node[tape.PARENTS :], rule(F, node, g), strict=True):
            if parent is not None:
                tape.give(parent, share, heap)

    return tape.Backward(on_arrays, name, on_tensors=functools.partial(rule, E))


def zeros(F: Any, like: Any, shape: Sequence[int] | None = None) -> Any:
    """Zeros in the op language `F`, of the dtype of `like`, and of its shape if no other is given."""
    return F.full(shape=tuple(like.shape if shape is None else shape), value=0, dtype=numpy_dtype(like))


def refresh(op: Op) -> None:
    """Make the generated code of `op` follow its declaration, if a part of that has been replaced since.

    For those who change an op while the program runs, as tests of checkers do.
    """
    whole_ops.cache_clear()
    for module in (single, double, *whole.values()):
        module.refresh(op)


NO_OP = (
    "there is no op '{0}' of which a source has been generated. Remedy: the names of the ops are those of "
    "graphc.ops.OPS; torch.{0} may be a function that calls some of them"
)


def source(op: Op | str, dtype: Any = None) -> str:
    """The generated NumPy source of an op's forward and backward functions, for `dtype` (float32 by default).

    LookupError for what is no op: functions that are made of several ops have no source of their own.

    >>> import eager
    >>> print(eager.source("tanh").splitlines()[0])
    def tanh_input_ff(out, g, r):
    """
    if isinstance(op, str) and op not in OPS:
        raise LookupError(NO_OP.format(op))
    found = OPS[op] if isinstance(op, str) else op
    module = double if dtype is not None and getattr(dtype, "numpy", dtype) == FLOAT64 else single
    module.get(found)
    return module.generated[found.name].source
