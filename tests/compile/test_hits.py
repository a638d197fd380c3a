"""The short way to a program: it must notice whatever the long way notices."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import eager as torch
import graphc


def warm(f, *args):
    """`f`, whose short way has been taken."""
    for _ in range(4):
        f(*args)
    assert f._hit is not None
    return f


@pytest.fixture
def pair():
    return torch.randn(3), torch.randn(3)


def traced_times(f) -> int:
    return len(f._log)


@pytest.mark.parametrize(
    "other",
    [
        lambda x, y: (torch.randn(4), torch.randn(4)),
        lambda x, y: (x.double(), y.double()),
        lambda x, y: (x, x),
        lambda x, y: (x, 2.0),
        lambda x, y: (torch.nn.Parameter(x), y),
        lambda x, y: (x.clone().requires_grad_(), y),
        lambda x, y: (x, y.tolist()[0]),
    ],
)
def test_another_signature_goes_the_long_way(pair, other):
    def f(x, y):
        return x * y + (x is y)

    fast = warm(graphc.compile(f), *pair)
    args = other(*pair)
    result, expected = fast(*args), f(*args)
    np.testing.assert_allclose(result.detach().numpy(), expected.detach().numpy(), rtol=1e-6)
    assert (result.dtype, result.requires_grad, type(result)) == (
        expected.dtype,
        expected.requires_grad,
        type(expected),
    )
    assert traced_times(fast) == 2


def test_wrong_numbers_of_arguments_raise(pair):
    fast = warm(graphc.compile(lambda x, y: x + y), *pair)
    with pytest.raises(TypeError):
        fast(pair[0])
    with pytest.raises(TypeError):
        fast(*pair, pair[0])


def test_keywords_go_the_long_way(pair):
    fast = warm(graphc.compile(lambda x, y, negate=False: -x if negate else x + y), *pair)
    assert fast(*pair, negate=True).tolist() == (-pair[0]).tolist()


def test_modes_and_python_values_are_noticed(pair):
    options = SimpleNamespace(scale=2.0)
    fast = warm(graphc.compile(lambda x, y: x * options.scale + y), *pair)
    options.scale = 3.0
    np.testing.assert_allclose(fast(*pair).numpy(), (pair[0] * 3 + pair[1]).numpy(), rtol=1e-6)
    w = torch.randn(3, requires_grad=True)
    fast = warm(graphc.compile(lambda x: x * w), pair[0])
    with torch.no_grad():
        assert not fast(pair[0]).requires_grad
    assert fast(pair[0]).requires_grad


def test_disabling_and_inference_mode_are_noticed(pair):
    ran = []
    fast = warm(graphc.compile(lambda x, y: ran.append(1) or x + y), *pair)
    before = fast.explain()
    with graphc.disable():
        fast(*pair)
    assert fast.explain() == before
    with torch.inference_mode():
        assert fast(*pair).is_inference()


def test_inside_another_trace_it_is_part_of_that_graph(pair):
    inner = warm(graphc.compile(lambda x, y: x * y), *pair)
    outer = graphc.compile(lambda x, y: inner(x, y).sum())
    assert outer(*pair).item() == pytest.approx((pair[0] * pair[1]).sum().item(), rel=1e-5)
    assert len(outer.graph.inputs) == 2


def test_an_argument_that_a_run_makes_require_grad_is_another_signature_next_time():
    w = torch.ones(3, requires_grad=True)

    def f(x):
        x.mul_(w)
        return x * 2

    fast = graphc.compile(f)
    for _ in range(4):
        a, b = torch.ones(3), torch.ones(3)
        fast(a), f(b)
        assert (a.tolist(), a.requires_grad) == (b.tolist(), b.requires_grad)


def test_calls_are_counted_and_memory_of_the_caller_is_read_before_the_call_returns(pair):
    fast = warm(graphc.compile(lambda x: x + 1), torch.zeros(100_000))
    x = torch.zeros(100_000)
    for _ in range(10):
        result = fast(x)
        x.fill_(7.0)
        assert result.max().item() == 1.0
        x.fill_(0.0)
    assert fast._latest.calls == 14
