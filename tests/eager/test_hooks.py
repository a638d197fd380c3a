"""Hooks: order, replacement, removal; errors in them; under compile."""

import numpy as np
import pytest

import eager as torch
import graphc


def leaf(*values):
    return torch.tensor(values, requires_grad=True)


def test_a_failed_hook_leaves_the_graph_usable():
    x = leaf(1.0, 2.0)
    y = x * x
    total = (y * 3).sum()
    handle = y.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        total.backward(retain_graph=True)
    assert x.grad is None
    other = leaf(5.0)
    (other * 2).backward()
    assert other.grad.tolist() == [2.0]
    handle.remove()
    total.backward()
    assert x.grad.tolist() == [6.0, 12.0]


@pytest.mark.parametrize("place", ["tensor", "before", "after", "accumulated"])
def test_a_failed_hook_anywhere(place):
    def fail(*_):
        raise ValueError(place)

    x = leaf(3.0)
    y = x * x
    handle = {
        "tensor": lambda: y.register_hook(fail),
        "before": lambda: y.grad_fn.register_prehook(fail),
        "after": lambda: y.grad_fn.register_hook(fail),
        "accumulated": lambda: x.register_post_accumulate_grad_hook(fail),
    }[place]()
    with pytest.raises(ValueError, match=place):
        y.backward(retain_graph=True)
    x.grad = None
    handle.remove()
    y.backward()
    assert x.grad.tolist() == [6.0]


def test_backward_inside_a_hook():
    inner = leaf(2.0)
    x = leaf(1.0)
    y = x * 1

    @torch.enable_grad()
    def hook(g):
        (inner * inner * g.detach()).backward()

    y.register_hook(hook)
    (y * 5).backward()
    assert x.grad.tolist() == [5.0] and inner.grad.tolist() == [20.0]


def test_hook_values_equal_under_grad_and_backward():
    def run(differentiate):
        x = leaf(1.0, -2.0)
        y = x.tanh()
        seen = []
        y.register_hook(lambda g: seen.append(g.tolist()))
        y.register_hook(lambda g: g * 0.5)
        return differentiate((y * y).sum(), x), seen

    def by_backward(total, x):
        total.backward()
        return x.grad.tolist()

    def by_grad(total, x):
        return torch.autograd.grad(total, x)[0].tolist()

    assert run(by_backward) == run(by_grad)


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.filterwarnings("ignore:Using backward")
def test_hooks_record_where_the_gradients_can_be_differentiated(create_graph):
    x, recorded = leaf(1.0, 2.0), []
    see = lambda *_: recorded.append(torch.is_grad_enabled())
    y = x * x
    x.register_hook(see)
    x.register_post_accumulate_grad_hook(see)
    y.grad_fn.register_prehook(see)
    y.grad_fn.register_hook(see)
    y.backward(torch.ones(2), create_graph=create_graph)
    assert recorded == [create_graph] * 4 and torch.is_grad_enabled()


@pytest.mark.on_numpy
def test_a_hook_takes_the_step_of_its_parameter():
    def trained(transform):
        x = leaf(1.0, 2.0)
        x.register_post_accumulate_grad_hook(lambda p: p.add_(p.grad, alpha=-0.5))

        @transform
        def step():
            x.grad = None
            (x * x).sum().backward()

        for _ in range(3):
            step()
        return x.tolist()

    assert trained(lambda fn: fn) == trained(graphc.compile) == [0.0, 0.0]


def test_tensor_hooks_are_captured():
    def f(x):
        y = x * x
        y.register_hook(lambda g: g * 10)
        (y * 3).sum().backward()
        return x.grad

    plain, compiled = leaf(1.0, 2.0), leaf(1.0, 2.0)
    expected = f(plain)
    step = graphc.compile(lambda x: (lambda y: (y.register_hook(lambda g: g * 10), (y * 3).sum())[1])(x * x))
    step(compiled).backward()
    np.testing.assert_allclose(compiled.grad.numpy(), expected.numpy())


def test_multi_grad_hook_counts_what_is_visited():
    a, b, c = leaf(1.0), leaf(2.0), leaf(3.0)
    seen = []
    torch.autograd.graph.register_multi_grad_hook((a, b, c), seen.append)
    (a * b).sum().backward()
    assert [g is None for g in seen[0]] == [False, False, True]
    (a * b * c).sum().backward()
    assert [g is None for g in seen[1]] == [False, False, False]


def test_removing_a_hook_twice_does_nothing():
    x = leaf(1.0)
    handle = x.register_hook(lambda g: g * 2)
    handle.remove()
    handle.remove()
    (x * 1).backward()
    assert x.grad.tolist() == [1.0]


def test_a_hook_may_remove_itself():
    x = leaf(1.0)
    handles = []

    def once(g):
        handles[0].remove()
        return g * 7

    handles.append(x.register_hook(once))
    for _ in range(2):
        (x * 1).backward()
    assert x.grad.tolist() == [8.0]


@pytest.mark.parametrize("create_graph", [False, True])
def test_hooks_of_a_node_with_several_outputs_see_the_gradient_of_each(create_graph):
    x = leaf(1.0, 2.0, 3.0, 4.0)
    first, _ = (x * 1).split(2)
    seen = []
    first.grad_fn.register_prehook(lambda given: (given[0] * 10, given[1]))
    first.grad_fn.register_hook(lambda shares, given: seen.append((shares[0].tolist(), given[0].tolist(), given[1])))
    torch.autograd.grad((first * 2).sum(), x, retain_graph=True, create_graph=create_graph)
    assert seen == [([20.0, 20.0, 0.0, 0.0], [20.0, 20.0], None)]
    (first * 2).sum().backward()
    assert x.grad.tolist() == [20.0, 20.0, 0.0, 0.0] and len(seen) == 2


def test_retain_grad_of_a_number_that_a_reduction_made():
    x = leaf(1.0, 2.0)
    total = torch.dot(x, x)
    total.retain_grad()
    seen = []
    total.register_hook(lambda g: seen.append(g * 2))
    (grad,) = torch.autograd.grad((total * x).sum(), total)
    assert grad.item() == total.grad.item() == 3.0
    assert seen[0].item() == 6.0


def test_what_a_hook_after_accumulation_returns_is_an_error():
    x = leaf(1.0)
    handle = x.register_post_accumulate_grad_hook(lambda t: t)
    (x * 2).sum().backward()
    handle.remove()
    handle = x.register_post_accumulate_grad_hook(lambda t: 1)
    with pytest.raises(TypeError, match=r"^expected Variable, but hook returned 'int'$"):
        (x * 2).sum().backward()
    handle.remove()
    x.register_post_accumulate_grad_hook(lambda t: t.grad)
    with pytest.raises(RuntimeError, match=r"^Tensor post accumulate grad hooks should return None\.$"):
        (x * 2).sum().backward()
