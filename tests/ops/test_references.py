"""The independent references: they share nothing with the kernels, and hold at special places. Derived from the
registry: a new op is tested by being declared."""

from __future__ import annotations

import dis
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from compare.declared.operations import extremes_of
from compare.judging.references import disputes
from graphc.ir import Node
from graphc.ops import OPS, Op, aval_of
from graphc.ops.dtypes import BOOL, FLOAT32, FLOAT64, INT64, UINT8
from graphc.ops.interpret import operand_dtype, run_kernel, with_defaults
from graphc.ops.references import Each, opinion, reference_of
from graphc.ops.rules import integral
from tests.oracle import asked_of_torch, torch_function, torch_or_skip

PLAIN = [op for op in OPS.values() if not op.structured]
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5, np.inf, -np.inf, np.nan, 1e-30, 3e38, 1e4, -1e4])
WHOLE = np.array([0, 1, -1, 2, -3, 7, 2**40, -(2**62)])
MODULES = ("np", "xp", "numpy", "linalg", "fft", "special")
# what arrays are made, looked at and rearranged with, and what every implementation rounds alike
HANDLING = frozenset(
    "array asarray empty zeros ones full eye arange ndindex moveaxis reshape transpose broadcast_to broadcast_arrays "
    "broadcast_shapes stack where linalg fft special int64 int32 dtype newaxis inf nan finfo iinfo float64 complex128 "
    "result_type isnan isfinite isinf copysign abs sqrt take".split()
)
# a degree beyond what a recurrence is asked to go through
UNBOUNDED = [op.name for op in PLAIN if "polynomial" in op.name]


def _functions(function: Any, seen: set[int]) -> Iterator[types.FunctionType]:
    """A function and those of the package that it calls, also the ones that it holds."""
    if isinstance(function, Each):
        function = function.function
    if not isinstance(function, types.FunctionType) or id(function) in seen:
        return
    seen.add(id(function))
    yield function
    held = [cell.cell_contents for cell in function.__closure__ or ()]
    names, scope = function.__code__.co_names, function.__globals__
    modules = [scope[name] for name in names if isinstance(scope.get(name), types.ModuleType)]
    # `rows.total` is no global variable `total`
    named = [next((vars(m)[name] for m in modules if name in vars(m)), scope.get(name)) for name in names]
    for other in [*held, *named]:
        if isinstance(other, Each) or (getattr(other, "__module__", "") or "").startswith("graphc.ops"):
            yield from _functions(other, seen)


def _computes_with(function: Any) -> set[str]:
    """The functions of NumPy and SciPy that a function calls by name: `xp.exp` and `np.linalg.det` give exp and det."""
    found: set[str] = set()
    for part in _functions(function, set()):
        codes = [part.__code__]
        while codes:
            code = codes.pop()
            codes += [c for c in code.co_consts if isinstance(c, types.CodeType)]
            before = ""
            for instruction in dis.get_instructions(code):
                name = instruction.argval if isinstance(instruction.argval, str) else ""
                if instruction.opname in ("LOAD_ATTR", "LOAD_METHOD") and before in MODULES:
                    found.add(name)
                before = name
    return found - HANDLING


def _kernels(op: Op) -> set[str]:
    found: set[str] = set()
    for kernel in (op.impl, op.numpy):
        found |= {kernel.rpartition(".")[2]} if isinstance(kernel, str) else _computes_with(kernel)
    return found


def test_a_reference_shares_no_function_with_the_kernel():
    found = {op.name: shared for op in PLAIN if (shared := _shared(op))}
    assert not found, "kernel and reference both call these"


def _shared(op: Op) -> set[str]:
    reference = reference_of(op)
    if isinstance(op.ref, str) and not op.ref.startswith(("math.", "operator.")):
        shared = {op.ref.rpartition(".")[2]} & _kernels(op)
    else:
        shared = _computes_with(reference) & _kernels(op)
    for slope in op.slopes.values():
        shared |= _computes_with(slope) & _kernels(op)
    return shared


