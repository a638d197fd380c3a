"""Errors, aliasing and laziness of the function surface; no PyTorch needed."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest

import eager as torch
import eager.nn.functional as F
from graphc.ops.rules import pointwise_float
from graphc.ops.spec import OPS, op

ones = torch.ones

# the words are PyTorch 2.13's
ERRORS = {
    "sum": (
        lambda: ones(2, 3).sum(5),
        IndexError,
        "Dimension out of range (expected to be in range of [-2, 1], but got 5)",
    ),
    "sum twice": (lambda: ones(2, 3).sum((0, 0)), RuntimeError, "dim 0 appears multiple times in the list of dims"),
    "mean": (lambda: torch.tensor([1]).mean(), RuntimeError, "mean(): could not infer output dtype"),
    "max": (
        lambda: ones(0).max(),
        RuntimeError,
        "max(): Expected reduction dim to be specified for input.numel() == 0",
    ),
    "amax": (lambda: ones(0, 3).amax(0), IndexError, "amax(): Expected reduction dim 0 to have non-zero size."),
    "no tensor": (lambda: torch.sum([1]), TypeError, "sum(): argument 'input' (position 1) must be Tensor, not list"),
    "view": (
        lambda: ones(2, 3).t().view(6),
        RuntimeError,
        "view size is not compatible with input tensor's size and stride",
    ),
    "reshape": (lambda: ones(2, 3).reshape(4, 2), RuntimeError, "shape '[4, 2]' is invalid for input of size 6"),
    "two -1": (lambda: ones(2, 3).reshape(-1, -1), RuntimeError, "only one dimension can be inferred"),
    "t": (lambda: ones(2, 3, 4).t(), RuntimeError, "t() expects a tensor with <= 2 dimensions, but self is 3D"),
    "expand": (lambda: ones(2, 3).expand(4, 3), RuntimeError, "The expanded size of the tensor (4) must match"),
    "cat": (lambda: torch.cat([]), ValueError, "torch.cat(): expected a non-empty list of Tensors"),
    "cat sizes": (
        lambda: torch.cat([ones(2, 3), ones(2, 4)]),
        RuntimeError,
        "Sizes of tensors must match except in dimension 0. Expected size 3 but got size 4 for tensor number 1",
    ),
    "stack": (
        lambda: torch.stack([ones(2), ones(3)]),
        RuntimeError,
        "stack expects each tensor to be equal size, but got [2] at entry 0 and [3] at entry 1",
    ),
    "split": (lambda: ones(5).split([1, 2]), RuntimeError, "split_with_sizes expects split_sizes to sum exactly to 5"),
    "chunk": (lambda: ones(5).chunk(0), RuntimeError, "chunk expects `chunks` to be greater than 0, got: 0"),
    "narrow": (lambda: ones(3).narrow(0, 2, 4), RuntimeError, "start (2) + length (4) exceeds dimension size (3)."),
    "index": (lambda: ones(2, 3)[5], IndexError, "index 5 is out of bounds for dimension 0 with size 2"),
    "index many": (lambda: ones(2, 3)[0, 0, 0], IndexError, "too many indices for tensor of dimension 2"),
    "index array": (
        lambda: ones(2, 3)[:, torch.tensor([7])],
        IndexError,
        "index 7 is out of bounds for dimension 0 with size 3",
    ),
    "index floats": (
        lambda: ones(2)[ones(2)],
        IndexError,
        "tensors used as indices must be long, int, byte or bool tensors",
    ),
    "index step": (lambda: ones(2)[::-1], ValueError, "step must be greater than zero"),
    "index mask": (
        lambda: ones(2, 3)[torch.tensor([True] * 3)],
        IndexError,
        "The shape of the mask [3] at index 0 does not match the shape of the indexed tensor [2, 3] at index 0",
    ),
    "index_select": (lambda: ones(2).index_select(0, torch.tensor([5])), IndexError, "index out of range in self"),
    "gather": (
        lambda: ones(2, 3).gather(0, torch.tensor([[5]])),
        RuntimeError,
        "index 5 is out of bounds for dimension 0 with size 2",
    ),
    "masked_select": (
        lambda: ones(2).masked_select(ones(2)),
        RuntimeError,
        "masked_select: expected BoolTensor for mask",
    ),
    "where": (
        lambda: torch.where(ones(2), ones(2), ones(2)),
        RuntimeError,
        "where expected condition to be a boolean tensor, but got a tensor with dtype Float",
    ),
    "assign leaf": (
        lambda: ones(2, requires_grad=True).__setitem__(0, 1.0),
        RuntimeError,
        "a view of a leaf Variable that requires grad is being used in an in-place operation.",
    ),
    "assign shape": (
        lambda: ones(3).__setitem__(slice(None), ones(2)),
        RuntimeError,
        "The expanded size of the tensor (3) must match the existing size (2) at non-singleton dimension 0.",
    ),
    "assign rows": (
        lambda: ones(3).__setitem__(torch.tensor([0, 1]), ones(3)),
        RuntimeError,
        "shape mismatch: value tensor of shape [3] cannot be broadcast to indexing result of shape [2]",
    ),
    "add_ leaf": (
        lambda: ones(2, requires_grad=True).add_(1),
        RuntimeError,
        "a leaf Variable that requires grad is being used in an in-place operation.",
    ),
    "add_ cast": (
        lambda: torch.tensor([1]).add_(1.5),
        RuntimeError,
        "result type Float can't be cast to the desired output type Long",
    ),
    "copy_": (
        lambda: ones(3).copy_(ones(2, 3)),
        RuntimeError,
        "output with shape [3] doesn't match the broadcast shape [2, 3]",
    ),
    "mm": (
        lambda: torch.mm(ones(2, 3), ones(4, 5)),
        RuntimeError,
        "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)",
    ),
    "mm dims": (lambda: torch.mm(ones(3), ones(4, 5)), RuntimeError, "self must be a matrix"),
    "mv": (lambda: torch.mv(ones(2, 3), ones(4)), RuntimeError, "size mismatch, got input (2), mat (2x3), vec (4)"),
    "dot": (
        lambda: torch.dot(ones(3), ones(4)),
        RuntimeError,
        "inconsistent tensor size, expected tensor [3] and src [4]",
    ),
    "einsum size": (
        lambda: torch.einsum("ij,jk->ik", ones(2, 3), ones(4, 5)),
        RuntimeError,
        "einsum(): subscript j has size 4 for operand 1 which does not broadcast with previously seen size 3",
    ),
    "einsum output": (
        lambda: torch.einsum("ij->k", ones(2, 3)),
        RuntimeError,
        "einsum(): output subscript k does not appear in the equation for any input operand",
    ),
    "einsum few": (
        lambda: torch.einsum("ij,jk", ones(2, 3)),
        RuntimeError,
        "einsum(): fewer operands were provided than specified in the equation",
    ),
    "pow": (lambda: torch.tensor([2]) ** -1, RuntimeError, "Integers to negative integer powers are not allowed."),
    "clamp": (lambda: ones(2).clamp(), RuntimeError, "torch.clamp: At least one of 'min' or 'max' must not be None"),
    "ragged": (lambda: torch.tensor([[1, 2], [3]]), ValueError, "expected sequence of length 2 at dim 1 (got 1)"),
    "words": (lambda: torch.tensor(["a"]), ValueError, "too many dimensions 'str'"),
    "int grad": (
        lambda: torch.tensor([1], requires_grad=True),
        RuntimeError,
        "Only Tensors of floating point and complex dtype can require gradients",
    ),
    "arange": (lambda: torch.arange(0, 5, -1), RuntimeError, "upper bound and lower bound inconsistent with step sign"),
    "linspace": (lambda: torch.linspace(0, 1, -1), RuntimeError, "number of steps must be non-negative"),
    "from_numpy": (lambda: torch.from_numpy([1]), TypeError, "expected np.ndarray (got list)"),
    "cross_entropy": (
        lambda: F.cross_entropy(ones(2, 3), torch.tensor([0, 5])),
        IndexError,
        "Target 5 is out of bounds.",
    ),
    "one_hot": (
        lambda: F.one_hot(torch.tensor([3]), 2),
        RuntimeError,
        "Class values must be smaller than num_classes.",
    ),
    "reduction": (
        lambda: F.mse_loss(ones(2), ones(2), reduction="x"),
        ValueError,
        "x is not a valid value for reduction",
    ),
    "dropout": (
        lambda: F.dropout(ones(2), 1.5),
        ValueError,
        "dropout probability has to be between 0 and 1, but got 1.5",
    ),
    "iteration": (lambda: list(torch.tensor(1.0)), TypeError, "iteration over a 0-d tensor"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_have_pytorchs_type_and_words(name):
    call, kind, words = ERRORS[name]
    with pytest.raises(kind, match=re.escape(words)) as caught:
        call()
    assert caught.type is kind


def test_a_failed_assignment_changes_nothing():
    x = torch.zeros(3)
    for index, value in ((torch.tensor([0, 9]), 1.0), (slice(None), ones(2)), ((0, 0), 1.0)):
        with pytest.raises((IndexError, RuntimeError)):
            x[index] = value
    assert x.tolist() == [0, 0, 0] and x._version == 0


VIEWS = {
    "reshape": lambda x: x.reshape(6, 2),
    "view": lambda x: x.view(-1),
    "flatten": lambda x: x.flatten(),
    "squeeze": lambda x: x.squeeze(),
    "unsqueeze": lambda x: x.unsqueeze(0),
    "transpose": lambda x: x.transpose(0, 1),
    "permute": lambda x: x.permute(1, 0),
    "T": lambda x: x.T,
    "slice": lambda x: x[1:, ::2],
    "int": lambda x: x[1],
    "element": lambda x: x[1, 2],
    "select": lambda x: x.select(1, 0),
    "narrow": lambda x: x.narrow(0, 1, 2),
    "split": lambda x: x.split(2)[0],
    "chunk": lambda x: x.chunk(2)[1],
    "unbind": lambda x: x.unbind()[2],
    "diagonal": lambda x: x.diagonal(),
    "detach": lambda x: x.detach(),
    "unflatten": lambda x: x.unflatten(1, (2, 2)),
}
COPIES = {
    "clone": lambda x: x.clone(),
    "rows": lambda x: x[[0, 1]],
    "mask": lambda x: x[x > 0],
    "flip": lambda x: x.flip(0),
    "roll": lambda x: x.roll(1, 0),
    "cat": lambda x: torch.cat([x]),
    "repeat": lambda x: x.repeat(1, 1),
    "diag": lambda x: x[:3, :3].diag(),
    "tril": lambda x: x.tril(),
    "index_select": lambda x: x.index_select(0, torch.tensor([0])),
}


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("name", [*VIEWS, *COPIES])
def test_views_share_memory_and_copies_do_not(name, requires_grad):
    x = torch.arange(1.0, 13.0).reshape(3, 4).clone().requires_grad_(requires_grad)
    result = (VIEWS.get(name) or COPIES[name])(x)
    assert np.shares_memory(x._array(), result._array()) is (name in VIEWS)


def test_an_assignment_shows_in_views_and_counts_as_a_write():
    x = torch.zeros(2, 3)
    row = x[1]
    x[:, 1] = torch.tensor([5, 7])
    row[0] = 2
    assert x.tolist() == [[0, 5, 0], [2, 7, 0]] and x._version == row._version == 2


def test_from_numpy_shares_and_tensor_copies():
    array = np.zeros(2)
    shared, copied = torch.from_numpy(array), torch.tensor(array)
    array[0] = 1
    assert shared.tolist() == [1, 0] and copied.tolist() == [0, 0]


def test_nothing_to_do_gives_the_tensor_itself():
    x = ones(2)
    assert all(y is x for y in (x.contiguous(), x.float(), x.to(torch.float32), x.cpu(), F.dropout(x, training=False)))


def test_a_saved_value_survives_a_recorded_write():
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    y = x * 1
    y.pow_(3)
    y.sum().backward()
    assert x.grad.tolist() == [12, 27]


def test_dropout_keeps_the_mean_and_drops_the_gradient_with_the_value():
    torch.manual_seed(0)
    x = ones(10_000, requires_grad=True)
    y = F.dropout(x, 0.25)
    y.sum().backward()
    assert y.mean().item() == pytest.approx(1, abs=0.02)
    np.testing.assert_array_equal(x.grad.numpy(), y.detach().numpy())


def test_batch_norm_moves_the_running_statistics():
    mean, var = torch.zeros(2), ones(2)
    F.batch_norm(torch.tensor([[1.0, 2.0], [3.0, 6.0]]), mean, var, training=True, momentum=0.5)
    np.testing.assert_allclose(mean.numpy(), [1, 2])
    np.testing.assert_allclose(var.numpy(), [1.5, 4.5])


def test_an_op_declared_later_is_a_function_and_a_method():
    op("cube_root_later", "input", impl="cbrt", rule=pointwise_float)
    try:
        x = torch.tensor([8.0])
        assert torch.cube_root_later(x).item() == x.cube_root_later().item() == 2
    finally:
        OPS.remove("cube_root_later")
        for name in ("cube_root_later", "cube_root_later_"):
            delattr(torch.Tensor, name)


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="module 'eager' has no attribute 'nonsense'"):
        torch.nonsense  # noqa: B018


def test_importing_eager_loads_nothing_heavy():
    heavy = ("jax", "scipy", "networkx", "eager.nn", "eager.optim")
    code = f"import sys, eager; print([name for name in {heavy!r} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize("loss", [F.mse_loss, F.l1_loss, F.huber_loss], ids=lambda f: f.__name__)
def test_losses_with_weights_are_averaged_over_the_weights(loss):
    x, y, weight = torch.tensor([1.0, 2.0, 4.0]), torch.tensor([0.5, 4.0, 4.5]), torch.tensor([1.0, 3.0, 0.5])
    each = loss(x, y, reduction="none") * weight
    found = [loss(x, y, reduction=reduction, weight=weight) for reduction in ("none", "sum", "mean")]
    for got, expected in zip(found, (each, each.sum(), each.sum() / 4.5), strict=True):
        torch.testing.assert_close(got, expected)


@pytest.mark.parametrize("loss", [F.mse_loss, F.huber_loss, F.smooth_l1_loss], ids=lambda f: f.__name__)
def test_losses_take_masks_beside_numbers(loss):
    x, mask = torch.tensor([0.5, 0.25], requires_grad=True), torch.tensor([True, False])
    torch.testing.assert_close(loss(x, mask), loss(x, mask.float()))
    loss(x, mask).backward()
    (grad,) = torch.autograd.grad(loss(x, mask.float()), x)
    assert torch.equal(x.grad, grad)
    for kinds in ("bool bool", "int64 bool", "bool int64", "int64 int64"):
        x, y = (mask.to(getattr(torch, kind)) for kind in kinds.split())
        with pytest.raises(NotImplementedError, match=r"_cpu. not implemented for '(Bool|Long)'$"):
            loss(x, y)


def test_broadcasting_hands_out_what_has_the_shape_itself():
    leaf = torch.ones(2, 3, requires_grad=True)
    same, wider = torch.broadcast_tensors(leaf, torch.ones(3))
    assert same is leaf
    assert wider.stride() == (0, 1)
