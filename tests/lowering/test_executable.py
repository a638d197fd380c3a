"""`graphc.lower`: calling, checking arguments, donation, devices, strictness, run-time checks."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import eager as torch
import graphc


def test_arrays_and_tensors_go_in_and_the_result_keeps_its_structure():
    graph = graphc.trace(lambda x, y: {"sum": x + y, "rest": (x * y, [x, None])}, torch.zeros(3), torch.zeros(3))
    run = graphc.lower(graph, device="cpu")
    a = np.arange(3, dtype=np.float32)
    for x in (a, torch.tensor(a)):
        result = run(x, np.ones(3, np.float32))
        np.testing.assert_array_equal(np.asarray(result["sum"]), a + 1)
        np.testing.assert_array_equal(np.asarray(result["rest"][0]), a)
        assert result["rest"][1][1] is None


def test_inputs_in_another_order_than_the_arguments_stay_in_it():
    graph = graphc.trace(lambda *xs, **named: xs[0] - named["y"], torch.zeros(2), y=torch.zeros(2))
    run = graphc.lower(graph)
    x, y = jnp.ones(2), jnp.zeros(2)
    for _ in range(2):
        assert float(run(x, y=y)[0]) == 1
    run = graphc.lower(graphc.trace(lambda *xs: xs[1] - xs[0], torch.zeros(2), torch.zeros(2)))
    for a, b, wanted in ((x, x, 0), (x, y, -1), (y, x, 1), (x, y, -1)):
        assert float(run(a, b)[0]) == wanted


def test_arguments_that_do_not_fit_are_named():
    run = graphc.lower(graphc.trace(lambda x, w: x @ w, torch.zeros(2, 3), torch.zeros(3)))
    with pytest.raises(TypeError, match=r"takes 2 arrays \(x, w\) but 1 were given"):
        run(np.zeros((2, 3), np.float32))
    with pytest.raises(ValueError, match=r"argument 'w' must be f32\[3\], got float64\[3\]"):
        run(np.zeros((2, 3), np.float32), np.zeros(3))
    x = jnp.zeros((2, 3))
    run(x, jnp.zeros(3))  # what comes after a call with JAX's own arrays goes straight to the program
    assert run(x, jnp.ones(3)).shape == (2,)
    with pytest.raises(ValueError, match=r"argument 'w' must be f32\[3\], got float32\[4\]"):
        run(x, jnp.zeros(4))
    with pytest.raises(ValueError, match=r"argument 'w' must be f32\[3\], got int32\[3\]"):
        run(x, jnp.zeros(3, np.int32))
    with pytest.raises(TypeError, match=r"takes 2 arrays \(x, w\) but 1 were given"):
        run(x)


def test_an_argument_is_not_taken_for_what_the_function_reaches_by_the_same_name():
    w = torch.full((3,), 2.0)

    def scaled(x):
        return x * w

    def f(w):
        return scaled(w["a"])

    run = graphc.lower(graphc.trace(f, {"a": torch.ones(3)}))
    assert run.graph.input_names == ("w.a", "w")
    with pytest.raises(TypeError, match=r"f\(\) also reads 'w', which the function reached by itself"):
        run(w={"a": torch.ones(3)})
    assert np.asarray(run(torch.ones(3), w)).tolist() == [2.0, 2.0, 2.0]


def test_64_bit_types_are_real():
    run = graphc.lower(graphc.trace(lambda x, n: (x + 1e-12, n * 3), torch.zeros(1).double(), torch.zeros(1).long()))
    x, n = run(np.ones(1), np.array([2**40]))
    assert np.asarray(x)[0] == 1 + 1e-12 and np.asarray(n)[0] == 3 * 2**40


def test_numpy_arrays_come_after_arrays_of_jax_and_the_other_way_round():
    onto = graphc.compile(lambda n: n + 0)
    for order in ([True, True, False, False, True], [False, True, True, False]):
        total = torch.zeros(2, dtype=torch.int64)

        @graphc.compile
        def add(n):
            total.add_(n)  # noqa: B023  # called before the loop goes on
            return n * 2**33

        for k, on_device in enumerate(order, 1):
            n = torch.tensor([k, 2**40])
            result = add(onto(n) if on_device else n)
            assert result.tolist() == [k * 2**33, 2**73 % 2**64] and result.dtype == torch.int64
            assert total.tolist() == [k * (k + 1) // 2, k * 2**40]


def test_strict_keeps_values_that_xla_would_simplify_away():
    graph = graphc.trace(lambda x: (x + 1e8) - 1e8, torch.zeros(1))
    one = np.ones(1, np.float32)
    assert np.asarray(graphc.lower(graph, strict=True)(one))[0] == graph(one)[0] == 0
    assert "xla" in graphc.lower(graph, strict=True).compile()


def test_source_is_the_program():
    run = graphc.lower(graphc.trace(lambda x: torch.tanh(x).sum(), torch.zeros(3)))
    assert "lax.tanh(x)" in run.source
    assert run.source.startswith("def lambda_(x):")


def test_donated_state_falls_back_when_a_check_fails():
    def f(state, table, i):
        return state + table[i].sum()

    graph = graphc.trace(f, torch.zeros(2), torch.ones(4), torch.tensor([0, 3]))
    run = graphc.lower(graph, donate=(0,), restore={0: 0})
    state = run.own(np.array([1.0, 2.0], np.float32))
    (state,) = run.call(state, np.ones(4, np.float32), np.array([0, 3]))
    np.testing.assert_array_equal(np.asarray(state), [3, 4])
    with pytest.raises(IndexError, match="index out of range") as caught:
        run.call(state, np.ones(4, np.float32), np.array([0, 9]))
    np.testing.assert_array_equal(np.asarray(caught.value.outputs[0]), [3, 4])


def test_outputs_that_are_one_value_do_not_move_what_falls_back():
    def f(state, table, i):
        row = table[i]
        return row * 2, row * 2, state + row

    graph = graphc.optimize(graphc.trace(f, torch.zeros(2), torch.ones(4), torch.tensor([0, 3])))
    assert len(set(graph.outputs)) == 2
    run = graphc.lower(graph, donate=(0,), restore={2: 0})
    state = run.own(np.array([1.0, 2.0], np.float32))
    with pytest.raises(IndexError) as caught:
        run.call(state, np.ones(4, np.float32), np.array([0, 9]))
    np.testing.assert_array_equal(np.asarray(caught.value.outputs[2]), [1, 2])


def test_a_program_awaits_numpy_memory():
    run = graphc.lower(graphc.trace(lambda x: x @ x, torch.zeros(400, 400)))
    for _ in range(10):
        x = np.ones((400, 400), np.float32)
        result = run(x)
        x[:] = 0
        assert np.asarray(result)[0, 0] == 400


def test_a_range_is_checked_once():
    def f(x, i, j):
        return x.gather(0, i).sum() + (x.gather(0, i) * 2).sum() + x[j].sum()

    graph = graphc.gradients(graphc.trace(f, torch.ones(4), torch.tensor([0, 3]), torch.tensor([1])), values=True)
    run = graphc.lower(graph)
    assert run.source.count("checks.") == 2  # not of the scatters of the gradient, nor of the second gather
    x = np.ones(4, np.float32)
    run(x, np.array([0, 3]), np.array([-4]))
    with pytest.raises(RuntimeError, match=r"index out of bounds in gather\(\)"):
        run(x, np.array([0, 4]), np.array([-4]))
    with pytest.raises(IndexError, match="index out of range"):
        run(x, np.array([0, 3]), np.array([-5]))


def test_a_narrower_range_is_checked_again():
    wide, narrow = torch.ones(5), torch.ones(3)
    graph = graphc.trace(lambda a, b, i: a.gather(0, i) + b.gather(0, i), wide, narrow, torch.tensor([0]))
    run = graphc.lower(graph)
    arrays = np.ones(5, np.float32), np.ones(3, np.float32)
    run(*arrays, np.array([2]))
    with pytest.raises(RuntimeError, match="index out of bounds"):
        run(*arrays, np.array([3]))
