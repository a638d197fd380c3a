"""`backward` and `grad`: PyTorch's values, errors, accumulation, modes, and gradients of every order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import eager as torch
from eager import autograd
from eager.core.tensor import Tensor
from eager.engine.language import E
from tests.eager.tensors import leaf, tensor, total, values
from tests.oracle import asked_of_torch, torch_or_skip

TWICE = "Trying to backward through the graph a second time"


# Values


def test_square_at_three():
    x = leaf(3.0)
    (x * x).backward()
    assert x.grad.item() == 6.0


def test_fan_out_adds_up():
    x = leaf([1.0, 2.0])
    y = x * 3
    total(y * y + y + x).backward()
    assert values(x.grad) == [2 * 9 * v + 3 + 1 for v in (1.0, 2.0)]


def test_diamond():
    x = leaf(2.0)
    a = x * x
    ((a + 1) * (a + 2)).backward()
    assert x.grad.item() == (2 * 4 + 3) * 2 * 2


def test_node_is_visited_after_all_its_uses():
    # the early use of `a` is far below the late one: visiting it on first arrival would lose a share
    x = leaf(2.0)
    a = x * 1.5
    b = a
    for _ in range(10):
        b = b + 1
    (b * a).backward()
    assert x.grad.item() == pytest.approx(1.5 * (3.0 + 13.0))


def test_broadcast_gradients_are_summed_back():
    row, column, scalar = leaf([1.0, 2.0, 3.0]), leaf([[1.0], [2.0]]), leaf(2.0)
    total(row * column * scalar).backward()
    assert values(row.grad) == [6.0, 6.0, 6.0]
    assert values(column.grad) == [[12.0], [12.0]]
    assert values(scalar.grad) == 18.0


def test_gradient_has_the_operands_dtype():
    x, y = leaf([1.0, 2.0], np.float32), leaf([3.0, 4.0], np.float64)
    product = x * y
    assert product._dtype() == np.float64
    total(product).backward()
    assert (x.grad._dtype(), y.grad._dtype()) == (np.float32, np.float64)


def test_given_gradient_weighs_the_outputs():
    x = leaf([1.0, 2.0])
    (x * x).backward(tensor([10.0, 100.0]))
    assert values(x.grad) == [20.0, 400.0]


def test_several_outputs():
    x = leaf(2.0)
    autograd.backward([x * x, x * 3], [tensor(1.0), tensor(10.0)])
    assert x.grad.item() == 34.0


def test_backward_on_a_leaf():
    x = leaf(2.0)
    x.backward()
    assert x.grad.item() == 1.0


def test_one_element_counts_as_scalar():
    x = leaf([[3.0]])
    (x * x).backward()
    assert values(x.grad) == [[6.0]]


# Accumulation


def test_gradients_accumulate_in_the_same_object():
    x = leaf([1.0, 2.0])
    total(x * x).backward()
    first, memory = x.grad, x.grad._array()
    total(x * x).backward()
    assert x.grad is first
    assert x.grad._array() is memory
    assert values(first) == [4.0, 8.0]


def test_grad_is_none_until_backward_and_can_be_cleared():
    x = leaf(1.0)
    assert x.grad is None
    (x * 2).backward()
    x.grad = None
    (x * 3).backward()
    assert x.grad.item() == 3.0


def test_inputs_restrict_accumulation():
    x, y = leaf(2.0), leaf(3.0)
    (x * y).backward(inputs=[x])
    assert x.grad.item() == 3.0
    assert y.grad is None


def test_two_leaves_do_not_share_their_gradient():
    a, b = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    total(a + b).backward()
    assert not np.shares_memory(a.grad._array(), b.grad._array())
    a.grad._array()[0] = 99.0
    assert values(b.grad) == [1.0, 1.0]


def test_given_gradient_is_not_taken_over():
    a, g = leaf([1.0, 2.0]), tensor([1.0, 1.0])
    (a + 0.0).backward(g)
    a.grad._array()[0] = 99.0
    assert values(g) == [1.0, 1.0]
    b, h = leaf([1.0, 2.0]), tensor([1.0, 1.0])
    b.backward(h)
    (b * 1.0).backward(h)
    assert values(h) == [1.0, 1.0]


def test_results_of_grad_share_no_memory():
    a, b = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    g = tensor([1.0, 1.0])
    da, db = autograd.grad(a + b, (a, b), g)
    da += 1.0
    assert values(db) == [1.0, 1.0]
    assert values(g) == [1.0, 1.0]


# autograd.grad


def test_grad_returns_and_does_not_accumulate():
    x, y = leaf(2.0), leaf(3.0)
    dx, dy = autograd.grad(x * x * y, (x, y))
    assert (dx.item(), dy.item()) == (12.0, 4.0)
    assert x.grad is None
    assert not dx.requires_grad


def test_grad_with_respect_to_an_intermediate():
    x = leaf(2.0)
    y = x * x
    (dy,) = autograd.grad(y * y, y)
    assert dy.item() == 8.0


def test_grad_of_unused_input():
    x, y = leaf(2.0), leaf(3.0)
    with pytest.raises(RuntimeError, match="The differentiated Tensor at index 1 appears to not have been used"):
        autograd.grad(x * x, (x, y))
    assert autograd.grad(x * x, (x, y), allow_unused=True)[1] is None
    assert autograd.grad(x * x, (x, y), materialize_grads=True)[1].item() == 0.0
    with pytest.raises(ValueError, match="Expected allow_unused to be True or not passed when materialize_grads=True"):
        autograd.grad(x * x, (x, y), allow_unused=False, materialize_grads=True)


def test_grad_outputs():
    x = leaf([1.0, 2.0])
    (dx,) = autograd.grad([x * x, x * 3], x, grad_outputs=[tensor([1.0, 1.0]), tensor([1.0, 2.0])])
    assert values(dx) == [5.0, 10.0]


def test_grad_of_an_output_with_respect_to_itself():
    x = leaf(2.0)
    y = x * x
    assert autograd.grad(y, y)[0].item() == 1.0


# Higher orders


@pytest.mark.parametrize(
    ("function", "derivatives"),
    [
        (lambda x: x * x * x * x, (lambda x: 4 * x**3, lambda x: 12 * x**2, lambda x: 24 * x)),
        (E.sin, (np.cos, lambda x: -np.sin(x), lambda x: -np.cos(x))),
        (E.exp, (np.exp, np.exp, np.exp)),
        (E.log, (lambda x: 1 / x, lambda x: -1 / x**2, lambda x: 2 / x**3)),
        (E.tanh, (lambda x: 1 - np.tanh(x) ** 2, lambda x: -2 * np.tanh(x) * (1 - np.tanh(x) ** 2),
                  lambda x: (1 - np.tanh(x) ** 2) * (6 * np.tanh(x) ** 2 - 2))),
        (lambda x: 1 / x, (lambda x: -1 / x**2, lambda x: 2 / x**3, lambda x: -6 / x**4)),
    ],
    ids=["quartic", "sin", "exp", "log", "tanh", "reciprocal"],
)  # fmt: skip
def test_three_orders(function: Any, derivatives: Any):
    x = leaf([0.7, 1.3])
    y = function(x)
    for derivative in derivatives:
        (y,) = autograd.grad(total(y), x, create_graph=True)
        assert np.allclose(y._array(), derivative(np.array([0.7, 1.3])), rtol=1e-12)


def test_backward_create_graph():
    x = leaf(2.0)
    with pytest.warns(UserWarning, match="reference cycle"):
        (x * x * x).backward(create_graph=True)
    first = x.grad
    x.grad = None
    first.backward()
    assert x.grad.item() == 12.0


def test_mixed_second_derivative():
    x, y = leaf(2.0), leaf(3.0)
    (dx,) = autograd.grad(x * x * y * y * y, x, create_graph=True)
    (dxy,) = autograd.grad(dx, y)
    assert dxy.item() == 2 * 2 * 3 * 9


def test_gradient_penalty():
    x = leaf([1.0, 2.0])
    (g,) = autograd.grad(total(x * x * x), x, create_graph=True)
    total(g * g).backward()
    assert values(x.grad) == [36 * v**3 for v in (1.0, 2.0)]


def test_given_gradient_takes_part_in_the_second_order():
    x, v = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    (g,) = autograd.grad(x * x, x, v, create_graph=True)
    total(g).backward()
    assert values(v.grad) == [2.0, 4.0]
    assert values(x.grad) == [6.0, 8.0]


# Errors


def test_backward_twice():
    x = leaf(2.0)
    y = x * x
    y.backward()
    with pytest.raises(RuntimeError, match=TWICE):
        y.backward()
    with pytest.raises(RuntimeError, match=TWICE):
        autograd.grad(y, x)
    assert x.grad.item() == 4.0


def test_backward_twice_where_nothing_is_saved():
    x = leaf([1.0, 2.0])
    y = total(x + 1)
    autograd.backward(x + x, tensor([1.0, 1.0]))
    x.grad = None
    z = (x + 1) + (x + 2)
    z.backward(tensor([1.0, 1.0]))
    z.backward(tensor([1.0, 1.0]))
    assert values(x.grad) == [4.0, 4.0]
    y.backward()


def test_retain_graph():
    x = leaf(2.0)
    y = x * x
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.item() == 8.0
    with pytest.raises(RuntimeError, match=TWICE):
        y.backward()


def test_grad_frees_the_values_that_were_saved_and_keeps_shapes():
    x = leaf([1.0, 2.0])
    product, sum_ = x * x, x.sum()
    autograd.grad(product, x, tensor([1.0, 1.0]))
    with pytest.raises(RuntimeError, match=TWICE):
        autograd.grad(product, x, tensor([1.0, 1.0]))
    for _ in range(2):
        assert values(*autograd.grad(sum_, x)) == [1.0, 1.0]


def test_shared_part_of_the_graph_is_freed():
    x = leaf(2.0)
    shared = x * x
    first, second = shared * 2, shared * 3
    first.backward()
    with pytest.raises(RuntimeError, match=TWICE):
        second.backward()


def test_freed_slots_are_empty_after_an_error():
    x = leaf(2.0)
    y = x * x
    z = y * 3 + x
    y.backward()
    x.grad = None
    with pytest.raises(RuntimeError, match=TWICE):
        z.backward()
    assert x.grad is None
    (x * 5).backward()
    assert x.grad.item() == 5.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: (x * 2).backward(), "grad can be implicitly created only for scalar outputs"),
        (lambda x: autograd.grad(x * 2, x), "grad can be implicitly created only for scalar outputs"),
        (lambda x: tensor(1.0).backward(), "element 0 of tensors does not require grad and does not have a grad_fn"),
        (lambda x: (x * 2).backward(tensor([1.0])), r"Mismatch in shape: grad_output\[0\] has a shape of "
         r"torch.Size\(\[1\]\) and output\[0\] has a shape of torch.Size\(\[2\]\)"),
        (lambda x: autograd.grad(total(x), tensor(1.0)), "One of the differentiated Tensors does not require grad"),
        (lambda x: total(x).backward(inputs=[]), r"`inputs` argument to `backward\(\)` cannot be empty"),
        (lambda x: autograd.grad(total(x), []), r"`inputs` argument to `grad\(\)` cannot be empty"),
        (lambda x: E.add(x, tensor([1.0, 2.0, 3.0])), r"The size of tensor a \(2\) must match the size of "
         r"tensor b \(3\) at non-singleton dimension 0"),
    ],
)  # fmt: skip
def test_error(call: Any, message: str):
    with pytest.raises(RuntimeError, match=message):
        call(leaf([1.0, 2.0]))


def test_integer_tensor_cannot_require_grad():
    with pytest.raises(RuntimeError, match="only Tensors of floating point"):
        tensor([1, 2], np.int64).requires_grad_()


def test_requires_grad_of_a_result_cannot_be_turned_off():
    y = leaf(2.0) * 2
    with pytest.raises(RuntimeError, match="you can only change requires_grad flags of leaf variables"):
        y.requires_grad = False


def test_grad_of_a_result_warns():
    y = leaf(2.0) * 2
    with pytest.warns(UserWarning, match="The .grad attribute of a Tensor that is not a leaf Tensor is being accessed"):
        assert y.grad is None


# In-place writes


@pytest.mark.parametrize("write", [lambda x: x.add_(1.0), lambda x: x.mul_(2), lambda x: x.exp_()])
def test_leaf_is_not_written_in_place(write: Any):
    x = leaf([1.0, 2.0])
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        write(x)
    assert values(x) == [1.0, 2.0]
    with autograd.no_grad():
        write(x)
    assert values(x) != [1.0, 2.0]


def test_augmented_assignment_on_a_leaf():
    x = leaf([1.0, 2.0])
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        x += 1.0


@pytest.mark.parametrize("through", [lambda t: t, lambda t: t.detach()], ids=["itself", "detach"])
def test_write_to_a_saved_operand_is_caught(through: Any):
    x, w = leaf([1.0, 2.0]), tensor([3.0, 4.0])
    y = total(x * w)
    through(w).add_(1.0)
    with pytest.raises(
        RuntimeError, match="one of the variables needed for gradient computation has been modified"
    ) as info:
        y.backward()
    assert "[torch.DoubleTensor [2]]" in str(info.value)
    assert "is at version 1; expected version 0 instead" in str(info.value)
    assert x.grad is None


def test_write_to_a_saved_result_is_caught():
    x = leaf([1.0, 2.0])
    y = E.exp(x)
    z = total(y)
    y.detach().mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        autograd.grad(total(y), x, create_graph=True)


def test_write_before_recording_is_no_error():
    x, w = leaf([1.0, 2.0]), tensor([3.0, 4.0])
    w.add_(1.0)
    total(x * w).backward()
    assert values(x.grad) == [4.0, 5.0]


def test_write_to_what_is_not_saved_is_no_error():
    x, w = leaf([1.0, 2.0]), tensor([3.0, 4.0])
    y = total(x + w)
    w.add_(1.0)
    y.backward()
    assert values(x.grad) == [1.0, 1.0]


def test_in_place_on_a_result_is_recorded():
    x = leaf([1.0, 2.0])
    y = x * 3
    y.mul_(x)
    total(y).backward()
    assert values(x.grad) == [6.0, 12.0]


def test_failed_in_place_changes_nothing():
    x = tensor([1, 2], np.int64)
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
        x.add_(0.5)
    y = tensor([1.0, 2.0])
    with pytest.raises(RuntimeError, match=r"output with shape \[2\] doesn't match the broadcast shape \[2, 2\]"):
        y.add_(tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert (values(x), values(y)) == ([1, 2], [1.0, 2.0])


def test_version_counts_writes():
    x = tensor([1.0, 2.0])
    assert x._version == 0
    x.add_(1.0)
    x.detach().mul_(2.0)
    assert x._version == 2


# Modes


def test_detach_shares_memory_and_drops_history():
    x = leaf([1.0, 2.0])
    y = x.detach()
    assert not y.requires_grad
    assert y.grad_fn is None
    assert np.shares_memory(x._array(), y._array())
    assert y.is_leaf


def test_no_grad_records_nothing():
    x = leaf(2.0)
    with autograd.no_grad():
        y = x * x
        with autograd.enable_grad():
            z = x * x
    assert (y.requires_grad, z.requires_grad, (x * x).requires_grad) == (False, True, True)


@pytest.mark.parametrize("decorator", [autograd.no_grad(), autograd.no_grad, autograd.inference_mode()])
def test_no_grad_as_decorator(decorator: Any):
    @decorator
    def square(x: Tensor) -> Tensor:
        "the docstring"
        return x * x

    x = leaf(2.0)
    assert not square(x).requires_grad
    assert (square.__name__, square.__doc__) == ("square", "the docstring")
    assert (x * x).requires_grad


def test_no_grad_on_a_generator_holds_in_its_body_only():
    @autograd.no_grad()
    def squares(x: Tensor):
        sent = yield x * x
        yield sent * x

    x = leaf(2.0)
    generator = squares(x)
    first = next(generator)
    assert not first.requires_grad
    assert (x * x).requires_grad
    assert not generator.send(x).requires_grad
    assert list(generator) == []


def test_mode_is_restored_after_an_error():
    with pytest.raises(KeyError), autograd.no_grad():
        raise KeyError("x")
    assert (leaf(1.0) * 2).requires_grad


def test_set_grad_enabled():
    x = leaf(2.0)
    with autograd.set_grad_enabled(False):
        assert not (x * x).requires_grad
    autograd.set_grad_enabled(False)
    try:
        assert not (x * x).requires_grad
    finally:
        autograd.set_grad_enabled(True)
    assert (x * x).requires_grad


# The graph as the user sees it


def test_grad_fn_names_and_edges():
    x = leaf(2.0)
    y = E.tanh(x * x)
    assert y.grad_fn.name() == "TanhBackward0"
    ((product, number),) = y.grad_fn.next_functions
    assert (product.name(), number) == ("MulBackward0", 0)
    assert [n.name() for n, _ in product.next_functions] == ["torch::autograd::AccumulateGrad"] * 2
    assert product.next_functions[0][0].variable is x
    assert x.grad_fn is None
    assert y.grad_fn == y.grad_fn


# two operands, unless one is named here
UNARY = {"neg", "exp", "log", "sin", "tanh", "sigmoid", "sqrt", "abs", "relu", "square", "softplus"}


@asked_of_torch("name", ["add", "sub", "mul", "div", "pow", "maximum", "atan2", "remainder", *sorted(UNARY)])
def test_grad_fn_name_is_pytorchs(name: str):
    torch = torch_or_skip()
    function = getattr(torch, name, None) or getattr(torch.nn.functional, name)
    count = 1 if name in UNARY else 2
    theirs = function(*(torch.ones(1, requires_grad=True) for _ in range(count)))
    ours = getattr(E, name)(*(leaf([1.0]) for _ in range(count)))
    assert ours.grad_fn.name() == theirs.grad_fn.name()


def test_a_result_that_no_gradient_needs_may_be_written():
    x = leaf(3.0)
    quotient = x / tensor(2.0)  # the result is what the gradient of the divisor needs, and it has none
    quotient.mul_(4.0)
    quotient.backward()
    assert x.grad.item() == 2.0


# Layout: the gradient of a leaf lies in memory as the leaf does, if that has no gaps; else by rows


ROWS = np.arange(12.0, dtype=np.float32)
LEAVES = {
    "by rows": (ROWS.reshape(3, 4), (4, 1)),
    "transposed": (ROWS.reshape(4, 3).T, (1, 3)),
    "of a part": (ROWS.reshape(6, 2)[::2], (2, 1)),
}
GRADIENTS = {
    "unshared": lambda x, **k: total(x * x).backward(**k),
    "a view": lambda x, **k: x.t().backward(tensor(np.ones(tuple(x.t().shape), np.float32)), **k),
    "of the transpose": lambda x, **k: total(x.t() * x.t()).backward(**k),
    "of a product": lambda x, **k: total(tensor(np.ones((2, x.shape[1]), np.float32)) @ x.t()).backward(**k),
}


@pytest.mark.parametrize("how", GRADIENTS)
@pytest.mark.parametrize("kind", LEAVES)
def test_a_gradient_lies_as_its_leaf_does(kind: str, how: str):
    array, strides = LEAVES[kind]
    x = leaf(array)
    GRADIENTS[how](x)
    assert x.grad.stride() == strides
    first = values(x.grad)
    x.grad = None
    GRADIENTS[how](x, inputs=[x])
    assert x.grad.stride() == strides
    assert values(x.grad) == first
    GRADIENTS[how](x)
    assert x.grad.stride() == strides
    assert values(x.grad) == [[2 * v for v in row] for row in first]


def test_a_large_transposed_gradient_is_copied_right():
    x = leaf(np.zeros((70, 200), np.float32))
    g = np.arange(14000, dtype=np.float32).reshape(200, 70)
    x.t().backward(tensor(g))
    assert x.grad.stride() == (200, 1)
    np.testing.assert_array_equal(x.grad.numpy(), g.T)


@pytest.mark.parametrize("create_graph", [False, True])
def test_walks_within_a_walk_keep_their_gradients_apart(create_graph: bool):
    w = torch.tensor(2.0, requires_grad=True)
    h = w * 3
    found = []

    class Walks(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            with torch.enable_grad():  # a gradient has arrived at h already, from its later use
                found.extend(torch.autograd.grad(h * 1, (w, h), retain_graph=True))
                (h * 1).backward(retain_graph=True)
            return g

    y = Walks.apply(h)
    (gradient,) = torch.autograd.grad(h * 5 + y, w, create_graph=create_graph)
    assert [g.item() for g in found] == [3.0, 1.0]
    assert (gradient.item(), w.grad.item()) == (18.0, 3.0)


@pytest.mark.parametrize("create_graph", [False, True])
def test_gradient_at_the_edge_of_one_of_several_outputs(create_graph: bool):
    pieces = (torch.arange(4.0).requires_grad_() * 1).split(2)
    edges = [torch.autograd.graph.get_gradient_edge(piece) for piece in pieces]
    assert [edge.output_nr for edge in edges] == [piece.output_nr for piece in pieces] == [0, 1]
    total = (pieces[0] * 2 + pieces[1] * 3).sum()
    found = torch.autograd.grad(total, edges, create_graph=create_graph)
    assert [g.tolist() for g in found] == [[2.0, 2.0], [3.0, 3.0]]


@pytest.mark.filterwarnings("ignore:Using backward")
@pytest.mark.parametrize("create_graph", [False, True])
def test_a_leaf_that_was_frozen_after_its_use_gets_no_gradient(create_graph: bool):
    x, w, called = leaf([1.0, 2.0]), leaf([3.0, 4.0]), []
    loss = (x * w).sum()
    x.register_post_accumulate_grad_hook(called.append)
    x.requires_grad_(False)
    loss.backward(create_graph=create_graph)
    assert x.grad is None and w.grad.tolist() == [1.0, 2.0] and called[0] is x


@pytest.mark.parametrize("view", [lambda x: x.view(-1), lambda x: x.mT, lambda x: x[0], lambda x: (x * 1).unbind()[0]])
def test_a_view_without_history_may_become_a_leaf(view: Any):
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    with torch.no_grad():
        part = view(x)
    assert part.is_leaf and part.grad_fn is None
    (part.requires_grad_() * 2).sum().backward()
    assert part.grad.tolist() == torch.full(part.shape, 2.0).tolist() and x.grad is None
