"""Leaves that require grad from somewhere on, or not any more when gradients arrive: as in PyTorch, in both modes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import eager as torch
import graphc

pytestmark = pytest.mark.on_numpy


def frozen_before_backward(w: Any) -> Any:
    loss = (w * 2).sum()
    w.requires_grad_(False)
    loss.backward()
    return loss


def frozen_and_returned(w: Any) -> Any:
    loss = (w * 2).sum()
    w.requires_grad_(False)
    return loss


def detached_in_place(w: Any) -> Any:
    loss = (w * 2).sum()
    w.detach_()
    return loss


def frozen_and_thawed(w: Any) -> Any:
    loss = (w * 2).sum()
    w.requires_grad_(False)
    w.requires_grad_(True)
    return loss


MODES = {"eager": lambda f: f, "compiled": graphc.compile}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("function", "expected"),
    [(frozen_before_backward, None), (frozen_and_returned, None), (detached_in_place, None), (frozen_and_thawed, 2.0)],
)
def test_what_requires_no_grad_any_more_gets_none(function: Callable[[Any], Any], expected: Any, mode: str):
    fn = MODES[mode](function)
    for _ in range(2):
        w = torch.ones(2, requires_grad=True)
        loss = fn(w)
        if function is not frozen_before_backward:
            loss.backward()
        assert w.requires_grad is (expected is not None)
        assert w.grad is None if expected is None else w.grad.tolist() == [expected] * 2


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.filterwarnings("ignore:Using backward")
@pytest.mark.parametrize("create_graph", [False, True])
def test_what_was_computed_before_has_no_gradient_for_a_late_leaf(mode: str, create_graph: bool):
    def before_and_after(x: Any, w: Any) -> Any:
        before = x * w
        x.requires_grad_()
        return (before * before).sum(), (x * x * w).sum()

    fn = MODES[mode](before_and_after)
    for _ in range(2):
        x, w = torch.tensor([3.0]), torch.tensor([5.0], requires_grad=True)
        first, second = fn(x, w)
        first.backward(create_graph=create_graph, retain_graph=True)
        assert x.requires_grad
        assert x.grad is None
        assert w.grad.tolist() == [90.0]
        second.backward()
        assert x.grad.tolist() == [30.0]


@pytest.mark.parametrize("mode", MODES)
def test_gradients_to_the_middle_leave_what_is_before_it(mode: str):
    def middle(x: Any, w: Any) -> Any:
        hidden = (w * x).exp()
        (slope,) = torch.autograd.grad((hidden * x).sum(), hidden)
        return hidden * slope.detach()

    fn = MODES[mode](middle)
    for _ in range(2):
        x, w = torch.tensor([2.0]), torch.tensor([0.0], requires_grad=True)
        fn(x, w).sum().backward()
        assert w.grad.tolist() == [4.0]


@pytest.mark.parametrize("mode", MODES)
def test_gradients_to_the_middle_free_what_is_behind_it(mode: str):
    def twice(x: Any, w: Any) -> Any:
        hidden = w * x
        loss = (hidden * hidden).sum()
        torch.autograd.grad(loss, hidden)
        return loss

    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        MODES[mode](twice)(torch.tensor([2.0]), torch.tensor([1.0], requires_grad=True)).backward()


@pytest.mark.parametrize("mode", MODES)
def test_a_copy_keeps_nothing_that_a_gradient_frees(mode: str):
    def copied(x: Any, w: Any) -> Any:
        x = x.clone()
        x.copy_(w)
        torch.autograd.grad(x.sum(), w)
        return x * 2

    w = torch.tensor([1.0], requires_grad=True)
    MODES[mode](copied)(torch.tensor([2.0]), w).sum().backward()
    assert w.grad.tolist() == [2.0]


def written(leaf: Any, view: Any) -> None:
    view.copy_(leaf * 2)


def frozen_and_written(leaf: Any, view: Any) -> None:
    leaf.requires_grad_(False)
    view.mul_(2)


def a_part_written(leaf: Any, view: Any) -> None:
    view[0] = 3.0


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("function", [written, frozen_and_written, a_part_written])
def test_a_view_of_a_leaf_is_not_written(function: Callable[[Any, Any], Any], mode: str):
    leaf = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being used"):
        MODES[mode](function)(leaf, leaf.view(-1))
    assert leaf.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("mode", MODES)
def test_a_view_of_a_leaf_is_written_without_gradients(mode: str):
    leaf = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        MODES[mode](written)(leaf, leaf.view(-1))
    assert leaf.tolist() == [2.0, 2.0]
