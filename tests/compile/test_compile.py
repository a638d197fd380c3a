"""`graphc.compile`: the same tensors in and out, gradients, captures, guards, errors."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest

import eager as torch
import graphc
from eager.nn import functional as F

HERE = re.escape("tests/compile/test_compile.py") + r":\d+"


def close(a, b, rtol=1e-6):
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=rtol, atol=1e-7)


def loss(w, b, x, y):
    return ((x @ w + b - y) ** 2).mean()


@pytest.fixture
def data():
    torch.manual_seed(0)
    w, b = torch.randn(3, 1, requires_grad=True), torch.zeros(1, requires_grad=True)
    return w, b, torch.randn(8, 3), torch.randn(8, 1)


def test_values_and_gradients_are_eagers(data):
    w, b, x, _ = data
    fast = graphc.compile(loss)
    expected, got = loss(*data), fast(*data)
    close(got, expected)
    expected.backward()
    grads = [w.grad, b.grad]
    w.grad = b.grad = None
    got.backward()
    for tensor, grad in zip((w, b), grads, strict=True):
        close(tensor.grad, grad)
    assert x.grad is None


def test_python_is_not_run_again_on_a_hit(data):
    calls = []

    def counted(*args):
        calls.append(1)
        return loss(*args)

    fast = graphc.compile(counted)
    for _ in range(3):
        fast(*data)
    assert len(calls) == 1
    with torch.no_grad():
        fast(*data)  # another program: nothing is saved for backward
    assert len(calls) == 2


def test_gradients_accumulate_and_the_graph_is_freed(data):
    w, *_ = data
    fast = graphc.compile(loss)
    fast(*data).backward()
    once = w.grad.clone()
    result = fast(*data)
    result.backward()
    close(w.grad, once * 2)
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        result.backward()


def test_gradients_flow_from_eager_into_compiled_and_back(data):
    w, b, x, y = data
    fast = graphc.compile(loss)
    mixed = (fast(w * 2, b, torch.tanh(x), y) * 3).exp()
    plain = (loss(w * 2, b, torch.tanh(x), y) * 3).exp()
    got, expected = torch.autograd.grad(mixed, w)[0], torch.autograd.grad(plain, w)[0]
    close(got, expected, rtol=1e-4)


def test_second_order_through_a_compiled_function(data):
    w, *_ = data

    def penalty(fn):
        (g,) = torch.autograd.grad(fn(*data), w, create_graph=True)
        return torch.autograd.grad((g * g).sum(), w)[0]

    close(penalty(graphc.compile(loss)), penalty(loss))


def test_several_results_in_any_nest():
    def f(x, pair):
        return {"sum": x + pair[0], "rest": (x * pair[1], [x.sum(), 7, None])}

    fast = graphc.compile(f)
    x = torch.randn(3, requires_grad=True)
    pair = (torch.randn(3, requires_grad=True), torch.randn(3))
    for _ in range(2):
        got, expected = fast(x, pair), f(x, pair)
        assert got["rest"][1][1:] == [7, None]
        close(got["sum"], expected["sum"])
        close(got["rest"][0], expected["rest"][0])
    got["sum"].sum().backward(retain_graph=True)
    (got["rest"][0] * 2).sum().backward(retain_graph=True)
    close(x.grad, 1 + 2 * pair[1])
    combined = torch.autograd.grad(fast(x, pair)["sum"].sum() + fast(x, pair)["rest"][1][0] * 2, x)[0]
    close(combined, torch.full((3,), 3.0))


def test_parameters_are_captured_by_reference():
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    fast = graphc.compile(model)
    x = torch.randn(5, 4)
    close(fast(x), model(x))
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(1.5)
    close(fast(x), model(x))
    fast(x).sum().backward()
    got = [p.grad for p in model.parameters()]
    model.zero_grad()
    model(x).sum().backward()
    for p, g in zip(model.parameters(), got, strict=True):
        close(p.grad, g)


def test_new_shapes_and_dtypes_get_their_own_program():
    fast = graphc.compile(lambda x: (x * 2).sum())
    assert fast(torch.ones(3)).item() == 6
    assert fast(torch.ones(2, 2)).item() == 8
    assert fast(torch.ones(3, dtype=torch.float64)).dtype is torch.float64
    assert fast(torch.ones(3, dtype=torch.int64)).dtype is torch.int64
    assert "4 programs" in graphc.explain(fast)


def test_float64_is_real_float64():
    fast = graphc.compile(lambda x: x + 1e-12)
    assert fast(torch.ones(2, dtype=torch.float64))[0].item() == 1 + 1e-12


def test_python_arguments_are_static():
    fast = graphc.compile(lambda x, n, flag=False: x * n if flag else x + n)
    x = torch.ones(2)
    assert fast(x, 3).tolist() == [4, 4]
    assert fast(x, 3, flag=True).tolist() == [3, 3]
    assert fast(x, 4).tolist() == [5, 5]
    assert fast(x, 1).tolist() == [2, 2]
    assert fast(x, True).tolist() == [2, 2]


SCALE = 2.0


def test_closure_and_global_scalars_are_guarded(monkeypatch):
    offset = 1.0

    def f(x):
        return x * SCALE + offset

    fast = graphc.compile(f)
    x = torch.ones(2)
    assert fast(x).tolist() == [3, 3]
    monkeypatch.setitem(globals(), "SCALE", 5.0)
    assert fast(x).tolist() == [6, 6]
    offset = 10.0
    assert fast(x).tolist() == [15, 15]
    monkeypatch.setitem(globals(), "SCALE", 2.0)
    offset = 1.0
    assert fast(x).tolist() == [3, 3]
    assert "3 programs" in graphc.explain(fast) and "changed from" in graphc.explain(fast)


def test_attributes_and_containers_are_guarded():
    class Settings:
        scale = 1.0

        def __init__(self):
            self.offset = 1.0

    settings, weights, options = Settings(), [2.0, 3.0], {"power": 2}
    layer = torch.nn.Dropout(0.0)
    layer.gain = 1.0

    def helper(x):
        return x * weights[0] + settings.offset

    def f(x):
        return layer(helper(x)) ** options["power"] * layer.gain

    fast = graphc.compile(f)
    x = torch.ones(2)
    assert fast(x).tolist() == f(x).tolist() == [9, 9]
    for change in (
        lambda: setattr(settings, "offset", 2.0),
        lambda: weights.__setitem__(0, 5.0),
        lambda: options.__setitem__("power", 3),
        lambda: setattr(layer, "gain", 10.0),
    ):
        change()
        assert fast(x).tolist() == f(x).tolist()


def test_methods_and_decorators():
    class Scaler:
        def __init__(self, k):
            self.k = torch.tensor(k)

        @graphc.compile
        def scale(self, x):
            """Scales."""
            return x * self.k

    a, b = Scaler(2.0), Scaler(3.0)
    assert a.scale(torch.ones(2)).tolist() == [2, 2]
    assert b.scale(torch.ones(2)).tolist() == [3, 3]
    assert Scaler.scale.__doc__ == "Scales."
    assert graphc.compile(strict=True)(lambda x: x + 1)(torch.zeros(1)).item() == 1


def test_nested_compile_is_one_program():
    inner = graphc.compile(lambda x: x * 2)
    outer = graphc.compile(lambda x: inner(x) + 1)
    assert outer(torch.ones(2)).tolist() == [3, 3]
    assert "0 programs" in graphc.explain(inner)


def test_in_place_on_arguments_and_captures():
    counter = torch.zeros(1)
    inside = counter.numpy()  # someone else sees this memory

    @graphc.compile
    def f(x):
        counter.add_(1)
        x.mul_(2)
        return x + counter

    x = torch.ones(2)
    for n in range(1, 4):
        assert f(x).tolist() == [2**n + n] * 2
        assert x.tolist() == [2**n] * 2
    assert counter.item() == 3 and inside[0] == 3


def test_random_numbers_are_drawn_anew_and_are_eagers():
    fast = graphc.compile(lambda x: x * torch.rand(3) + torch.randn(3))
    x = torch.ones(3)
    torch.manual_seed(3)
    expected = [x * torch.rand(3) + torch.randn(3) for _ in range(3)]
    torch.manual_seed(3)
    for e in expected:
        close(fast(x), e)


def test_results_do_not_change_when_the_input_does():
    fast = graphc.compile(lambda x: x @ x)
    for _ in range(5):
        x = torch.ones(300, 300)
        result = fast(x)
        x.zero_()
        assert result[0, 0].item() == 300


def test_results_can_be_written_in_place():
    result = graphc.compile(lambda x: x + 1)(torch.zeros(3))
    result.add_(1)
    result[0] = 9.0
    assert result.tolist() == [9, 2, 2]


def test_out_of_range_index_is_eagers_index_error():
    table = torch.randn(4, 2)
    fast = graphc.compile(lambda i: table[i])
    close(fast(torch.tensor([0, 3])), table[torch.tensor([0, 3])])
    with pytest.raises(IndexError, match="index 4 is out of bounds for dimension 0 with size 4"):
        fast(torch.tensor([0, 4]))
    close(fast(torch.tensor([-1, 1])), table[torch.tensor([-1, 1])])


def test_integer_division_by_zero_raises_in_both_modes():
    def f(a, b):
        return a // b, a % b

    fast = graphc.compile(f)
    a = torch.tensor([5, 7])
    assert [t.tolist() for t in fast(a, torch.tensor([2, -3]))] == [t.tolist() for t in f(a, torch.tensor([2, -3]))]
    for mode in (f, fast):
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            mode(a, torch.tensor([1, 0]))


def test_float_to_int_casts_are_numpys():
    values = torch.tensor([1.7, -1.7, 300.0, -1.0, 1e10, float("nan")])
    fast = graphc.compile(lambda x: (x.int(), x.long()))
    got = fast(values)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(got[0].numpy(), values.numpy().astype(np.int32))
        np.testing.assert_array_equal(got[1].numpy(), values.numpy().astype(np.int64))


def test_errors_of_ops_are_pytorchs_and_leave_what_eager_leaves():
    state = torch.zeros(2)

    @graphc.compile
    def f(x, y):
        state.add_(1)
        return x + y

    with pytest.raises(RuntimeError, match="The size of tensor a"):
        f(torch.ones(3), torch.ones(4))
    assert state.tolist() == [1, 1]
    assert f(torch.ones(3), torch.ones(3)).tolist() == [2, 2, 2]


def test_signature_cache_is_bounded():
    fast = graphc.compile(lambda x, n: x + n)
    for n in range(70):
        fast(torch.zeros(1), n)
    assert len(fast._specializations) <= 64


def test_graph_and_source_of_the_latest_call(data):
    fast = graphc.compile(loss)
    with pytest.raises(RuntimeError, match="not been called yet"):
        _ = fast.graph
    with torch.no_grad():
        fast(*data)
    assert "square" in str(fast.graph)
    assert "jnp.matmul(x, w)" in fast.source


def test_only_callables_are_compiled():
    with pytest.raises(TypeError, match="expects a callable, got int"):
        graphc.compile(3)


def test_cross_entropy_and_convolution_agree():
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Linear(64, 5),
    )
    x, y = torch.randn(6, 1, 8, 8), torch.randint(0, 5, (6,))
    fast = graphc.compile(lambda x, y: F.cross_entropy(model(x), y))
    model.zero_grad()
    F.cross_entropy(model(x), y).backward()
    expected = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    fast(x, y).backward()
    for p, g in zip(model.parameters(), expected, strict=True):
        close(p.grad, g, rtol=1e-4)


def test_results_of_one_call_may_be_walked_one_after_the_other() -> None:
    fast = graphc.compile(lambda a, b: (a.sin(), b.cos()))
    a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    y, z = fast(a, b)
    y.sum().backward()
    z.sum().backward()
    assert torch.allclose(a.grad, a.cos()) and torch.allclose(b.grad, -b.sin())
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        z.sum().backward()


@pytest.mark.parametrize("detached", [False, True])
def test_backward_through_what_was_written_since_raises_as_in_eager(detached):
    def f(x):
        z, y = x * 2, x.sin()
        w = z * z
        (z.detach() if detached else z).add_(1)
        return y.sum(), w.sum(), w[1:]

    fast = graphc.compile(f)
    for run in (f, fast, fast):
        x = torch.ones(3, requires_grad=True)
        y, w, view = run(x)
        assert w.requires_grad and view.requires_grad
        for t in (w, view.sum()):
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                t.backward()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            torch.autograd.grad(w, x, create_graph=True)
        assert x.grad is None
        y.backward()
        assert torch.allclose(x.grad, x.cos())


def test_a_view_is_freed_with_what_it_shows():
    def f(x):
        y = x * x
        y.sum().backward()
        return y[1:]

    fast = graphc.compile(f)
    for run in (f, fast, fast):
        view = run(torch.ones(3, requires_grad=True))
        with pytest.raises(RuntimeError, match="backward through the graph a second time"):
            view.sum().backward()


def test_modules_of_eager_may_be_imported_first_while_tracing() -> None:
    code = """
import eager, graphc
print(graphc.compile(lambda x: eager.nn.functional.relu(x) + 0 * eager.rand(2))(eager.ones(2)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "tensor([1., 1.])\n"


def test_a_buffer_written_by_the_program_does_not_stand_in_the_way_of_backward() -> None:
    results = []
    for wrap in (lambda f: f, graphc.compile):
        torch.manual_seed(0)
        norm, x = torch.nn.BatchNorm1d(3), torch.randn(5, 3, requires_grad=True)
        forward = wrap(norm)
        for _ in range(2):
            (g,) = torch.autograd.grad(forward(x).pow(3).sum(), x, create_graph=True)
            g.pow(2).sum().backward()
        results.append((x.grad, norm.running_mean, norm.weight.grad))
    for a, b in zip(*results, strict=True):
        close(a, b, rtol=1e-4)
