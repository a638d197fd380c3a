"""Placeholders, graphs outside of functions, `gradients`, `Session` and `function`."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import eager as torch
import graphc
from eager.core import state
from eager.core.interpreter import IMMEDIATE, current_interpreter
from eager.nn import functional as F
from graphc.errors import CaptureError, GraphError


def linear():
    """(x, t, w, b, loss) of a linear model."""
    w, b = torch.randn(3, 1), torch.zeros(1)
    x = graphc.placeholder((4, 3), torch.float32, name="x")
    t = graphc.placeholder((4, 1), name="t")
    return x, t, w, b, ((x @ w + b - t) ** 2).mean()


def test_fetches_are_what_eager_computes_in_any_nest():
    x, t, w, b, loss = linear()
    dw, db = graphc.gradients(loss, [w, b])
    given, wanted = torch.randn(4, 3), torch.randn(4, 1)
    with graphc.Session() as s:
        got, grads = s.run((loss, {"w": dw, "b": db}), feed_dict={x: given, t: wanted})
    v, c = w.clone().requires_grad_(), b.clone().requires_grad_()
    expected = ((given @ v + c - wanted) ** 2).mean()
    expected.backward()
    assert torch.allclose(got, expected) and torch.allclose(grads["w"], v.grad) and torch.allclose(grads["b"], c.grad)


def test_what_is_fed_decides_on_the_program():
    x, z = graphc.placeholder((), name="x"), graphc.placeholder((), name="z")
    h = x * 2
    y = h + z
    with graphc.Session() as s:
        assert s.run(y, {x: 1.0, z: 10.0}).item() == 12
        assert s.run(y, {h: 1.0, z: 10.0}).item() == 11
        assert s.run(y, {z: 1.0, x: 10.0}).item() == 21


def test_variables_are_read_as_they_are_at_each_run():
    x, w = graphc.placeholder((2,)), torch.ones(2)
    y = x * w
    with graphc.Session() as s:
        assert s.run(y, {x: [1, 2]}).tolist() == [1, 2]
        w.mul_(3)
        assert s.run(y, {x: [1, 2]}).tolist() == [3, 6]


def test_gradients_are_of_anything_in_between_and_zero_where_nothing_depends():
    x, z = graphc.placeholder((2,), name="x"), graphc.placeholder((2,), name="z")
    h = x * x
    y = h.sin()
    dh, dz = graphc.gradients([y, h], [h, z])
    d2 = graphc.gradients(graphc.gradients(y, x), x, grad_ys=torch.tensor([1.0, 0.0]))
    with graphc.Session() as s:
        a = np.array([0.5, 2.0], np.float32)
        found = s.run([dh, dz, d2], {x: a})
    np.testing.assert_allclose(found[0], np.cos(a * a) + 1, rtol=1e-5)
    assert found[1].tolist() == [0, 0]
    np.testing.assert_allclose(found[2], [2 * np.cos(a[0] ** 2) - 4 * a[0] ** 2 * np.sin(a[0] ** 2), 0], rtol=1e-4)


def test_what_is_computed_from_variables_alone_belongs_to_the_graph():
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    early = w * 2
    x = graphc.placeholder((2,), name="x")
    penalty = (w * w).sum()
    loss = (x * w).sum() + penalty
    step = graphc.function([x], loss, [(w, w - 0.5 * graphc.gradients(loss, w))])
    assert step([0.0, 0.0]).item() == 5 and w.tolist() == [0, 0] and step([0.0, 0.0]).item() == 0
    with pytest.raises(CaptureError, match="was computed from others that require grad"):
        x * early


def test_any_tensor_of_the_graph_may_be_fed():
    x = graphc.placeholder((2,), name="x")
    h = x.exp()
    y = h + 1
    with graphc.Session() as s:
        assert s.run(y, {h: [1.0, 2.0]}).tolist() == [2, 3]


def test_function_updates_variables_together_after_the_run():
    a, b = torch.tensor(1.0, requires_grad=True), torch.tensor(2.0, requires_grad=True)
    x = graphc.placeholder((), name="x")
    f = graphc.function([x], a + b + x, updates={a: b * x, b: a * x})
    assert f(10.0).item() == 13 and (a.item(), b.item()) == (20, 10)
    assert f(1.0).item() == 31 and (a.item(), b.item()) == (10, 20)


def test_training_in_the_static_style_is_training_in_the_other():
    torch.manual_seed(0)
    x, t, w, b, loss = linear()
    v, c = w.clone().requires_grad_(), b.clone().requires_grad_()
    grads = graphc.gradients(loss, [w, b])
    step = graphc.function([x, t], loss, [(p, p - 0.1 * g) for p, g in zip((w, b), grads, strict=True)])
    optimizer = torch.optim.SGD([v, c], lr=0.1)
    given, wanted = torch.randn(4, 3), torch.randn(4, 1)
    for _ in range(20):
        expected = ((given @ v + c - wanted) ** 2).mean()
        optimizer.zero_grad()
        expected.backward()
        optimizer.step()
        assert torch.allclose(step(given, wanted), expected)


def test_random_numbers_are_drawn_at_each_run():
    x = graphc.placeholder((100,), name="x")
    f = graphc.function([x], F.dropout(x, 0.5))
    torch.manual_seed(3)
    first, second = f(np.ones(100)), f(np.ones(100))
    torch.manual_seed(3)
    assert torch.equal(first, F.dropout(torch.ones(100), 0.5)) and not torch.equal(first, second)


def test_what_has_values_is_computed_at_once_beside_a_graph():
    x = graphc.placeholder((2,))
    w = torch.ones(2, requires_grad=True)
    loss = (w * 2).sum()
    loss.backward()
    assert w.grad.tolist() == [2, 2] and float(loss) == 4
    with torch.no_grad():
        w.mul_(2)
    w.grad.zero_()
    assert w.tolist() == [2, 2] and w.grad.tolist() == [0, 0]
    v = torch.ones(2)
    v[0] = 5
    v += 1
    assert v.tolist() == [6, 2] and float(v.sum()) == 8 and torch.randn(2).shape == (2,)
    fast = graphc.compile(lambda v: v * 3)
    assert fast(torch.ones(2)).tolist() == [3, 3] and "1 program" in fast.explain()
    assert (x * fast(torch.ones(2))).shape == (2,)


def test_several_results_of_an_operation_are_computed_beside_a_graph_too():
    w = torch.tensor([[3.0, 1.0], [4.0, 2.0]], requires_grad=True)
    x = graphc.placeholder((2, 2), name="x")
    q, r = torch.linalg.qr(w)  # before anything of the graph
    values, places = (x @ r).max(1)
    loss = values.sum() + (q * x).sum()
    fed = np.float32([[1, 2], [-3, 4]])
    with graphc.Session() as session:
        found = session.run([loss, places, *graphc.gradients(loss, [x, w])], {x: fed})
    y = torch.tensor(fed, requires_grad=True)
    q, r = torch.linalg.qr(w)
    values, places = (y @ r).max(1)
    loss = values.sum() + (q * y).sum()
    for a, b in zip(found, [loss, places, *torch.autograd.grad(loss, [y, w])], strict=True):
        np.testing.assert_allclose(np.asarray(a), b.detach().numpy(), rtol=1e-5)


@pytest.fixture
def _no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def _sum(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    return x.sum() + n


def _loop(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    return graphc.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 2), (torch.tensor(0), x))[1]


def _steps(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    return graphc.scan(lambda c, v: (c * n + v, c), torch.tensor(0.0), x)[0]


def _branches(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    return graphc.cond(n > 1, lambda: x.sum() * n, lambda: x.sum() - n)


@pytest.mark.usefixtures("_no_collector")
@pytest.mark.parametrize("fn", [_sum, _loop, _steps, _branches])
def test_the_graph_is_gone_with_its_placeholders(fn: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]):
    closed = state.closed
    x, n = graphc.placeholder((2,)), graphc.placeholder(())
    y = graphc.gradients(fn(x, n).sum(), x)
    assert current_interpreter() is not IMMEDIATE
    del x, n, y
    assert current_interpreter() is IMMEDIATE and state.closed == closed


def test_each_thread_has_a_graph_of_its_own():
    x = graphc.placeholder((), name="x")
    found = []

    def other():
        y = graphc.placeholder((), name="x")
        with graphc.Session() as s:
            found.append(s.run(y * 2, {y: 4.0}).item())

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    with graphc.Session() as s:
        assert found == [8] and s.run(x * 3, {x: 1.0}).item() == 3


def test_errors_name_what_is_missing_or_does_not_fit():
    x, t, w, _, loss = linear()
    with graphc.Session() as s:
        with pytest.raises(GraphError, match=r"must feed a value for placeholder 't' with dtype and shape f32\[4,1\]"):
            s.run(loss, {x: np.ones((4, 3))})
        with pytest.raises(ValueError, match=r"value of shape \(3, 4\) for 'x', which has shape \(4, 3\)"):
            s.run(loss, {x: np.ones((3, 4)), t: np.ones((4, 1))})
        with pytest.raises(TypeError, match="dtype complex128 for 'x'"):
            s.run(loss, {x: np.ones((4, 3), complex), t: np.ones((4, 1))})
        with pytest.raises(TypeError, match="keys of feed_dict"):
            s.run(loss, {"x": 1})
        with pytest.raises(TypeError, match="a fetch must be a Tensor"):
            s.run("loss")
    with pytest.raises(RuntimeError, match="closed Session"):
        s.run(loss, {x: np.ones((4, 3)), t: np.ones((4, 1))})
    assert graphc.function([again := graphc.placeholder((), name="x")], again * 2).graph.input_names == ("x_1",)
    with pytest.raises(TypeError, match="extent must be an int or None"):
        graphc.placeholder((1.5,))
    with pytest.raises(ValueError, match="negative"):
        graphc.placeholder((-1,))
    with pytest.raises(CaptureError, match="truth value"):
        bool(loss > 0)
    with pytest.raises(CaptureError, match=r"graphc\.gradients"):
        (loss * w.requires_grad_()).sum().backward()
    with pytest.raises(CaptureError, match="updates="):
        torch.zeros(()).copy_(loss)
    with pytest.raises(ValueError, match="has the new value"):
        graphc.function([x, t], loss, [(torch.zeros(2), loss)])
    with pytest.raises(ValueError, match="updated twice"):
        graphc.function([x], (), [(z := torch.zeros(4, 3), x), (z, x)])
    with pytest.raises(TypeError, match="takes 2 values"):
        graphc.function([x, t], loss)(1)
    with pytest.raises(RuntimeError, match="no gradient: it is not floating"):
        graphc.gradients(x, graphc.placeholder((), torch.int64))
    with pytest.raises(GraphError, match="do not depend on any placeholder"):
        graphc.gradients(torch.ones(1), x)


def test_control_flow_on_placeholders():
    x, n = graphc.placeholder((3,), name="x"), graphc.placeholder((), torch.int64, name="n")
    w = torch.tensor(2.0, requires_grad=True)
    last, rows = graphc.scan(lambda c, v: (c * w + v, c), torch.tensor(0.0), x)
    chosen = graphc.cond(x.sum() > 0, lambda v: v * w, lambda v: -v, x)
    grown = graphc.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * w), (torch.tensor(0), torch.tensor(1.0)))[
        1
    ]
    dw = graphc.gradients(last + grown, w)
    with graphc.Session() as s:
        found = s.run([last, rows, chosen, grown, dw], {x: [1.0, 2.0, 3.0], n: 3})
        assert [t.tolist() for t in found] == [11, [0, 1, 4], [2, 4, 6], 8, (2 * 2 + 2) + 3 * 4]
        assert s.run(chosen, {x: [-1.0, 0.0, 0.0]}).tolist() == [1, 0, 0]


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x * x * g


def test_tensors_with_values_are_not_of_the_graph():
    """What runs through the interpreter without an operation of its own: Functions, transforms, masks, retained."""
    kept = graphc.placeholder((3,), torch.float32)
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = Cube.apply(x)
    y.retain_grad()
    y.sum().backward()
    assert (y.tolist(), y.grad.tolist(), x.grad.tolist()) == ([1.0, 8.0, 27.0], [1.0] * 3, [3.0, 12.0, 27.0])
    assert torch.func.grad(lambda a: (a**2).sum())(torch.ones(2)).tolist() == [2.0, 2.0]
    assert torch.func.hessian(lambda a: (a**3).sum())(torch.ones(1)).tolist() == [[6.0]]
    assert x.detach()[torch.tensor([True, False, True])].tolist() == [1.0, 3.0]
    out, _ = torch.nn.LSTM(2, 3)(torch.ones(4, 1, 2))
    out.sum().backward()
    of_both = torch.func.grad(lambda a: (a * a * kept).sum())(torch.ones(3))
    assert graphc.Session().run([of_both, Cube.apply(kept)], {kept: [1.0, 2.0, 3.0]})[0].tolist() == [2.0, 4.0, 6.0]
