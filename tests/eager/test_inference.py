"""Inference mode: what it makes cannot take part in what is recorded, nor be written afterwards."""

import threading

import pytest

import eager as torch


def made(function):
    with torch.inference_mode():
        return function()


WRITES = {
    "add_": lambda t: t.add_(1), "mul_": lambda t: t.mul_(2), "zero_": lambda t: t.zero_(),
    "fill_": lambda t: t.fill_(3),
    "copy_": lambda t: t.copy_(torch.zeros(2)), "setitem": lambda t: t.__setitem__(0, 5.0), "exp_": lambda t: t.exp_(),
    "clamp_": lambda t: t.clamp_(0), "iadd": lambda t: t.__iadd__(1), "view": lambda t: t.view(2).add_(1),
    "slice": lambda t: t[:1].add_(1), "out": lambda t: torch.exp(torch.zeros(2), out=t),
    "resize_": lambda t: t.resize_(1), "index_fill_": lambda t: t.index_fill_(0, torch.tensor([0]), 9.0),
}  # fmt: skip


@pytest.mark.parametrize("write", WRITES)
def test_no_write_outside(write):
    t = made(lambda: torch.ones(2))
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"):
        WRITES[write](t)
    assert t.tolist() == [1.0, 1.0] and t.is_inference()
    with torch.inference_mode():
        t.add_(1)
    assert t.tolist() == [2.0, 2.0]


@pytest.mark.parametrize("use", [lambda x, t: x * t, lambda x, t: x @ t, lambda x, t: t**x, lambda x, t: t * x])
def test_it_is_not_saved(use):
    t = made(lambda: torch.ones(2))
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        use(x, t)
    assert use(x, t.clone()).requires_grad
    (x + t).sum().backward()  # nothing to save
    assert x.grad.tolist() == [1.0, 1.0]


def test_what_was_made_before_stays_what_it_is():
    before = torch.ones(2, requires_grad=True)
    with torch.inference_mode():
        view, product = before.view(2), before * 2
    assert not before.is_inference() and not view.is_inference() and product.is_inference()
    assert before.requires_grad and not product.requires_grad


def test_modules_run_in_it():
    from eager import nn

    layer = nn.Linear(2, 1)
    with torch.inference_mode():
        y = layer(torch.ones(3, 2))
    assert y.is_inference() and not y.requires_grad and y.shape == (3, 1)


def test_it_belongs_to_the_thread():
    found = []
    with torch.inference_mode():
        thread = threading.Thread(target=lambda: found.append(torch.ones(1).is_inference()))
        thread.start()
        thread.join()
    assert found == [False]


def test_an_error_inside_ends_it():
    with pytest.raises(ValueError), torch.inference_mode():
        raise ValueError
    assert not torch.is_inference_mode_enabled() and not torch.ones(1).is_inference()
