"""The judge: what rounding may do passes, what it cannot do fails."""

from __future__ import annotations

import numpy as np
import pytest

import compare
import eager as torch
import graphc
from compare.declared.operations import call_of, samples_of
from compare.fuzzing.program import array_literal, names
from compare.judging import numeric
from compare.judging.float64 import widen, widen_array
from compare.judging.numeric import Rounding, evaluate
from compare.judging.tolerance import Judgement, Verdict, accumulation_length, judge, same_bits
from compare.judging.yardstick import Yardstick, stand_in
from compare.locating.culprit import summary
from compare.selftest.planting import declared
from eager.engine.language import E
from graphc.ir import Builder, Graph, Ref
from graphc.ops import OPS
from graphc.ops.aval import Aval, aval_of
from graphc.ops.dtypes import FLOAT32, bfloat16
from graphc.ops.interpret import run_kernel

MILLION = 1_000_000


def program(op: str, *arrays: np.ndarray, **params: object) -> Graph:
    builder = Builder()
    inputs = [builder.input(f"x{k}", aval_of(a)) for k, a in enumerate(arrays)]
    return builder.graph("program", Ref(getattr(builder.language, op)(*inputs, **params).id))


def judged(found: np.ndarray, op: str, *arrays: np.ndarray, **params: object) -> Judgement:
    graph = program(op, *arrays, **params)
    eager = graph(*arrays)
    return judge(found, eager, *Yardstick(graph, arrays, 0).of(graph.outputs[0], eager))


def test_one_wrong_element_in_a_million_is_a_bug(rng: np.random.Generator):
    x = rng.standard_normal(MILLION).astype(np.float32)
    found = np.exp(x)
    found[123_456] *= 1.001
    judgement = judged(found, "exp", x)
    assert judgement.verdict is Verdict.BUG
    assert "element (123456,)" in judgement.detail
    assert "1 of 1000000" in judgement.detail


def test_a_quotient_by_what_is_mostly_rounding_is_anything_in_every_other_run():
    """With nan in every run, what infinity or zero there leads to would never be seen."""
    builder = Builder()
    x, third = builder.input("x", Aval((64,), FLOAT32)), builder.constant(1 / 3, FLOAT32)
    quotient = third / ((x + third) - third - x)
    graph = builder.graph("program", Ref(quotient.id))
    wide = widen(graph)
    arrays = [np.linspace(1, 2, 64)]
    exact = evaluate(wide, arrays)
    runs = [evaluate(wide, arrays, rounding=Rounding(graph, seed, exact=exact))[quotient.id] for seed in range(4)]
    assert [bool(np.isnan(found).all()) for found in runs] == [True, False, True, False]


def test_another_exponential_is_within_rounding(rng: np.random.Generator):
    x = rng.standard_normal(MILLION).astype(np.float32)
    found = np.exp(x.astype(np.float64)).astype(np.float32)
    assert judged(found, "exp", x).verdict is Verdict.WITHIN_ROUNDING


@pytest.mark.parametrize("offset", [0.0, 0.5])
def test_a_reassociated_sum_is_within_rounding(rng: np.random.Generator, offset: float):
    x = (rng.standard_normal(MILLION) + offset).astype(np.float32)
    found = np.add.accumulate(x)[-1]  # in sequence, which is the worst order
    other = x.reshape(1000, 1000).sum(0).sum()
    assert judged(np.asarray(other), "sum", x, axis=(0,), keepdims=False).verdict <= Verdict.WITHIN_ROUNDING
    assert judged(np.asarray(found), "sum", x, axis=(0,), keepdims=False).verdict <= Verdict.WITHIN_ROUNDING


def test_a_sum_that_misses_an_element_is_a_bug(rng: np.random.Generator):
    x = rng.uniform(0.5, 1.5, 10_000).astype(np.float32)
    found = np.asarray(x[1:].sum())
    assert judged(found, "sum", x, axis=(0,), keepdims=False).verdict is Verdict.BUG


def test_a_small_error_everywhere_is_a_bug(rng: np.random.Generator):
    x = rng.standard_normal(1000).astype(np.float32)
    assert judged(np.exp(x) * np.float32(1.00001), "exp", x).verdict is Verdict.BUG


def test_single_precision_where_double_was_asked_for_is_a_bug(rng: np.random.Generator):
    x = rng.standard_normal(100)
    found = np.exp(x.astype(np.float32)).astype(np.float64)
    assert judged(found, "exp", x).verdict is Verdict.BUG


def test_nan_in_one_mode_only_is_a_bug():
    x = np.array([1.0, 2.0], np.float32)
    assert judged(np.array([np.nan, np.exp(2.0)], np.float32), "exp", x).verdict is Verdict.BUG


def test_nan_in_both_modes_is_not():
    x = np.array([-1.0, 2.0], np.float32)
    assert judged(np.log(x), "log", x).verdict is Verdict.IDENTICAL


