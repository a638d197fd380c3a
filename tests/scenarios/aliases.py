"""Tensors that share memory: overlapping arguments, captured views, NumPy arrays, results that alias."""

from __future__ import annotations

import numpy as np

import eager as torch
from tests.scenarios.harness import attempt, program, refused, state


@program
def overlapping_arguments(compile):
    def f(x, y):
        x.mul_(2)
        y.add_(x.sum())
        return x + y.sum()

    c = compile(f)
    found = []
    for start in (1, 0, 2, 1):
        x = torch.arange(4.0)
        found += [c(x, x[start:]), x.clone(), c(x[start:], x), x, c(x.clone(), x[start:]), x.clone()]
    return found


@program
def interleaved_arguments(compile):
    def f(even, odd):
        even += odd
        odd *= 2
        return even - odd

    c = compile(f)
    x = torch.arange(6.0)
    y = torch.arange(9.0).reshape(3, 3)
    return c(x[::2], x[1::2]), x, c(y[0], y[1]), y, c(y[:, 0], y[1]), y, c(y[0], y[0]), y, c(y, y), y


@program
def an_argument_that_is_captured(compile):
    w = torch.ones(3)

    def f(x):
        w.add_(1)
        x.mul_(3)
        return w * x

    c = compile(f)
    return c(torch.ones(3)), w, c(w), w, c(w[:]), w, c(w.view(3)), w, c(torch.ones(3)), w, c(w), w


@program
def captured_views_of_one_another(compile):
    base = torch.arange(6.0)
    head, tail, square = base[:4], base[2:], base.view(2, 3)

    def f(x):
        head.add_(x)
        tail.mul_(2)
        square[1, 2] = 0
        return base.sum(), head * 1, tail * 1, square.t() * 1

    c = compile(f)
    return [(c(torch.tensor(float(i))), base.clone()) for i in range(3)], head, tail, square


@program
def flattened_parameters(compile):
    flat = torch.randn(6)
    w, b = flat[:4].view(2, 2), flat[4:]

    def f(x):
        y = x @ w + b
        flat.mul_(0.5)
        return y, x @ w + b

    c = compile(f)
    found = [c(torch.ones(2)) for _ in range(3)]
    flat.copy_(torch.arange(6.0))
    return found, c(torch.ones(2)), flat, w, b


@program
def numpy_shares_memory(compile):
    array = np.arange(4.0, dtype=np.float32)
    x = torch.from_numpy(array)

    def f(x):
        x.add_(1)
        return x * 2

    c = compile(f)
    a = c(x)
    array[0] = 100
    b = c(x)
    x.numpy()[1] = 50
    return a, b, x, array, c(x), array, c(torch.from_numpy(array[::2])), array


@program
def captured_numpy_memory(compile):
    array = np.ones(3)
    w = torch.from_numpy(array)

    def f(x):
        w.mul_(2)
        return (w * x).sum()

    c = compile(f)
    found = []
    for i in range(3):
        found.append(c(torch.ones(3, dtype=torch.float64)))
        array[i] = -1
        found.append(array.copy())
    return found, w


@program
def results_as_numpy(compile):
    c = compile(lambda x: x * 2)
    a = c(torch.ones(3))
    n = a.numpy()
    n[0] = 7
    a[1] = 8
    b = c(a)
    return a, n.copy(), b, np.asarray(b.detach())


@program
def non_contiguous_arguments(compile):
    def f(x):
        y = x.reshape(-1)
        y.add_(1)
        x.mul_(2)
        return y, x.is_contiguous(), x.stride()

    c = compile(f)
    found = []
    for make in (lambda b: b, lambda b: b.t(), lambda b: b[:, ::2], lambda b: b[1], lambda b: b[:, 1], lambda b: b):
        base = torch.arange(12.0).reshape(3, 4)
        found += [c(make(base)), base]
    return found


@program
def a_view_that_is_impossible(compile):
    def f(x):
        x.add_(1)
        return x.view(-1)

    c = compile(f)
    x = torch.arange(6.0).reshape(2, 3)
    return attempt(c, x), attempt(c, x.t()), x, attempt(c, x), attempt(c, x.t().contiguous())


@program
def reshape_copies_or_views(compile):
    def f(x):
        a = x.t().reshape(-1)
        b = x.reshape(3, 2)
        a.zero_()
        b.add_(1)
        return a, b

    c = compile(f)
    x = torch.arange(6.0).reshape(2, 3)
    a, b = c(x)
    b[0, 0] = 100
    a[0] = 50
    return x, a, b


@program
def results_share_memory_with_each_other(compile):
    def f(x):
        y = x.exp()
        return y, y[1:], y.view(2, 2).t(), y.detach(), y[::2].unsqueeze(1), y.clone()

    c = compile(f)
    y, tail, square, detached, even, copy = c(torch.zeros(4))
    tail.add_(1)
    square[0, 1] = 7
    detached.mul_(2)
    even[0] = -1
    return y, tail, square, detached, even, copy, c(torch.zeros(4))


@program
def results_share_memory_with_arguments(compile):
    def f(x):
        x.add_(1)
        return x.view(-1), x[0], x.t(), x.detach(), x.unbind(1), x.chunk(2)

    c = compile(f)
    x = torch.zeros(2, 2)
    found = []
    for i in range(3):
        flat, row, t, detached, columns, chunks = c(x)
        flat[0] = 10
        row.add_(1)
        t[1, 0] = 5
        columns[1].mul_(2)
        chunks[1][0, 0] = -i
        found += [x.clone(), detached.clone(), flat.clone()]
    return found


