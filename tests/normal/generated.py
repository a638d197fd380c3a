"""Random expressions of linear algebra, as people write them: thin, square and batched arrays, shared parts."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from tests.normal.expressions import Expression, Shape, leaf, make, parts

LARGE, HALF, THIN, BATCH = 96, 48, 6, 4
SPLIT = {LARGE: (8, 12), HALF: (4, 12), THIN: (2, 3)}  # sizes of factors of Kronecker products
MOST_FACTORS = 8


def random_expression(seed: int) -> Expression:
    """With two to MOST_FACTORS inputs, each as often as it is written."""
    rng = np.random.default_rng(seed)
    shapes: list[tuple[float, Shape]] = [
        (3, (LARGE, LARGE)), (3, (LARGE,)), (2, ()), (1, (LARGE, THIN)), (1, (HALF, LARGE)), (1, (THIN, THIN)),
        (1, (BATCH, HALF, HALF)),
    ]  # fmt: skip
    weights = np.array([w for w, _ in shapes])
    while True:
        shape = shapes[rng.choice(len(shapes), p=weights / weights.sum())][1]
        grown = _Growth(rng).expression(shape, int(rng.integers(2, MOST_FACTORS + 1)))
        if sum(part.operation not in ("leaf", "t") for part in parts(grown)) > 1:
            return grown


@final
class _Growth:
    """Grows an expression from its shape downwards."""

    def __init__(self, rng: np.random.Generator):
        self._rng = rng
        self._leaves: dict[Any, list[Expression]] = {}
        self._made: dict[Shape, list[Expression]] = {}

    def expression(self, shape: Shape, budget: int) -> Expression:
        """Of a shape, with at most `budget` inputs."""
        rng = self._rng
        if budget <= 1:
            return self._leaf(shape)
        known = self._made.get(shape, [])
        if known and rng.random() < 0.3:
            return known[rng.integers(len(known))]
        turned = self._made.get(shape[::-1], []) if len(shape) == 2 else []
        if turned and rng.random() < 0.2:
            return make("t", turned[rng.integers(len(turned))])
        ways = [self._scalar, self._vector, self._matrix, self._batch][len(shape)](shape, budget)
        weights = np.array([weight for weight, _ in ways], float)
        made = ways[rng.choice(len(ways), p=weights / weights.sum())][1]()
        self._made.setdefault(shape, []).append(made)
        return made

    def _leaf(self, shape: Shape, kind: str = "") -> Expression:
        """An input: one that is there, as it is or transposed, or another."""
        rng = self._rng
        if not kind:
            turned = self._leaves.get(("", shape[::-1]), []) if len(shape) == 2 else []
            if turned and rng.random() < 0.3:
                return make("t", turned[rng.integers(len(turned))])
        known = self._leaves.setdefault((kind, shape), [])
        if not known or rng.random() < 0.5:
            letter = kind or "cxAT"[len(shape)]
            known.append(leaf(f"{letter}{sum(map(len, self._leaves.values()))}", shape))
            return known[-1]
        return known[rng.integers(len(known))]

    def _two(self, budget: int) -> tuple[int, int]:
        first = int(self._rng.integers(1, budget))
        return first, budget - first

    def _size(self) -> int:
        return int(self._rng.choice([LARGE, LARGE, LARGE, HALF, THIN]))

    def _binary(self, operation: str, a: Shape, b: Shape, budget: int, *parameters: Any) -> Any:
        def made() -> Expression:
            first, second = self._two(budget)
            left = self.expression(a, first)
            return make(operation, left, self.expression(b, second), parameters=parameters)

        return made

    def _unary(self, operation: str, a: Shape, budget: int, *parameters: Any) -> Any:
        return lambda: make(operation, self.expression(a, budget), parameters=parameters)

    def _scaled(self, shape: Shape, budget: int) -> Any:
        return self._unary("scale", shape, budget, int(self._rng.choice([-1, -1, 2, 3])))

    def _scalar(self, shape: Shape, budget: int) -> list[tuple[float, Any]]:
        n, m = self._size(), self._size()
        return [
            (3, self._binary("mm", (n,), (n,), budget)),
            (3, self._unary("trace", (n, n), budget)),
            (3, self._unary("sum", (n, m), budget, None)),
            (1, self._unary("sum", (n,), budget, None)),
            (1, self._unary("pick", (n,), budget, 0, int(self._rng.integers(n)))),
            (1, self._binary("add", (), (), budget)),
        ]

    def _vector(self, shape: Shape, budget: int) -> list[tuple[float, Any]]:
        (n,), m = shape, self._size()
        rng = self._rng
        ways = [
            (6, self._binary("mm", (n, m), (m,), budget)),
            (3, self._binary("mm", (m,), (m, n), budget)),
            (1, self._unary("sum", (m, n), budget, 0)),
            (1, self._unary("sum", (n, m), budget, 1)),
            (1, self._unary("pick", (m, n), budget, 0, int(rng.integers(m)))),
            (1, self._unary("pick", (n, m), budget, 1, int(rng.integers(m)))),
            (2, self._unary("diagv", (n, n), budget)),
            (3, self._binary("add", (n,), (n,), budget)),
            (1, self._binary("had", (n,), (n,), budget)),
            (1, self._scaled(shape, budget)),
            (1, self._unary("f", shape, budget)),
            (1, self._binary("times", (), (n,), budget)),
        ]
        if n == LARGE:
            ways.append((1, self._binary("cat", (HALF,), (HALF,), budget, 0)))
        if n == HALF:
            low = int(rng.integers(HALF))
            ways.append((1, self._unary("cut", (LARGE,), budget, 0, low, low + HALF)))
        return ways

    def _matrix(self, shape: Shape, budget: int) -> list[tuple[float, Any]]:
        (n, m), k = shape, self._size()
        if n not in SPLIT or m not in SPLIT:
            return [(1, lambda: self._leaf(shape))]
        rng = self._rng
        ways = [
            (1, self._binary("kron", *zip(SPLIT[n], SPLIT[m], strict=True), budget)),
            (12, self._binary("mm", (n, k), (k, m), budget)),
            (4, self._binary("add", shape, shape, budget)),
            (2, self._unary("t", (m, n), budget)),
            (1, self._scaled(shape, budget)),
            (1, self._binary("had", shape, shape, budget)),
            (1, self._unary("f", shape, budget)),
            (2, self._binary("outer", (n,), (m,), budget)),
            (1, self._binary("times", (), shape, budget)),
            (1, lambda: self._scaled_by_diagonal(shape, budget)),
        ]
        if n == LARGE:
            ways.append((1, self._binary("cat", (HALF, m), (HALF, m), budget, 0)))
        if m == LARGE:
            ways.append((1, self._binary("cat", (n, HALF), (n, HALF), budget, 1)))
        low = int(rng.integers(HALF))
        if n == HALF:
            ways.append((2, self._unary("cut", (LARGE, m), budget, 0, low, low + HALF)))
        if m == HALF:
            ways.append((2, self._unary("cut", (n, LARGE), budget, 1, low, low + HALF)))
        if n == m == THIN:
            ways.append((1, self._unary("sum", (BATCH, n, m), budget, 0)))
        if n == m and n != THIN:
            ways.append((2, lambda: self._inverse(n, budget)))
            ways.append((1, self._unary("diagm", (n,), budget)))
        return ways

    def _scaled_by_diagonal(self, shape: Shape, budget: int) -> Expression:
        first, second = self._two(budget)
        if self._rng.integers(2):
            return make("mm", make("diagm", self.expression(shape[:1], first)), self.expression(shape, second))
        left = self.expression(shape, first)
        return make("mm", left, make("diagm", self.expression(shape[1:], second)))

    def _inverse(self, n: int, budget: int) -> Expression:
        """Of well conditioned inputs and their products; often times something else."""
        rng = self._rng
        inside = self._leaf((n, n), "W")
        if budget > 2 and rng.random() < 0.4:
            other = self._leaf((n, n), "W")
            inside, budget = make("mm", inside, make("t", other) if rng.integers(2) else other), budget - 1
        inverse = make("inv", inside)
        return inverse if budget < 2 else make("mm", inverse, self.expression((n, n), budget - 1))

    def _batch(self, shape: Shape, budget: int) -> list[tuple[float, Any]]:
        b, n, m = shape
        k = int(self._rng.choice([HALF, THIN]))
        return [
            (4, self._binary("mm", (b, n, k), (b, k, m), budget)),
            (3, self._binary("mm", (b, n, k), (k, m), budget)),
            (1, self._binary("add", shape, shape, budget)),
            (1, self._unary("t", (b, m, n), budget)),
            (1, self._scaled(shape, budget)),
            (1, self._unary("f", shape, budget)),
        ]
