"""The short way to a program: it must notice whatever the long way notices."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import numpy as np
import pytest

import eager as torch
import graphc


def warm(f, *args):
    """`f`, whose short way has been taken."""
    for _ in range(4):
        f(*args)
    assert f._fast_call is not None
    return f


@pytest.fixture
def pair():
    torch.manual_seed(0)  # of other numbers the sums may cancel
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
    before = str(fast.explain())
    with graphc.disable():
        fast(*pair)
    assert str(fast.explain()) == before
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


# --- programs that write, or may stop


def counter():
    """A function that writes a captured tensor, and that tensor."""
    state = torch.zeros(3)

    def f(x):
        state.add_(x)
        return state * 2

    return f, state


@pytest.mark.parametrize(
    "disturb",
    [
        lambda state: None,
        lambda state: state.numpy(),  # NumPy's memory from now on, and seen by others
        lambda state: state.tolist(),
        lambda state: state.fill_(5.0),
        lambda state: setattr(state, "data", torch.ones(3)),
        lambda state: state.data.resize_(3),
        lambda state: state.requires_grad_(False),
        lambda state: state[1:].mul_(2.0),
    ],
)
def test_state_is_right_whoever_has_looked_at_it_or_written_it(disturb):
    (f, state), (g, expected) = counter(), counter()
    x = torch.ones(3)
    fast = warm(graphc.compile(f), x)
    for _ in range(4):
        g(x)
    kept = [state.detach(), expected.detach()]  # another tensor of the same memory
    for _ in range(3):
        disturb(state), disturb(expected)
        assert fast(x).tolist() == g(x).tolist()
        assert state.tolist() == expected.tolist()
    assert kept[0].tolist() == kept[1].tolist()


def test_state_of_another_shape_is_another_program():
    f, state = counter()
    fast = warm(graphc.compile(f), torch.ones(3))
    state.data = torch.ones(2, 3)
    assert fast(torch.ones(3)).tolist() == [[4.0] * 3] * 2 and traced_times(fast) == 2


def test_an_argument_that_is_the_state_is_noticed():
    (f, state), (g, expected) = counter(), counter()
    fast = warm(graphc.compile(f), torch.ones(3))
    for _ in range(4):
        g(torch.ones(3))
    assert fast(state).tolist() == g(expected).tolist()
    assert fast(state[:]).tolist() == g(expected[:]).tolist()
    assert state.tolist() == expected.tolist()


def test_a_failed_check_raises_and_leaves_what_eager_leaves():
    table, seen = torch.arange(4.0), torch.zeros(1)

    def f(i):
        seen.add_(1)
        return table[i]

    fast = warm(graphc.compile(f), torch.tensor([1, 2]))
    with pytest.raises(IndexError):
        fast(torch.tensor([1, 9]))
    assert seen.tolist() == [5.0]
    assert fast(torch.tensor([0, 3])).tolist() == [0.0, 3.0] and seen.tolist() == [6.0]


def test_another_path_is_taken_and_draws_the_same_numbers():
    def f(x):
        noise = torch.rand(2)
        return noise if x.sum() > 0 else -noise

    fast = warm(graphc.compile(f), torch.ones(2))
    for x in (torch.ones(2), -torch.ones(2), torch.ones(2), -torch.ones(2)):
        torch.manual_seed(0)
        found = fast(x).tolist()
        torch.manual_seed(0)
        assert found == f(x).tolist()


def test_while_another_thread_writes_it_waits():
    f, state = counter()
    fast = warm(graphc.compile(f), torch.ones(3))
    done = []
    with fast._writing:
        thread = threading.Thread(target=lambda: done.append(fast(torch.ones(3))))
        thread.start()
        thread.join(0.2)
        assert not done
    thread.join()
    assert done[0].tolist() == [10.0] * 3 and state.tolist() == [5.0] * 3


@pytest.mark.on_numpy
def test_sizes_that_take_turns_have_a_short_way_each(monkeypatch):
    scale = SimpleNamespace(by=2.0)
    f = graphc.compile(lambda x: x * scale.by)
    sizes = [torch.ones(n) for n in (2, 3, 4)]
    for _ in range(4):
        for x in sizes:
            f(x)
    long = []
    monkeypatch.setattr(type(f), "_find", lambda self, call, path=(): long.append(call))
    for x in sizes * 2:
        assert f(x).tolist() == [2.0] * len(x)
    assert not long
    monkeypatch.undo()
    scale.by = 3.0
    assert [f(x).tolist() for x in sizes] == [[3.0] * len(x) for x in sizes]
