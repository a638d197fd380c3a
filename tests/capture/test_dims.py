"""Symbolic sizes: arithmetic, what is kept of it, the rules of every op on them, and graphs that have them."""

from __future__ import annotations

import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from graphc import errors
from graphc.ir import Builder, Graph, Node, Ref
from graphc.ir.dimensions import concrete, dims_of
from graphc.ops import OPS
from graphc.ops.aval import Aval
from graphc.ops.dims import Sizes, cached, has_dim, indices, is_dim, plain, substituted
from graphc.ops.forms import value_of
from graphc.ops.interpret import with_defaults
from graphc.ops.strides import reshaped
from tests.ops import checks
from tests.ops.cases import Case, each_case, every_case

F32 = np.dtype(np.float32)


@pytest.fixture
def sizes():
    kept = Sizes()
    with kept.recording():
        yield kept


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("2 * n + n", "3*s0"), ("n - n", "0"), ("(4 * n) // 2", "2*s0"), ("(4 * n) % n", "0"), ("n // 2", "s0 // 2"),
        ("-(-(n - 1) // 1)", "s0 - 1"), ("math.prod((n, 3, m))", "3*s0*s1"), ("sum([n, m, 1])", "s0 + s1 + 1"),
        ("1 / n", "1 / s0"), ("math.ceil(n / 2)", "ceil(s0 / 2)"), ("n * 0.5", "s0 * 0.5"), ("n ** 2", "s0*s0"),
        ("1 % n", "1"), ("-1 % n", "s0 - 1"), ("abs(n)", "s0"), ("round(n / 4)", "round(s0 / 4)"),
        ("divmod(n, 4)[1]", "s0 % 4"),
    ],
)  # fmt: skip
def test_arithmetic_keeps_the_form_and_asks_nothing(sizes, expression, text):
    n, m = sizes.new(6), sizes.new(5)
    found = eval(expression, {"n": n, "m": m, "math": math})
    expected = eval(expression, {"n": 6, "m": 5, "math": math})
    assert (found.text if is_dim(found) else str(found)) == text
    assert plain(found) == expected
    assert not sizes.conditions


