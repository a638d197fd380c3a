"""In-place operations on arguments, captured tensors and what the function makes itself."""

from __future__ import annotations

import eager as torch
from tests.scenarios.harness import attempt, program, state


def many(f, *shapes, times=3):
    """Calls with new tensors each time: the results, and the tensors after the call."""
    found = []
    for i in range(times):
        given = [torch.randn(*shape) + i for shape in shapes]
        found += [f(*given), given]
    return found


@program
def arithmetic_in_place(compile):
    def f(x):
        x += 1
        x *= 2
        x -= x.mean()
        x /= 3
        x **= 2
        return x.sum()

    return many(compile(f), (3, 2))


@program
def named_methods_in_place(compile):
    def f(x):
        x.add_(1, alpha=2).mul_(0.5).clamp_(-1, 1).neg_().exp_().sqrt_().log_().abs_()
        x.lerp_(torch.ones(3), 0.25)
        x.addcmul_(x, x, value=0.5)
        x.addcdiv_(x, x + 3)
        return x * 1

    return many(compile(f), (2, 3))


@program
def fills(compile):
    def f(x, y, z):
        x.fill_(3)
        y.zero_()
        z.copy_(x[0])
        z.fill_(y.sum())
        return x.fill_diagonal_(7)

    return many(compile(f), (3, 3), (2,), (3,))


@program
def copy_casts_and_broadcasts(compile):
    def f(x, y):
        x.copy_(y)
        return x

    c = compile(f)
    x = torch.zeros(2, 3, dtype=torch.int64)
    return c(x, torch.tensor([1.7, -2.7, 3.0])), x, c(torch.zeros(2, 2, dtype=torch.float64), torch.tensor(2))


@program
def slices_are_added_to(compile):
    def f(x):
        x[1:3] += 10
        x[:, 0] -= 1
        x[-1, -1] *= 2
        x[::2, 1:] = 0
        return x.sum(0)

    return many(compile(f), (4, 3))


@program
def views_of_views_are_written(compile):
    def f(x):
        y = x.t()[1:]
        z = y.unsqueeze(0).transpose(1, 2)
        z[0, 1] += 5
        y.mul_(2)
        return z + 1, y.sum(), x.sum()

    return many(compile(f), (3, 4))


@program
def transposed_in_place(compile):
    def f(x):
        x.t().mul_(torch.arange(3.0))
        x.view(-1)[::4].zero_()
        x.permute(1, 0)[0].add_(1)
        x.diagonal().fill_(9)
        return x.flatten()

    return many(compile(f), (3, 3))


@program
def masks_and_index_lists(compile):
    def f(x, mask, index):
        x[mask] = 0
        x[index] += 1
        x[index, 0] = x[0, 0] + 5
        x.masked_fill_(mask, -1)
        return x

    c = compile(f)
    found = []
    for i in range(3):
        x = torch.randn(3, 2)
        found += [c(x, x > 0.1 * i, torch.tensor([0, 2])), x]
    return found


@program
def index_writes(compile):
    def f(x, index, rows):
        x.index_put_((index,), rows, accumulate=True)
        x.index_add_(0, index, rows, alpha=2)
        x.index_copy_(0, index[:1], rows[:1])
        x.index_fill_(1, torch.tensor([0]), 4)
        x.scatter_(1, index[:, None], 8.0)
        x.scatter_add_(0, index[None, :2], rows[:1])
        return x

    c = compile(f)
    found = []
    for index in ([0, 0, 1], [2, 1, 1]):
        x = torch.randn(3, 3)
        found += [c(x, torch.tensor(index), torch.randn(3, 3)), x]
    return found


@program
def masked_writes(compile):
    def f(x, mask):
        x.masked_scatter_(mask, torch.arange(6.0))
        y = torch.where(mask, x, -x)
        x[~mask] = 2
        return y

    c = compile(f)
    x = torch.randn(2, 3)
    return [(c(x, m), x.clone()) for m in (x > 0, x < 0, x > 100)]


@program
def an_index_out_of_range_leaves_eagers_state(compile):
    def f(x, i):
        x.add_(1)
        x[i] = 0
        x.mul_(2)
        return x

    c = compile(f)
    x = torch.ones(3)
    return [(attempt(c, x, torch.tensor(i)), x.clone()) for i in (0, 1, 3, 2, -4)]


@program
def out_arguments(compile):
    def f(x, y, out):
        torch.add(x, y, out=out)
        torch.mul(out, 2, out=out)
        torch.matmul(x, y, out=x) if x.dim() == 2 else torch.exp(x, out=x)
        return out

    c = compile(f)
    x, y, o = torch.randn(2, 2), torch.randn(2, 2), torch.empty(2, 2)
    first = c(x, y, o)
    return first is o, x, y, o, c(x[0], y[0], o[1]), x, o


