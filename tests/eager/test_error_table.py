"""PyTorch's errors: type, text, and that the failed call has changed nothing."""

# ruff: noqa: E501  (a row a line, with the message in one piece)

import copy
import re

import numpy as np
import pytest

import eager as torch

FREED = "Trying to backward through the graph a second time"
SECOND = "Specify retain_graph=True if you need to backward through the graph a second time"
LEAF = "a leaf Variable that requires grad is being used in an in-place operation."
LEAF_VIEW = "a view of a leaf Variable that requires grad is being used in an in-place operation."
INDEX = "index 5 is out of bounds for dimension 0 with size 2"


class State:
    """Tensors that the calls work on, and what must not change."""

    def __init__(self):
        self.x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
        self.z = torch.tensor([1.0], requires_grad=True)
        self.c = torch.tensor([1.0, 2.0, 3.0])
        self.m = torch.arange(6.0).reshape(2, 3)
        self.i = torch.tensor([7, 8, 9])
        self.b = torch.tensor([True, False, True])
        self.y = self.x * 2
        self.used = (self.x * self.x).sum()
        self.used.backward()
        self.x.grad = None

    def picture(self):
        return {
            name: (t.tolist(), t.dtype, t.shape, t.stride(), t._version, t.requires_grad, t.grad_fn, t.is_leaf,
                   t.grad.tolist() if t.is_leaf and t.grad is not None else None)
            for name, t in vars(self).items()
        }  # fmt: skip


def assign(t, name, value):
    setattr(t, name, value)


def function(forward=None, backward=None):
    members = {"forward": staticmethod(forward or (lambda ctx, x: x * 2))}
    if backward is not None:
        members["backward"] = staticmethod(backward)
    return type("Fn", (torch.autograd.Function,), members)


RuntimeE, TypeE, ValueE, IndexE = RuntimeError, TypeError, ValueError, IndexError
grad, backward = torch.autograd.grad, torch.autograd.backward
one = torch.ones

