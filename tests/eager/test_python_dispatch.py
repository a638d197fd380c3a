"""Modes of `__torch_dispatch__`: which ops they are told, what becomes of what they return, and gradients."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import eager as torch
import graphc
from eager.core.interpreter import IMMEDIATE, current_interpreter
from eager.fx.experimental.proxy_tensor import make_fx
from eager.nn import functional as F
from eager.surface.dispatch_modes import TorchDispatchMode
from graphc.errors import CaptureError


class Told(TorchDispatchMode):
    """Writes down each function that it is told."""

    def __init__(self) -> None:
        self.functions: list[Any] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.functions.append(func)
        return func(*args, **(kwargs or {}))


class Doubled(TorchDispatchMode):
    """Gives twice what tanh gives."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        return result * 2 if func is torch.ops.aten.tanh.default else result


def _trained(mode: Any) -> list[torch.Tensor]:
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Conv1d(2, 3, 2), torch.nn.Flatten(), torch.nn.BatchNorm1d(9), torch.nn.GELU(), torch.nn.Dropout(),
        torch.nn.Linear(9, 4), torch.nn.LSTM(4, 3),
    )  # fmt: skip
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
    x = torch.randn(6, 2, 4)
    with mode:
        for _ in range(2):
            optimizer.zero_grad()
            hidden, _ = net(x)
            value, place = hidden.abs().max(1)
            (F.cross_entropy(hidden, place) + value.sum().sqrt() + hidden[:, 0].cumsum(0).std()).backward()
            optimizer.step()
    return [*net.state_dict().values(), *(p.grad for p in net.parameters())]


def test_a_mode_that_changes_nothing_changes_nothing():
    told = Told()
    for plain, seen in zip(_trained(torch.enable_grad()), _trained(told), strict=True):
        assert torch.equal(plain, seen)
    assert len(told.functions) > 200 and current_interpreter() is IMMEDIATE
    assert {torch.ops.aten.mul.Tensor, torch.ops.aten.addmm.default} <= {*told.functions}


def test_what_a_mode_returns_is_the_result_and_has_the_ops_gradient():
    """As in PyTorch: tanh's gradient is of its result."""
    x = torch.tensor([0.5], requires_grad=True)
    with Doubled():
        y = x.tanh() * 3
    y.sum().backward()
    tanh = 0.46211717
    assert (y.item(), x.grad.item()) == pytest.approx((6 * tanh, 3 * (1 - (2 * tanh) ** 2)))


def test_modes_in_each_other_the_innermost_first():
    outer, inner = Told(), Told()
    with outer, Doubled(), inner:
        torch.ones(2).tanh()
    assert [str(f) for f in inner.functions] == ["aten.tanh.default"]
    assert [str(f) for f in outer.functions] == ["aten.tanh.default", "aten.mul.Tensor"]


def test_backward_is_told_also_outside_of_what_was_recorded():
    x = torch.ones(3, requires_grad=True)
    y = x.exp().sum()
    told = Told()
    with told:
        y.backward()
    assert [f.name() for f in told.functions] == ["aten::broadcast_to", "aten::mul.Tensor"]
    assert x.grad.tolist() == pytest.approx([2.7182817] * 3)


def test_views_and_writes_are_those_of_the_plain_run():
    with Told():
        x = torch.arange(4.0).requires_grad_()
        y = x * 1
        part = y.view(2, 2)[0]
        part.mul_(3)
    assert part._base is not None and y.tolist() == [0, 3, 2, 3]
    y.sum().backward()
    assert x.grad.tolist() == [3, 3, 1, 1]


def test_an_overload_can_be_called_later_with_what_was_told():
    calls: list[Any] = []

    class Kept(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            calls.append((func, args, kwargs, copy.copy(result)))
            return result

    with Kept():
        x = torch.arange(6.0).reshape(2, 3)
        x.sum(1).softmax(0), x.to(torch.float64), x[:, 1:], F.embedding(torch.tensor([1]), x), x.sort(0)
    for func, args, kwargs, result in calls:
        again = func(*args, **kwargs)
        pairs = zip(again, result, strict=True) if isinstance(result, tuple) else [(again, result)]
        assert all(torch.equal(a, b) for a, b in pairs), func


def test_what_cannot_be_is_said():
    class Nothing(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return None

    with (
        pytest.raises(TypeError, match=r"__torch_dispatch__ of Nothing returned NoneType for aten.neg.default"),
        Nothing(),
    ):
        -torch.ones(2)
    assert current_interpreter() is IMMEDIATE

    def inside(x: torch.Tensor) -> torch.Tensor:
        with Told():
            return x * 2

    with pytest.raises(NotImplementedError, match="a program is being captured"):
        graphc.trace(inside, torch.ones(2))
    told = Told()
    with told:
        graphc.compile(lambda x: x * 2)(torch.ones(2))
    assert [str(f) for f in told.functions] == ["aten.mul.Tensor"]


def test_make_fx_gives_the_ops_of_a_function_and_its_gradients():
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    y = torch.tensor([0, 1, 1, 0, 1])

    def gradients(x: torch.Tensor, options: dict[str, Any]) -> Any:
        loss = F.cross_entropy(net(x) * options["scale"], options["y"]) + x.sort(0)[0].to(torch.float64).sum()
        return {"of": torch.autograd.grad(loss, [*net.parameters()]), "loss": loss.detach()}

    x, other = torch.randn(5, 3), torch.randn(5, 3)
    module = make_fx(gradients)(x, {"scale": torch.tensor(2.0), "y": y})
    assert [name for name, _ in module.named_parameters()] == [f"_param_constant{k}" for k in range(4)]
    found, wanted = module(other, torch.tensor(2.0), y), gradients(other, {"scale": torch.tensor(2.0), "y": y})
    assert torch.allclose(found["loss"], wanted["loss"])
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(found["of"], wanted["of"], strict=True))
    code = make_fx(torch.vmap(lambda x: x * 2 > 1))(x).code
    assert "torch.ops.aten.mul.Tensor(x_1, 2.0)" in code and "torch.ops.aten.gt.Scalar(mul, 1.0)" in code
    for function, text in (
        (lambda x: x + torch.randn(3), "random numbers"), (lambda x: x if x.sum() > 0 else -x, "depends on"),
        (lambda x: y.add_(1), "changes tensors"),
    ):  # fmt: skip
        with pytest.raises(CaptureError, match=text):
            make_fx(function)(x)