@program
def out_that_is_resized(compile):
    def f(x, out):
        return torch.add(x, 1, out=out)

    c = compile(f)
    out = torch.empty(0)
    return [(c(torch.ones(n), out), out.clone()) for n in (0,)]


@program
def data_is_written(compile):
    w = torch.ones(3, requires_grad=True)

    def f(x):
        w.data.mul_(x)
        w.data -= 0.5
        y = (w * x).sum()
        w.data = w.data * 2
        return y

    c = compile(f)
    found = []
    for i in range(3):
        y = c(torch.full((3,), 1.0 + i))
        y.backward()
        found += [y, state(w)]
    return found


@program
def parameters_written_under_no_grad(compile):
    w = torch.nn.Parameter(torch.randn(3))

    def f(x):
        with torch.no_grad():
            w.mul_(0.9)
            w[0] = x.sum()
            w.copy_(w.flip(0))
        return (w * x).sum()

    c = compile(f)
    found = []
    for i in range(3):
        y = c(torch.ones(3) * i)
        y.backward()
        found += [y, state(w)]
    return found


@program
def captured_buffers(compile):
    count, history = torch.zeros((), dtype=torch.int64), torch.zeros(4)

    def f(x):
        count.add_(1)
        history[1:] = history[:-1].clone()
        history[0] = x.sum()
        return history * count

    c = compile(f)
    found = [c(torch.ones(2) * i) for i in range(4)]
    history.zero_()
    count.fill_(10)
    return found, c(torch.ones(2)), history, count


@program
def a_ring_buffer_with_a_python_index(compile):
    class Ring:
        def __init__(self):
            self.data, self.at = torch.zeros(3, 2), 0

        def push(self, x):
            self.data[self.at] = x
            self.at = (self.at + 1) % 3
            return self.data.mean(0)

    ring = Ring()
    push = compile(ring.push)
    return [(push(torch.full((2,), float(i))), ring.at, ring.data.clone()) for i in range(7)]


@program
def a_ring_buffer_with_a_tensor_index(compile):
    data, at = torch.zeros(3, 2), torch.zeros((), dtype=torch.int64)

    def push(x):
        data[at] = x
        at.add_(1).remainder_(3)
        return data.mean(0)

    c = compile(push)
    return [(c(torch.full((2,), float(i))), at.clone(), data.clone()) for i in range(7)]


@program
def overlapping_rows_are_shifted(compile):
    def f(x):
        x[1:] = x[:-1].clone()
        x[:2] = x[1:3] * 2
        return x

    return many(compile(f), (5,))


@program
def set_item_of_every_kind(compile):
    def f(x):
        x[...] = x + 1
        x[None, 0] = 3
        x[1, [0, 2]] = torch.tensor([5.0, 6.0])
        x[(slice(None), 1)] = x[:, 2]
        x[True] = x * 2
        x[0][1] = 9
        return x

    return many(compile(f), (2, 3))


@program
def swaps(compile):
    def f(a, b):
        t = a.clone()
        a.copy_(b)
        b.copy_(t)
        a[0], a[1] = a[1].clone(), a[0].clone()
        return a - b

    return many(compile(f), (3,), (3,))


@program
def dtypes_that_do_not_fit(compile):
    def f(x):
        x.add_(1)
        x.div_(2)
        return x

    c = compile(f)
    x = torch.ones(2, dtype=torch.int64)
    return attempt(c, x), x, attempt(c, x), x, attempt(c, torch.ones(2)), attempt(c, torch.ones(2, dtype=torch.bool))


@program
def shapes_that_do_not_fit(compile):
    def f(x, y):
        x.mul_(2)
        x.add_(y)
        return x

    c = compile(f)
    x = torch.ones(2)
    return [(attempt(c, x, y), x.clone()) for y in (torch.ones(2), torch.ones(3), torch.ones(2, 2), torch.ones(1))]


@program
def complex_parts_are_written(compile):
    def f(z):
        z.real.mul_(2)
        z.imag[0] = 5
        torch.view_as_real(z)[1] += 1
        return z.conj() * z

    c = compile(f)
    z = torch.complex(torch.randn(3), torch.randn(3))
    return c(z), z, c(z), z


@program
def casts_share_or_copy(compile):
    def f(x):
        a = x.to(torch.float32)
        b = x.to(torch.float64)
        d = x.contiguous()
        a.add_(1)
        b.add_(1)
        d.mul_(2)
        return a, b, d

    c = compile(f)
    x, y = torch.ones(2), torch.ones(2, dtype=torch.float64)
    a, b, d = c(x)
    a2, b2, d2 = c(y)
    return a is x, b, d is x, x, a2, b2 is y, d2, y
