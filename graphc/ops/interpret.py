"""The plain NumPy interpretation of ops, and what every interpreter shares: operand promotion.

`F` is the op language on raw ndarrays: `F.tanh(x)`, `F.sum(x, axis=(0,), keepdims=False)`. It checks nothing and
promotes nothing; it is what gradient rules run on in `backward()`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

import numpy as np

from graphc.ops.aval import aval_of
from graphc.ops.dtypes import BOOL, FLOAT32, INT64, default_float, is_half, is_inexact, result_type
from graphc.ops.spec import OPS, Op

# One policy for the process, not an errstate for each op: like PyTorch, overflow and 0/0 give inf and nan silently.
# NumPy keeps errstate for each context, so a new thread falls back to warning: there the filter takes over.
np.seterr(all="ignore")
warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"(eager|graphc)\.")


def operand_dtype(op: Op, operands: Sequence[tuple[np.dtype, int]]) -> np.dtype | None:
    """The common dtype that `op` casts its operands to, given each one's (dtype, rank), or None if it casts none.

    rank is 2 for an array with dimensions, 1 for a 0-d array, 0 for a Python scalar (see `result_type`).
    """
    rule = op.rule
    if rule.accepts is not None:
        rule.accepts(op, [dtype for dtype, _ in operands])
    if not rule.promote:
        return None
    dtype = result_type(list(operands[rule.first :]))
    if rule.promote == "float" and not is_inexact(dtype):
        return default_float()
    return INT64 if rule.promote == "number" and dtype == BOOL else dtype


def with_defaults(op: Op, params: Mapping[str, Any]) -> dict[str, Any]:
    """`params` in the order of the declaration, defaults filled in. Raises TypeError for an unknown name."""
    if not op.params and not params:
        return {}
    if unknown := params.keys() - op.params.keys():
        raise TypeError(f"{op.name}() got an unexpected keyword argument '{min(unknown)}'")
    return {name: params.get(name, default) for name, default in op.params.items()}


def widens(op: Op) -> bool:
    """Whether the kernel of `op` computes 16-bit floats in float32, and rounds its result."""
    return not (op.view or op.structured or "dtype" in op.params)


def run_kernel(op: Op, arrays: Sequence[np.ndarray], params: Mapping[str, Any]) -> Any:
    """The result of `op` on arrays already promoted and checked: an ndarray, or a tuple of them from one with several.

    Like PyTorch's, kernels of 16-bit floats compute in float32 and round the result; sums lose nothing on the way.
    """
    if op.structured:
        return op.kernel(*arrays, **params)
    for array in arrays:
        if is_half(array.dtype) and widens(op):
            wide = [a.astype(FLOAT32) if is_half(a.dtype) else a for a in arrays]
            return _rounded(op, op.kernel(*wide, **params), arrays, array.dtype, params)
    result = op.kernel(*arrays, **params)
    # several results are row-major: LAPACK's are not
    return tuple(np.asarray(r, order="C") for r in result) if op.several else np.asarray(result)


def _rounded(op: Op, result: Any, arrays: Sequence[np.ndarray], half: np.dtype, params: Mapping[str, Any]) -> Any:
    """The `result` of `op` on `arrays` in float32, in the dtypes that it has of them: `half`, or what the rule says."""
    if op.several or any(is_inexact(a.dtype) and a.dtype != half for a in arrays):
        inferred = op.rule.infer(op, [aval_of(a) for a in arrays], params)
        if op.several:
            pairs = zip(result, inferred, strict=True)
            return tuple(np.asarray(r, aval.dtype, order="C") for r, aval in pairs)
        half = inferred.dtype
    result = np.asarray(result)
    return result.astype(half, copy=False) if result.dtype == FLOAT32 else result


@final
class NumpyLanguage:
    """The op language on ndarrays; each op is looked up once."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        try:
            found = OPS[name]
        except KeyError:
            raise AttributeError(f"no op named '{name}'") from None
        kernel = found.kernel
        setattr(self, name, kernel)
        return kernel


F = NumpyLanguage()
