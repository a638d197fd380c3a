"""Differences from PyTorch on its own samples that are accepted: (op, aspect, reason)."""

from __future__ import annotations

import re

TIES = "PyTorch leaves the order of ties open"
GAUGE = "a factor is free in sign or phase, and so are gradients that depend on it"

ACCEPTED: tuple[tuple[str, str, str], ...] = (
    (r"(topk|kthvalue|mode|sort|argsort|msort)\b", "", TIES),
    (r"(linalg\.)?(svd|eig|eigh|qr)\b", "", GAUGE),
)


def accepted(op: str, aspect: str) -> str:
    """Why a difference of `op` is accepted; empty if it is not."""
    return next((why for name, at, why in ACCEPTED if re.match(name, op) and at in aspect), "")