@pytest.mark.parametrize(
    ("f", "values", "leaves"),
    [
        (lambda x: x.exp() / x.exp(), [800.0, 1.0], True),
        (lambda x: x.exp() / x.exp(), [-800.0, 1.0], True),
        (lambda x: x.square().square().square().square(), [1e30], True),
        (lambda x: x / x, [0.0, 1.0], False),
        (lambda x: x.log() - x.log(), [0.0, 1.0], False),
        (lambda x: x.relu() / x.relu(), [-1.0, 2.0], False),
        (lambda x: (x - x) / (x - x), [3.0], False),
        (lambda x: x - x, [float("inf")], False),
    ],
)
def test_numbers_that_leave_the_range_of_float64_are_told_from_poles(f, values: list[float], leaves: bool):
    x = torch.tensor(values)
    graph = graphc.trace(f, x)
    assert Yardstick(graph, [x.numpy()], 0).out_of_range(graph.outputs[0]) is leaves


@pytest.mark.parametrize("size", [1000.0, -1000.0])
def test_a_quotient_that_a_pass_takes_off_is_no_bug_where_its_parts_are_out_of_range(size: float):
    assert compare.check(lambda x: x.exp() / x.exp(), torch.tensor([size, 1.0])).ok


def test_an_infinity_of_the_other_sign_is_a_bug():
    x = np.array([0.0], np.float32)
    assert judged(np.array([np.inf], np.float32), "log", x).verdict is Verdict.BUG


def test_a_comparison_that_rounding_decides_is_not_a_bug():
    x = np.array([0.1, 0.7], np.float32)
    graph = _tanh_against_itself(x)
    noise = Yardstick(graph, [x], 0).noise[graph.outputs[0]]
    flipped = ~graph(x)
    assert judge(flipped, graph(x), graph(x), noise).verdict is Verdict.WITHIN_ROUNDING


def _tanh_against_itself(x: np.ndarray) -> Graph:
    builder = Builder()
    F, symbol = builder.language, builder.input("x", aval_of(x))
    other = 1 - 2 / (F.exp(2 * symbol) + 1)
    return builder.graph("program", Ref(F.gt(F.tanh(symbol), other).id))


def test_a_comparison_with_a_margin_is_a_bug():
    x = np.array([0.1, 0.7], np.float32)
    found = np.array([True, False])
    assert judged(found, "gt", x, np.zeros(2, np.float32)).verdict is Verdict.BUG


def test_ties_survive_the_simulated_rounding():
    x = np.array([1.0, 3.0, 3.0], np.float32)
    graph = program("amax", x, axis=(0,), keepdims=False)
    assert Yardstick(graph, [x], 0).noise[graph.outputs[0]] == 0


SUMMING = [
    op.name
    for op in OPS.values()
    if not (op.structured or op.pointwise or op.impure or op.definition) and op.vjp
    if op.rounding.operand is None and op.rounding.ulps != 0  # those of matrices are judged by the errors of these
]


@pytest.mark.parametrize("name", SUMMING)
def test_as_many_terms_are_counted_as_operands_reach_one_element(name: str, rng: np.random.Generator):
    op = OPS[name]
    for sample in samples_of(op):
        operands = [widen_array(t.detach().numpy()) for t in call_of(op, sample, rng, FLOAT32).operands]
        graph = program(name, *operands, **sample.params)
        node = graph.nodes[graph.outputs[0]]
        counted = accumulation_length(node, graph)
        base = run_kernel(op, operands, node.params)
        reached = np.zeros(base.shape)
        for k, operand in enumerate(operands):
            for at in np.ndindex(operand.shape if operand.dtype.kind in "fc" else (0,)):
                moved = operand.copy()
                moved[at] += 1e-7  # less than what makes another element the largest
                reached += run_kernel(op, [*operands[:k], moved, *operands[k + 1 :]], node.params) != base
        # flops count what is summed on average, an element in the middle gets up to twice as much
        assert counted >= min(reached.max(initial=0), 2) and counted >= reached.max(initial=0) / 2.5, (sample, counted)


@pytest.mark.parametrize(("rows", "width"), [(2, 1), (3, 7)])
def test_many_terms_scattered_to_few_places_may_be_added_in_any_order(rng: np.random.Generator, rows: int, width: int):
    table = np.zeros((rows, width), np.float32)
    index = np.repeat(rng.integers(0, rows, (5000, 1)), width, axis=1)
    src = rng.standard_normal((5000, width)).astype(np.float32)
    found = np.zeros((rows, width), np.float32)
    np.add.at(found, (index[::-1], np.arange(width)), src[::-1])
    assert judged(found, "scatter_add", table, index, src, axis=0).verdict <= Verdict.WITHIN_ROUNDING
    lost = np.zeros((rows, width), np.float32)
    np.add.at(lost, (index[1:], np.arange(width)), src[1:])
    assert judged(lost, "scatter_add", table, index, src, axis=0).verdict is Verdict.BUG