@given(
    st.integers(2, 50),
    st.integers(2, 50),
    st.integers(-5, 5),
    st.integers(1, 7),
    st.integers(2, 60),
    st.integers(2, 60),
)
def test_a_form_has_the_value_that_python_computes(a, b, c, d, x, y):
    kept = Sizes()
    with kept.recording():
        n, m = kept.new(a), kept.new(b)
        made = [n * m + c, (n + c) // d, (n * d + c) % d, n * m // n, (n - m) * (n + m), n / d, abs(n - m), n**2 // d]
    again = [x * y + c, (x + c) // d, (x * d + c) % d, x * y // x, (x - y) * (x + y), x / d, abs(x - y), x**2 // d]
    assert [substituted(made_, {"s0": x, "s1": y}) for made_ in made] == again


@given(
    st.integers(2, 9),
    st.integers(2, 9),
    st.integers(-4, 12),
    st.sampled_from(["==", "!=", "<", "<=", ">", ">="]),
    st.integers(2, 9),
    st.integers(2, 9),
)
def test_a_comparison_that_leaves_no_condition_is_so_for_all_sizes(a, b, c, relation, x, y):
    kept = Sizes()
    with kept.recording():
        n, m = kept.new(a), kept.new(b)
        for f in (
            lambda n, m: (n, c),
            lambda n, m: (n * 2, n + c),
            lambda n, m: (n // 2, n),
            lambda n, m: (n * m, m + c),
        ):
            before = len(kept.conditions)
            compare = eval(f"lambda u, v: u {relation} v")
            found = compare(*f(n, m))
            assert found == compare(*f(a, b))
            kept_now = list(kept.conditions)[before:]
            if all(condition.holds({"s0": x, "s1": y}) for condition in kept_now):
                assert found == compare(*f(x, y))


@pytest.mark.parametrize(
    "take",
    [
        lambda n: list(range(n)), lambda n: [0] * n, lambda n: f"{n}", str, hash, lambda n: {n: 1},
        lambda n: n in {7: 1},
        int, float,
        lambda n: np.zeros((n, 2)), lambda n: [1, 2, 3][:n], math.sqrt, lambda n: np.int64(2) * n,
        lambda n: np.broadcast_shapes((n, 1), (1, 3)),
        lambda n: n.bit_length(), np.asarray, bytes,
        lambda n: math.gcd(n, 4),
    ],
)  # fmt: skip
def test_what_takes_the_number_fixes_it(sizes, take):
    n = sizes.new(6)
    take(n)
    assert sizes.broken({"s0": 6}) is None
    assert str(sizes.broken({"s0": 7})) == "s0 == 6"
    assert sizes.fixed() == {"s0"} and sizes.taken


def test_conditions_are_kept_once_with_their_line():
    lines = iter(["a.py:1", "b.py:2", "c.py:3"])
    kept = Sizes(lambda: next(lines))
    with kept.recording():
        n = kept.new(20)
        for _ in range(3):
            assert n > 10
            assert n != 4
    assert {str(c): where for c, where in kept.conditions.items()} == {"10 < s0": "a.py:1", "s0 != 4": "b.py:2"}
    assert kept.broken({"s0": 11}) is None and str(kept.broken({"s0": 10})) == "10 < s0"
    assert str(kept.broken({"s0": 1})) == "s0 >= 2"
    assert n > 30 == False or not kept.broken({"s0": 25})  # after the trace nothing is kept


def test_zero_and_one_are_no_symbolic_sizes(sizes):
    for n in (0, 1):
        with pytest.raises(ValueError, match="0 and 1 are sizes of their own"):
            sizes.new(n)
    n = sizes.new(2)
    assert n != 1 and n > 0 and n and n != 0
    assert not sizes.conditions


def test_a_size_of_a_placeholder_cannot_be_taken():
    kept = Sizes(lambda: "here.py:3", known=False)
    with kept.recording():
        n = kept.new(5040)
        assert (str(n), f"{n * 2}", repr((n, 3))) == ("s0", "2*s0", "(s0, 3)")
        with pytest.raises(errors.CaptureError, match=r"size s0 of a placeholder .*here.py:3"):
            range(n)
    with kept.at({"s0": 3}):
        assert list(range(n)) == [0, 1, 2]


def test_caches_neither_lose_a_form_nor_keep_one(sizes):
    made = []

    @cached(8)
    def doubled(shape):
        made.append(shape)
        return tuple(2 * n for n in shape)

    assert doubled((6,)) == (12,)
    n = sizes.new(6)
    assert doubled((n,))[0].text == "2*s0"
    assert type(doubled((6,))[0]) is int and len(made) == 2 and not sizes.conditions


@given(
    st.integers(2, 12),
    st.none() | st.integers(-15, 15),
    st.none() | st.integers(-15, 15),
    st.none() | st.integers(1, 4),
)
def test_slices_of_a_symbolic_size(n, start, stop, step):
    kept = Sizes()
    with kept.recording():
        found = indices(slice(start, stop, step), kept.new(n))
    assert substituted(found, {"s0": n}) == slice(start, stop, step).indices(n)


@given(st.data())
def test_strides_of_a_reshaped_view_are_numpys(data):
    shape = tuple(data.draw(st.lists(st.integers(1, 4), max_size=4)))
    array = np.zeros(shape, np.int8).transpose(data.draw(st.permutations(range(len(shape)))))
    array = array[tuple(slice(None, None, data.draw(st.integers(1, 2))) for _ in array.shape)]
    divisors = [d for d in range(1, array.size + 1) if array.size % d == 0]
    first = data.draw(st.sampled_from(divisors))
    second = data.draw(st.sampled_from([d for d in divisors if (array.size // first) % d == 0]))
    wanted = (first, second, array.size // first // second)
    try:
        view = np.reshape(array, wanted, copy=False)
    except ValueError:
        view = None
    found = reshaped(array.shape, array.strides, wanted)
    assert (found is None) == (view is None)
    if found is not None:
        assert all(n == 1 or a == b for n, a, b in zip(wanted, found, view.strides, strict=True))


# --- every rule


def _symbolic(aval: Aval, n: int, dim) -> Aval:
    return Aval(tuple(dim if k == n else k for k in aval.shape), aval.dtype)


@each_case(every_case(by_part=True))
def test_rules_keep_the_form(case: Case, rng):
    """Each extent of the operands in turn becomes symbolic; at another size it gives what the forms do."""
    op, params = case.op, with_defaults(case.op, case.sample.params)
    avals = [Aval(x.shape, x.dtype) for x in checks.promoted(op, case.arrays(rng))]
    for n in sorted({k for a in avals for k in a.shape if k >= 2}):
        kept = Sizes()
        with kept.recording():
            dim = kept.new(n)
            given_params = {k: _with(v, n, dim) if k in ("shape", "size", "stop") else v for k, v in params.items()}
            if op.definition is not None:
                builder = Builder()
                symbols = [builder.input("x", _symbolic(a, n, dim)) for a in avals]
                found = op.definition(builder.language, *symbols, **given_params).aval
            else:
                found = op.rule.infer(op, [_symbolic(a, n, dim) for a in avals], given_params)
        assert substituted(found.shape, {"s0": n}) == op.rule.infer(op, avals, params).shape
        assert not kept.taken, f"the rule of {op.name} takes a size as a plain number"
        for other in (n + 1, n + 7, 2 * n):
            if kept.broken({"s0": other}) is not None:
                continue
            moved = {k: substituted(v, {"s0": other}) for k, v in given_params.items()}
            there = [Aval(substituted(_symbolic(a, n, dim).shape, {"s0": other}), a.dtype) for a in avals]
            try:
                expected = op.rule.infer(op, there, moved)
            except Exception:
                continue  # a parameter that only fits the sample's sizes
            assert substituted(found.shape, {"s0": other}) == expected.shape, op.name


def test_a_rule_that_loses_the_form_is_found():
    """The check above, on a planted rule."""
    kept = Sizes()
    with kept.recording():
        dim = kept.new(6)
        Aval(tuple(np.empty((dim, 2)).shape), F32)
    assert kept.taken


def _with(value, n, dim):
    return tuple(dim if k == n and type(k) is int else k for k in value) if isinstance(value, tuple) else value


# --- graphs


def graph():
    kept = Sizes()
    with kept.recording():
        n = kept.new(6)
        b = Builder()
        F = b.language
        x = b.input("x", Aval((n, 4), F32))
        y = F.reshape(x, shape=(4 * n,)) / n
        y = F.slice(y, start=(0,), stop=(n // 2 + 1,), step=(1,))
        assert n > 3
    return b.graph("f", (Ref(y.id), n * 2))


def test_a_graph_for_certain_sizes():
    g = graph()
    for n in (4, 6, 9):
        found = concrete(g, {"s0": n})
        found.check()
        assert not any(has_dim(node.aval.shape) for node in found.nodes.values())
        x = np.arange(4.0 * n, dtype=np.float32).reshape(n, 4)
        value, twice = found(x)
        np.testing.assert_array_equal(value, (x.reshape(-1) / np.float32(n))[: n // 2 + 1])
        assert twice == 2 * n and type(twice) is int
    with pytest.raises(errors.GraphError, match="condition 3 < s0"):
        concrete(g, {"s0": 3})
    with pytest.raises(errors.GraphError, match="s0 has no value"):
        concrete(g, {})


def test_a_graph_that_does_not_fit_other_sizes_is_refused():
    g = graph()
    node = next(node for node in g.nodes.values() if node.op.name == "reshape")
    planted = type(node)(node.id, node.op, node.inputs, {"shape": (24,)}, node.results, node.where)
    with pytest.raises(errors.GraphError, match="reshape"):
        concrete(g.replace({**g.nodes, node.id: planted}, g.result), {"s0": 9})


def test_text_of_a_graph_with_symbolic_sizes():
    g = graph()
    text = str(g)
    assert "x: f32[s0,4]" in text and "where: (lt(3, s0)," in text and "shape=(mul(4, s0),)" in text
    again = Graph.parse(text.replace("mul(2, s0))", "12)"))
    assert str(again.check()) == text.replace("mul(2, s0))", "12)")
    assert concrete(again, {"s0": 9}).canonical[1] == concrete(g, {"s0": 9}).canonical[1]


@pytest.mark.parametrize(
    "size",
    ["pow(9, 999999999)", "pow(s0, 999)", "add(1, 2)", "floordiv(s0, 0)", "-s0", "truediv(s0, 2)", "foo(s0)", "mul()"],
)
def test_hostile_sizes_are_errors(size):
    with pytest.raises(errors.ParseError):
        Graph.parse(f"def f(x: f32[{size}]):\n    return x\n")


def test_large_sizes_are_read_or_refused_at_once():
    many = f"add({', '.join(f's{i}' for i in range(64))})"
    text = "s0"
    for _ in range(20):
        text = f"floordiv(mul({many}, {text}), 2)"
    with pytest.raises(errors.ParseError, match="more than 1000 parts"):
        Graph.parse(f"def f(x: f32[{text}]):\n    return x\n")
    text = "s0"
    for _ in range(80):
        text = f"floordiv({text}, 2)"
    Graph.parse(f"def f(x: f32[{text}]):\n    return x\n")


def test_each_of_several_results_has_its_sizes():
    kept = Sizes()
    with kept.recording():
        n = kept.new(6)
        node = Node(0, OPS["scan"], (), {}, (Aval((n,), F32), Aval((), F32)))
    assert [value_of(dim.form, {"s0": 3}) for dim in dims_of(node)] == [3]
