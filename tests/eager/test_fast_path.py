"""The generated code and the plain interpretation of the same declaration give the same bits, value and gradient."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from eager.core import tape
from eager.core.tensor import Tensor
from eager.engine import blocks, dispatch
from eager.engine.generated_ops import GeneratedOps
from eager.engine.language import E, double, single, whole_ops
from graphc.ops import OPS, Op, Trait
from graphc.ops.dtypes import BOOL, FLOAT32, FLOAT64, INT64
from graphc.ops.rules import integral
from graphc.ops.samples import Floats
from tests.ops.cases import Case, cases_of, each_case, noting

MODULES = {FLOAT32: single, FLOAT64: double}
GENERATED = [
    op
    for op in OPS.values()
    if op.args and not (op.variadic or op.structured or op.several) and op.rule.infer is not integral.infer
]
# operands of the fast path are floats (and where's condition); others are interpreted plainly by design
CASES = [
    case
    for op in GENERATED
    for case in cases_of(op)
    if all(isinstance(spec, Floats) for spec in case.sample.inputs[op.rule.first :])
]
SCALARS = (0.5, 2, 1.7, 1)
BINARY = [op for op in GENERATED if op.pointwise and len(op.args) == 2]


@contextlib.contextmanager
def no_misses(module: GeneratedOps, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail when generated code hands a call on. It does so on any error, so a fault in generated source is silent."""
    missed: list[str] = []

    def record_miss(op: Op, operands: Any, params: Any) -> Any:
        missed.append(op.name)
        return dispatch.plain(op, operands, params)

    with monkeypatch.context() as patch:
        patch.setitem(module.scope, "miss", record_miss)
        yield
    assert not missed, f"the generated code did not take: {missed}"


def leaf(array: np.ndarray, wanted: bool) -> Tensor:
    t = Tensor._wrap(array.copy(order="K"))
    return t.requires_grad_() if wanted and array.dtype.kind == "f" else t


def run(
    function: Callable[..., Tensor], operands: list[Any], wanted: tuple[bool, ...], g: np.ndarray | None
) -> tuple[np.ndarray, list[np.ndarray | None], np.ndarray]:
    """The value, the gradient of each operand, and the cotangent that was used."""
    tensors = [leaf(x, w) if isinstance(x, np.ndarray) else x for x, w in zip(operands, wanted, strict=True)]
    result = function(*tensors)
    value = result._array()
    g = g if g is not None else np.random.default_rng(7).uniform(0.5, 1.5, value.shape)
    g = np.asarray(g, value.dtype if value.dtype.kind in "fc" else FLOAT32)
    if result._n is not None:
        heap: list[Any] = []
        tape.give(result._n, g.copy(), heap)
        tape.run(heap, False)
    grads = [getattr(t, "_g", None) if isinstance(t, Tensor) else None for t in tensors]
    return value, [None if d is None else d._array() for d in grads], g


def compare(op: Op, fast: Any, operands: list[Any], params: Any, wanted: tuple[bool, ...], misses: Any) -> None:
    with misses:
        value, grads, g = run(lambda *xs: fast(*xs, **params), operands, wanted, None)
    plain_value, plain_grads, _ = run(lambda *xs: dispatch.plain(op, xs, params), operands, wanted, g)
    assert_same_bits(f"{op.name}: the value", value, plain_value)
    for i, (found, expected) in enumerate(zip(grads, plain_grads, strict=True)):
        assert (found is None) == (expected is None), f"{op.name}: operand {i} has a gradient in one path only"
        if found is not None and expected is not None:
            assert_same_bits(f"{op.name}: the gradient of operand {i}", found, expected)


def assert_same_bits(what: str, found: np.ndarray, expected: np.ndarray) -> None:
    assert found.__class__ is np.ndarray, f"{what} is a {type(found).__name__}"
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype), what
    assert found.tobytes() == expected.tobytes(), (
        f"{what} in {found.dtype}: {found.tolist()}, plain {expected.tolist()}"
    )


def wanted_subsets(count: int) -> list[tuple[bool, ...]]:
    """All operands want a gradient, each one alone, none."""
    alone = [tuple(i == k for i in range(count)) for k in range(count)] if count > 1 else []
    return [(True,) * count, *alone, (False,) * count]


@each_case(CASES)
def test_generated_equals_plain(case: Case, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch):
    for dtype, module in MODULES.items():
        arrays, params = case.arrays(rng, dtype), case.sample.params
        fast = module.get(case.op)
        for wanted in wanted_subsets(len(arrays)):
            compare(case.op, fast, list(arrays), params, wanted, no_misses(module, monkeypatch))


