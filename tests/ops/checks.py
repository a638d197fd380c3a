"""Does an op do what its declaration says? Each check raises AssertionError naming the op; none needs the registry.

Ops have one result here; of several, each is looked at by itself (`tests.ops.parts`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from graphc.ops.assumptions import KINDS
from graphc.ops.aval import Aval, aval_of
from graphc.ops.dtypes import COMPLEX64, COMPLEX128, FLOAT32, FLOAT64, is_inexact
from graphc.ops.interpret import F, operand_dtype, run_kernel, with_defaults
from graphc.ops.movement import sum_to
from graphc.ops.references import opinion
from graphc.ops.spec import Kink, Op, Trait
from graphc.ops.strides import strides_of

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


def check_moves(op: Op, calls: Sequence[tuple[Arrays, Params]]) -> None:
    """Elements of the results are elements of operands, up to signs, or 0: just if the op has the trait MOVES.

    An op without it computes something in one of the calls, unless it declares that it has no error there.
    """
    moved, free = [], True
    for arrays, given in calls:
        arrays, params = promoted(op, arrays), with_defaults(op, given)
        result = evaluate(op, arrays, params)
        held = np.concatenate([[0], *map(_magnitudes, arrays)])
        moved.append(bool(np.isin(_magnitudes(result), held).all()))
        free = free and (not is_inexact(result.dtype) or op.rounding.at([aval_of(a) for a in arrays], params) == 0)
    if Trait.MOVES in op.traits:
        assert free and all(moved), f"{op.name}: has the trait MOVES, but computes"
    else:
        assert free or not all(moved), f"{op.name}: only moves elements, and has not the trait MOVES"


def _magnitudes(array: np.ndarray) -> np.ndarray:
    """Of all elements, or of both parts of all complex ones."""
    parts = [array.real, array.imag] if array.dtype.kind == "c" else [array]
    return np.abs(np.concatenate([part.reshape(-1) for part in parts]))


def check_rounding(op: Op, arrays: Arrays, params: Params) -> None:
    """In float32 the kernel is as near to its result in float64 as declared. Of sums that depends on their order."""
    arrays, params = promoted(op, arrays), with_defaults(op, params)
    ulps = op.rounding.at([aval_of(a) for a in arrays], params)
    found = evaluate(op, arrays, params)
    if ulps is None or found.dtype not in (FLOAT32, COMPLEX64):
        return
    wide = [a.astype({FLOAT32: FLOAT64, COMPLEX64: COMPLEX128}.get(a.dtype, a.dtype)) for a in arrays]
    exact = evaluate(op, wide, params)
    terms = 0.0 if op.rounding.terms is None else op.rounding.terms(exact, *wide, **params)
    unit = np.finfo(np.float32).eps
    # beside the error of a kernel that is not exactly rounded, that of one that is
    allowed = (ulps * unit + (ulps > 0) * unit / 2) * (np.abs(exact) + terms)
    far = ~(np.abs(found - exact) <= allowed)
    assert not far.any(), f"{op.name}: {found[far][0]} for {exact[far][0]}, with a declared error of {ulps} ULP"


def check_lens(op: Op, arrays: Arrays, params: Params, rng: np.random.Generator) -> None:
    """The part that the lens puts into a whole is what the op then shows of it, and nothing else has changed."""
    whole, *operands = arrays
    params, lens = with_defaults(op, params), op.lens
    assert lens is not None
    part = evaluate(op, arrays, params)
    if lens.put is not None:
        same = lens.put(F, whole, part, *operands, **params)
        assert np.array_equal(same, whole), f"{op.name}: putting back what is shown changes the whole"
        other = evaluate(op, [rng.permutation(whole.reshape(-1)).reshape(whole.shape), *operands], params)
        shown = evaluate(op, [lens.put(F, whole, other, *operands, **params), *operands], params)
        assert np.array_equal(shown, other), f"{op.name}: does not show what its lens has put into the whole"
    if Trait.VIEW in op.traits:
        _check_place(op, whole, params)


def _check_place(op: Op, whole: np.ndarray, params: Params) -> None:
    for lying in (whole, np.array(whole, order="F")):
        part = evaluate(op, [lying], params)
        found = op.lens.lies(Aval(lying.shape, lying.dtype), strides_of(lying), **params)  # type: ignore[union-attr]
        if np.may_share_memory(part, lying):
            apart = (part.ctypes.data - lying.ctypes.data) // part.itemsize
            assert found == (strides_of(part), apart), f"{op.name}: lies at {strides_of(part), apart}, not at {found}"
        else:  # the operand of `as_strided` lies where its parameters say
            assert found is None or not part.size or "layout" in params, f"{op.name}: the result is no view"


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
    (expected,) = said
    assert result.shape == expected.shape, f"{op.name}: shape {result.shape}, the reference has {expected.shape}"
    asked = ~np.ma.getmaskarray(expected)
    result, expected = result[asked], np.ma.getdata(expected)[asked]
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

    With respect to a complex `x` it is d/dRe(x) + i d/dIm(x). Where the function changes on one side only, there is a
    step or a kink near by: the difference is taken closer.
    """
    result = np.zeros(x.shape, x.dtype)
    here = function(x)

    def at_distance(h: Any, at: tuple[int, ...]) -> Any:
        moved = x.copy()
        moved[at] += h
        return function(moved)

    for at in np.ndindex(x.shape):
        for direction in (1, 1j) if x.dtype.kind == "c" else (1,):
            for h in (step, step / 64, step / 4096):
                up, down = at_distance(h * direction, at), at_distance(-h * direction, at)
                if (up == here) == (down == here):
                    break
            result[at] += direction * (up - down) / (2 * h)
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
    operands = differentiable_operands(op, arrays)
    found = [float(gradient(op, i, np.array(1.0), arrays, {})) for i in operands]
    declared = [kink.grads[i] for i in operands]
    same = np.array_equal(found, declared, equal_nan=True)
    assert same, f"{op.name}: subgradients {found} at {kink.at}, declared are {declared}"


