"""Views and in-place writes of device tensors: programs that give what they give in NumPy's memory."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import eager as torch
from eager.core.tensor import Tensor
from tests.devices.far import far

Program = Callable[[Tensor], Any]  # of a 3x4 tensor; returns what to compare besides it


def _zeroed_detached(x: Tensor) -> Any:
    y = x.detach()
    y.zero_()
    return y, x._version


def _written_through_two(x: Tensor) -> Any:
    first, second = x[0], x.t()[1]
    first.add_(1)
    second.mul_(3)
    return first, second, first._version == second._version == x._version


def _rows(x: Tensor) -> Any:
    for k, row in enumerate(x):
        row.fill_(k)
    return x.sum()


def _slices(x: Tensor) -> Any:
    x[1:, ::2] = torch.arange(4.0, device=x.device).reshape(2, 2)
    x[0] *= 2
    x[:, 1] = -1
    x[x > 3] = 0
    return x[2, 1:3]


def _chunks(x: Tensor) -> Any:
    left, right = x.chunk(2, 1)
    left.copy_(right)
    right.zero_()
    return left


def _strided(x: Tensor) -> Any:
    y = x.as_strided((2, 2), (4, 1), 1)
    y.add_(10)
    z = x[1].as_strided((2,), (4,), 0)
    z.mul_(2)
    return y, z, y.storage_offset(), z.stride()


def _diagonals(x: Tensor) -> Any:
    x.diagonal(1).fill_(7)
    x[:, :3].diagonal().add_(1)
    return x.diagonal()


def _complex(x: Tensor) -> Any:
    z = torch.view_as_complex(x.view(3, 2, 2))
    z.mul_(1j)
    z.real.add_(1)
    return z, torch.view_as_real(z)


def _swapped(x: Tensor) -> Any:
    y = x.clone().t()
    x.t().copy_(y)
    y.unsqueeze_(0)
    return y, y.stride(), y.is_contiguous()


def _unfolded(x: Tensor) -> Any:
    windows = x.unfold(1, 2, 2)
    windows[:, 0].fill_(5)
    return windows, windows.stride()


def _index(x: Tensor) -> Any:
    x.index_add_(0, torch.tensor([0, 0]).to(x.device), torch.ones(2, 4, device=x.device))
    x.scatter_(1, torch.tensor([[1], [2], [3]]).to(x.device), 9.0)
    x.index_fill_(1, torch.tensor([0]).to(x.device), -2)
    x[[0, 2]] += 1
    x.masked_fill_(x > 8, 0)
    return x[torch.tensor([2, 0])]


def _out(x: Tensor) -> Any:
    y = torch.empty(3, 4, device=x.device)
    torch.add(x, 1, out=y)
    torch.mul(x, 2, out=x[:])
    return y


def _set_data(x: Tensor) -> Any:
    y = torch.zeros(3, 4, device=x.device)
    y.data = x
    y.add_(1)
    x.data.mul_(2)
    return y


def _expanded_fill(x: Tensor) -> Any:
    y = x[:, :1].expand(3, 4)
    y.zero_()
    return y


def _copies(x: Tensor) -> Any:
    both = copy.deepcopy([x, x[1]])
    both[0][1].zero_()
    loaded = pickle.loads(pickle.dumps([x, x.t()[2]]))
    loaded[0].add_(1)
    return both, loaded, loaded[0].device == x.device


def _view_dtype(x: Tensor) -> Any:
    y = x.view(torch.int32)
    y.bitwise_and_(-256)
    return y


def _reshaped(x: Tensor) -> Any:
    copied, shown = x.t().reshape(12), x.reshape(12)
    copied.zero_()
    shown[3] = 100
    return copied, shown, x.flatten()[3]


PROGRAMS: list[Program] = [
    _zeroed_detached, _written_through_two, _rows, _slices, _chunks, _strided, _diagonals, _complex, _swapped,
    _unfolded, _index, _out, _set_data, _expanded_fill, _copies, _view_dtype, _reshaped,
    lambda x: x.view(-1).mul_(2),
    lambda x: x.squeeze().unsqueeze(0).transpose(0, 2).sub_(1).stride(),
    lambda x: (x.relu_(), x.clamp_(0, 1), x.add_(x.t()[:3, :3].sum())),
    lambda x: x.T.flatten()[5:].zero_(),
    lambda x: torch.split(x, [1, 2])[1].exp_(),
    lambda x: [row.neg_() for row in x.unbind(1)[1:3]],
]  # fmt: skip


def _grad_of_written(x: Tensor) -> Any:
    y = x * 2
    y[0].mul_(3)
    y[:, 1] = (y[:, 2] + 1).sin()
    return y.sin().sum()


def _grad_through_detached_copy(x: Tensor) -> Any:
    y = torch.zeros(3, 4, device=x.device)
    y.t()[1:3].copy_(x.t()[:2] ** 2)
    return (y * x).sum()


def _grad_of_views(x: Tensor) -> Any:
    y = x * 2
    a, b = y.view(4, 3), y.t()
    b.add_(x.t())
    return (a[1] * b[0, 0]).sum() + a.as_strided((2,), (5,), 1).prod()


def _second(x: Tensor) -> Any:
    (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    return (g * x[0]).sum()


def _hooked(x: Tensor) -> Any:
    y = x * x
    y.register_hook(lambda g: g * 2)
    return y.sum()


class _Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return 3 * x * x * g


def _checkpointed(x: Tensor) -> Any:
    from eager.utils.checkpoint import checkpoint

    return checkpoint(lambda x: (x.sin() * x).sum(), x, use_reentrant=False)


def _there_and_back(x: Tensor) -> Any:
    here = x.cpu() * 2
    return (here.to(x.device) * x).sum().cpu() + here.sum()


def _saved_hooks(x: Tensor) -> Any:
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.cpu(), lambda t: t.to(x.device)):
        return (x.exp() * x).sum()


LOSSES: list[Program] = [
    _grad_of_written, _grad_through_detached_copy, _grad_of_views, _second, _hooked, _checkpointed, _there_and_back,
    _saved_hooks, lambda x: _Cube.apply(x).sum(), lambda x: torch.cat([x, x.t().reshape(3, 4)]).norm(),
    lambda x: x.max(1).values.sum() + x.sort(0)[0][1].sum() + x[x > 0].sum(),
    lambda x: torch.nn.functional.cross_entropy(x, torch.tensor([1, 0, 3]).to(x.device)),
]  # fmt: skip


def made(device: str) -> Tensor:
    values = np.random.default_rng(3).normal(size=(3, 4)).astype(np.float32)
    return torch.from_numpy(values).to(device)


def plain(value: Any) -> Any:
    """Tensors as arrays."""
    if isinstance(value, Tensor):
        return value.detach().cpu().numpy().copy()
    return [plain(v) for v in value] if isinstance(value, (list, tuple)) else value


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_that_write(program: Program):
    with far():
        results = []
        for device in ("cpu", "xla:2"):
            x = made(device)
            results.append([plain(program(x)), plain(x)])
        same(*results)


@pytest.mark.parametrize("loss", LOSSES)
def test_gradients(loss: Program):
    with far():
        results = []
        for device in ("cpu", "xla:2"):
            x = made(device).requires_grad_()
            value = loss(x)
            value.backward()
            loss(x).backward()  # adds
            assert x.grad is not None
            assert x.grad.device == x.device
            results.append([plain(value), plain(x.grad), plain(torch.autograd.grad(loss(x), x))])
        same(*results)


def same(a: Any, b: Any) -> None:
    if isinstance(a, list):
        assert len(a) == len(b)
        for one, other in zip(a, b, strict=True):
            same(one, other)
    elif isinstance(a, np.ndarray):
        np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-6)
    else:
        assert a == b


def test_a_saved_value_that_is_written():
    with far():
        x = made("xla:1").requires_grad_()
        y = x.exp()
        y.view(-1)[0] = 1
        z = x.exp()
        loss = (z * z).sum()
        z.detach().add_(1)
        with pytest.raises(RuntimeError, match=r"modified by an inplace operation: \[torch.FloatTensor \[3, 4\]\]"):
            loss.backward()


def test_writes_that_are_refused():
    with far():
        x = made("xla:1").requires_grad_()
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
            x.add_(1)
        with pytest.raises(RuntimeError, match="a view of a leaf"):
            x[0].zero_()
        repeated = torch.zeros(3, 1, device="xla:1").expand(3, 4)
        with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
            repeated.add_(1)
        assert repeated[::2, :1].add_(1).tolist() == [[1.0]] * 2
        with pytest.raises(RuntimeError, match="output with shape"):
            torch.zeros(4, device="xla:1").add_(x.detach())
