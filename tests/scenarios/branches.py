"""Python control flow on shapes, dtypes and values, and numbers read from tensors."""

from __future__ import annotations

import eager as torch
from tests.scenarios.harness import attempt, program

X = torch.tensor([1.0, 2.0, 3.0])
SIGNS = (1.0, -1.0, 0.0, 2.0, -2.0, 1.0)


@program
def on_shapes_and_dtypes(compile):
    def f(x):
        if x.ndim == 1:
            return x.sum() if len(x) > 2 else x
        if x.dtype == torch.float64:
            return x.mean()
        elif x.shape[0] > x.shape[1]:
            return x.t()
        else:
            return x @ x.t()

    c = compile(f)
    inputs = [X, X[:2], torch.ones(2, 2).double(), torch.ones(3, 2), torch.ones(2, 3), X]
    return [c(x) for x in inputs]


@program
def if_elif_else_on_values(compile):
    def f(x):
        s = x.sum()
        if s > 5:
            return x * 2
        elif s > 0:
            y = x + 1
        elif s == 0:
            return -x, "zero"
        else:
            y = x.abs()
        return y / 2

    c = compile(f)
    return [c(X * k) for k in SIGNS], [c(X * k) for k in SIGNS]


@program
def nested_and_sequential_ifs(compile):
    def f(x):
        if x[0] > 0:
            x = x + 1 if x[1] > 1 else x - 1
        if x[1] > 0 and x[2] > 2.5:
            x = x * 2
        if not x[0] > 2 or x[0] == x[1]:
            x = x - 0.5
        return x if x.mean() > 1 else -x

    c = compile(f)
    inputs = [torch.tensor([a, b, d]) for a in (-1.0, 1.0) for b in (0.0, 2.0) for d in (1.0, 3.0)]
    return [c(x) for x in inputs], [c(x) for x in reversed(inputs)]


@program
def gradients_on_each_path(compile):
    def f(w, x):
        y = w * x
        if y.sum() > 0:
            return (y * y).sum()
        return y.abs().sum() * 3

    c, found = compile(f), []
    for k in SIGNS:
        w = torch.ones(3, requires_grad=True)
        c(w, X * k).backward()
        found.append(w.grad)
    return found


@program
def and_or_not_and_conditional_expressions(compile):
    def f(x, y):
        a = x or y
        b = x and y
        return a * 10 + b, not x, (x if x > y else y), bool(x) == bool(y)

    c = compile(f)
    return [c(torch.tensor(a), torch.tensor(b)) for a in (0.0, 1.0) for b in (0.0, 2.0)]


@program
def builtins_over_tensors(compile):
    def f(xs):
        rows = list(xs)
        return max(rows), min(rows), sorted(rows), any(r > 2 for r in rows), all(r > 0 for r in rows), sum(rows)

    c = compile(f)
    return [c(torch.tensor(v)) for v in ([3.0, 1.0, 2.0], [1.0, 2.0, 3.0], [-1.0, 0.0, 5.0], [3.0, 1.0, 2.0])]


@program
def while_loops_of_different_lengths(compile):
    def f(x):
        steps = 0
        while x.norm() > 1:
            x = x / 2
            steps += 1
        return x, steps

    c = compile(f)
    return [c(X * k) for k in (0.1, 1.0, 8.0, 0.5, 8.0, 30.0, 1.0)]


@program
def for_over_rows_with_break_and_continue(compile):
    def f(x):
        total = torch.zeros(2)
        for i, row in enumerate(x):
            if row[0] < 0:
                continue
            if row.sum() > 10:
                break
            total = total + row * (i + 1)
        else:
            total = -total
        return total, i

    c = compile(f)
    inputs = [[[1.0, 2.0], [3.0, 4.0]], [[-1.0, 2.0], [3.0, 4.0]], [[9.0, 2.0], [3.0, 4.0]], [[1.0, 2.0], [9.0, 4.0]]]
    return [c(torch.tensor(v)) for v in inputs + inputs]


@program
def zip_enumerate_and_unpacking(compile):
    def f(a, b):
        first, *rest = a
        x, y = b
        return (
            [i * p + q for i, (p, q) in enumerate(zip(a, rest, strict=False))],
            first,
            x - y,
            dict(zip("ab", b, strict=True)),
        )

    c = compile(f)
    return c(X, X[:2]), c(torch.ones(3, 2), torch.zeros(2, 2)), attempt(c, X, X)


@program
def asserts_with_messages(compile):
    def f(x):
        assert (x >= 0).all(), f"negative: {x.min():.2f}"
        return x.sqrt()

    c = compile(f)
    return [attempt(c, X * k) for k in SIGNS]


class TooLarge(ValueError):
    def __init__(self, size, limit):
        super().__init__(f"{size} > {limit}")
        self.size = size


@program
def exceptions_of_the_user(compile):
    def f(x, limit):
        if x.max() > limit:
            raise TooLarge(x.max().item(), limit) from KeyError("inner")
        return x * 2

    c, found = compile(f), []
    for k in (1.0, 5.0, 1.0, 6.0):
        try:
            found.append(c(X * k, 10))
        except TooLarge as error:
            tb = error.__traceback__
            while tb.tb_next:
                tb = tb.tb_next
            line = tb.tb_lineno - f.__code__.co_firstlineno
            found.append((str(error), error.size, type(error.__cause__).__name__, line, tb.tb_frame.f_code.co_name))
    return found


@program
def exceptions_after_writes(compile):
    seen = torch.zeros(())
    log = []

    def f(x):
        seen.add_(1)
        x.mul_(2)
        log.append(len(log))
        if x.sum() > 20:
            raise RuntimeError(f"too large: {x.sum().item()}")
        x.add_(1)
        return x.sum()

    c = compile(f)
    x = X.clone()
    found = [attempt(c, x) for _ in range(5)]
    return found, x, seen, log


@program
def try_except_else_finally(compile):
    marks = {"calls": 0}

    def f(x):
        try:
            if x.sum() < 0:
                raise ValueError("negative")
            y = x.sqrt()
        except ValueError as error:
            y = x.abs() + len(str(error))
        else:
            y = y * 10
        finally:
            marks["calls"] += 1
        return y

    c = compile(f)
    return [c(X * k) for k in SIGNS], marks


@program
def errors_of_the_library_are_caught(compile):
    def f(x, w):
        try:
            return x @ w
        except RuntimeError:
            return x @ w.t()

    c = compile(f)
    return c(torch.ones(2, 3), torch.ones(3, 4)), c(torch.ones(2, 3), torch.ones(4, 3)), attempt(c, X, torch.ones(5, 5))


@program
def run_time_checks_inside_try(compile):
    def f(x, i):
        try:
            return x[i]
        except IndexError:
            return x * 0

    c = compile(f)
    return [c(X, torch.tensor(k)) for k in (0, 2, 3, 1, 7, -1)]


@program
def division_by_zero_of_integers(compile):
    def f(a, b):
        return a // b, a % b

    c = compile(f)
    a = torch.tensor([7, 8])
    return [attempt(c, a, torch.tensor(b)) for b in ([1, 2], [0, 1], [3, 3])]