def check_commutative(op: Op, arrays: Arrays, params: Params) -> None:
    x, y = arrays
    same = evaluate(op, [x, y], params).tobytes() == evaluate(op, [y, x], params).tobytes()
    assert same, f"{op.name} is declared COMMUTATIVE, but swapping its operands changes bits"


def check_idempotent(op: Op, arrays: Arrays, params: Params) -> None:
    once = evaluate(op, arrays, params)
    assert evaluate(op, [once], params).tobytes() == once.tobytes(), f"{op.name} is declared IDEMPOTENT, but is not"


def check_even(op: Op, arrays: Arrays, params: Params) -> None:
    same = evaluate(op, [-x for x in arrays], params).tobytes() == evaluate(op, arrays, params).tobytes()
    assert same, f"{op.name} is declared EVEN, but is not"


def check_facts(op: Op, arrays: Arrays, params: Params) -> None:
    """What the op declares of its results, whatever they are, holds for these operands."""
    given = promoted(op, arrays)
    result = evaluate(op, given, params)
    if op.passes:
        assert result.tobytes() == given[0].tobytes(), f"{op.name} does not pass its operand"
    for name, *numbers in op.claims(params, 0) if op.claims is not None else ():
        holds = bool(np.all(KINDS[name].holds(np, result, *numbers)))
        assert holds or result.dtype.kind == "c", f"{op.name}: the result is not {name} {numbers}"
    if op.image is not None and result.dtype.kind == "f":
        ranges = [(np.nanmin(x), np.nanmax(x)) if x.size else (-np.inf, np.inf) for x in given]
        low, high = op.image_of(params, *ranges) or (-np.inf, np.inf)
        inside = bool(np.all((result >= low) & (result <= high) | np.isnan(result)))
        assert inside, f"{op.name}: results are not from {low} to {high}"


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
    if Trait.EVEN in op.traits:
        check_even(op, arrays, params)
    for moved in linear_operands(op, arrays):
        check_linear(op, arrays, params, rng, moved)
