"""The engine: depth, memory, threads; every op's gradient to second order; ops that a program declares for itself."""

from __future__ import annotations

import gc
import inspect
import subprocess
import sys
import threading
import tracemalloc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from eager import autograd
from eager.core.tensor import Tensor
from eager.engine.language import E, source
from eager.surface import operators
from graphc.ops import OPS, Op
from graphc.ops.aval import results_of
from graphc.ops.rules import pointwise_float
from tests.eager.tensors import leaf, tensor, total, values
from tests.ops.cases import Case, each_case, every_case
from tests.ops.checks import difference_quotient, random_cotangent

DEEP = 50_000
SMOOTH = every_case(differentiable=True)
FIRST = list({case.op.name: case for case in reversed(SMOOTH)}.values())


# Depth


def test_deep_chain_with_saved_values_and_create_graph():
    x = leaf(1.0)
    y = x
    for _ in range(DEEP):
        y = y * 1.0
    (g,) = autograd.grad(y, x, create_graph=True)
    assert g.item() == 1.0


# Memory


@pytest.fixture
def without_gc():
    gc.disable()
    yield
    gc.enable()


def test_graph_is_freed_without_the_collector(without_gc: None):
    x = leaf(np.ones(1000))
    y = E.tanh(x * x)
    loss = total(y)
    memory = weakref.ref(y._array())
    del y
    assert memory() is not None, "tanh saves its result"
    loss.backward()
    assert memory() is None, "backward has not freed what tanh saved"
    gone = weakref.ref(loss)
    del loss
    assert gone() is None, "a tensor lives on in a cycle"


def test_dropped_graph_is_freed_without_backward(without_gc: None):
    x = leaf(np.ones(1000))
    y = x * x
    memory = weakref.ref(y._array())
    z = total(E.exp(y))
    del y, z
    assert memory() is None


def test_leaf_is_freed_while_its_graph_lives(without_gc: None):
    x = leaf([1.0])
    y = total(x * 2)
    gone = weakref.ref(x)
    del x
    assert gone() is None
    y.backward()


def test_training_loop_keeps_no_memory(without_gc: None):
    w = leaf(np.ones((64, 64)), np.float64)

    def step() -> None:
        w.grad = None
        total(E.tanh(E.matmul(w, w))).backward()

    step()
    tracemalloc.start()
    try:
        step()
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(20):
            step()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < w._array().nbytes


def test_write_counters_are_dropped_with_their_memory():
    from eager.core import state

    x = tensor([1.0, 2.0])
    x.add_(1.0)
    known = len(state._writes)
    del x
    gc.collect()
    assert len(state._writes) < known


# Threads


def in_threads(work: Callable[[int], Any], count: int = 4) -> list[Any]:
    results: list[Any] = [None] * count

    def run(i: int) -> None:
        try:
            results[i] = work(i)
        except BaseException as error:  # handed to the caller's thread
            results[i] = error

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


def test_threads_compute_their_own_gradients():
    def work(i: int) -> float:
        x = leaf(float(i))
        for _ in range(200):
            x.grad = None
            (x * x * x).backward()
        return x.grad.item()

    assert in_threads(work) == [3.0 * i * i for i in range(4)]


def test_threads_accumulate_into_one_leaf():
    x = leaf(np.zeros(8))

    def work(i: int) -> None:
        for _ in range(100):
            total(x * 2.0).backward()

    in_threads(work)
    assert values(x.grad) == [800.0] * 8


def test_grad_mode_is_local_to_the_thread():
    x = leaf(1.0)
    with autograd.no_grad():
        assert in_threads(lambda i: (x * x).requires_grad) == [True] * 4
        assert not (x * x).requires_grad


