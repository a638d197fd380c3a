"""Which dtype each function gives under autocast: PyTorch's, for operands of all dtypes and mixtures of two.

`outcomes.json` has what PyTorch gave; `python -m tests.amp.test_lists` writes it anew.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import eager
from eager.amp import casting, lists
from graphc.ops import OPS
from tests.amp.cases import CASES, LOWER, mixes, outcomes
from tests.oracle import asked_of_torch, torch_or_skip

FILE = Path(__file__).parent / "outcomes.json"
RECORDED: dict[str, dict[str, str]] = json.loads(FILE.read_text()) if FILE.exists() else {}


def keys(name: str) -> list[str]:
    """What the outcomes of a case are by: the dtype of autocast, and those of the operands."""
    return [f"{lower}: {' '.join(kinds)}" for lower in LOWER for kinds in mixes(len(CASES[name][0]))]


def unpacked(name: str) -> dict[str, str]:
    """The recorded outcomes of a case."""
    every = keys(name)
    return {every[int(k)]: result for result, numbers in RECORDED[name].items() for k in numbers.split()}


@pytest.mark.parametrize("name", CASES)
def test_dtypes(name: str):
    assert outcomes(eager, name) == unpacked(name)


@pytest.mark.deep
@asked_of_torch("name", CASES)
def test_recorded(name: str):
    assert outcomes(torch_or_skip(), name) == unpacked(name)


def test_a_wrong_policy_is_found(monkeypatch: pytest.MonkeyPatch):
    """A planted fault: losses that are computed in the dtype of autocast."""
    casting.install()
    detour = casting.detour_of(eager.nn.functional.mse_loss)
    monkeypatch.setattr(detour, "policy", casting.POLICIES["lower"])
    assert outcomes(eager, "mse_loss") != unpacked("mse_loss")


def test_every_listed_kernel_of_pytorch_is_here():
    torch = torch_or_skip()
    registered = {
        name.removeprefix("aten::").partition(".")[0]
        for name in torch._C._dispatch_get_registrations_for_dispatch_key("AutocastCPU")
    }
    here = {name for _, _, name in lists.rows()} | {op.name for op in OPS.values() if op.autocast}
    plain = {name.removeprefix("linalg_").removeprefix("fft_") for name in registered}
    assert plain - here == MADE_OF_OTHERS.keys()


# what PyTorch lists and is no function here -> the function that is
MADE_OF_OTHERS = {
    "_addmm_activation": "internal", "_convolution": "conv2d", "_grid_sampler_2d_cpu_fallback": "grid_sample",
    "_lu_with_info": "no 16-bit kernel", "_native_multi_head_attention": "linear and matmul",
    "cross_entropy_loss": "cross_entropy", "fake_quantize_per_tensor_affine": "quantized",
    "grid_sampler": "grid_sample",
    "grid_sampler_2d": "grid_sample", "grid_sampler_3d": "grid_sample", "inverse": "inv",
    "multilabel_margin_loss_forward": "multilabel_margin_loss", "nll_loss2d": "nll_loss",
    "orgqr": "householder_product", "reflection_pad1d": "pad", "reflection_pad2d": "pad", "replication_pad1d": "pad",
    "replication_pad2d": "pad", "replication_pad3d": "pad",
}  # fmt: skip


def packed(torch: Any, name: str) -> dict[str, str]:
    """The outcomes of a case in PyTorch: result -> the numbers of the keys that have it."""
    found: dict[str, list[str]] = {}
    for k, result in enumerate(outcomes(torch, name).values()):
        found.setdefault(result, []).append(str(k))
    return {result: " ".join(numbers) for result, numbers in found.items()}


def write() -> None:
    """Write down what PyTorch gives."""
    import torch

    FILE.write_text(json.dumps({name: packed(torch, name) for name in CASES}, indent=None).replace('}, "', '},\n"'))


if __name__ == "__main__":
    write()