def _disputed(op: Op, arrays: list[np.ndarray], params: Any) -> list[str]:
    """What references say against an op on these operands; nothing where it refuses them."""
    try:
        common = operand_dtype(op, [(a.dtype, 2 if a.ndim else 1) for a in arrays])
        arrays = [a if common is None or k < op.rule.first else a.astype(common) for k, a in enumerate(arrays)]
        params = with_defaults(op, params)
        inferred = op.rule.infer(op, [aval_of(a) for a in arrays], params)
    except (RuntimeError, TypeError, IndexError, ValueError):
        return []
    if op.check is not None and not op.check.ok(np, *arrays, **params):
        return []
    value = run_kernel(op, arrays, params)
    node = Node(len(arrays), op, tuple(range(len(arrays))), params, inferred if op.several else (inferred,))
    return [f"{op.name}: {part}: {detail}" for part, detail in disputes(node, arrays, value, differentiated=True)]


@pytest.mark.parametrize("op", [op for op in PLAIN if op.name not in UNBOUNDED], ids=lambda op: op.name)
def test_references_hold_at_special_places(op: Op, rng: np.random.Generator):
    for dtype in (FLOAT32, FLOAT64, INT64, UINT8):
        for sample in extremes_of(op):
            arrays = [np.asarray(a) for a in sample.arrays(rng, op.domain, dtype)]
            assert not _disputed(op, arrays, sample.params), (str(dtype), repr(sample))


@pytest.mark.parametrize(
    "op", [op for op in PLAIN if op.pointwise and op.args and op.name not in UNBOUNDED], ids=lambda op: op.name
)
def test_references_hold_on_special_values(op: Op):
    for dtype in (INT64, BOOL, *(() if op.rule.infer is integral.infer else (FLOAT32, FLOAT64))):
        _check_special(op, dtype)


def _check_special(op: Op, dtype: np.dtype) -> None:
    values = SPECIAL.astype(dtype) if dtype.kind == "f" else WHOLE if dtype == INT64 else np.array([True, False])
    grid = [np.ravel(a) for a in np.meshgrid(*[values] * (len(op.args) - op.rule.first))]
    params = {"dtype": FLOAT64} if "dtype" in op.params else {}
    for start in range(0, grid[0].size, 200):
        arrays = [a[start : start + 200] for a in grid]
        conditions = [np.arange(arrays[0].size) % 2 == 0] * op.rule.first
        assert not _disputed(op, [*conditions, *arrays], params)


SLOPES = [op for op in PLAIN if op.pointwise and op.slopes and not op.rule.first]


@asked_of_torch("op", SLOPES, ids=lambda op: op.name)
def test_slopes_are_pytorchs(op: Op):
    torch = torch_or_skip()
    values = [0.0, 1.0, -1.0, 2.5, -2.5]
    differing = []
    for at in [(a,) for a in values] if len(op.args) == 1 else [(a, b) for a in values for b in values]:
        operands = [torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in at]
        result = torch_function(op.name)(*operands)
        if not result.requires_grad:
            return
        try:
            result.backward(torch.tensor(-1.5, dtype=torch.float64))
        except RuntimeError as error:  # PyTorch has no derivative of it
            assert "not implemented" in str(error)
            return
        for k, argument in enumerate(op.args):
            slope: Any = op.slopes.get(argument)
            said = None if slope is None else slope.at([np.array(v) for v in (-1.5, *at)], {}, [0])[0]
            grad = 0.0 if operands[k].grad is None else operands[k].grad.item()
            if said is not None and not np.isclose(said, grad, rtol=1e-9, atol=1e-12, equal_nan=True):
                differing.append(f"{op.name}{at}, {argument}: {said}, in PyTorch {grad}")
    assert not differing, "\n".join(differing)


def test_of_a_large_array_special_values_are_asked_for_first():
    x = np.linspace(-1, 1, 10_000)
    x[7_001] = np.nan
    said = opinion(OPS["sign"], [x], {}, np.sign(x))
    assert said is not None
    asked = ~np.ma.getmaskarray(said[0])
    assert asked[7_001] and 100 < np.count_nonzero(asked) < 1_000


def test_padding_never_wins_against_the_lowest_integer():
    window: dict[str, Any] = {"kernel": (2, 2), "stride": (1, 1), "padding": ((1, 0), (1, 0)), "dilation": (1, 1)}
    found = run_kernel(OPS["max_pool2d_index"], [np.zeros((1, 1, 2, 2), np.uint8)], window)
    assert found.min() == 0
