"""Programs of NumPy: every op bit for bit as its kernel gives it, in memory that nobody else sees.

Derived from the registry: a new op is tested by being declared.
"""

from __future__ import annotations

import re
import threading
import types

import numpy as np
import pytest

import eager as torch
import graphc
from graphc.errors import GraphError
from graphc.ir import Builder, Graph, Ref
from graphc.lowering import lower
from graphc.lowering.host import HostExecutable
from graphc.lowering.host.buffer_planning import Plan
from graphc.ops import OPS, Op
from graphc.ops.aval import Aval, results_of
from graphc.ops.dtypes import FLOAT16, FLOAT32
from graphc.ops.interpret import operand_dtype
from tests.ops.cases import Case, each_case, every_case


def graph_of(case: Case, given: list[np.ndarray], after: bool) -> Graph:
    """One op; with `after`, between ops whose values are in planned memory, and read once more at the end."""
    builder = Builder()
    inputs = [builder.input(f"x{k}", Aval(a.shape, a.dtype)) for k, a in enumerate(given)]
    numeric = [after and a.dtype.kind in "fc" for a in given]
    operands = [
        builder.apply(OPS["neg"], [builder.apply(OPS["neg"], [x], {})], {}) if turned else x
        for x, turned in zip(inputs, numeric, strict=True)
    ]
    found = list(results_of(builder.apply(case.op, operands, case.sample.params)))
    if after:
        found += [builder.apply(OPS["neg"], [s], {}) for s in found if s.dtype.kind in "fc"]
        found += [builder.apply(OPS["add"], [x, x], {}) for x, turned in zip(operands, numeric, strict=True) if turned]
    return builder.graph("f", tuple(Ref(s.id) for s in found)).check()


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def check(case: Case, rng: np.random.Generator, dtype: np.dtype, after: bool) -> None:
    given = case.arrays(rng, dtype)
    graph = graph_of(case, given, after)
    kept, program = [a.copy() for a in given], lower(graph, backend="numpy")
    expected = [np.array(a, order="C") for a in graph(*given)]
    found = program(*given)
    for a, b in zip(found, expected, strict=True):
        assert same_bits(a, b), f"{a!r} is not {b!r}"
        assert a.flags.c_contiguous and a.flags.writeable
    for k, a in enumerate(found):
        assert not any(np.shares_memory(a, b) for b in [*given, *found[:k]])
    for a in found:
        a.fill(0)  # is nobody else's: a second call gives the same
    assert all(map(same_bits, program(*given), expected))
    assert all(map(same_bits, given, kept))


@each_case(every_case())
def test_values(case: Case, rng: np.random.Generator):
    for after in (False, True):
        check(case, rng, FLOAT32, after)


def takes_halves(op: Op) -> bool:
    try:
        operand_dtype(op, [(FLOAT16, 2)] * len(op.args))
    except NotImplementedError:
        return False
    return op.pointwise


@each_case(c for c in every_case() if takes_halves(c.op))
def test_halves(case: Case, rng: np.random.Generator):
    check(case, rng, FLOAT16, after=True)


# --- memory


def long_chain(n: int = 4) -> tuple[HostExecutable, list[np.ndarray]]:
    def f(x, y):
        z = torch.tanh(x @ y)
        return ((z * z + 1).exp().sum(0) + z.sum(1)) * z

    arrays = [np.random.default_rng(0).standard_normal((n, n)).astype(np.float32) for _ in "xy"]
    return lower(graphc.trace(f, *map(torch.tensor, arrays)), backend="numpy"), arrays


def test_memory_is_shared_by_what_is_not_alive_together():
    program, _ = long_chain()
    places = re.findall(r"b\d+", next(line for line in program.source.splitlines() if "= memory" in line))
    assert 0 < len(places) <= 4 < len(program.graph) - 4


def test_a_place_is_used_again_when_it_is_free():
    plan, small, large = Plan(), Aval((3,), FLOAT32), Aval((9,), FLOAT32)
    first = plan.take(small)
    assert plan.take(small) != first
    plan.put_back(first)
    assert plan.take(small) == first
    plan.put_back(first)
    assert plan.places[plan.take(large)].block == plan.places[first].block
    assert plan.size == 9 * 4 + 3 * 4
    assert [a.shape for a in plan.maker()()] == [place.aval.shape for place in plan.places]


def test_threads_have_memory_of_their_own():
    program, (x, y) = long_chain(64)
    inputs = [[x * k, y] for k in range(1, 5)]
    expected = [program(*given) for given in inputs]
    wrong = []

    def work(k: int) -> None:
        for _ in range(200):
            if not same_bits(program(*inputs[k]), expected[k]):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_an_error_leaves_memory_usable():
    def f(x, i):
        return torch.exp(x)[i] * 2

    graph = graphc.trace(f, torch.ones(3), torch.tensor([0, 1]))
    program, x = lower(graph, backend="numpy"), np.ones(3, np.float32)
    expected = program(x, np.array([0, 1]))
    with pytest.raises(IndexError, match=r"test_host\.py"):
        program(x, np.array([0, 3]))
    assert same_bits(program(x, np.array([0, 1])), expected)


# --- what cannot be lowered


def test_refusals():
    def f(x, i):
        return graphc.cond(x.sum() > 0, lambda x: x[i], lambda x: x[i] * 2, x)

    graph = graphc.trace(f, torch.ones(3), torch.tensor([0, 1]))
    with pytest.raises(GraphError, match="run-time checks"):
        lower(graph, backend="numpy")
    with pytest.raises(ValueError, match="backend must be one of jax, numpy"):
        lower(graph, backend="torch")
    with pytest.raises(ValueError, match="computes on the CPU"):
        lower(graph, device="gpu", backend="numpy")


def test_graphs_inside_graphs():
    def f(x):
        _, ys = graphc.scan(lambda c, a: (c + a, c * a), x[0], x)
        return ys.sum() + graphc.while_loop(lambda c: c.sum() < 100, lambda c: c * 2, x).sum()

    x = torch.arange(1.0, 5.0)
    graph = graphc.trace(f, x)
    assert same_bits(lower(graph, backend="numpy")(x), np.asarray(graph(x)))


@pytest.mark.parametrize("name", ["c", "c_proj", "op_x", "ok_1", "loss_reduced", "x_reduce", "k1", "np", "run"])
def test_inputs_may_have_any_names(name: str) -> None:
    """Also those that begin as the names of the source's own do: no suffix makes others of them."""
    x, y = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
    kept = types.SimpleNamespace(**{name: x})
    compiled = graphc.compile(eval(f"lambda {name}, kept: {name} * kept.{name}"), backend="numpy")
    assert compiled(y, kept).tolist() == [3.0, 8.0]
    twice = Graph.parse(f"def f({name}: f32[2], v1: f32[2]):\n    v2: f32[2] = mul({name}, v1)\n    return v2\n")
    assert lower(twice, backend="numpy")(x.numpy(), y.numpy()).tolist() == [3.0, 8.0]
