"""Every rule of the tables, by its declaration: it fires, is sound at its licence, and is done in one go."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from graphc.autodiff import gradients
from graphc.errors import GraphcError
from graphc.ir import Builder, Graph, Ref
from graphc.ops.aval import Aval
from graphc.ops.dtypes import BOOL, FLOAT64
from graphc.ops.samples import Bools, Counted, Floats, Full, Ints, Picks
from graphc.passes import optimize
from graphc.passes.pipeline import simplify
from graphc.passes.rules import ALL
from graphc.rewrite import EXACT, REASSOCIATES, RewriteRule, RuleIndex, rewrite

SPECIALS = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-310, 1e300, -2.5, 0.5, 3.0])


def sides(rule: RewriteRule, example: dict[str, Any] | None = None) -> tuple[Graph, Graph]:
    """The two sides of `rule` as graphs, on `example` (by default the declared one)."""
    graphs = []
    for side in (rule.source, rule.right):
        builder = Builder()
        values = [_operand(builder, name, spec) for name, spec in (example or rule.example).items()]
        result = side(builder.language, *values)
        symbol = result if hasattr(result, "id") else builder.constant(result, FLOAT64)
        graphs.append(builder.graph("side", Ref(symbol.id)).check())
    return graphs[0], graphs[1]


def _operand(builder: Builder, name: str, spec: Any, dtype: np.dtype | None = None) -> Any:
    if isinstance(spec, Full):
        dtype = dtype or (BOOL if type(spec.value) is bool else FLOAT64)
        return builder.language.full(shape=spec.shape, value=dtype.type(spec.value).item(), dtype=dtype)
    if isinstance(spec, Counted):
        return builder.constant(np.arange(spec.shape[0]))
    if isinstance(spec, Picks):
        return builder.constant(spec.matrix(dtype or FLOAT64))
    if isinstance(spec, (Floats, Bools, Ints)):
        own = {Floats: FLOAT64, Bools: np.dtype(bool), Ints: np.dtype(np.int64)}[type(spec)]
        return builder.input(name, Aval(spec.shape, dtype or own))
    return spec


def arrays_for(graph: Graph, fill: Any) -> list[np.ndarray]:
    return [fill(aval) for aval in graph.input_avals()]


def uniform(seed: int):
    rng = np.random.default_rng(seed)

    def fill(aval: Aval) -> np.ndarray:
        if aval.dtype == bool:
            return rng.random(aval.shape) < 0.5
        if aval.dtype.kind == "i":
            return rng.integers(0, 2, aval.shape)
        return np.asarray(rng.uniform(0.3, 2.0, aval.shape))

    return fill


def special(seed: int):
    rng = np.random.default_rng(seed)

    def fill(aval: Aval) -> np.ndarray:
        if aval.dtype == bool:
            return rng.random(aval.shape) < 0.5
        if aval.dtype.kind == "i":
            return rng.integers(0, 2, aval.shape)
        return rng.choice(SPECIALS, aval.shape)

    return fill


def _is_array(spec: Any) -> bool:
    return isinstance(spec, (Floats, Bools, Full, Picks))


@pytest.fixture(params=ALL, ids=lambda rule: rule.name)
def rule(request: pytest.FixtureRequest) -> RewriteRule:
    return request.param


def fires(rule: RewriteRule, graph: Graph) -> bool:
    _, firings = rewrite(graph, RuleIndex([rule]))
    return any(f.rule == rule.name for f in firings)


def larger(spec: Any) -> Any:
    return spec._replace(shape=tuple(64 * n for n in spec.shape)) if isinstance(spec, (Floats, Bools, Full)) else spec


# Some rules pay only from some size on: the cost model says where.
@functools.cache
def paying_graph(rule: RewriteRule) -> Graph:
    left, _ = sides(rule)
    if fires(rule, left):
        return left
    builder = Builder()
    grown = {n: larger(s) for n, s in rule.example.items()}
    values = [_operand(builder, name, spec) for name, spec in grown.items()]
    return builder.graph("side", Ref(rule.source(builder.language, *values).id)).check()


def test_rule_fires_on_its_own_left_side(rule: RewriteRule) -> None:
    left, right = sides(rule)
    assert left.nodes[left.outputs[0]].aval == right.nodes[right.outputs[0]].aval
    graph = paying_graph(rule)
    assert fires(rule, graph), f"{rule.name} does not fire on its own left side"
    _, firings = rewrite(graph, RuleIndex([rule]))
    allowed = rule.worth * graph.nodes[graph.outputs[0]].size
    assert all(f.saved >= -allowed for f in firings), f"{rule.name} raises the cost"


def check_values(rule: RewriteRule, seeds: range = range(8)) -> None:
    """Raise AssertionError, naming the rule, unless its sides agree at its licence."""
    left, right = sides(rule)
    for seed in seeds:
        values = arrays_for(left, uniform(seed))
        a, b = left(*values), right(*values)
        if rule.licence is EXACT:
            assert a.tobytes() == b.tobytes(), f"{rule.name} is not exact: {a} != {b}"
        else:
            np.testing.assert_allclose(a, b, rtol=1e-12, err_msg=rule.name)
        if rule.licence is EXACT:
            values = arrays_for(left, special(seed))
            a, b = left(*values), right(*values)
            assert _same_bits(a, b), f"{rule.name} is not exact at special values {values}: {a} != {b}"


def _same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Equal bit for bit, except that any nan equals any nan."""
    if a.dtype.kind != "f":
        return bool((a == b).all())
    return bool(((a == b) & (np.signbit(a) == np.signbit(b)) | (np.isnan(a) & np.isnan(b))).all())