@each_case(CASES)
def test_generated_equals_plain_on_whole_numbers(case: Case, rng: np.random.Generator):
    for dtype in (INT64, BOOL):
        if (module := whole_ops(case.op, dtype)) is None:
            continue
        first = case.op.rule.first
        arrays = [x if i < first else np.asarray(x * 10).astype(dtype) for i, x in enumerate(case.arrays(rng, FLOAT64))]
        given: list[tuple[list[Any], Any]] = [(arrays, case.sample.params)]
        if len(arrays) == 2 and case.op.pointwise and case.op.rule.promote and case.op.rule.scalars == "any":
            given += [([arrays[0], number], {}) for number in (3, 2.5)]
        for operands, params in given:
            tensors = [Tensor._wrap(x) if isinstance(x, np.ndarray) else x for x in operands]
            found, expected = module.get(case.op)(*tensors, **params), dispatch.plain(case.op, tensors, params)
            assert found._n is None
            assert_same_bits(case.op.name, found._array(), expected._array())


def test_whole_numbers_and_bools_are_not_interpreted(monkeypatch: pytest.MonkeyPatch):
    x, y = Tensor._wrap(np.arange(6).reshape(2, 3)), Tensor._wrap(np.array([True, False, True]))
    monkeypatch.setattr(dispatch, "plain", lambda op, *rest: pytest.fail(f"{op.name} was interpreted"))
    found = E.where(y, E.add(E.reshape(x, shape=(3, 2)), 1).T[0:1], E.mul(2, E.bitwise_not(x)))
    assert found._array().tolist() == [[1, -4, 5], [1, -10, 5]]


@pytest.mark.parametrize("op", [op for op in BINARY if op.rule.scalars], ids=lambda op: op.name)
def test_generated_equals_plain_with_scalar(op: Op, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch):
    for dtype, scalar in itertools.product(MODULES, SCALARS):
        with noting(f"with {scalar!r} in {dtype}"):
            check_with_scalar(op, scalar, rng.uniform(0.5, 0.9, (3, 4)).astype(dtype), monkeypatch)


