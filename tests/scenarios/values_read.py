"""Numbers and truth values that Python reads from tensors."""

from __future__ import annotations

import math
from typing import Any

import eager as torch
from tests.scenarios.harness import attempt, program

X = torch.tensor([1.0, 2.0, 3.0])
SIGNS = (1.0, -1.0, 0.0, 2.0, -2.0, 1.0)


@program
def number_arithmetic_and_comparison(compile):
    def f(x):
        s = x.sum().item()
        m = x.max().item()
        ratio = s / m if m else 0.0
        return x * s + ratio, s - m, s > m, s == 6.0, -s, abs(-m), s**2, 2**m, s // 2, s % 4, divmod(s, 4), 1 <= m <= 3

    c = compile(f)
    return [c(X * k) for k in (1.0, 2.0, 0.5, -1.0, 0.0, 1.0)]


@program
def number_conversions_and_math(compile):
    def f(x):
        s = x.sum().item()
        parts = [int(s), float(s), round(s), round(s, 1), bool(s), str(s), f"{s:.3f}", repr(s), complex(s)]
        return (
            parts,
            math.sqrt(abs(s)),
            math.floor(s),
            math.isnan(s),
            math.exp(s / 10),
            x * math.log(abs(s) + 1),
            max(s, 3),
            min(2, s),
        )

    c = compile(f)
    return [c(X * k) for k in (1.0, 1.1, -1.0, 0.25)]


@program
def numbers_as_index_shape_and_range(compile):
    def f(x, n):
        k = n.item()
        rows = [x[k - 1] * i for i in range(k)]
        return x[:k], torch.zeros(k), torch.stack(rows), "ab" * k, [0] * k, x.reshape(k, -1), (1, 2, 3, 4)[k], x[n]

    c = compile(f)
    x = torch.arange(6.0)
    return [c(x, torch.tensor(k)) for k in (1, 2, 3, 2, 1)]


@program
def tensors_as_index_and_bounds(compile):
    def f(x, n):
        return x[: int(n)], x[n:], list(range(n)), torch.arange(n), list(x)[n], x.sum(), (10, 20, 30)[n]

    c = compile(f)
    return [attempt(c, X, torch.tensor(k)) for k in (1, 2, 0, 3, 1)]


@program
def numbers_in_dicts_strings_and_sets(compile):
    def f(x):
        k = x.argmax().item()
        names = {0: "zero", 1: "one", 2: "two"}
        table = {k: x.sum(), "key": k}
        return names[k], table, {k, 1}, k in (0, 2), f"best={k:>3d}", str(k), [k, [k]], names.get(k + 1)

    c = compile(f)
    return [c(torch.tensor(v)) for v in ([1.0, 2.0, 3.0], [3.0, 2.0, 1.0], [1.0, 5.0, 1.0], [3.0, 2.0, 1.0])]


@program
def tensors_compared_with_in(compile):
    def f(x, k):
        return k in x, 2.0 in x, x[0] in [1.0, 5.0], (x == k).nonzero().numel() if False else (x == k).sum().item()

    c = compile(f)
    return [c(X, torch.tensor(v)) for v in (1.0, 5.0, 3.0)]


@program
def bool_tensors_and_masks(compile):
    def f(x, mask):
        if mask.any():
            x = torch.where(mask, x * 2, x)
        if mask.all() and not (x < 0).any():
            return x.sum()
        return x

    c = compile(f)
    return [c(X * k, torch.tensor(m)) for k in (1.0, -1.0) for m in ([True] * 3, [False] * 3, [True, False, True])]


@program
def nan_and_inf_checks(compile):
    def f(x):
        if torch.isnan(x).any():
            return torch.nan_to_num(x), "nan"
        if not torch.isfinite(x).all():
            return x.clamp(-10, 10), "inf"
        loss = x.mean()
        return x, "nan" if math.isnan(loss.item()) else loss

    c = compile(f)
    return [c(torch.tensor([1.0, v])) for v in (1.0, float("nan"), float("inf"), -float("inf"), 3.0, float("nan"))]


@program
def early_stopping_by_the_loss(compile):
    w = torch.zeros(3, requires_grad=True)

    @compile
    def train(x, target, most):
        best = float("inf")
        for i in range(most):  # noqa: B007  (returned)
            loss = ((w * x).sum() - target) ** 2
            (g,) = torch.autograd.grad(loss, w)
            with torch.no_grad():
                w.sub_(0.02 * g)
            if loss.item() > best * 0.9:
                break
            best = loss.item()
        return i, best, loss

    return [train(X, t, 6) for t in (1.0, 2.0, 2.0)], w


@program
def newton_until_it_converges(compile):
    def sqrt(a):
        x = a
        for i in range(20):  # noqa: B007  (returned)
            new = 0.5 * (x + a / x)
            if (new - x).abs() < 1e-6:
                break
            x = new
        return x, i

    c = compile(sqrt)
    return [c(torch.tensor(a, dtype=torch.float64)) for a in (2.0, 9.0, 100.0, 2.0, 1.0)]


@program
def binary_search_on_values(compile):
    def f(xs, k):
        lo, hi = 0, len(xs)
        while lo < hi:
            mid = (lo + hi) // 2
            if xs[mid] < k:
                lo = mid + 1
            else:
                hi = mid
        return lo, xs[lo:]

    c = compile(f)
    xs = torch.tensor([1.0, 3.0, 5.0, 7.0])
    return [c(xs, torch.tensor(k)) for k in (0.0, 4.0, 8.0, 3.0, 4.0)]


@program
def match_statements(compile):
    def f(x, command):
        match command:
            case ("scale", k):
                return x * k
            case {"shift": k, **rest}:
                return x + k + len(rest)
            case torch.Tensor():
                return x @ command
            case None | False:
                return x
            case _:
                raise TypeError(f"unknown: {command!r}")

    c = compile(f)
    commands: list[Any] = [("scale", 2), {"shift": 3, "a": 1}, X, None, False, "other", ("scale", 4)]
    return [attempt(c, X, command) for command in commands]


@program
def decisions_on_arguments_and_state_together(compile):
    class Gate:
        threshold = 0.0

        def __init__(self):
            self.open = torch.tensor(False)

        @compile
        def __call__(self, x):
            if self.open:
                return x
            if x.sum() > self.threshold:
                self.open = torch.tensor(True)
                return x * 10
            return x * 0

    gate = Gate()
    found = [gate(X * k) for k in (-1.0, -1.0, 1.0, -1.0, 1.0)]
    gate.open = torch.tensor(False)
    gate.threshold = 100.0
    return [*found, gate(X), gate(X * 100), gate(X), gate.open]


@program
def a_comprehension_that_filters_by_value(compile):
    f = compile(lambda x: [(i, v * 2) for i, v in enumerate(x) if v > 1])
    g = compile(lambda x: torch.stack([v for v in x if v.abs() > 1.5] or [x.sum()]))
    return [(f(X * k), g(X * k)) for k in SIGNS]


@program
def recursion_until_small(compile):
    def shrink(x, depth=0):
        return (x, depth) if x.abs().max() < 1 else shrink(x / 2, depth + 1)

    c = compile(shrink)
    return [c(X * k) for k in (1.0, 0.1, 4.0, 1.0)]


@program
def walrus_chained_comparisons_and_ternaries(compile):
    def f(x):
        if (s := x.sum()) > 5 and 0 < x[0] <= 2 < x[2]:
            return s
        return s if s > 0 else -s if s < -5 else s * 0

    c = compile(f)
    return [c(X * k) for k in (*SIGNS, 3.0)]