@pytest.mark.parametrize(("inner", "signs"), [(0, {False}), (1, {False, True})])
def test_a_sum_of_products_that_are_minus_zero_has_either_sign_and_one_of_none_has_not(inner: int, signs: set[bool]):
    arrays = [np.full((2, inner), -0.0), np.ones((inner, 3))]
    graph = program("matmul", *(a.astype(FLOAT32) for a in arrays))
    runs = [evaluate(widen(graph), arrays, rounding=Rounding(graph, seed, flushed=0.5)) for seed in range(8)]
    assert {bool(sign) for run in runs for sign in np.signbit(run[graph.outputs[0]]).ravel()} == signs


def test_an_error_bar_may_be_exhausted_by_every_element():
    exact = np.linspace(1, 2, 64)
    eager = exact.astype(np.float32)
    found, noise = (exact + 0.009).astype(np.float32), np.zeros(64)
    assert judge(found, eager, exact, noise, error_bar=0.01).verdict is Verdict.WITHIN_ROUNDING
    assert judge(found, eager, exact, noise, error_bar=0.001).verdict is Verdict.BUG


def test_same_bits_tells_zeros_apart_and_not_nans():
    assert not same_bits(np.array([0.0]), np.array([-0.0]))
    assert not same_bits(np.array([1.0]), np.array([1.0], np.float32))
    assert same_bits(np.array([np.nan, 1.0]), np.array([-np.nan, 1.0]))


def test_widened_graph_computes_on_the_same_numbers():
    builder = Builder()
    x = builder.input("x", aval_of(np.zeros(2, np.float32)))
    graph = builder.graph("program", Ref((x * 0.1 + builder.language.full(shape=(2,), value=0.1, dtype=x.dtype)).id))
    wide = widen(graph).check()
    assert {n.dtype for n in wide.nodes.values()} == {np.dtype(np.float64)}
    ones = np.ones(2)
    assert wide(ones).tolist() == [2 * float(np.float32(0.1))] * 2
    assert set(wide.nodes) == set(graph.nodes)


def test_brain_floats_round_too():
    array, near, off, nan = (np.array([1.0, x], bfloat16()) for x in (2.0, 2.015625, 2.5, np.nan))
    assert judge(near, array, *stand_in(array)).verdict is Verdict.WITHIN_ROUNDING
    assert judge(off, array, *stand_in(array)).verdict is Verdict.BUG
    assert same_bits(nan, nan.copy()) and summary(array) == "bf16[2] [1, 2]"
    assert eval(array_literal(nan), names()).tobytes() == nan.tobytes()


@pytest.mark.parametrize("modes", [["jax.grad"], ["finite differences"]])
def test_a_gradient_that_is_not_the_values_gets_no_opinion(modes):
    x, value = torch.ones(3, requires_grad=True), torch.zeros(3)
    report = compare.check(lambda x, value: (E.overwritten(x * 2, value) ** 2).sum(), x, value, modes=modes)
    assert report.ok and report.verdict_of(modes[0]) is Verdict.NO_OPINION
    assert "on purpose" in str(report)


@pytest.mark.parametrize("seed", range(2))
def test_column_sums_are_within_rounding_and_a_lost_row_is_not(seed: int):
    torch.manual_seed(seed)
    x, b = torch.rand(10_000, 3), torch.zeros(3, requires_grad=True)

    def fn(x, b):
        return (x + b).mean() * 1.37, x.sum(0), x.var(0), torch.linalg.vector_norm(x, 3.0, dim=0)

    assert compare.check(fn, x, b, modes=["compiled"]).verdict is Verdict.WITHIN_ROUNDING
    kernel = OPS["sum"].kernel
    # half as far off as sums of one row after the other are
    wrong = declared(OPS["sum"], kernel=lambda x, axis, keepdims: kernel(x, axis, keepdims) * np.float32(1 + 2e-5))
    with wrong:
        assert compare.check(lambda x: x.sum(0), x, modes=["compiled"]).verdict is Verdict.BUG


def test_of_a_graph_of_several_programs_only_the_one_that_is_asked_for_is_run(monkeypatch):
    def several(x, y):
        return torch.exp(x).sum(), torch.sin(y) * y

    x, y = np.float32([1.5, 2.25]), np.float32([0.3, 7.0])
    graph = graphc.trace(several, torch.tensor(x), torch.tensor(y))
    ran: list[str] = []
    own = numeric.run_kernel
    monkeypatch.setattr(numeric, "run_kernel", lambda op, *rest: ran.append(op.name) or own(op, *rest))
    one, all = Yardstick(graph, [x, y], 0), Yardstick(graph, [x, y], 0)
    one.exact, ran.clear()
    noise = one.noise_of(graph.outputs[1])
    assert set(ran) == {"sin", "mul"}
    assert (noise > 0).all() and noise.tobytes() == all.noise[graph.outputs[1]].tobytes()
    assert all.noise.keys() == graph.nodes.keys()
