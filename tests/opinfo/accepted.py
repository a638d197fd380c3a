"""Differences from PyTorch on its own samples that are accepted: (op, aspect, reason)."""

from __future__ import annotations

import re

TIES = "PyTorch leaves the order of ties open"
GAUGE = "a factor is free in sign or phase, and so are gradients that depend on it"

ACCEPTED: tuple[tuple[str, str, str], ...] = (
    (r"(topk|kthvalue|mode|sort|argsort|msort)\b", "", TIES),
    (r"(linalg\.)?(svd|eig|eigh|qr)\b", "", GAUGE),
    (r"special.bessel_j0", "value", "PyTorch's own approximation is off by 4e-7 in double precision"),
    (r"matrix_exp", "", "PyTorch overflows in 16 bits; in float32, rounding that repeated squaring magnifies"),
    (r"view_as_complex", "value", "complex32 is not a dtype here"),
    (r"as_strided partial_views", "view", "the memory of the sample begins before the sample"),
    (r"logcumsumexp", "gradient", "a difference of two sums, rounded to float32 in both libraries"),
    (r"expand_as", "view", "the stride of a new dim of one element, which is never taken"),
    (r"nn.functional.pixel_", "view", "shuffling by 1 is a view here, a copy in PyTorch"),
)


def accepted(op: str, aspect: str) -> str:
    """Why a difference of `op` is accepted; empty if it is not."""
    return next((why for name, at, why in ACCEPTED if re.match(name, op) and at in aspect), "")