def check_with_scalar(op: Op, scalar: float, x: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    module = MODULES[x.dtype]
    for wanted in ((True, False), (False, False)):
        compare(op, module.get(op), [x, scalar], {}, wanted, no_misses(module, monkeypatch))
    if op.rule.scalars == "last":
        return
    for wanted in ((False, True), (False, False)):
        compare(op, module.get(op), [scalar, x], {}, wanted, no_misses(module, monkeypatch))


TERNARY = [op for op in GENERATED if op.pointwise and len(op.args) == 3 and op.rule.scalars in ("any", "one")]


@pytest.mark.parametrize("op", TERNARY, ids=lambda op: op.name)
def test_scalars_among_three_operands(op: Op, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch):
    case = next(cases_of(op))
    for (dtype, module), place in itertools.product(MODULES.items(), range(op.rule.first, 3)):
        operands: list[Any] = case.arrays(rng, dtype)
        operands[place] = 2
        wanted = tuple(isinstance(x, np.ndarray) for x in operands)
        compare(op, module.get(op), operands, {}, wanted, no_misses(module, monkeypatch))


@pytest.mark.parametrize("op", BINARY, ids=lambda op: op.name)
def test_same_operand_twice(op: Op, rng: np.random.Generator):
    array = rng.uniform(0.5, 2.0, (2, 3)).astype(FLOAT32)

    def gradient(function: Callable[..., Tensor]) -> Any:
        x = leaf(array, True)
        result = function(x, x)
        if result._n is None:
            return None
        result.backward(Tensor._wrap(np.ones((2, 3), result._array().dtype)))
        return x._g._array().tobytes()

    assert gradient(single.get(op)) == gradient(lambda *xs: dispatch.plain(op, xs, {}))


@pytest.mark.parametrize("op", [op for op in GENERATED if op.vjp], ids=lambda op: op.name)
def test_operands_and_cotangent_are_left_alone(op: Op, rng: np.random.Generator):
    for case in cases_of(op):
        arrays = case.arrays(rng, FLOAT32)
        tensors = [leaf(a, True) for a in arrays]
        result = single.get(op)(*tensors, **case.sample.params)
        if result._n is None:
            continue
        value = result._array().copy()
        g = np.ones(value.shape, value.dtype)
        result.backward(Tensor._wrap(g), retain_graph=True)
        assert np.array_equal(g, np.ones_like(g)), f"{op.name}: backward has written to the user's gradient"
        assert result._array().tobytes() == value.tobytes(), f"{op.name}: backward has written to the result"
        for t, a in zip(tensors, arrays, strict=True):
            assert t._array().tobytes() == a.tobytes(), f"{op.name}: an operand was written to"
        grads = [t._g._array() for t in tensors if getattr(t, "_g", None) is not None]
        kept = [g, result._array(), *(t._array() for t in tensors)]
        for i, d in enumerate(grads):
            assert not any(np.shares_memory(d, other) for other in [*kept, *grads[:i]]), (
                f"{op.name}: a gradient shares memory with another tensor"
            )


def _source(op: Op) -> str:
    single.get(op)
    return single.generated[op.name].source


def in_small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the generated backward code go through arrays by blocks of two elements of float64."""
    monkeypatch.setattr(blocks, "BYTES", 16)
    for module in MODULES.values():
        monkeypatch.setitem(module.scope, "MANY", 2)


BY_BLOCKS = [op for op in GENERATED if op.pointwise and "in_blocks(" in _source(op)]
LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "in order": lambda a: a,
    "transposed": lambda a: a.copy(order="F"),
    "with gaps": lambda a: np.repeat(a, 2, -1)[..., ::2],
}


@each_case([case for op in BY_BLOCKS for case in cases_of(op)])
def test_blocks_equal_plain(case: Case, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch):
    in_small_blocks(monkeypatch)
    for dtype, module in MODULES.items():
        arrays, fast = case.arrays(rng, dtype), module.get(case.op)
        for layout in LAYOUTS.values() if arrays[0].ndim else [np.array]:
            operands: list[Any] = [layout(a) if a.ndim else a for a in arrays]
            compare(case.op, fast, operands, {}, (True,) * len(arrays), contextlib.nullcontext())
        if len(arrays) == 2 and case.op.rule.scalars:
            for operands in ([arrays[0], 0.75], [0.75, arrays[1]])[: 1 if case.op.rule.scalars == "last" else 2]:
                wanted = tuple(isinstance(x, np.ndarray) for x in operands)
                compare(case.op, fast, operands, {}, wanted, contextlib.nullcontext())


@pytest.mark.parametrize("spread", [lambda r: r.sum(), lambda r: r.sum(0).sum(), lambda r: r.T.reshape(-1).sum()])
def test_blocks_of_a_spread_gradient(spread: Callable[[Any], Any], rng: np.random.Generator):
    """What `sum` hands back has no memory of its own for each element."""
    x = leaf(rng.standard_normal((400, 300)).astype(FLOAT32), True)
    assert x._array().size > blocks.MANY
    spread(x.tanh()).backward()
    r = np.tanh(x._array())
    np.testing.assert_array_equal(x._g._array(), 1 - r * r)


def test_a_fault_in_blocks_is_noticed(monkeypatch: pytest.MonkeyPatch):
    in_small_blocks(monkeypatch)
    monkeypatch.setattr(blocks, "_line", lambda a, result: a.reshape(-1)[::-1])
    x = np.linspace(0.1, 0.9, 12, dtype=FLOAT32).reshape(3, 4)
    with pytest.raises(AssertionError, match="tanh: the gradient"):
        compare(OPS["tanh"], single.get(OPS["tanh"]), [x], {}, (True,), contextlib.nullcontext())


def test_fault_in_generated_source_is_noticed(monkeypatch: pytest.MonkeyPatch):
    def broken(*operands: Any, out: Any) -> Any:
        raise TypeError("a fault that the generated code hides")

    x = np.ones(3, FLOAT32)
    fast = single.get(OPS["add"])
    monkeypatch.setitem(single.scope, "np_add", broken)
    with pytest.raises(AssertionError, match="did not take"):
        compare(OPS["add"], fast, [x, x], {}, (False, False), no_misses(single, monkeypatch))


@pytest.mark.parametrize("operands", [(np.ones(2, FLOAT32), np.ones(2, FLOAT64)), (np.ones(2, FLOAT32), True)])
def test_other_operands_are_interpreted_plainly(operands: Any, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(AssertionError, match="did not take"):
        compare(OPS["add"], single.get(OPS["add"]), list(operands), {}, (False, False), no_misses(single, monkeypatch))


def test_generated_source_is_readable():
    from eager.engine.language import source

    text = source("tanh")
    compile(text, "tanh", "exec")
    assert "def tanh(input, *, out=None):" in text
    assert "np_multiply" in source("tanh", FLOAT64)


def test_ops_that_broadcast_without_being_pointwise_sum_their_gradients():
    assert [op.name for op in GENERATED if Trait.BROADCASTS in op.traits and "sum_to" not in _source(op)] == []


@pytest.mark.parametrize("op", [op for op in GENERATED if op.vjp and "dtype" in op.params], ids=lambda op: op.name)
@pytest.mark.parametrize("dtype", [np.dtype(np.int64), np.dtype(bool)], ids=str)
def test_integers_have_no_history(op: Op, dtype: np.dtype):
    for module, floats in ((single, FLOAT32), (double, FLOAT64)):
        x = Tensor._wrap(np.ones((2, 3), floats)).requires_grad_()
        assert module.get(op)(x, dtype=floats).requires_grad
        assert not module.get(op)(x, dtype=dtype).requires_grad


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64, INT64], ids=str)
def test_a_scalar_that_has_to_come_last_is_refused_before_it(dtype: np.dtype):
    with pytest.raises(TypeError, match="invalid combination of arguments"):
        E.eq(2, Tensor._wrap(np.ones(3, dtype)))