def test_division_by_zero_is_silent_in_every_thread():
    # in a fresh interpreter: pytest's own warning filters would stand before those that eager may install
    code = (
        "import threading, numpy as np, eager\n"
        "def work():\n"
        "    x = eager.Tensor._wrap(np.zeros(2, np.float32))\n"
        "    x / x\n"
        "work()\n"
        "thread = threading.Thread(target=work); thread.start(); thread.join()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


# Every op, through Tensors


def wanted(case: Case, arrays: list[np.ndarray]) -> list[int]:
    return [i for i, a in enumerate(arrays) if case.op.arg_of(i) in case.op.vjp and a.dtype.kind in "fc"]


def real_total(t: Any) -> Any:
    """The sum of all elements, of complex ones of their real parts: what a weight multiplies in comes out real."""
    return total(E.real(t) if t._dtype().kind == "c" else t)


def numbers_of(case: Case, tensors: list[Any]) -> list[Any]:
    """The results of the op that are inexact."""
    found = results_of(getattr(E, case.op.name)(*tensors, **case.sample.params))
    return [t for t in found if t._dtype().kind in "fc"]


def first_gradients(
    case: Case, arrays: list[np.ndarray], weights: list[np.ndarray], live: list[int], **how: Any
) -> Any:
    """The leaves, and the gradients of the weighted sum of the op's results with respect to them."""
    tensors = [leaf(a.copy()) if i in live else tensor(a) for i, a in enumerate(arrays)]
    leaves = [tensors[i] for i in live]
    first, *others = (real_total(t * tensor(w)) for t, w in zip(numbers_of(case, tensors), weights, strict=True))
    return leaves, autograd.grad(sum(others, first), leaves, **how)


def weights_for(case: Case, arrays: list[np.ndarray], rng: np.random.Generator) -> list[np.ndarray]:
    return [random_cotangent(rng, t._array()) for t in numbers_of(case, list(map(tensor, arrays)))]


def assert_close(what: str, found: Any, expected: np.ndarray) -> None:
    assert found is not None, f"{what} is missing"
    assert np.allclose(found._array(), expected, rtol=5e-6, atol=5e-7), (
        f"{what}: {found._array().tolist()}, by finite differences {expected.tolist()}"
    )


@each_case(SMOOTH)
def test_gradient(case: Case, rng: np.random.Generator):
    """The backward pass on arrays, and that on tensors (`create_graph`)."""
    arrays = case.arrays(rng)
    live, weights = wanted(case, arrays), weights_for(case, arrays, rng)

    def loss(i: int) -> Callable[[np.ndarray], Any]:
        def at(x: np.ndarray) -> Any:
            moved = [tensor(x if k == i else a) for k, a in enumerate(arrays)]
            results = zip(numbers_of(case, moved), weights, strict=True)
            return sum(np.sum(t._array() * weight).real for t, weight in results)

        return at

    quotients = [difference_quotient(loss(i), arrays[i]) for i in live]
    for create_graph in (False, True):
        _, grads = first_gradients(case, arrays, weights, live, create_graph=create_graph)
        for i, g, quotient in zip(live, grads, quotients, strict=True):
            assert_close(f"{case.id}: gradient of operand {i}, create_graph={create_graph}", g, quotient)


@each_case(FIRST)
def test_second_gradient(case: Case, rng: np.random.Generator):
    check_second_gradient(case, rng)


@pytest.mark.deep
@each_case([case for case in SMOOTH if case not in FIRST])
def test_second_gradient_of_every_case(case: Case, rng: np.random.Generator):
    check_second_gradient(case, rng)


def check_second_gradient(case: Case, rng: np.random.Generator) -> None:
    """The gradient of the gradients' weighted sum: finite differences of the first-order path that runs on arrays."""
    arrays = case.arrays(rng)
    live, weights = wanted(case, arrays), weights_for(case, arrays, rng)
    outer = [random_cotangent(rng, arrays[i]) for i in live]
    leaves, grads = first_gradients(case, arrays, weights, live, create_graph=True)
    mixed = tensor(0.0)
    for g, v in zip(grads, outer, strict=True):
        mixed = mixed + real_total(g * tensor(v))

    def penalty(i: int) -> Callable[[np.ndarray], Any]:
        def at(x: np.ndarray) -> Any:
            moved = [x if k == i else a for k, a in enumerate(arrays)]
            _, at_x = first_gradients(case, moved, weights, live)
            return sum(np.sum(g._array() * v).real for g, v in zip(at_x, outer, strict=True))

        return at

    found = autograd.grad(mixed, leaves, allow_unused=True) if mixed.requires_grad else [None] * len(leaves)
    for i, g in zip(live, found, strict=True):
        expected = difference_quotient(penalty(i), arrays[i])
        if g is None:
            assert np.allclose(expected, 0, atol=1e-6), f"{case.id}: no second gradient of operand {i}, but {expected}"
        else:
            assert_close(f"{case.id}: second gradient of operand {i}", g, expected)


# Ops declared by a program


@pytest.fixture
def cube(declare: Callable[..., Op]) -> Op:
    return declare(
        "cube_of_test", "input", impl=lambda xp, x: x * x * x, rule=pointwise_float,
        vjp=dict(input=lambda F, g, input: g * (3 * input * input)), ref=lambda x: x**3,
    )  # fmt: skip


def test_a_function_tells_its_arguments_before_it_is_first_called(cube: Op):
    assert list(inspect.signature(operators.functions["cube_of_test"]).parameters) == ["input"]


def test_new_op_is_a_function_and_a_method(cube: Op):
    x = leaf([2.0, 3.0])
    for result in (operators.functions["cube_of_test"](x), x.cube_of_test(), E.cube_of_test(x)):  # type: ignore[attr-defined]
        assert values(result) == [8.0, 27.0]
        assert result.grad_fn.name() == "CubeOfTestBackward0"
    assert "def cube_of_test(input, *, out=None):" in source(cube)


def test_new_op_has_gradients_of_any_order(cube: Op):
    x = leaf([2.0, 3.0])
    (first,) = autograd.grad(total(E.cube_of_test(x)), x, create_graph=True)
    (second,) = autograd.grad(total(first), x, create_graph=True)
    (third,) = autograd.grad(total(second), x)
    assert [values(d) for d in (first, second, third)] == [[12.0, 27.0], [12.0, 18.0], [6.0, 6.0]]


def test_new_op_has_an_in_place_form(cube: Op):
    x = tensor([2.0, 3.0])
    memory = x._array()
    assert x.cube_of_test_() is x  # type: ignore[attr-defined]
    assert x._array() is memory
    assert values(x) == [8.0, 27.0]
    y = leaf([2.0, 3.0])
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        y.cube_of_test_()  # type: ignore[attr-defined]
    z = y * 1.0
    z.cube_of_test_()  # type: ignore[attr-defined]
    total(z).backward()
    assert values(y.grad) == [12.0, 27.0]


def test_new_op_promotes_and_broadcasts(declare: Callable[..., Op]):
    declare(
        "hypot_of_test", "input other", impl="hypot", rule=pointwise_float, ref="numpy.hypot",
        vjp=dict(input=lambda F, g, r, input: g * input / r, other=lambda F, g, r, other: g * other / r),
    )  # fmt: skip
    x, y = leaf([[3.0], [6.0]], np.float32), leaf([4.0, 8.0], np.float32)
    total(E.hypot_of_test(x, y)).backward()
    assert np.allclose(x.grad._array(), [[0.6 + 3 / 73**0.5], [6 / 52**0.5 + 0.6]])
    assert E.hypot_of_test(tensor([3], np.int64), 4)._dtype() == np.float32
    assert values(x.hypot_of_test(4.0))[0] == [5.0]  # type: ignore[attr-defined]


def test_redeclared_op_replaces_its_generated_code(declare: Callable[..., Op]):
    for factor in (2.0, 3.0):
        declare("scale_of_test", "input", impl=lambda xp, x, factor=factor: x * factor, rule=pointwise_float, ref=None)
        assert values(E.scale_of_test(tensor([1.0]))) == [factor]
        assert values(tensor([1.0]).scale_of_test()) == [factor]  # type: ignore[attr-defined]
        OPS.remove("scale_of_test")


def test_declared_op_is_gone_after_its_test():
    assert not hasattr(Tensor, "cube_of_test")
    assert "cube_of_test" not in OPS


def test_the_source_of_what_is_no_op_is_refused_in_words():
    for name in ("lerp", "no_such_name"):
        with pytest.raises(LookupError, match=f"there is no op '{name}'"):
            source(name)
