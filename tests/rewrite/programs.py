"""Random programs in float64, over the ops that the optimizer rewrites: what each pass makes of one keeps its values.

A program is a chain of steps, each on arrays that are there already: `STEPS` has them by subject, `PROFILES` says which
subjects meet. Which step comes next depends on a seed and on shapes alone, so that a program can be run again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import eager as torch
import eager.nn.functional as F

L = torch.linalg
LARGEST = 600  # elements of an array
MOST_PRODUCTS = 20_000  # that an einsum adds up
POWERS = (1, 2, 3, -1, -2, 0.5, -0.5, 0)


class NoneFits(Exception):
    """No array is there that a step could take."""


class Steps:
    """The arrays of a program so far, from its inputs on."""

    def __init__(self, seed: int, inputs: dict[str, Any]):
        self.rng = np.random.default_rng(seed)
        self.inputs = inputs
        self.arrays = [x for x in inputs.values() if x.dtype == torch.float64]

    def number(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high))

    def one(self, some: Sequence[Any]) -> Any:
        if not len(some):
            raise NoneFits
        return some[self.number(0, len(some))]

    def array(self, fits: Callable[[Any], bool] = lambda x: True) -> Any:
        """One that fits, a late one more often than not."""
        some = [x for x in self.arrays if fits(x)]
        late = len(some) - int(self.rng.geometric(0.25))
        return some[max(late, 0)] if some and self.rng.random() < 0.7 else self.one(some)

    def ranked(self, least: int = 1) -> Any:
        return self.array(lambda x: x.ndim >= least)

    def square(self) -> Any:
        return self.array(lambda x: x.ndim == 2 and x.shape[0] == x.shape[1] > 0)

    def vector(self) -> Any:
        return self.array(lambda x: x.ndim == 1)

    def beside(self, x: Any) -> Any:
        """An array that broadcasts with x."""

        def fits(y: Any) -> bool:
            try:
                return math.prod(np.broadcast_shapes(tuple(x.shape), tuple(y.shape))) <= LARGEST
            except ValueError:
                return False

        return self.array(fits)

    def dim(self, x: Any) -> int:
        return self.number(-x.ndim, x.ndim)

    def dims(self, x: Any) -> tuple[int, ...]:
        some = self.rng.permutation(x.ndim)[: self.number(1, x.ndim + 1)]
        if any(x.shape[int(d)] == 0 for d in some):
            raise NoneFits
        return tuple([int(d) - x.ndim * self.number(0, 2) for d in some])

    def part(self, n: int) -> slice:
        a, b = sorted([self.number(0, n + 1), self.number(0, n + 1)])
        return self.one(
            [slice(None), slice(a, None), slice(None, b), slice(a, b), slice(a, b, 2), slice(-n // 2, None)]
        )

    def parts(self, x: Any) -> tuple[slice, ...]:
        return tuple([self.part(n) for n in x.shape[: self.number(1, x.ndim + 1)]])


Step = Callable[[Steps], Any]


def _of_one(*functions: Callable[[Any], Any]) -> list[Step]:
    return [lambda s, f=f: f(s.array()) for f in functions]


def _of_two(*functions: Callable[[Any, Any], Any]) -> list[Step]:
    return [lambda s, f=f: f(x := s.array(), s.beside(x)) for f in functions]


def _over(*functions: Callable[[Any, tuple[int, ...], bool], Any]) -> list[Step]:
    """f(x, dims, keepdim)"""
    return [lambda s, f=f: f(x := s.ranked(), s.dims(x), bool(s.number(0, 2))) for f in functions]


def _matmul(s: Steps) -> Any:
    x = s.ranked()
    y = s.array(lambda y: y.ndim >= 1 and y.shape[max(y.ndim - 2, 0)] == x.shape[-1] and y.ndim <= 2)
    return x @ y


def _einsum(s: Steps) -> Any:
    given = [s.array(lambda x: x.ndim <= 3) for _ in range(s.number(1, 4))]
    sizes: dict[str, int] = {}
    words = []
    for x in given:
        word = ""
        for n in x.shape:
            word += s.one([k for k in "abcde" if sizes.get(k, n) == n and (k not in word or s.rng.random() < 0.3)])
            sizes[word[-1]] = n
        words.append(word)
    letters = sorted(sizes)
    s.rng.shuffle(letters)
    if math.prod(sizes.values()) > MOST_PRODUCTS:
        raise NoneFits
    return torch.einsum(f"{','.join(words)}->{''.join(letters[: s.number(0, len(letters) + 1)])}", *given)


def _kron(s: Steps) -> Any:
    return torch.kron(*[s.array(lambda x: x.ndim == 2 and 0 < x.numel() <= 9) for _ in range(2)])


def _reshape(s: Steps) -> Any:
    x = s.array(lambda x: x.numel() > 1)
    n, shape = x.numel(), list[int]()
    while n > 1:
        shape.append(s.one([d for d in range(2, n + 1) if n % d == 0]))
        n //= shape[-1]
    return x.reshape(*shape)


def _picked(s: Steps) -> Any:
    x = s.array(lambda x: x.ndim >= 1 and min(x.shape) > 0)
    d = s.number(0, x.ndim)
    n = x.shape[d]
    some = s.one([[*range(n)][::-1], [s.number(0, n) for _ in range(3)], [*range(0, n, 2)], [s.number(0, n)] * 3])
    index = torch.tensor(some) if s.number(0, 2) else s.inputs["index"] % n
    return torch.index_select(x, d, index) if s.number(0, 2) else x.movedim(d, 0)[index]


def _one_hot(s: Steps) -> Any:
    x = s.array(lambda x: x.ndim in (1, 2) and x.shape[0] > 0)
    return F.one_hot(s.inputs["index"] % x.shape[0], x.shape[0]).to(x.dtype) @ x


def _cat(s: Steps) -> Any:
    x = s.ranked()
    d = s.number(0, x.ndim)
    rest = [*x.shape[:d], *x.shape[d + 1 :]]
    return torch.cat(
        [x, *[s.array(lambda y: y.ndim == x.ndim and [*y.shape[:d], *y.shape[d + 1 :]] == rest) for _ in range(2)]], d
    )


def _stack(s: Steps) -> Any:
    x = s.array()
    return torch.stack([x, *[s.array(lambda y: y.shape == x.shape) for _ in range(2)]], s.number(0, x.ndim + 1))


def _put(s: Steps) -> Any:
    """Into a copy, or into zeros."""
    x = s.ranked()
    where = s.parts(x)
    whole = x.clone() if s.number(0, 2) else torch.zeros_like(x)
    shape = tuple(whole[where].shape)
    y = s.array(lambda y: np.broadcast_shapes(*_right(tuple(y.shape), shape)) == shape)
    kind = s.number(0, 3)
    if kind == 0:
        whole[where] = y
    elif kind == 1:
        whole[where] += y
    else:
        whole[where] *= y
    return whole


def _right(given: tuple[int, ...], shape: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Two shapes that broadcast to the second one, if the first does."""
    fits = len(given) <= len(shape) and all(
        n in (1, m) for n, m in zip(given[::-1], shape[::-1], strict=False)
    )  # fmt: skip
    return (given, shape) if fits else ((*shape, 2),)


