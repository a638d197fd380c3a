"""Does an op do what its declaration says? Each check raises AssertionError naming the op; none needs the registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from graphc.ops.aval import Aval, aval_of
from graphc.ops.dtypes import COMPLEX128, FLOAT64
from graphc.ops.interpret import F, operand_dtype, run_kernel, with_defaults
from graphc.ops.movement import sum_to
from graphc.ops.references import opinion
from graphc.ops.spec import Kink, Op, Trait

Arrays = Sequence[np.ndarray]
Params = Mapping[str, Any]
STEP = 1e-4  # truncation ~1e-8 f''' and rounding ~1e-12 f: far below GRADIENT_TOLERANCE, far above a wrong constant
GRADIENT_TOLERANCE = {"rtol": 2e-6, "atol": 2e-7}
REFERENCE_TOLERANCE = {"rtol": 1e-11, "atol": 1e-11}
QUOTIENT_TOLERANCE = {"rtol": 1e-8, "atol": 1e-8}  # references that are difference quotients


def promoted(op: Op, arrays: Arrays) -> list[np.ndarray]:
    """`arrays` in the dtype that `op` computes in."""
    dtype = operand_dtype(op, [(a.dtype, 2 if a.ndim else 1) for a in arrays])
    return [a if dtype is None or i < op.rule.first else a.astype(dtype) for i, a in enumerate(arrays)]


def infer(op: Op, arrays: Arrays, params: Params) -> Aval:
    return op.rule.infer(op, [aval_of(a) for a in arrays], params)


@np.errstate(all="ignore")  # inf and nan are results like any other
def evaluate(op: Op, arrays: Arrays, params: Params) -> np.ndarray:
    return run_kernel(op, arrays, with_defaults(op, params))


def check_rule(op: Op, arrays: Arrays, params: Params) -> None:
    """The shape rule foretells the kernel's shape and dtype, and the kernel writes to no operand."""
    arrays, params = promoted(op, arrays), with_defaults(op, params)
    before = [a.tobytes() for a in arrays]
    foretold = infer(op, arrays, params)
    found = aval_of(evaluate(op, arrays, params))
    assert found == foretold, f"{op.name}: the rule says {foretold}, the kernel gives {found}"
    assert [a.tobytes() for a in arrays] == before, f"{op.name}: the kernel has written to an operand"


def check_memory(op: Op, arrays: Arrays, params: Params) -> None:
    """Only an op with trait VIEW gives a result in the memory of an operand."""
    result = evaluate(op, arrays, params)
    shared = any(np.shares_memory(result, a) for a in arrays)
    assert not shared or Trait.VIEW in op.traits, f"{op.name}: the result shares an operand's memory without Trait.VIEW"


def check_reference(
    op: Op, arrays: Arrays, params: Params, tolerance: Mapping[str, float] = REFERENCE_TOLERANCE
) -> None:
    """The kernel agrees with the independent reference: closely for floats, exactly for the rest."""
    params, arrays = with_defaults(op, params), promoted(op, arrays)
    result = evaluate(op, arrays, params)
    try:
        said = opinion(op, arrays, params, result)
    except LookupError as error:
        raise AssertionError(str(error)) from None
    assert said is not None, f"{op.name}: the reference has no opinion"
    assert result.shape == said.shape, f"{op.name}: shape {result.shape}, the reference has {said.shape}"
    expected = np.ma.getdata(said) if op.nearest is None else op.nearest(np.ma.getdata(said), result)
    asked = ~np.ma.getmaskarray(said)
    result, expected = result[asked], expected[asked]
    if result.dtype.kind in "fc":
        single = result.dtype not in (FLOAT64, COMPLEX128)
        close = np.allclose(result, expected, **({"rtol": 1e-6, "atol": 1e-6} if single else tolerance), equal_nan=True)
    else:
        close = np.array_equal(result, expected)
    assert close, f"{op.name}: differs from its reference by up to {_distance(result, expected)}"


def _distance(a: np.ndarray, b: np.ndarray) -> Any:
    return np.max(np.abs(np.asarray(a, complex) - np.asarray(b, complex)), initial=0.0)


@np.errstate(all="ignore")
def gradient(op: Op, index: int, g: np.ndarray, arrays: Arrays, params: Params) -> np.ndarray:
    """The op's own gradient rule for operand number `index` and cotangent `g`, with broadcasting undone."""
    params = with_defaults(op, params)
    last = len(op.args) - 1
    groups: dict[str, Any] = dict(zip(op.args, arrays, strict=False))
    if op.variadic:
        groups[op.args[last]] = list(arrays[last:])
    values: dict[str, Any] = {**params, **groups, "g": g, "r": evaluate(op, arrays, params), "position": index - last}
    for name, value in groups.items():
        for what in ("shape", "dtype"):
            many = isinstance(value, list)
            values[f"{name}_{what}"] = [getattr(v, what) for v in value] if many else getattr(value, what)
    vjp = op.vjp[op.arg_of(index)]
    return np.asarray(sum_to(F, vjp.fn(F, *(values[n] for n in vjp.names)), arrays[index].shape))


def differentiable_operands(op: Op, arrays: Arrays) -> list[int]:
    return [i for i, a in enumerate(arrays) if op.arg_of(i) in op.vjp and a.dtype.kind in "fc"]