def test_rule_is_sound_in_value(rule: RewriteRule) -> None:
    check_values(rule)


# where the last extent of every operand cannot be 0 at once
EMPTY: dict[str, Any] = {
    "sum_placed": {"i": Ints((0, 1), 4), "v": Floats((0, 1)), "a": 1, "n": 4, "d": (1,), "k": True},
    "scatter_padded": {
        "z": Full((0,), 0.0),
        "i": Counted((0,)),
        "v": Floats((0,)),
        "b": (0,),
        "e": (0,),
        "n": (0,),
        "a": 0,
    },
    "flip_pad": {"x": Floats((3, 0)), "b": (1, 0), "e": (0, 0), "n": (0, 1), "a": (1,)},
    "cumsum_of_one": {"v": Floats((1, 0)), "b": (2, 0), "e": (3, 0), "n": (0, 0), "a": 0, "r": True},
    "scatter_one": {"z": Full((0, 4), 0.0), "i": Ints((0, 1), 4), "v": Floats((0, 1)), "a": 1},
}


def emptied(spec: Any) -> Any:
    """An operand or a shape like `spec` without elements; other parameters as they are."""
    if isinstance(spec, (Floats, Bools, Ints, Full)):
        return spec._replace(shape=(*spec.shape[:-1], 0)) if spec.shape else spec
    return spec


@pytest.mark.parametrize("rule", [r for r in ALL if r.licence is EXACT], ids=lambda rule: rule.name)
def test_exact_rule_holds_for_empty_arrays(rule: RewriteRule) -> None:
    example = EMPTY.get(rule.name) or {n: emptied(spec) for n, spec in rule.example.items()}
    for name in ("s", "t"):  # the names that the tables give to parameters that are shapes
        if name in example:
            example[name] = (*example[name][:-1], 0)
    left, right = sides(rule, example)
    values = arrays_for(left, uniform(0))
    a, b = left(*values), right(*values)
    assert a.size == 0
    assert (a.shape, a.dtype, a.tobytes()) == (b.shape, b.dtype, b.tobytes())


# dtypes other than those of the examples, alone and in company
OTHER_DTYPES = [np.dtype(t) for t in (bool, np.uint8, np.int64, np.float16, np.float32, np.complex64, np.complex128)]


def left_sides_of_other_dtypes(rule: RewriteRule) -> Iterator[tuple[Graph, set[str]]]:
    """The left side with another dtype for one operand, or for all, as far as its operations take that; which ones."""
    operands = [n for n, spec in rule.example.items() if _is_array(spec)]
    for dtype in OTHER_DTYPES:
        for changed in (*([n] for n in operands), operands):
            builder = Builder()
            dtypes = dict.fromkeys(changed, dtype)
            given = rule.example
            if changed is operands:  # parameters that are dtypes as well
                given = {n: dtype if isinstance(spec, np.dtype) else spec for n, spec in given.items()}
            try:
                values = [_operand(builder, n, spec, dtypes.get(n)) for n, spec in given.items()]
                result = rule.source(builder.language, *values)
            except (RuntimeError, TypeError, NotImplementedError, GraphcError):
                continue
            yield builder.graph("side", Ref(result.id)).check(), set(changed)


