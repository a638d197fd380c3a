"""Operations that `FlopCounterMode` counts: the numbers, and the table, of PyTorch 2.13."""

from __future__ import annotations

import pytest

import eager as torch
from eager import nn
from eager.utils.flop_counter import FlopCounterMode

TABLE = """
Module          FLOP    % Total
------------  ------  ---------
Sequential       352    100.00%
- aten.addmm     160     45.45%
- aten.mm        192     54.55%
Sequential.0     256     72.73%
- aten.addmm     128     36.36%
- aten.mm        128     36.36%
Sequential.2      96     27.27%
- aten.addmm      32      9.09%
- aten.mm         64     18.18%
"""


def test_modules_forward_and_backward(capsys):
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    with FlopCounterMode() as counter:
        model(torch.ones(2, 4)).sum().backward()
    assert capsys.readouterr().out.strip() == TABLE.strip()
    assert counter.get_total_flops() == 352
    assert model(torch.ones(2, 4)).shape == (2, 1) and counter.get_total_flops() == 352  # nothing is counted after it


def _convolution():
    nn.Conv2d(3, 8, 3, stride=2)(torch.ones(2, 3, 9, 9, requires_grad=True)).sum().backward()


CASES = {
    "convolution": (_convolution, {"aten.convolution": 13824, "aten.convolution_backward": 27648}),
    "groups": (lambda: nn.Conv2d(4, 8, 3, groups=2)(torch.ones(2, 4, 9, 9)), {"aten.convolution": 28224}),
    "transposed": (lambda: nn.ConvTranspose2d(3, 8, 3)(torch.ones(2, 3, 9, 9)), {"aten.convolution": 69984}),
    "batches": (lambda: torch.ones(2, 3, 4) @ torch.ones(2, 4, 5), {"aten.bmm": 240}),
    "nothing": (lambda: torch.ones(3) + 1, {}),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_counted(name):
    run, expected = CASES[name]
    with FlopCounterMode(display=False) as counter:
        run()
    assert counter.get_flop_counts().get("Global", {}) == expected


def test_a_profile_has_flops():
    x = torch.ones(4, 5)
    with torch.profiler.profile(with_flops=True) as profile:
        (x @ torch.ones(5, 6)) + 1
    found = {event.key: event.flops for event in profile.key_averages() if event.flops}
    assert found == {"aten::matmul": 240, "aten::add": 24}