def difference_quotient(function: Callable[[np.ndarray], Any], x: np.ndarray, step: float = STEP) -> np.ndarray:
    """The gradient of a real scalar function of `x`, element by element, by central differences.

    With respect to a complex `x` it is d/dRe(x) + i d/dIm(x).
    """
    result = np.zeros(x.shape, x.dtype)
    for at in np.ndindex(x.shape):
        for direction in (1, 1j) if x.dtype.kind == "c" else (1,):
            up, down = x.copy(), x.copy()
            up[at] += step * direction
            down[at] -= step * direction
            result[at] += direction * (function(up) - function(down)) / (2 * step)
    return result


def random_cotangent(rng: np.random.Generator, result: np.ndarray) -> np.ndarray:
    """Numbers of the shape of `result`, complex if it is."""
    g = np.asarray(rng.uniform(0.5, 1.5, result.shape))
    return g + 1j * rng.uniform(0.5, 1.5, result.shape) if result.dtype.kind == "c" else g


def check_gradient(op: Op, arrays: Arrays, params: Params, rng: np.random.Generator) -> None:
    """Every gradient rule agrees with finite differences in float64, under a random cotangent."""
    g = random_cotangent(rng, evaluate(op, arrays, params))
    for index in differentiable_operands(op, arrays):

        def loss(x: np.ndarray, index: int = index) -> np.ndarray:
            return np.sum((np.conj(g) * evaluate(op, [*arrays[:index], x, *arrays[index + 1 :]], params)).real)

        found = gradient(op, index, g, arrays, params)
        expected = difference_quotient(loss, arrays[index])
        where = f"{op.name}: the gradient of '{op.arg_of(index)}' (operand {index})"
        assert found.shape == expected.shape, f"{where} has shape {found.shape}, the operand {expected.shape}"
        assert np.allclose(found, expected, **GRADIENT_TOLERANCE), (
            f"{where} differs from finite differences by up to {_distance(found, expected)}:\n"
            f"rule {found.tolist()}\ndifferences {expected.tolist()}"
        )


def check_gradient_dtype(op: Op, arrays: Arrays, params: Params) -> None:
    """Every gradient has the dtype of its operand: a rule that lets NumPy promote it would widen what follows."""
    operands = promoted(op, arrays)
    result = evaluate(op, operands, params)
    for index in differentiable_operands(op, operands):
        d = np.asarray(gradient(op, index, np.ones_like(result), operands, params))
        assert d.dtype == operands[index].dtype, (
            f"{op.name}: gradient of '{op.arg_of(index)}' is {d.dtype}, the operand {operands[index].dtype}"
        )


def check_kink(op: Op, kink: Kink) -> None:
    """The gradient rules give the declared subgradients where the derivative jumps."""
    arrays = [np.array(x) for x in kink.at]
    found = tuple(float(gradient(op, i, np.array(1.0), arrays, {})) for i in differentiable_operands(op, arrays))
    same = np.array_equal(found, kink.grads, equal_nan=True)
    assert same, f"{op.name}: subgradients {found} at {kink.at}, declared are {kink.grads}"


def check_commutative(op: Op, arrays: Arrays, params: Params) -> None:
    x, y = arrays
    same = evaluate(op, [x, y], params).tobytes() == evaluate(op, [y, x], params).tobytes()
    assert same, f"{op.name} is declared COMMUTATIVE, but swapping its operands changes bits"


def check_idempotent(op: Op, arrays: Arrays, params: Params) -> None:
    once = evaluate(op, arrays, params)
    assert evaluate(op, [once], params).tobytes() == once.tobytes(), f"{op.name} is declared IDEMPOTENT, but is not"


def check_linear(op: Op, arrays: Arrays, params: Params, rng: np.random.Generator, moved: Sequence[int]) -> None:
    """Linear in the operands numbered `moved`, taken together."""
    others = [np.asarray(rng.uniform(-1, 1, a.shape), a.dtype) if i in moved else a for i, a in enumerate(arrays)]
    mixed = [2.5 * a - 0.75 * b if i in moved else a for i, (a, b) in enumerate(zip(arrays, others, strict=True))]
    found = evaluate(op, mixed, params)
    expected = 2.5 * evaluate(op, arrays, params) - 0.75 * evaluate(op, others, params)
    assert np.allclose(found, expected, rtol=1e-12, atol=1e-12), f"{op.name} is not linear in operands {list(moved)}"


def linear_operands(op: Op, arrays: Arrays) -> list[list[int]]:
    """The sets of operands that the op's traits declare it linear in; a variadic argument counts as one."""
    if Trait.BILINEAR in op.traits:
        return [[0], [1]]
    if Trait.LINEAR in op.traits:
        return [list(range(len(arrays))) if op.variadic else [0]]
    return []


def check_traits(op: Op, arrays: Arrays, params: Params, rng: np.random.Generator) -> None:
    """Every algebraic trait holds on these operands."""
    if Trait.COMMUTATIVE in op.traits:
        check_commutative(op, arrays, params)
    if Trait.IDEMPOTENT in op.traits:
        check_idempotent(op, arrays, params)
    for moved in linear_operands(op, arrays):
        check_linear(op, arrays, params, rng, moved)