def _turned(x):
    return x.mT if x.ndim > 1 else x


def _padded(s: Steps) -> Any:
    x = s.ranked()
    return F.pad(x, tuple([s.number(-1 if x.shape[-1 - k // 2] > 2 else 0, 3) for k in range(2)]))


def _halves(s: Steps) -> Any:
    x = s.array(lambda x: x.ndim >= 1 and min(x.shape) > 1)
    d = s.number(0, x.ndim)
    first, *rest = torch.split(x, s.number(1, x.shape[d]), d)
    kind = s.number(0, 3)
    if kind == 0:
        return torch.cat([first, *[torch.tanh(y) for y in rest]], d)
    return torch.cat([*rest, first], d) if kind == 1 else sum(y.sum(d) for y in (first, *rest))


def _matrix(s: Steps) -> Any:
    """A regular one, of some structure."""
    x = s.square()
    n = x.shape[0]
    y = s.array(lambda y: y.shape == x.shape)
    u = s.array(lambda u: u.ndim == 2 and u.shape[0] == n)
    one, zero = torch.eye(n, dtype=x.dtype), torch.zeros_like(x)
    a, b, d = 0.2 * torch.tanh(x) + 3 * one, 0.2 * torch.tanh(y) + 2 * one, torch.tanh(torch.diagonal(y)) + 3
    some = [
        a, torch.tril(a), torch.triu(a), torch.diag(d), a @ b, a.T, 2.0 * a, torch.block_diag(a, b),
        torch.tanh(x) @ torch.tanh(x).T + one, torch.diag(d) + torch.tanh(u) @ torch.tanh(u).T,
        torch.cat([torch.cat([a, zero], 1), torch.cat([y.tanh(), b], 1)]), torch.triu(torch.tril(a, 1), -1),
        torch.cat([torch.cat([a, y.tanh()], 1), torch.cat([zero, b], 1)]), torch.tril(a) @ torch.tril(b).T,
        torch.kron(a, b) if n <= 3 else b, one + 0.1 * a.T @ torch.diag(d) @ a,
    ]  # fmt: skip
    return s.one(some)


def _system(s: Steps) -> Any:
    a = _matrix(s)
    fitting = [x for x in s.arrays if x.ndim in (1, 2) and x.shape[0] == a.shape[0]]
    b = s.one([*fitting, torch.diagonal(a)])
    columns = b if b.ndim == 2 else b[:, None]
    kinds: list[Callable[[], Any]] = [
        lambda: L.inv(a), lambda: L.solve(a, b), lambda: L.inv(a) @ b, lambda: L.slogdet(a)[1],
        lambda: torch.log(torch.abs(L.det(a))), lambda: L.cholesky(a @ a.T + torch.eye(a.shape[0], dtype=a.dtype)),
        lambda: L.solve_triangular(a, columns, upper=True), lambda: columns.T @ L.inv(a) @ columns,
        lambda: torch.trace(L.inv(a) @ a.T), lambda: L.inv(a)[0], lambda: torch.diagonal(L.inv(a)),
        lambda: L.solve(a.T, b), lambda: L.inv(a) @ a @ b, lambda: L.solve(torch.stack([a, 2 * a]), columns),
    ]  # fmt: skip
    return s.one(kinds)()


def _loop(s: Steps) -> Any:
    x = s.array(lambda x: x.ndim >= 1 and x.shape[0] >= 2)
    c = s.array(lambda c: c.ndim == 0)
    step: Callable[[Any, Any], Any] = s.one(
        [lambda h, row: torch.tanh(h + row), lambda h, row: h * c + row, lambda h, row: h + row * c, torch.maximum]
    )
    h, seen = torch.zeros_like(x[0]), []
    for row in x:
        h = step(h, row)
        seen.append(h)
    return s.one([h, torch.stack(seen), torch.stack(seen[::-1]), sum(seen)])


def _rows(s: Steps) -> Any:
    a = s.ranked(2)
    if a.ndim > 2:
        raise NoneFits
    x = s.array(lambda x: x.ndim == 2 and x.shape[1] == a.shape[1] and x.shape[0] > 0)
    return torch.stack([a @ row for row in x])


def _powers(s: Steps) -> Any:
    """A sum of products of powers of positive numbers."""
    total = s.array(lambda c: c.ndim == 0)
    for _ in range(s.number(1, 4)):
        product = 1.0
        for _ in range(s.number(1, 4)):
            function: Callable[[Any], Any] = s.one([lambda x: x ** s.one(POWERS), torch.sqrt, torch.reciprocal])
            power = function(s.inputs[s.one("pqs")])
            product = product * power if s.number(0, 2) else product / power
        total = total + product
    return total


STEPS: dict[str, list[Step]] = {
    "functions": _of_one(
        torch.tanh, torch.sin, torch.abs, torch.relu, lambda x: torch.sqrt(x * x + 1), lambda x: torch.log1p(x * x),
        F.softplus, lambda x: torch.log(torch.sigmoid(x)), lambda x: torch.clamp(x, -0.5, 0.7), lambda x: x.detach(),
        lambda x: torch.where(x > 0, x, torch.zeros_like(x)), lambda x: x.masked_fill(x < 0, 2.0),
    ),
    "scalings": _of_one(
        lambda x: 2 * x, lambda x: x / 3, lambda x: 1 - x, lambda x: x**3, lambda x: -(x - 2), lambda x: x + x,
        lambda x: x - x * 0.5, torch.zeros_like, torch.ones_like, lambda x: torch.full_like(x, 0.5),
    ),
    "pairs": _of_two(
        torch.add, torch.sub, torch.mul, lambda x, y: x / (1 + y * y), torch.maximum, lambda x, y: (x - y) ** 2,
        lambda x, y: torch.where(x > y, x, y * 2),
    ),
    "sums": _over(
        lambda x, d, k: x.sum(d, keepdim=k), lambda x, d, k: x.mean(d, keepdim=k), lambda x, d, k: x.amax(d, keepdim=k),
        lambda x, d, k: torch.logsumexp(x, d, keepdim=k), lambda x, d, k: x - x.mean(d, keepdim=True),
        lambda x, d, k: ((x - x.mean(d, keepdim=True)) ** 2).mean(d, keepdim=k), lambda x, d, k: torch.softmax(x, d[0]),
        lambda x, d, k: x.cumsum(d[0]), lambda x, d, k: x.sort(d[0])[0], lambda x, d, k: F.log_softmax(x, d[0]),
        lambda x, d, k: x.cumsum(d[0]).select(d[0], -1), lambda x, d, k: x.sort(d[0])[0].select(d[0], 0),
        lambda x, d, k: torch.diff(x, dim=d[0]), lambda x, d, k: (x > 0).sum(d, keepdim=k).to(x.dtype),
        lambda x, d, k: x * torch.rsqrt((x * x).sum(d, keepdim=True) + 1),
    ),
    "products": [
        _matmul, _matmul, _matmul, _einsum, _einsum, _kron, lambda s: (x := s.ranked(2)).mT @ x,
        lambda s: torch.outer(s.vector(), s.vector()), lambda s: L.matrix_power(s.square(), s.number(0, 4)),
        lambda s: torch.trace(s.square()), lambda s: torch.diagonal(s.ranked(2), s.number(-1, 2)),
        lambda s: torch.tril(s.ranked(2), s.number(-1, 2)), lambda s: torch.triu(s.ranked(2), s.number(-1, 2)),
        lambda s: torch.diag(s.vector()), lambda s: torch.eye(s.square().shape[0], dtype=torch.float64) * 2,
    ],
    "places": [
        _reshape, _picked, _picked, _one_hot, _cat, _stack, _put, _put, _padded, _halves, lambda s: _turned(s.ranked()),
        lambda s: (x := s.ranked())[s.parts(x)],
        lambda s: (x := s.array(lambda x: x.ndim > 0 and min(x.shape) > 0)).select(s.dim(x), -1),
        lambda s: (x := s.ranked()).flip(s.dim(x)), lambda s: torch.roll(x := s.ranked(), 1, s.dim(x)),
        lambda s: s.ranked().unsqueeze(0), lambda s: s.array(lambda x: x.ndim > 0 and x.shape[0] > 1).unfold(0, 2, 1),
    ],
    "systems": [_system],
    "loops": [_loop, _rows],
    "powers": [_powers],
}  # fmt: skip
PROFILES = (
    ("sums", "pairs", "scalings", "places"), ("places", "pairs", "functions"),
    ("products", "places", "scalings", "pairs"), ("systems", "products", "places", "scalings"),
    ("loops", "pairs", "sums", "functions", "places"), ("powers", "pairs", "sums", "scalings"),
    ("products", "places"), tuple(STEPS),
)  # fmt: skip


class Program(NamedTuple):
    """Of a seed: its inputs, and the function of them that yields its last arrays, some earlier ones among them."""

    seed: int

    @property
    def inputs(self) -> dict[str, np.ndarray]:
        rng = np.random.default_rng((self.seed, 1))
        n, m, b = (int(rng.integers(1, 7)) for _ in range(3))
        m = m if rng.random() > 0.04 else 0
        shapes = {
            "A": (n, n),
            "B": (n, n),
            "X": (m, n),
            "Y": (m, n),
            "v": (n,),
            "w": (m,),
            "T": (min(b, 3), n, min(m, 4)),
        }
        positive = {"s": (), "p": (n,), "q": (m, n)}
        given: dict[str, np.ndarray] = {name: rng.standard_normal(shape) for name, shape in shapes.items()}
        given |= {name: np.asarray(np.abs(rng.standard_normal(shape)) + 0.3) for name, shape in positive.items()}
        return {**given, "index": rng.integers(0, 20, 5)}

    def __call__(self, *arrays: Any) -> tuple[Any, ...]:
        steps = Steps(self.seed, dict(zip(self.inputs, arrays, strict=True)))
        subjects = PROFILES[self.seed % len(PROFILES)]
        first = len(steps.arrays)
        for _ in range(steps.number(2, 9)):
            try:
                found = steps.one(STEPS[steps.one(subjects)])(steps)
            except NoneFits:
                continue
            if found.numel() <= LARGEST:
                steps.arrays.append(found)
        *others, last = steps.arrays[first:] or [steps.arrays[0]]
        return (last, *[x for x in others if steps.rng.random() < 0.25])

    def loss(self, *arrays: Any) -> Any:
        """A number that depends on all of the results."""
        return sum([(torch.tanh(x) * (1 + k)).sum() for k, x in enumerate(self(*arrays))])
