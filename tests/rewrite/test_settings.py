"""What the optimizer is told to do, and to leave out: by level, by licence, by name."""

from __future__ import annotations

import numpy as np
import pytest

import eager as torch
import graphc
from graphc.ir import Graph
from graphc.passes import default_passes, mechanisms
from graphc.passes.settings import LOWERING, Settings

N = 40


def chain(a, b, x):
    return (a @ b @ x) * 1.0 + x


def many(a, b, x):
    y = torch.log(1 + torch.exp(x.neg().neg()))
    return (
        a @ b @ x + y * x * x + y * x * x,
        (a @ b)[2:4].sum(0),
        torch.linalg.inv(a) @ x,
        torch.diag(x) @ b,
        x * y / y,
    )


def args():
    torch.manual_seed(0)
    return torch.randn(N, N) + 9 * torch.eye(N), torch.randn(N, N), torch.randn(N)


def ops(graph: Graph) -> set[str]:
    return {node.op.name for node in graph.operations()}


def fired(graph: Graph) -> set[str]:
    return {f.rule for record in graph.history for f in record.firings}


def test_level_0_changes_nothing():
    graph = graphc.trace(many, *args())
    assert graphc.optimize(graph, level=0) is graph
    assert default_passes(Settings(level=0)) == ()


def test_level_1_is_exact():
    graph = graphc.trace(chain, *args())
    done = graphc.optimize(graph, level=1)
    assert "mul" in ops(graph) and ops(done) == {"matmul", "add"}
    assert [r.name for r in done.history] == ["simplify"]
    assert np.array_equal(graph(*args()), done(*args()))
    assert graphc.optimize(graph, level=1) == graphc.optimize(graph, strict=True)


def test_higher_levels_do_no_less():
    graph = graphc.trace(many, *args())
    found = [{r.name for r in graphc.optimize(graph, level=k).history} for k in range(4)]
    assert found[0] < found[1] <= found[2] <= found[3]
    assert "sums of products" in found[2] - found[1]


def test_a_wider_search_finds_more():
    """A saving of a twentieth is none by default."""

    a, p, x = torch.ones(300, 300), torch.ones(300, 2), torch.ones(300)
    graph = graphc.trace(lambda a, b, p, q, x: a @ b + torch.outer(p @ q.T @ x, x), a, a, p, p, x)
    usual, wide = (graphc.optimize(graph, level=k) for k in (2, 3))
    assert "sums of products" not in {r.name for r in usual.history}
    assert "sums of products" in {r.name for r in wide.history}


@pytest.mark.parametrize("name", [name for name, kind in mechanisms().items() if kind == "pass"])
def test_each_pass_can_be_left_out(name: str):
    graph = graphc.trace(many, *args())
    done = graphc.optimize(graph, without=name)
    assert name not in {r.name for r in done.history}
    if name != "simplify":
        assert all(name != other for other, _ in default_passes(Settings(without=frozenset([name]))))
    else:
        assert not fired(done)
    for a, b in zip(done(*args()), graph(*args()), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3)


def test_each_rule_can_be_left_out():
    graph = graphc.trace(lambda x: torch.log(1 + torch.exp(x.neg().neg())), torch.ones(3))
    assert fired(graphc.optimize(graph)) == {"neg_neg", "log_of_one_and_exp"}
    assert fired(graphc.optimize(graph, without=["neg_neg"])) == {"log_of_one_and_exp"}
    assert "softplus" not in ops(graphc.optimize(graph, without=("neg_neg", "log_of_one_and_exp", "log1p", "softplus")))


def test_the_bodies_of_loops_are_optimized_likewise():
    graph = graphc.trace(lambda x: graphc.fori_loop(0, 3, lambda k, c: torch.tanh(c.neg().neg()), x), torch.ones(3))
    for without, count in ((("neg_neg", "like terms"), 2), ((), 0)):
        (loop,) = (n for n in graphc.optimize(graph, without=without).operations() if "body" in n.params)
        assert str(loop.params["body"]).count("neg(") == count


@pytest.mark.parametrize("asked", ["like term", ("sums", "neg_nég"), "nonsense of which nothing is like"])
def test_unknown_names_are_refused_with_those_that_are_alike(asked):
    expected = "mechanism named .*(like terms|neg_neg|See graphc.mechanisms)"
    for ask in (graphc.optimize, graphc.compile):
        with pytest.raises(ValueError, match=expected):
            ask(graphc.trace(torch.neg, torch.ones(1)), without=asked)


@pytest.mark.parametrize("level", [-1, 4, True, "2", 1.0])
def test_unknown_levels_are_refused(level):
    with pytest.raises(ValueError, match="level must be one of 0, 1, 2, 3"):
        graphc.optimize(graphc.trace(torch.neg, torch.ones(1)), level=level)


def test_compiled_functions_take_the_same():
    for level in range(4):
        fast = graphc.compile(many, level=level)
        for a, b in zip(fast(*args()), many(*args()), strict=True):
            torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-3)
    one, other = graphc.compile(chain), graphc.compile(chain, without=("sums of products", "mul_one"))
    for f in (one, other):
        f(*args())
    assert "mul(" not in one.source and "mul(" in other.source


def test_gradients_at_level_0():
    x = torch.ones(3, requires_grad=True)
    graphc.compile(lambda x: (x * x).exp().sum(), level=0)(x).backward()
    y = torch.ones(3, requires_grad=True)
    (y * y).exp().sum().backward()
    torch.testing.assert_close(x.grad, y.grad)


def test_choices_of_the_lowering_can_be_left_out():
    a = torch.randn(80, 80) + 20 * torch.eye(80)
    images, weights = torch.randn(2, 3, 8, 8), torch.randn(4, 3, 3, 3)
    programs = {
        "shared factorizations": ("factorize", lambda a, x, w: torch.linalg.inv(a) @ (a[0] * 2)),
        "transposed operands": ("dot_general", lambda a, x, w: a.T @ a[0]),
        "channels last": ("channels_last", lambda a, x, w: torch.nn.functional.conv2d(x, w)),
        "products by blocks": (
            "concatenate",
            lambda a, x, w: (lambda b: torch.tril(b) @ b)(torch.tanh(a.repeat(6, 6))),
        ),
        "sums by columns": ("lax.slice", lambda a, x, w: torch.tanh(a.reshape(-1, 4)).sum(1)),
    }
    for name, (sign, f) in programs.items():
        graph = graphc.optimize(graphc.trace(f, a, images, weights))
        assert sign in graphc.lower(graph).source, name
        assert sign not in graphc.lower(graph, without=(name,)).source, name
    assert {*programs, "packs"} == set(LOWERING)