ROWS = [
    # backward and grad
    (lambda s: s.used.backward(), RuntimeE, FREED), (lambda s: s.used.backward(), RuntimeE, SECOND),
    (lambda s: s.used.grad_fn.next_functions[0][0]._saved_self, RuntimeE, FREED),
    (lambda s: s.y.backward(), RuntimeE, "grad can be implicitly created only for scalar outputs"),
    (lambda s: grad(s.y, s.x), RuntimeE, "grad can be implicitly created only for scalar outputs"),
    (lambda s: (s.x * 1j).sum().backward(), RuntimeE, "only for real scalar outputs but got torch.complex64"),
    (lambda s: s.y.backward(one(2)), RuntimeE, "Mismatch in shape: grad_output[0] has a shape of torch.Size([2]) and output[0] has a shape of torch.Size([3])."),
    (lambda s: grad(s.y.sum(), [s.x, s.z]), RuntimeE, "The differentiated Tensor at index 1 appears to not have been used in the graph. Set allow_unused=True if this is the desired behavior."),
    (lambda s: grad(s.y.sum(), s.z, allow_unused=False, materialize_grads=True), ValueE, "Expected allow_unused to be True or not passed when materialize_grads=True"),
    (lambda s: grad(s.y.sum(), s.c), RuntimeE, "One of the differentiated Tensors does not require grad"),
    (lambda s: s.c.sum().backward(), RuntimeE, "element 0 of tensors does not require grad and does not have a grad_fn"),
    (lambda s: backward([s.y.sum(), s.c.sum()]), RuntimeE, "element 1 of tensors does not require grad"),
    (lambda s: s.y.sum().backward(inputs=[]), RuntimeE, "`inputs` argument to `backward()` cannot be empty."),
    (lambda s: grad(s.y.sum(), []), RuntimeE, "`inputs` argument to `grad()` cannot be empty."),
    (lambda s: backward([s.y, s.y], [one(3)]), RuntimeE, "got 2 tensors and 1 gradients"),
    # writing leaves and views
    (lambda s: s.x.add_(1), RuntimeE, LEAF), (lambda s: s.x.__iadd__(1), RuntimeE, LEAF), (lambda s: s.x.t_(), RuntimeE, LEAF),
    (lambda s: s.x[:2].mul_(2), RuntimeE, LEAF_VIEW), (lambda s: assign_item(s.x, 0, 1.0), RuntimeE, LEAF_VIEW),
    (lambda s: s.x.view(3).zero_(), RuntimeE, LEAF_VIEW), (lambda s: s.x.fill_(1), RuntimeE, LEAF), (lambda s: s.x.copy_(s.c), RuntimeE, LEAF),
    (lambda s: s.y.unbind()[0].mul_(2), RuntimeE, "Output 0 of Unbind is a view and is being modified inplace. This view is the output of a function that returns multiple views."),
    (lambda s: s.y.chunk(3)[1].mul_(2), RuntimeE, "Output 1 of Split is a view"), (lambda s: s.y.split(1)[2].mul_(2), RuntimeE, "Output 2 of Split is a view"),
    (lambda s: made_in_no_grad(s).add_(1), RuntimeE, "A view was created in no_grad mode and is being modified inplace with grad mode enabled."),
    (lambda s: s.x.resize_(2), RuntimeE, "cannot resize variables that require grad"),
    (lambda s: s.m.permute(), TypeE, 'permute() missing 1 required positional arguments: "dims"'),
    (lambda s: s.z[0].unflatten(0, (1, 1)), RuntimeE, "unflatten got an unexpected error:\nDimension specified as 0 but tensor has no dimensions"),
    # flags and gradients
    (lambda s: torch.tensor([1], requires_grad=True), RuntimeE, "Only Tensors of floating point and complex dtype can require gradients"),
    (lambda s: assign(s.i, "requires_grad", True), RuntimeE, "only Tensors of floating point and complex dtype can require gradients"),
    (lambda s: s.i.requires_grad_(), RuntimeE, "only Tensors of floating point dtype can require gradients"),
    (lambda s: assign(s.y, "requires_grad", False), RuntimeE, "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a subgraph that doesn't require differentiation use var_no_grad = var.detach()."),
    (lambda s: s.x.numpy(), RuntimeE, "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."),
    (lambda s: copy.deepcopy(s.y), RuntimeE, "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment."),
    (lambda s: assign(s.x, "grad", one(2)), RuntimeE, "attempting to assign a gradient of size '[2]' to a tensor of size '[3]'."),
    (lambda s: assign(s.x, "grad", one(3, dtype=torch.float64)), RuntimeE, "attempting to assign a gradient with dtype 'double' to a tensor with grad_dtype 'Float'."),
    (lambda s: assign(s.x, "grad", 1.0), TypeE, "assigned grad expected to be a Tensor or None but got grad of type float"),
    (lambda s: s.c.register_hook(print), RuntimeE, "cannot register a hook on a tensor that doesn't require gradient"),
    (lambda s: s.c.retain_grad(), RuntimeE, "can't retain_grad on Tensor that has requires_grad=False"),
    (lambda s: s.y[:2].detach_(), RuntimeE, "Can't detach views in-place. Use detach() instead."),
    # Function
    (lambda s: function(backward=lambda ctx, g: (g, g)).apply(s.x).sum().backward(), RuntimeE, "function FnBackward returned an incorrect number of gradients (expected 1, got 2)"),
    (lambda s: function(backward=lambda ctx, g: g[:2]).apply(s.x).sum().backward(), RuntimeE, "Function FnBackward returned an invalid gradient at index 0 - got [2] but expected shape compatible with [3]"),
    (lambda s: function().apply(s.x).sum().backward(), NotImplementedError, "You must implement either the backward or vjp method for your custom autograd.Function to use it with backward mode AD."),
    (lambda s: function(lambda ctx, x: ctx.save_for_backward(5)).apply(s.x), TypeE, "save_for_backward can only save variables, but argument 0 is of type int"),
    (lambda s: function()()(s.x), RuntimeE, "Legacy autograd function with non-static forward method is deprecated."),
    # shapes and dtypes of operands
    (lambda s: one(2, 3) + one(2, 4), RuntimeE, "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1"),
    (lambda s: one(2, 3) @ one(4, 5), RuntimeE, "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)"),
    (lambda s: torch.mm(one(2, 3), one(4, 5)), RuntimeE, "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)"),
    (lambda s: torch.nn.functional.linear(one(2, 3), one(5, 4)), RuntimeE, "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)"),
    (lambda s: torch.mv(s.m, one(4)), RuntimeE, "size mismatch, got input (2), mat (2x3), vec (4)"),
    (lambda s: torch.bmm(one(2, 3, 4), one(2, 5, 2)), RuntimeE, "Expected size for first two dimensions of batch2 tensor to be: [2, 4] but got: [2, 5]."),
    (lambda s: torch.dot(one(3), one(4)), RuntimeE, "inconsistent tensor size, expected tensor [3] and src [4] to have the same number of elements"),
    (lambda s: torch.mm(one(3), one(3, 3)), RuntimeE, "self must be a matrix"),
    (lambda s: torch.mm(one(2, 2), one(2, 2, dtype=torch.float64)), RuntimeE, "expected m1 and m2 to have the same dtype, but got: float != double"),
    (lambda s: torch.dot(one(3), one(3, dtype=torch.float64)), RuntimeE, "dot : expected both vectors to have same dtype, but found Float and Double"),
    (lambda s: s.m.scatter(0, torch.tensor([[0]]), one(1, 1, dtype=torch.float64)), RuntimeE, "scatter(): Expected self.dtype to be equal to src.dtype"),
    # in-place results
    (lambda s: s.i.add_(1.5), RuntimeE, "result type Float can't be cast to the desired output type Long"),
    (lambda s: s.i.exp_(), RuntimeE, "result type Float can't be cast to the desired output type Long"),
    (lambda s: s.c.add_(one(2, 3)), RuntimeE, "output with shape [3] doesn't match the broadcast shape [2, 3]"),
    (lambda s: s.m[:1].mul_(s.m.clone()), RuntimeE, "output with shape [1, 3] doesn't match the broadcast shape [2, 3]"),
    (lambda s: s.m[:, :1].clamp_(s.m), RuntimeE, "output with shape [2, 1] doesn't match the broadcast shape [2, 3]"),
    (lambda s: one(1, 3).expand(2, 3).add_(1), RuntimeE, "unsupported operation: more than one element of the written-to tensor refers to a single memory location."),
    (lambda s: torch.exp(s.c, out=s.i), RuntimeE, "result type Float can't be cast to the desired output type Long"),
    (lambda s: torch.exp(s.x, out=s.c), RuntimeE, "exp(): functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad."),
    (lambda s: torch.add(s.c, 1, out=s.x), RuntimeE, "add(): functions with out=... arguments don't support automatic differentiation"),
    (lambda s: s.i.floor_divide_(torch.tensor([1, 0, 1])), RuntimeE, "ZeroDivisionError"),
    (lambda s: torch.histc(s.c, 0), RuntimeE, "torch.histogram(): bins must be > 0, but got 0 for dimension 0"),
    # dims and indices
    (lambda s: s.m.sum(5), IndexE, "Dimension out of range (expected to be in range of [-2, 1], but got 5)"),
    (lambda s: s.m.unsqueeze(4), IndexE, "Dimension out of range (expected to be in range of [-3, 2], but got 4)"),
    (lambda s: s.m[5], IndexE, INDEX), (lambda s: s.m[[0, 5]], IndexE, INDEX), (lambda s: assign_item(s.m, 5, 1.0), IndexE, INDEX),
    (lambda s: assign_item(s.m, [0, 5], 1.0), IndexE, INDEX),
    (lambda s: s.m[0, 0, 0], IndexE, "too many indices for tensor of dimension 2"), (lambda s: assign_item(s.m, (0, 0, 0), 1.0), IndexE, "too many indices"),
    (lambda s: s.m.index_select(0, torch.tensor([5])), IndexE, "index out of range in self"),
    (lambda s: s.m.gather(0, torch.tensor([[5]])), RuntimeE, INDEX), (lambda s: s.m.scatter(0, torch.tensor([[5]]), 1.0), RuntimeE, INDEX),
    (lambda s: s.m.scatter_(0, torch.tensor([[0], [5]]), 1.0), RuntimeE, INDEX), (lambda s: s.m.index_add_(0, torch.tensor([0, 5]), s.m), (IndexE, RuntimeE), "ut of"),
    (lambda s: assign_item(s.m, 0, one(4)), RuntimeE, "The expanded size of the tensor (3) must match the existing size (4) at non-singleton dimension 0."),
    (lambda s: assign_item(s.m, [0], one(4)), RuntimeE, "shape mismatch: value tensor of shape [4] cannot be broadcast to indexing result of shape [1, 3]"),
    # view and reshape, joining, splitting
    (lambda s: s.m.t().view(6), RuntimeE, "view size is not compatible with input tensor's size and stride (at least one dimension spans across two contiguous subspaces). Use .reshape(...) instead."),
    (lambda s: s.m.reshape(4, 2), RuntimeE, "shape '[4, 2]' is invalid for input of size 6"), (lambda s: s.m.view(-1, -1), RuntimeE, "only one dimension can be inferred"),
    (lambda s: torch.cat([one(2, 3), one(2, 4)]), RuntimeE, "Sizes of tensors must match except in dimension 0. Expected size 3 but got size 4 for tensor number 1 in the list."),
    (lambda s: torch.cat([one(2, 3), one(2, 3, 1)]), RuntimeE, "Tensors must have same number of dimensions: got 2 and 3"),
    (lambda s: torch.cat([]), ValueE, "torch.cat(): expected a non-empty list of Tensors"),
    (lambda s: torch.stack([one(2, 3), one(3, 4)]), RuntimeE, "stack expects each tensor to be equal size, but got [2, 3] at entry 0 and [3, 4] at entry 1"),
    (lambda s: one(5).split([1, 2]), RuntimeE, "split_with_sizes expects split_sizes to sum exactly to 5"), (lambda s: one(5).chunk(0), RuntimeE, "chunk expects `chunks` to be greater than 0, got: 0"),
    (lambda s: one(3).narrow(0, 2, 4), RuntimeE, "start (2) + length (4) exceeds dimension size (3)."), (lambda s: one(2, 2, 2).t(), RuntimeE, "t() expects a tensor with <= 2 dimensions, but self is 3D"),
    # index dtypes
    (lambda s: s.m.gather(0, one(1, 1)), RuntimeE, "gather(): Expected dtype int32/int64 for index"), (lambda s: s.m.masked_select(s.m), RuntimeE, "masked_select: expected BoolTensor for mask"),
    (lambda s: torch.where(s.c, s.c, s.c), RuntimeE, "where expected condition to be a boolean tensor, but got a tensor with dtype Float"),
    # einsum
    (lambda s: torch.einsum("ij,jk->ik", s.m, one(4, 5)), RuntimeE, "einsum(): subscript j has size 4 for operand 1 which does not broadcast with previously seen size 3"),
    (lambda s: torch.einsum("ij->k", s.m), RuntimeE, "einsum(): output subscript k does not appear in the equation for any input operand"),
    (lambda s: torch.einsum("ij,jk->ik", s.m), RuntimeE, "einsum(): fewer operands were provided than specified in the equation"),
    # numbers and arithmetic
    (lambda s: bool(s.c), RuntimeE, "Boolean value of Tensor with more than one value is ambiguous"), (lambda s: s.c[:2].item(), RuntimeE, "a Tensor with 2 elements cannot be converted to Scalar"),
    (lambda s: int(s.c), ValueE, "only one element tensors can be converted to Python scalars"),
    (lambda s: s.b - s.b, RuntimeE, "Subtraction, the `-` operator, with two bool tensors is not supported."), (lambda s: s.b - 1, RuntimeE, "Subtraction, the `-` operator, with a bool tensor is not supported."),
    (lambda s: s.i.mean(), RuntimeE, "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: Long"),
    (lambda s: s.i**-1, RuntimeE, "Integers to negative integer powers are not allowed."), (lambda s: s.i // 0, RuntimeE, "ZeroDivisionError"), (lambda s: s.i % 0, RuntimeE, "ZeroDivisionError"),
    # creation
    (lambda s: torch.tensor([[1, 2], [3]]), ValueE, "expected sequence of length 2 at dim 1 (got 1)"), (lambda s: torch.tensor("a"), TypeE, "new(): invalid data type 'str'"),
    (lambda s: torch.linspace(0, 1, -1), RuntimeE, "number of steps must be non-negative"), (lambda s: torch.arange(0, 5, -1), RuntimeE, "upper bound and lower bound inconsistent with step sign"),
    (lambda s: torch.arange(0, 5, 0), RuntimeE, "step must be nonzero"), (lambda s: torch.from_numpy([1]), TypeE, "expected np.ndarray (got list)"),
    (lambda s: torch.from_numpy(np.arange(3)[::-1]), ValueE, "At least one stride in the given numpy array is negative"),
]  # fmt: skip


def assign_item(t, index, value):
    t[index] = value


def made_in_no_grad(s):
    with torch.no_grad():
        return s.y[:2]


@pytest.mark.parametrize("row", range(len(ROWS)), ids=lambda k: f"{k}-{re.sub('[^A-Za-z0-9 ]', '', ROWS[k][2])[:40]}")
def test_row(row):
    call, kind, text = ROWS[row]
    state = State()
    before = state.picture()
    with pytest.raises(kind) as caught:
        call(state)
    assert type(caught.value) in (kind if isinstance(kind, tuple) else (kind,))
    assert text in str(caught.value)
    assert state.picture() == before


MODIFIED = (
    "one of the variables needed for gradient computation has been modified by an inplace operation: "
    "[torch.FloatTensor [3]], which is output 0 of {}, is at version {}; expected version 0 instead. Hint: enable anomaly "
    "detection to find the operation that failed to compute its gradient, with torch.autograd.set_detect_anomaly(True, "
    "check_nan=False)."
)


@pytest.mark.parametrize(
    ("use", "write", "origin", "version"),
    [
        (torch.exp, lambda x, y: y.add_(1), "Exp", 1),
        (torch.sin, lambda x, y: x.add_(1), "Add", 1),
        (torch.sin, lambda x, y: x.mul_(1).mul_(1), "Mul", 2),
        (torch.sin, lambda x, y: x.detach().zero_(), "Mul", 1),
        (torch.sigmoid, lambda x, y: y[0].fill_(0.0), "Sigmoid", 1),
    ],
)
def test_a_saved_tensor_was_written(use, write, origin, version):
    a = torch.ones(3, requires_grad=True)
    x = a * 1
    y = use(x)
    write(x, y)
    with pytest.raises(RuntimeError) as caught:
        y.sum().backward()
    assert str(caught.value) == MODIFIED.format(origin, version)
    assert a.grad is None


def test_what_is_no_error():
    x = torch.ones(3, requires_grad=True)
    y = (x + 1).sum()
    y.backward()
    y.backward()  # nothing was saved
    assert x.grad.tolist() == [2.0] * 3
    (x.view(3, 1)[:1] * 2).backward()  # one element
    assert x.grad.tolist() == [4.0, 2.0, 2.0]
    with torch.no_grad():
        x.add_(1)
    assert x._version == 1


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: (x * 2).grad, "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed."),
        (lambda x: (x * x).sum().backward(create_graph=True), "Using backward() with create_graph=True will create a reference cycle"),
        (lambda x: torch.tensor(x), "it is recommended to use sourceTensor.detach().clone()"),
        (lambda x: torch.exp(torch.zeros(3), out=torch.ones(2)), "An output with one or more elements was resized since it had shape [2]"),
    ],
)  # fmt: skip
def test_warnings(call, text):
    x = torch.ones(3, requires_grad=True)
    with pytest.warns(UserWarning, match=re.escape(text)):
        call(x)
    x.grad = None
