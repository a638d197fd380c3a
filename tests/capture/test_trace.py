"""`graphc.trace`: what a function does becomes a graph; what cannot is an error that names the user's line."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import eager as torch
import graphc
from graphc.capture import capture
from graphc.errors import CaptureError, EscapedSymbolError, GraphError

HERE = re.escape("tests/capture/test_trace.py") + r":\d+"


def test_arguments_keep_their_names_in_any_nest():
    def f(x, pair, *rest, scale=1.0, **options):
        return x + pair["a"] + pair["b"][0] + rest[0] * scale + options["z"]

    one = torch.ones(2)
    graph = graphc.trace(f, one, {"a": one, "b": [one]}, one, scale=2.0, z=one)
    assert graph.input_names == ("x", "pair.a", "pair.b.0", "rest_0", "z")
    np.testing.assert_array_equal(graph(*[np.ones(2, np.float32)] * 5), [6, 6])


def test_captured_tensors_become_named_inputs():
    weight = torch.randn(3, 2)
    model = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.ReLU())
    graph = graphc.trace(lambda x: model(x @ weight), torch.zeros(5, 3))
    assert graph.input_names == ("x", "weight", "model.0.weight", "model.0.bias")


def test_nodes_carry_the_users_line():
    graph = graphc.trace(lambda x: torch.tanh(x), torch.zeros(2))
    (node,) = graph.operations()
    assert re.fullmatch(HERE, node.where)


def test_dtypes_are_explicit_and_promotion_is_pytorchs():
    def f(i, h, d):
        return i + 1.5, i / 2, h * 2, d + h, i * h

    graph = graphc.trace(f, torch.zeros(2, dtype=torch.int64), torch.zeros(2), torch.zeros((), dtype=torch.float64))
    assert [str(graph.nodes[i].aval) for i in graph.outputs] == ["f32[2]", "f32[2]", "f32[2]", "f32[2]", "f32[2]"]
    graph.check()


def test_tensors_made_inside_are_constants():
    def f(x):
        buffer = torch.zeros(3)
        buffer += x
        return buffer * torch.arange(3)

    graph = graphc.trace(f, torch.ones(3))
    assert graph.input_names == ("x",)
    np.testing.assert_array_equal(graph(np.full(3, 2.0, np.float32)), [0, 2, 4])


def test_gradients_inside_the_trace_are_part_of_the_graph():
    def f(x):
        (g,) = torch.autograd.grad((x * x * x).sum(), x, create_graph=True)
        (h,) = torch.autograd.grad(g.sum(), x)
        return g, h

    graph = graphc.trace(f, torch.ones(2, requires_grad=True))
    g, h = graph(np.array([1.0, 2.0], np.float32))
    np.testing.assert_allclose(g, [3, 12])
    np.testing.assert_allclose(h, [6, 12])


def test_detach_and_no_grad_stop_gradients():
    def f(x):
        with torch.no_grad():
            a = x * 3
        return torch.autograd.grad((x * a + x * x.detach()).sum(), x)[0]

    graph = graphc.trace(f, torch.ones(2, requires_grad=True))
    np.testing.assert_allclose(graph(np.array([1.0, 2.0], np.float32)), [4, 8])


@pytest.mark.parametrize(
    "branch",
    [
        lambda x: x if x.sum() > 0 else -x,
        lambda x: [v for v in x if v],
        lambda x: x * float(x[0]),
        lambda x: x.tolist(),
    ],
    ids=["if", "filter", "float", "tolist"],
)
def test_looking_at_values_is_an_error_that_names_the_line(branch):
    with pytest.raises(CaptureError, match=rf"(?s)made at ({HERE}|the call).*used at {HERE}.*Remedy"):
        graphc.trace(branch, torch.ones(2))


def test_numpy_on_a_traced_tensor_is_an_error():
    with pytest.raises(CaptureError, match="Remedy"):
        graphc.trace(lambda x: torch.as_tensor(np.asarray(x)), torch.ones(2))


def test_a_numpy_ufunc_on_a_traced_tensor_is_traced():
    assert "exp" in str(graphc.trace(lambda x: np.exp(x), torch.ones(2)))


def test_escaped_tensors_say_where_they_were_made():
    kept = []

    def f(x):
        kept.append(x * 2)
        return x

    graphc.trace(f, torch.ones(2))
    for use in (lambda t: t + t, lambda t: t.sum(), lambda t: t.numpy(), lambda t: torch.ones(2) + t):
        with pytest.raises(EscapedSymbolError, match=rf"made at {HERE}"):
            use(kept[0])


def test_errors_of_ops_are_pytorchs_and_leave_no_trace_behind():
    with pytest.raises(RuntimeError, match=r"mat1 and mat2 shapes cannot be multiplied \(2x3 and 4x5\)"):
        graphc.trace(lambda a, b: a @ b, torch.zeros(2, 3), torch.zeros(4, 5))
    assert (torch.ones(2) + torch.ones(2)).tolist() == [2, 2]


def test_errors_of_ops_name_op_operands_and_line():
    with pytest.raises(RuntimeError) as caught:
        graphc.trace(lambda a, b: a @ b, torch.zeros(2, 3), torch.zeros(4, 5))
    (note,) = caught.value.__notes__
    assert re.fullmatch(rf"in matmul\(f32\[2,3\], f32\[4,5\]\) at {HERE}", note)
    with pytest.raises(RuntimeError) as caught:
        torch.zeros(2, 3) + torch.zeros(4, dtype=torch.float64)
    assert caught.value.__notes__ == ["in add(f32[2,3], f64[4])"]


def test_user_exceptions_pass_through():
    def f(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        graphc.trace(f, torch.ones(2))
    assert torch.ones(1).item() == 1


def test_changing_what_outlives_the_call_needs_compile():
    state = torch.zeros(2)

    def f(x):
        state.add_(x)
        return x

    with pytest.raises(CaptureError, match=r"graphc\.compile"):
        graphc.trace(f, torch.ones(2))
    assert state.tolist() == [0, 0]


def test_writing_to_a_view_writes_to_its_base_and_other_views_see_it():
    def f(x):
        y = x * 2
        column = y[:, 1]
        y[0].mul_(3)
        y.add_(1)
        return y, column

    y, column = graphc.trace(f, torch.ones(3, 2))(np.ones((3, 2), np.float32))
    np.testing.assert_array_equal(y, [[7, 7], [3, 3], [3, 3]])
    np.testing.assert_array_equal(column, [7, 3, 3])


def test_in_place_on_a_leaf_is_pytorchs_error():
    w = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        capture(lambda x: w.add_(x), (torch.ones(2),), {})


def test_backward_twice_and_non_scalar_are_pytorchs_errors():
    def twice(x):
        loss = (x * x).sum()
        loss.backward()
        loss.backward()

    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        capture(twice, (torch.ones(2, requires_grad=True),), {})
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        capture(lambda x: (x * x).backward(), (torch.ones(2, requires_grad=True),), {})


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * x * grads[0]


def test_the_rule_of_a_function_is_no_part_of_a_graph():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    graph = graphc.trace(lambda x: Square.apply(x).sum(), x)
    assert "autograd.Function" not in str(graph)  # short lines
    for g in (graph, graphc.optimize(graph)):
        assert float(graphc.lower(g)(x)) == 5
        with pytest.raises(GraphError, match=r"the result of an autograd.Function \(at .*test_trace.py:\d+\)"):
            graphc.gradients(g)


def test_constants_of_one_value_are_told_by_their_bits() -> None:
    for value in (0j, complex(0.0, -0.0), 1 + 0j, 0.0, -0.0, 2.0):
        array = np.full(100, value)
        other = array.copy()
        other[3] = np.conj(value) if isinstance(value, complex) else -value
        for x in (array, other):
            found = graphc.compile(lambda y, x=x: torch.tensor(x).clone())(torch.ones(1))
            assert found.numpy().tobytes() == x.tobytes(), value


def test_complex_zeros_are_written_in_part() -> None:
    def spectral(x: Any) -> Any:
        out = torch.zeros(2, 9, 9, dtype=torch.complex64)
        out[:, :3, :3] = torch.fft.fft2(x)[:, :3, :3]
        return torch.fft.ifft2(out).real

    x = torch.arange(162.0).reshape(2, 9, 9).sin()
    torch.testing.assert_close(graphc.compile(spectral)(x), spectral(x))
