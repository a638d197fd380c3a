"""Where eager parts from PyTorch by decision."""

from __future__ import annotations

# (start of the call, part of the operands, reason)
DEVIATIONS: tuple[tuple[str, str, str], ...] = (
    ("F.gelu(x)", "f32[12]", "PyTorch's vector code gives nan at infinity; the exact limit is given here"),
    ("t.frexp(x)", "[12]v", "PyTorch's gradient of an infinite operand is nan or 0 by dtype"),
)
