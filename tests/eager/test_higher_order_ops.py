"""`torch.cond`, `torch.while_loop`, scans: by the values of plain loops, in both modes."""

from __future__ import annotations

import pytest

import compare
import eager as torch
from eager._higher_order_ops import associative_scan, map, scan

pytestmark = pytest.mark.on_numpy


def _linear(a, b):
    return a[0] * b[0], b[0] * a[1] + b[1]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("n", range(1, 9))
def test_an_associative_scan_is_the_loop(n, reverse):
    x, y = torch.randn(3, n, dtype=torch.float64), torch.randn(3, n, dtype=torch.float64)
    _, found = associative_scan(_linear, (x, y), 1, reverse, "generic")
    state, rows = torch.zeros(3, dtype=torch.float64), []
    for k in reversed(range(n)) if reverse else range(n):
        state = x[:, k] * state + y[:, k]
        rows.append(state)
    torch.testing.assert_close(found, torch.stack(rows[::-1] if reverse else rows, 1))


PROGRAMS = {
    "cond": lambda x: torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,)),
    "while_loop": lambda x: torch.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x), (torch.tensor(0), x))[1],
    "scan": lambda x: scan(lambda c, y: (c + y, c * y), torch.zeros(2), x, dim=1, reverse=True),
    "map": lambda x: map(lambda row, z: row.cumsum(0) * z, x, x[0]),
    "associative_scan": lambda x: associative_scan(_linear, (x, x), 1, combine_mode="generic"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_both_modes_agree(name):
    x = torch.randn(2, 5, requires_grad=True)
    report = compare.check(PROGRAMS[name], x, modes=["graph", "compiled", "finite differences"])
    assert report.ok, report


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: torch.cond(torch.ones(2), abs, abs, ()), "Expected pred to be bool or single-element tensor"),
        (lambda: torch.cond(True, 1, abs, ()), "Expect both branches to be callable"),
        (lambda: torch.while_loop(1, abs, ()), "Expect cond_fn and body_fn to be callable"),
    ],
)
def test_refusals(call, text):
    with pytest.raises(RuntimeError, match=text):
        call()
