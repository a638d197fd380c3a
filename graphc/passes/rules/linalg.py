"""Matrix products: associativity and the distributive law, where the cost model says that it pays."""

from __future__ import annotations

from graphc.ops.samples import Floats
from graphc.rewrite import REASSOCIATES
from graphc.rewrite import RewriteRule as R


def _matrices(*operands) -> bool:
    return all(len(x.shape) in (1, 2) for x in operands)


def _left_over_right(a, b, c) -> int:
    """What (AB)C costs more than A(BC). Only a strict saving counts, or the rules would undo each other."""
    m, p = a.shape[0] if len(a.shape) == 2 else 1, c.shape[1] if len(c.shape) == 2 else 1
    k, n = b.shape
    return (m * k * n + m * n * p) - (k * n * p + m * k * p)


_CHAIN = {"a": Floats((5, 4)), "b": Floats((4, 5)), "c": Floats((5,))}

RULES = (
    # libraries add up the terms of transposed matrices in another order
    R("matmul_of_transposes", REASSOCIATES,
      lambda F, x, y: F.permute(F.permute(x, dims=(1, 0)) @ F.permute(y, dims=(1, 0)), dims=(1, 0)),
      lambda F, x, y: y @ x, example={"x": Floats((3, 4)), "y": Floats((5, 3))}),
    # (AB)v = A(Bv): from cubic to quadratic. The last operand may be a vector; the middle one must be a matrix.
    R("matmul_right", REASSOCIATES, lambda F, a, b, c: (a @ b) @ c, lambda F, a, b, c: a @ (b @ c),
      when=lambda a, b, c: _matrices(a, b, c) and len(b.shape) == 2 and _left_over_right(a, b, c) > 0, example=_CHAIN),
    R("matmul_left", REASSOCIATES, lambda F, a, b, c: a @ (b @ c), lambda F, a, b, c: (a @ b) @ c,
      when=lambda a, b, c: _matrices(a, b, c) and len(b.shape) == 2 and _left_over_right(a, b, c) < 0,
      example={"a": Floats((5,)), "b": Floats((5, 4)), "c": Floats((4, 5))}),
    R("matmul_distributes", REASSOCIATES, lambda F, a, b, c: a @ b + a @ c, lambda F, a, b, c: a @ (b + c),
      when=lambda a, b, c: b.shape == c.shape, example={"a": Floats((3, 4)), "b": Floats((4, 5)), "c": Floats((4, 5))}),
    R("matmul_distributes_left", REASSOCIATES, lambda F, a, b, c: a @ c + b @ c, lambda F, a, b, c: (a + b) @ c,
      when=lambda a, b, c: a.shape == b.shape, example={"a": Floats((3, 4)), "b": Floats((3, 4)), "c": Floats((4, 5))}),
)  # fmt: skip