def of_any_dtype(aval: Aval, rng: np.random.Generator) -> np.ndarray:
    if aval.dtype.kind in "iu":
        return rng.integers(-9 * (aval.dtype.kind == "i"), 9, aval.shape).astype(aval.dtype)
    real, imaginary = rng.uniform(-2.0, 2.0, (2, *aval.shape))
    return (real > 0 if aval.dtype == bool else real + 1j * imaginary * (aval.dtype.kind == "c")).astype(aval.dtype)


def test_rules_are_tried_on_other_dtypes() -> None:
    tried = {rule.name: len(list(left_sides_of_other_dtypes(rule))) for rule in ALL}
    assert all(tried.values()) and sum(tried.values()) > 5 * len(ALL), tried


@pytest.mark.filterwarnings("ignore")  # complex numbers are cast to real ones, divisors are 0
def test_rule_leaves_other_dtypes_alone_or_is_sound(rule: RewriteRule) -> None:
    for left, changed in left_sides_of_other_dtypes(rule):
        right = simplify([rule])(left)
        for seed in range(4):
            rng = np.random.default_rng(seed)
            names = zip(left.input_names, left.input_avals(), strict=True)
            values = [of_any_dtype(a, rng) if n in changed else uniform(seed)(a) for n, a in names]
            try:
                a = left(*values)
            except (RuntimeError, TypeError, ArithmeticError, NotImplementedError):
                continue  # no such kernel
            b = right(*values)
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            if rule.licence is EXACT or a.dtype.kind not in "fc":
                assert _same_bits(a, b), f"{rule.name} is not exact on {left}: {a} != {b}"
            else:
                rtol = 64 * float(np.finfo(a.dtype).eps)
                np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol, err_msg=f"{rule.name} on {left}")


OF_ARRAYS = [r for r in ALL if r.licence is EXACT and all(map(_is_array, r.example.values()))]


@pytest.mark.parametrize("rule", OF_ARRAYS, ids=lambda rule: rule.name)
def test_exact_rule_holds_for_large_arrays(rule: RewriteRule) -> None:
    left, right = sides(rule, {n: larger(spec) for n, spec in rule.example.items()})
    values = arrays_for(left, uniform(0))
    assert left(*values).tobytes() == right(*values).tobytes()


def test_rule_is_sound_in_gradient(rule: RewriteRule) -> None:
    left, right = sides(rule)
    floating = [n for n, a in zip(left.input_names, left.input_avals(), strict=True) if a.dtype == FLOAT64]
    out = left.nodes[left.outputs[0]].aval
    if not floating or out.dtype != FLOAT64:
        return
    values = arrays_for(left, uniform(1))
    ct = np.random.default_rng(2).normal(size=out.shape)
    a = gradients(left, floating, cotangents=True)(*values, ct)
    b = gradients(right, floating, cotangents=True)(*values, ct)
    for name in floating:
        np.testing.assert_allclose(a[name], b[name], rtol=1e-10, atol=1e-12, err_msg=f"{rule.name}, gradient of {name}")


def test_a_second_run_changes_nothing(rule: RewriteRule) -> None:
    for run in (simplify([rule]), optimize):
        once = run(paying_graph(rule))
        assert run(once) == once, run


def test_strict_uses_exact_rules_only(rule: RewriteRule) -> None:
    graph = optimize(paying_graph(rule), strict=True)
    fired = {f.rule for record in graph.history for f in record.firings}
    inexact = {r.name for r in ALL if r.licence is not EXACT}
    assert not fired & inexact


def test_rule_names_are_unique() -> None:
    names = [r.name for r in ALL]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    "wrong",
    [
        RewriteRule("sub_swapped", REASSOCIATES, lambda F, x, y: x - y, lambda F, x, y: y - x),
        RewriteRule("mul_zero", EXACT, lambda F, x: x * 0, lambda F, x: x - x),
        RewriteRule("add_zero", EXACT, lambda F, x: x + 0, lambda F, x: x),
        RewriteRule("exp_log", EXACT, lambda F, x: F.exp(F.log(x)), lambda F, x: x),
    ],
    ids=lambda rule: rule.name,
)
def test_a_wrong_rule_is_caught(wrong: RewriteRule) -> None:
    with pytest.raises(AssertionError, match=wrong.name):
        check_values(wrong)