@program
def a_captured_tensor_is_returned(compile):
    w = torch.zeros(3)
    p = torch.nn.Parameter(torch.ones(2))
    c = compile(lambda x: (w, w[1:], p, p * x, w + 1))
    a, tail, b, y, z = c(torch.ones(2))
    a.add_(1)
    tail.mul_(5)
    y.sum().backward()
    return a is w, b is p, w, state(p), z, c(torch.zeros(2))[-1]


@program
def views_are_returned_before_a_write(compile):
    def f(x):
        head = x[:2]
        old = x.clone()
        x.mul_(3)
        y = x * 1
        part = y[1:]
        y.add_(1)
        return head, old, part, y

    c = compile(f)
    x = torch.arange(4.0)
    head, old, part, y = c(x)
    head.zero_()
    part.fill_(9)
    return x, head, old, part, y


@program
def detach_shares_memory(compile):
    w = torch.ones(3, requires_grad=True)

    def f(x):
        d = w.detach()
        d.add_(x)
        y = (w * x).sum()
        return y, d

    c = compile(f)
    y, d = c(torch.ones(3))
    d.mul_(2)
    y2, _ = c(torch.ones(3))
    y2.backward()
    return y, d, state(w), d.requires_grad


@program
def expanded_tensors_cannot_be_written(compile):
    def f(x):
        y = x.expand(3, 2)
        y.add_(1)
        return y

    c = compile(f)
    x = torch.ones(2)
    return attempt(c, x), x, attempt(c, x), x


@program
def an_expanded_argument(compile):
    def f(x):
        x.add_(1)
        return x

    c = compile(f)
    base = torch.ones(2, 1)
    return attempt(c, base.expand(2, 3)), base, attempt(c, torch.ones(2, 3)), attempt(c, base.expand(2, 3)), base


@program
def state_is_kept_in_a_list(compile):
    kept = [torch.zeros(2)]

    def f(x):
        y = kept[-1] + x
        kept[0] = y
        return y

    c = compile(f)
    found = [c(torch.ones(2)) for _ in range(4)]
    kept[0].add_(10)
    return found, c(torch.ones(2)), kept


@program
def a_result_is_fed_back(compile):
    def f(h, x):
        h.mul_(0.5).add_(x)
        return h, h.sum()

    c = compile(f)
    h = torch.zeros(3)
    sums = []
    for i in range(5):
        h, s = c(h, torch.ones(3) * i)
        sums.append(s)
    return h, sums


@program
def rows_of_one_tensor_as_state(compile):
    table = torch.zeros(3, 2)

    def f(row, x):
        row.add_(x)
        return row.sum() + table.sum()

    c = compile(f)
    return [(c(table[i % 3], torch.ones(2)), table.clone()) for i in range(5)]


@program
def split_and_chunks_are_written(compile):
    def f(x):
        a, b = x.chunk(2)
        q, k, v = b.split(1, dim=1)
        a += 1
        q.zero_()
        k.copy_(v)
        return x * 1, a.sum() + k.sum()

    c = compile(f)
    x = torch.arange(12.0).reshape(4, 3)
    return c(x), x, c(x), x


@program
def equal_captured_tensors_are_different(compile):
    a, b = torch.zeros(2), torch.zeros(2)

    def f(x):
        a.add_(x)
        return a - b

    c = compile(f)
    found = [c(torch.ones(2))]
    b = a
    found.append(c(torch.ones(2)))
    b = torch.ones(2)
    return found, c(torch.ones(2)), a, b


@program
def tensors_in_a_dict_are_replaced(compile):
    weights = {"w": torch.ones(2, requires_grad=True)}

    def f(x):
        return (weights["w"] * x).sum()

    c = compile(f)
    found = []
    for _i in range(4):
        y = c(torch.arange(2.0))
        y.backward()
        found += [y, weights["w"].grad]
        weights["w"] = (weights["w"].detach() - 0.1 * weights["w"].grad).requires_grad_()
    return found


@program
def as_strided_windows(compile):
    def f(x):
        w = x.as_strided((3, 2), (1, 1))
        total = w.sum(1)
        u = x.unfold(0, 2, 2)
        u.mul_(2)
        return total, u * 1

    c = compile(f)
    x = torch.arange(4.0)
    return c(x), x, c(x), x


@refused("as_strided needs more of the memory")
def as_strided_of_part_of_a_tensor(compile):
    c = compile(lambda x: x.as_strided((3,), (1,)) * 2)
    return c(torch.arange(8.0)[::2])


def shown_in_a_later_call(name, shown):
    """An argument of a later call is the captured tensor that the program writes, or shows its memory."""

    def run(compile):
        written = torch.zeros(3)

        @compile
        def f(x):
            written.add_(1)
            return x * 1

        before = [f(torch.ones(3)) for _ in range(3)]
        return before, [f(shown(written)) for _ in range(3)], written

    run.__name__ = run.__qualname__ = f"{name}_in_a_later_call"
    return program(run)


for _name, _shown in {
    "the_tensor_itself": lambda t: t,
    "a_view": lambda t: t.view(3),
    "a_part": lambda t: t[1:],
    "its_data": lambda t: t.detach(),
}.items():
    shown_in_a_later_call(_name, _shown)


@program
def a_place_comes_to_hold_what_is_captured(compile):
    """Once a place holds another tensor at each call, it may hold one that the program writes."""
    written, held = torch.zeros(3), {"x": torch.ones(3)}

    @compile
    def f():
        written.add_(1)
        return held["x"] * 1

    found = []
    for k in range(3):
        held["x"] = torch.full((3,), float(k))
        found += [f(), f()]
    held["x"] = written
    return [*found, *(f() for _ in range(3))], written
