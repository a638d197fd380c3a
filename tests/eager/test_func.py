"""Function transforms: levels do not mix, nothing leaks, and they work under each other and under a trace."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import eager as torch
import graphc
from eager.core import state
from eager.core.interpreter import IMMEDIATE, current_interpreter
from eager.core.tensor import Tensor
from eager.func import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, value_and_grad, vjp, vmap
from tests.eager.tensors import leaf, tensor, values
from tests.oracle import asked_of_torch, torch_or_skip

RNG = np.random.default_rng(0)


def cube(x: Any) -> Any:
    return (x**3).sum()


def test_value_and_grad_is_grad_and_value_the_other_way_round():
    x = tensor([1.0, 2.0])
    assert [values(t) for t in value_and_grad(cube)(x)] == [values(t) for t in grad_and_value(cube)(x)][::-1]


def test_gradients_of_every_order():
    f, x = torch.sin, tensor(0.7)
    derivatives = [f]
    for _ in range(5):
        derivatives.append(grad(derivatives[-1]))
    expected = [np.sin, np.cos, lambda x: -np.sin(x), lambda x: -np.cos(x), np.sin, np.cos]
    for mine, wanted in zip(derivatives, expected, strict=True):
        assert np.isclose(mine(x).item(), wanted(0.7))


def test_inner_levels_do_not_see_outer_inputs():
    x = tensor(3.0)
    assert grad(lambda x: x * grad(lambda y: x * y * y)(tensor(2.0)))(x).item() == 24.0  # d/dx x (2 x 2)
    assert grad(lambda x: grad(lambda y: x + y)(x))(x).item() == 0.0
    assert grad(lambda x: jvp(lambda y: x * y, (x,), (x,))[1])(x).item() == 6.0


def test_a_result_that_depends_on_nothing_outside_has_no_history():
    w = leaf(2.0)
    g = grad(lambda x: x * x + w)(tensor(3.0))
    assert g.item() == 6.0 and not g.requires_grad
    g = grad(lambda x: x * x * w)(tensor(3.0))
    assert g.requires_grad
    g.backward()
    assert w.grad is not None and w.grad.item() == 6.0


def test_nothing_is_left_when_a_transform_fails():
    def fail(x: Any) -> Any:
        raise KeyError("mine")

    for transform in (grad, vmap, jacrev, jacfwd, hessian):
        with pytest.raises(KeyError):
            transform(fail)(tensor([1.0]))
    assert state.active_transforms() == () and current_interpreter() is IMMEDIATE
    leaf([1.0]).sum().backward()  # type: ignore[attr-defined]


def test_inputs_are_dropped():
    x = tensor(RNG.normal(size=5))
    seen = weakref.ref(x)
    g = hessian(cube)(x)
    del x
    gc.collect()
    assert seen() is None and tuple(g.shape) == (5, 5)


def test_pullbacks_can_be_used_again_and_differentiated():
    x = leaf([1.0, 2.0])
    _, pull = vjp(torch.sin, x)
    assert values(pull(tensor([1.0, 0.0]))[0]) == values(pull(tensor([1.0, 0.0]))[0])
    pull(tensor([1.0, 1.0]))[0].sum().backward()
    assert np.allclose(values(x.grad), -np.sin([1.0, 2.0]))
    g = leaf([1.0, 1.0])
    vjp(torch.sin, tensor([1.0, 2.0]))[1](g)[0].sum().backward()
    assert np.allclose(values(g.grad), np.cos([1.0, 2.0]))


def test_linearize_runs_the_function_once():
    calls = []

    def f(x: Any) -> Any:
        calls.append(1)
        return x.exp()

    _, push = linearize(f, tensor([0.0, 1.0]))
    push(tensor([1.0, 0.0])), push(tensor([0.0, 1.0]))
    assert len(calls) == 1


@pytest.mark.parametrize("jacobian", [jacrev, jacfwd])
@pytest.mark.parametrize("shape", [(), (3,), (2, 2), (0,)])
def test_jacobians_of_every_shape(jacobian: Any, shape: tuple[int, ...]):
    x = tensor(RNG.normal(size=shape))
    found = jacobian(lambda x: x.sin().reshape(-1))(x)
    expected = np.diag(np.cos(x._array()).reshape(-1)).reshape(x._array().size, *shape)
    assert np.allclose(found._array(), expected) and found._d.shape == expected.shape


def test_mixed_modes_agree():
    x = tensor(RNG.normal(size=3))

    def f(x: Any) -> Any:
        return (x.tanh() * x.sum()).prod()

    reference = hessian(f)(x)._array()
    for found in (jacfwd(jacfwd(f))(x), jacrev(jacrev(f))(x), jacrev(jacfwd(f))(x), jacrev(grad(f))(x)):
        assert np.allclose(found._array(), reference)


COMPILED = {
    "grad": lambda x: grad(cube)(x),
    "grad of grad": lambda x: grad(lambda x: grad(cube)(x).sum())(x),
    "vjp": lambda x: vjp(torch.sin, x)[1](x)[0],
    "jvp": lambda x: jvp(torch.sin, (x,), (x,))[1],
    "jacrev": lambda x: jacrev(torch.sin)(x),
    "jacfwd": lambda x: jacfwd(torch.sin)(x),
    "hessian": lambda x: hessian(cube)(x),
    "per-sample": lambda x: vmap(grad(lambda a: a**3))(x),
    "jacobian of slices": lambda x: vmap(jacrev(lambda a: torch.stack([a, a * a])))(x),
}


@pytest.mark.parametrize("name", COMPILED)
def test_inside_a_compiled_function(name: str):
    x = tensor([0.5, 1.5, 2.5])
    result = graphc.compile(COMPILED[name])(x)
    assert np.allclose(result._array(), COMPILED[name](x)._array())
    assert not result.requires_grad


@pytest.mark.parametrize("name", COMPILED)
def test_gradients_through_a_compiled_transform(name: str):
    x, y = leaf([0.5, 1.5, 2.5]), leaf([0.5, 1.5, 2.5])
    graphc.compile(COMPILED[name])(x).sum().backward()
    COMPILED[name](y).sum().backward()
    assert np.allclose(values(x.grad), values(y.grad))


def test_a_compiled_function_inside_a_transform():
    compiled = graphc.compile(cube)
    x = tensor([1.0, 2.0])
    assert np.allclose(values(grad(compiled)(x)), [3.0, 12.0])
    assert np.allclose(values(hessian(compiled)(x)), np.diag([6.0, 12.0]))
    assert np.allclose(values(vmap(grad(compiled))(tensor([[1.0, 2.0], [3.0, 4.0]]))), [[3, 12], [27, 48]])


def test_threads_have_transforms_of_their_own():
    import threading

    inside: list[Any] = []

    def run(x: Tensor) -> Any:
        thread = threading.Thread(target=lambda: inside.append(state.active_transforms()))
        thread.start()
        thread.join()
        return x * 2

    vmap(run)(tensor([1.0]))
    assert inside == [()]


# Transforms of transforms, as PyTorch computes them. Each is called with `torch`, its `func`, a matrix (4, 4), a
# vector, a batch (3, 4) and a batch of batches (2, 3, 4)


def scalar(t: Any, m: Any) -> Any:
    return lambda x: (m @ x).tanh().prod() + x[0] * x[1]


def vector(t: Any, m: Any) -> Any:
    return lambda x: (m @ x).sin() * x.sum()


NESTS: dict[str, Any] = {
    "jacrev vmap grad": lambda t, F, m, v, a, b: F.jacrev(F.vmap(F.grad(scalar(t, m))))(a),
    "grad vmap jacrev": lambda t, F, m, v, a, b: F.grad(lambda a: F.vmap(F.jacrev(vector(t, m)))(a).pow(2).sum())(a),
    "vmap vmap hessian": lambda t, F, m, v, a, b: F.vmap(F.vmap(F.hessian(scalar(t, m))))(b),
    "jacfwd vmap jacrev": lambda t, F, m, v, a, b: F.jacfwd(F.vmap(F.jacrev(vector(t, m))))(a),
    "vmap jacfwd jacrev": lambda t, F, m, v, a, b: F.vmap(F.jacfwd(F.jacrev(vector(t, m))))(a),
    "vmap jacrev jacfwd": lambda t, F, m, v, a, b: F.vmap(F.jacrev(F.jacfwd(vector(t, m))))(a),
    "vmap grad hessian": lambda t, F, m, v, a, b: F.vmap(F.grad(lambda x: F.hessian(scalar(t, m))(x).pow(2).sum()))(a),
    "vmap jvp grad": lambda t, F, m, v, a, b: F.vmap(lambda x: F.jvp(F.grad(scalar(t, m)), (x,), (x,))[1])(a),
    "jvp vmap grad": lambda t, F, m, v, a, b: F.jvp(F.vmap(F.grad(scalar(t, m))), (a,), (a,))[1],
    "vmap vmap vjp": lambda t, F, m, v, a, b: F.vmap(F.vmap(lambda x: F.vjp(vector(t, m), x)[1](x)[0]))(b),
    "vmap jacrev vmap": lambda t, F, m, v, a, b: F.vmap(F.jacrev(F.vmap(vector(t, m))))(b),
    "grad vmap jvp": lambda t, F, m, v, a, b: F.grad(
        lambda x: F.vmap(lambda y: F.jvp(vector(t, m), (y * x,), (y,))[1])(a).sum()
    )(v),
    "hessian vmap": lambda t, F, m, v, a, b: F.hessian(lambda x: F.vmap(lambda y: (y * x).sin())(a).sum())(v),
    "jacfwd vmap jacfwd": lambda t, F, m, v, a, b: F.jacfwd(lambda x: F.vmap(F.jacfwd(lambda y: y * x))(a))(v),
    "jacrev three times": lambda t, F, m, v, a, b: F.jacrev(F.jacrev(F.jacrev(scalar(t, m))))(v),
    "other dims": lambda t, F, m, v, a, b: F.vmap(F.vmap(F.jacrev(vector(t, m))), in_dims=1, out_dims=2)(b),
    "two arguments": lambda t, F, m, v, a, b: F.vmap(F.jacrev(lambda x, y: x.outer(y), argnums=(0, 1)), (0, None))(
        a, v
    )[1],
    "jacrev of vmap inside vmap": lambda t, F, m, v, a, b: F.vmap(
        lambda x: F.jacrev(lambda w: F.vmap(lambda y: (w @ y).tanh())(a) * x.sum())(m)
    )(a),
    "indices of slices": lambda t, F, m, v, a, b: F.vmap(lambda i, x: F.grad(lambda x: x[i] ** 2)(x))(
        t.tensor([0, 1, 3]), a
    ),
    "views of slices": lambda t, F, m, v, a, b: F.jacrev(lambda a: a[1:, ::2] * a.sum())(a),
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # PyTorch's own, of its jvp
@asked_of_torch("name", NESTS)
def test_transforms_of_transforms(name: str):
    import eager.func

    oracle = torch_or_skip()
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=shape) for shape in ((4, 4), (4,), (3, 4), (2, 3, 4))]
    mine = NESTS[name](torch, eager.func, *map(tensor, arrays))
    theirs = NESTS[name](oracle, oracle.func, *map(oracle.tensor, arrays))
    assert not mine.requires_grad and tuple(mine.shape) == tuple(theirs.shape)
    np.testing.assert_allclose(mine._array(), theirs.numpy(), rtol=1e-9, atol=1e-12)
