"""Faults that checks once passed over, each for a reason of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

import compare
import eager as torch
from compare.checking.findings import Report
from compare.selftest.planting import declared, with_rule
from graphc.ops import OPS
from graphc.ops.spec import Vjp


def numbers(*shape: int, dtype: Any = np.float32) -> Any:
    return torch.from_numpy(np.random.default_rng(5).uniform(0.5, 1.5, shape).astype(dtype))


def is_named(report: Report, op: str) -> bool:
    """Whether each bug of the report names the op."""
    return bool(report.bugs) and all(f.culprit is not None and f.culprit.op == op for f in report.bugs)


# --- cotangents of complex results are complex


def test_a_lost_gradient_of_an_imaginary_part():
    rule = OPS["complex"].vjp["imag"]
    lost = Vjp(lambda F, *values: rule.fn(F, *values) * 0, rule.names)
    x, y = numbers(4).requires_grad_(), numbers(4).requires_grad_()
    for fn in (lambda x, y: torch.complex(x, y) * 2, lambda x, y: torch.complex(x, y).abs().sum()):
        for mode in ("jax.grad", "finite differences"):
            assert compare.check(fn, x, y, modes=[mode]).ok
            with declared(OPS["complex"], vjp=with_rule(OPS["complex"], "imag", lost)):
                assert is_named(compare.check(fn, x, y, modes=[mode]), "complex")


# --- simulated runs leave strides alone, and flushing is an excuse only where something is flushed


def test_a_kernel_that_is_wrong_on_operands_in_another_order():
    sound = OPS["exp"].kernel

    def wrong(x: np.ndarray) -> np.ndarray:
        return sound(x) if x.flags.c_contiguous else sound(x) * x.dtype.type(1.5)

    fns = (lambda x: x.T.exp(), lambda x: x[:, ::2].exp(), lambda x: (x.T * 2).exp(), lambda x: x.T.sin().exp())
    with declared(OPS["exp"], kernel=wrong):
        for fn in fns:
            assert is_named(compare.check(fn, numbers(3, 4), modes=["compiled"]), "exp")
