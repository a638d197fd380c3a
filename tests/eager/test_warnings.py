"""Warnings that PyTorch gives, in its words: once in a process where PyTorch gives them once."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

import eager
import graphc
from eager.core import warned
from tests.oracle import torch_or_skip

ROOT = Path(__file__).resolve().parents[2]
# call -> the beginning of the warning, as recorded
ONCE = {
    "t.ones(2, 3, 4).T": "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated",
    "t.ones(3).T": "The use of `x.T` on tensors of dimension other than 2",
    "t.tensor(1.0).T": "Tensor.T is deprecated on 0-D tensors. This function is the identity in these cases.",
    "t.tensor(1.0).mT": "Tensor.mT is deprecated on 0-D tensors. This function is the identity in these cases.",
    "t.chain_matmul(t.ones(2, 2), t.ones(2, 2))": "torch.chain_matmul is deprecated and will be removed",
    "t.qr(t.ones(2, 2))": "torch.qr is deprecated in favor of torch.linalg.qr and will be removed",
    "t.eye(2).qr()": "torch.qr is deprecated in favor of torch.linalg.qr",
    "t.cholesky(t.eye(2))": "torch.cholesky is deprecated in favor of torch.linalg.cholesky",
    "t.eye(2).cholesky()": "torch.cholesky is deprecated in favor of torch.linalg.cholesky",
    "t.triangular_solve(t.ones(2, 1), t.eye(2))": "torch.triangular_solve is deprecated in favor of",
    "t.lu(t.eye(2))": "torch.lu is deprecated in favor of torch.linalg.lu_factor",
    "t.stft(t.ones(16), 4, return_complex=True)": "A window was not provided. A rectangular window will be applied,",
    "float(t.ones(1, requires_grad=True))": "Converting a tensor with requires_grad=True to a scalar may lead to",
    "t.ones(2, dtype=t.complex64).float()": "Casting complex values to real discards the imaginary part",
    "t.ones(2).copy_(t.ones(2, dtype=t.complex64))": "Casting complex values to real discards the imaginary part",
    "t.ones(2).__setitem__(0, t.tensor(1j))": "Casting complex values to real discards the imaginary part",
    "t.stft(t.ones(16), 4, window=t.ones(4), return_complex=False)": "stft with return_complex=False is",
    "t.where(t.ones(2).byte(), 1.0, 0.0)": "where received a uint8 condition tensor. This behavior is deprecated",
    "t.ones(2).storage()": "TypedStorage is deprecated. It will be removed in the future",
    "t.set_default_tensor_type(t.FloatTensor)": "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1",
}
EACH_TIME = {
    "t.ones(2)[t.ones(2).byte()]": "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool",
    "F.kl_div(t.ones(2), t.ones(2))": "reduction: 'mean' divides the total loss by both the batch size and the support",
    "F.mse_loss(t.ones(3, 1), t.ones(3))": "Using a target size (torch.Size([3])) that is different to the input size",
    "F.l1_loss(t.ones(3, 1), t.ones(3))": "Using a target size (torch.Size([3])) that is different to the input size",
    "F.huber_loss(t.ones(3, 1), t.ones(3))": "Using a target size (torch.Size([3])) that is different to the input",
    "first_schedule(t)": "Detected call of `lr_scheduler.step()` before `optimizer.step()`.",
}
SILENT = (
    "t.ones(2, 3).T", "t.ones(2, 3, 4).mT", "F.kl_div(t.ones(2), t.ones(2), reduction='batchmean')",
    "t.kl_div(t.ones(2), t.ones(2), reduction=1)", "t.linalg.qr(t.ones(2, 2))", "t.linalg.cholesky(t.eye(2))",
    "t.stft(t.ones(16), 4, window=t.ones(4), return_complex=True)", "t.ones(2).untyped_storage()",
    "F.mse_loss(t.ones(3), t.ones(3))", "t.ones(2, dtype=t.complex64).bool()",
)  # fmt: skip


def first_schedule(t: Any) -> None:
    """A schedule that goes on before its optimizer."""
    parameter = t.nn.Parameter(t.ones(1))
    parameter.grad = t.ones(1)
    optimizer = t.optim.SGD([parameter], lr=0.1)
    schedule = t.optim.lr_scheduler.StepLR(optimizer, 1)
    schedule.step()


def given(t: Any, call: str) -> list[tuple[str, str]]:
    """The warnings of a call, and the file that each one names."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        eval(call, {"t": t, "F": t.nn.functional, "first_schedule": first_schedule})
    place = re.compile(r" \(Triggered internally at .*\)$")
    return [(place.sub("", str(w.message)), Path(w.filename).name) for w in found]


@pytest.mark.parametrize("call", [*ONCE, *EACH_TIME, *SILENT])
def test_warnings_are_pytorchs(call: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(warned, "_given", set[str]())
    ours = given(eager, call)
    expected = {**ONCE, **EACH_TIME}.get(call)
    assert [text.startswith(expected) for text, _ in ours] == [True] if expected else not ours
    assert given(eager, call) == ([] if call in ONCE else ours)
    torch = torch_or_skip()
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        theirs = given(torch, call)
    finally:
        torch.set_warn_always(before)
    texts = [text for text, _ in ours]
    assert [text for text, _ in theirs] == texts or "storage" in call  # PyTorch's own flag says storage's once


def test_they_name_the_line_of_the_user(monkeypatch: pytest.MonkeyPatch):
    for call in ONCE:
        monkeypatch.setattr(warned, "_given", set[str]())
        assert [file for _, file in given(eager, call)] == ["<string>"], call


def test_they_can_be_asked_for_each_time(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(warned, "always", [False])
    monkeypatch.setattr(warned, "_given", set[str]())
    call = "t.ones(3).T"
    assert [len(given(eager, call)) for _ in range(2)] == [1, 0]
    eager.set_warn_always(True)
    assert eager.is_warn_always_enabled() and [len(given(eager, call)) for _ in range(2)] == [1, 1]


def test_names_that_are_misspelt_are_answered():
    for name, meant in (("complie", "compile"), ("graidents", "gradients"), ("trase", "trace")):
        with pytest.raises(AttributeError, match=rf"'graphc' has no attribute '{name}'. Did you mean: '{meant}'"):
            getattr(graphc, name)
    for name in ("zzzzzz", "__complie__", "_compile"):
        with pytest.raises(AttributeError, match=rf"has no attribute '{name}'$"):
            getattr(graphc, name)
    code = "import graphc, sys\ntry: graphc.complie\nexcept AttributeError: print('jax' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
