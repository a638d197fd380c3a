"""cond, switch, while_loop, scan, fori_loop and map as users call them: eager and compiled, with gradients."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import eager as torch
import graphc
from graphc.errors import CaptureError

W = torch.tensor(np.random.default_rng(1).normal(size=(3, 3)) * 0.4, requires_grad=True)
B = torch.tensor([0.1, -0.2, 0.3], dtype=torch.float64, requires_grad=True)
Pair = namedtuple("Pair", "h c")


@dataclass
class State:
    h: Any
    n: Any


def x(*shape: int, seed: int = 0, grad: bool = True) -> torch.Tensor:
    return torch.tensor(np.random.default_rng(seed).normal(size=shape), requires_grad=grad)


def rnn(xs, h):
    def step(h, x):
        h = torch.tanh(x + h @ W + B)
        return h, {"sum": h.sum(), "h": h}

    last, ys = graphc.scan(step, h, xs)
    return (last * last).sum() + ys["h"].mean() + ys["sum"].sum()


def lstm(xs, h):
    def step(s, x):
        gate = torch.sigmoid(x @ W + s.h)
        c = gate * s.c + (1 - gate) * torch.tanh(x)
        return Pair(torch.tanh(c) * gate, c), None

    last, nothing = graphc.scan(step, Pair(h, torch.zeros(3, dtype=torch.float64)), xs, reverse=True, unroll=2)
    assert nothing is None
    return last.h.sum() + (last.c * last.c).sum()


def dataclass_carry(xs, h):
    last, ys = graphc.scan(lambda s, x: (State(s.h * 0.5 + x, s.n + 1), (s.h, s.n)), State(h, 0), xs)
    return (last.h * last.n).sum() + ys[0].sum() * ys[1].sum()


def no_xs(xs, h):
    last, ys = graphc.scan(lambda c, _: (c * xs[0] + 0.1, c.sum()), h, None, length=4)
    return last.sum() + (ys * ys).sum()


def branches(xs, h):
    a = graphc.cond(h.sum() > 0, lambda x, y: x.sin() * y.mean(0) @ W, lambda x, y: x - B, h, xs)
    b = graphc.cond(h.sum() <= 0, lambda: {"r": h * 2}, lambda: {"r": h.exp()})
    return a.sum() + b["r"].sum()


def partly(xs, h):
    """Branches that use different operands, and a number."""
    return graphc.cond(xs.mean() > 100, lambda: 0.0, lambda: (xs * B).sum()) + h.sum()


def switched(xs, h):
    index = (h > 0).sum()
    fs = [lambda v: v.sum(), lambda v: (v * B).sum(), lambda v: v.prod(), lambda v: 0]
    return graphc.switch(index, fs, h) + graphc.switch(9, [lambda v: v, lambda v: v.cos()], h).sum()


def looped(xs, h):
    h, n = graphc.while_loop(lambda s: (s[0] * s[0]).sum() < 50, lambda s: (s[0] * 1.3 + B, s[1] + 1), (h, 0))
    return h.sum() * 0.1 + n * h[0]


def fori(xs, h):
    h = graphc.fori_loop(0, 4, lambda i, h: torch.tanh(h @ W) + xs[i], h)
    return (h * h).sum() + graphc.fori_loop(3, 1, lambda i, h: h * 7, h).sum()


def fori_dynamic(xs, h):
    n = (h * h > 0).sum()
    return graphc.fori_loop(torch.tensor(0), n, lambda i, h: torch.sin(h) + i * 0.1 * B, h).sum()


def mapped(xs, h):
    return (graphc.map(lambda row: {"r": (row * h).sum() * row}, xs)["r"] ** 2).sum()


def nested(xs, h):
    def outer(h, x):
        def inner(s):
            moved = graphc.cond(s[0].sum() > 0, lambda a: a * x + B, lambda a: a - x, s[0])
            return s[0] + 0.4 * torch.abs(moved), s[1] + 1

        h, _ = graphc.while_loop(lambda s: (s[0].abs().sum() < 4) & (s[1] < 6), inner, (h, 0))
        return h / 2, graphc.map(lambda row: row * h.sum(), x)

    last, ys = graphc.scan(outer, h, xs)
    return last.sum() + ys.sum()


def inner_gradient(xs, h):
    """Gradient descent as a scan: gradients are taken inside the body, and flow through."""

    def step(v, row):
        loss = ((v @ W - row) ** 2).sum()
        (g,) = torch.autograd.grad(loss, v, create_graph=True)
        return v - 0.1 * g, loss

    last, losses = graphc.scan(step, h * 1.0, xs)
    return losses.sum() + last.sum()


def frozen(xs, h):
    def step(c, row):
        with torch.no_grad():
            scale = (c * B).sum()
        return c * scale + row, c.detach() * row

    last, ys = graphc.scan(step, h, xs)
    return last.sum() + ys.sum()


def writes_inside(xs, h):
    def step(c, row):
        c += row  # of its own
        buffer = torch.zeros(3, dtype=torch.float64)
        buffer[1:] = row[:2]
        return c, buffer

    last, ys = graphc.scan(step, h * 2, xs)
    return last.sum() + (ys * ys).sum()


def cumulative(xs, h):
    return graphc.scan(lambda total, row: (total + row, total), 0.0, xs.sum(1))[1].sum() + h.sum()


PROGRAMS: list[Callable[..., Any]] = [
    rnn, lstm, dataclass_carry, no_xs, branches, partly, switched, looped, fori, fori_dynamic, mapped, nested,
    inner_gradient, frozen, writes_inside, cumulative,
]  # fmt: skip
by_name = pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)


def gradients(fn: Callable[..., Any], *args: torch.Tensor) -> tuple[Any, list[Any]]:
    out = fn(*args)
    found = torch.autograd.grad(out, [*args, W, B], allow_unused=True)
    return out.detach().numpy(), [np.zeros(()) if g is None else g.numpy() for g in found]


def assert_close(ours: list[Any], theirs: list[Any]) -> None:
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(*np.broadcast_arrays(a, b), rtol=1e-9, atol=1e-12)


@by_name
def test_compiled_is_eager(program: Callable[..., Any]):
    compiled = graphc.compile(program)
    for seed in range(4):
        args = x(4, 3, seed=seed), x(3, seed=seed + 10)
        ours, theirs = gradients(program, *args), gradients(compiled, *args)
        np.testing.assert_allclose(theirs[0], ours[0], rtol=1e-10)
        assert_close(theirs[1], ours[1])
    assert "1 program" in graphc.explain(compiled)


@by_name
def test_the_graph_runs_on_numpy(program: Callable[..., Any]):
    args = x(4, 3), x(3, seed=5)
    graph = graphc.trace(program, *args).check()
    by_name = {"W": W, "B": B}
    given = [a.detach().numpy() for a in args] + [by_name[n].detach().numpy() for n in graph.input_names[2:]]
    for g in (graph, graphc.optimize(graph), graphc.Graph.parse(str(graph))):
        np.testing.assert_allclose(g(*given), program(*args).detach().numpy(), rtol=1e-10)


@by_name
def test_eager_gradients_are_difference_quotients(program: Callable[..., Any]):
    xs, h = x(4, 3, seed=2), x(3, seed=12)
    if program in (frozen,):
        return  # whose gradients leave something out on purpose
    _, (_, found, *_) = gradients(program, xs, h)
    for k in range(3):
        step = torch.zeros(3, dtype=torch.float64)
        step[k] = 1e-6
        up, down = ((h.detach() + sign * step).requires_grad_() for sign in (1, -1))
        quotient = (program(xs, up) - program(xs, down)).item() / 2e-6
        np.testing.assert_allclose(np.broadcast_to(found, 3)[k], quotient, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("program", [rnn, branches, looped, fori, mapped], ids=lambda p: p.__name__)
def test_second_derivatives(program: Callable[..., Any]):
    def penalty(xs, h):
        out = program(xs, h)
        (g,) = torch.autograd.grad(out, h, create_graph=True)
        return (g * g).sum() + out

    args = x(4, 3, seed=3), x(3, seed=13)
    ours, theirs = gradients(penalty, *args), gradients(graphc.compile(penalty), *args)
    np.testing.assert_allclose(theirs[0], ours[0], rtol=1e-9)
    assert_close(theirs[1], ours[1])


def test_python_predicates_choose_now():
    graph = graphc.trace(lambda a: graphc.cond(True, lambda: a + 1, lambda: a - 1), torch.zeros(2))
    assert [n.op.name for n in graph.operations()] == ["constant", "add", "clone"]


CONTROL = {
    "cond": lambda x: graphc.cond(x.sum() > 0, lambda a: a, lambda a: -a, x),
    "switch": lambda x: graphc.switch(x.sum().long(), [lambda a: -a, lambda a: a], x),
    "while_loop": lambda x: graphc.while_loop(lambda a: a.sum() < 0, lambda a: a + 1, x),
    "scan": lambda x: graphc.scan(lambda a, _: (a, None), x, length=2)[0],
}


@pytest.mark.parametrize("control", CONTROL.values(), ids=CONTROL.keys())
def test_results_share_no_memory_with_operands_and_are_row_major(control):
    def f(x):
        y = control(x)
        y.add_(1)
        return x * 1, y, torch.rand_like(y), torch.tensor(y.stride())

    compiled = graphc.compile(f)
    for x in (torch.ones(2, 3).mT, torch.arange(6.0).reshape(3, 2)):
        found = []
        for run in (f, compiled, compiled):
            torch.manual_seed(0)
            found.append(run(x.clone()))
        for expected, *others in zip(*found, strict=True):
            assert all(torch.equal(expected, other) for other in others)
        assert torch.equal(found[0][0] + 1, found[0][1]) and found[0][3].tolist() == [2, 1]


def test_only_one_branch_is_executed():
    f = graphc.compile(lambda a, i: graphc.cond(a.sum() > 0, lambda: a[i], lambda: a[0]))
    good, bad = torch.tensor([1.0, 2.0]), torch.tensor([-1.0, -2.0])
    assert f(good, torch.tensor(1)).item() == 2.0
    assert f(bad, torch.tensor(7)).item() == -1.0  # the other branch's index is not looked at
    with pytest.raises(IndexError):
        f(good, torch.tensor(7))


def test_no_steps():
    for run in (rnn, graphc.compile(rnn)):
        out = run(torch.zeros(0, 3, dtype=torch.float64), x(3))
        assert torch.isnan(out)  # the mean of no numbers
    shapes = lambda n: graphc.scan(lambda c, v: (c + v, (c * 2, v > 0)), torch.zeros(2), torch.zeros(n, 2))[1]
    for run in (shapes, graphc.compile(shapes)):
        a, b = run(0)
        assert (a.shape, a.dtype, b.shape, b.dtype) == ((0, 2), torch.float32, (0, 2), torch.bool)


def test_parameters_are_read_anew_and_trained():
    torch.manual_seed(0)
    cell = torch.nn.Linear(6, 3)

    def step(xs, target):
        optimizer.zero_grad()
        h, _ = graphc.scan(lambda h, v: (torch.tanh(cell(torch.cat([h, v]))), None), torch.zeros(3), xs)
        loss = ((h - target) ** 2).sum()
        loss.backward()
        optimizer.step()
        return loss

    curves = []
    for wrap in (lambda f: f, graphc.compile):
        torch.manual_seed(0)
        cell = torch.nn.Linear(6, 3)
        optimizer = torch.optim.Adam(cell.parameters(), lr=0.05)
        run = wrap(step)
        xs, target = torch.ones(5, 3), torch.tensor([0.5, -0.5, 0.1])
        curves.append([run(xs, target).item() for _ in range(20)])
    np.testing.assert_allclose(curves[0], curves[1], rtol=1e-4)
    assert curves[0][-1] < curves[0][0] / 5


@pytest.mark.parametrize("reverse", [False, True])
def test_random_numbers_of_each_step(reverse: bool):
    def f(xs):
        def step(c, row):
            return c + torch.rand(2) * row, torch.randn(3)

        return graphc.scan(step, torch.zeros(2), xs, reverse=reverse)

    xs = torch.ones(4, 2)
    compiled = graphc.compile(f)
    for _ in range(2):
        torch.manual_seed(3)
        a, b = f(xs)
        after = torch.rand(1)
        torch.manual_seed(3)
        c, d = compiled(xs)
        np.testing.assert_array_equal(b.numpy(), d.numpy())
        np.testing.assert_allclose(a.numpy(), c.numpy(), rtol=1e-6)
        assert after.item() == torch.rand(1).item()


OUTSIDE = torch.zeros(3)


def _write(c, v):
    OUTSIDE.add_(1)
    return c + v, None


def _backward(c, v):
    (W.sum() * v.sum()).backward()
    return c, None


REFUSED = {
    "a write to a global": (lambda v: graphc.scan(_write, torch.zeros(()), v), "writes to a tensor from outside"),
    "a write to a traced tensor": (
        lambda v: graphc.cond(v.sum() > 0, lambda: v.mul_(2), lambda: v), "writes to a tensor from outside"
    ),
    "backward into .grad": (lambda v: graphc.scan(_backward, torch.zeros(()), v), "autograd.grad"),
    "a branch on a value": (
        lambda v: graphc.scan(lambda c, r: (c + 1 if r > 0 else c, None), torch.zeros(()), v), "truth value"
    ),
    "random numbers in a branch": (
        lambda v: graphc.cond(v.sum() > 0, lambda: torch.rand(2), lambda: torch.zeros(2)), "pass them as operands"
    ),
    "random numbers in a loop": (
        lambda v: graphc.while_loop(lambda c: c < 9, lambda c: c + torch.rand(()), v.sum()), "pass them as operands"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_captured_says_so(name: str):
    program, says = REFUSED[name]
    with pytest.raises(CaptureError, match=says) as found:
        graphc.trace(program, torch.ones(3))
    assert "test_functions.py:" in str(found.value)
    assert OUTSIDE.tolist() == [0, 0, 0]


MISTAKES: dict[str, tuple[Any, type[Exception], str]] = {
    "dtype of a carry": (
        lambda v: graphc.scan(lambda c, r: ({"h": c["h"].double()}, None), {"h": torch.zeros(2)}, v), TypeError,
        r"the carry\['h'\] is f64\[2\], expected f32\[2\]",
    ),
    "shape of a carry": (
        lambda v: graphc.while_loop(lambda c: c.sum() < 9, lambda c: torch.cat([c, c]) + 1, v), TypeError,
        r"the carry is f32\[6\], expected f32\[3\]",
    ),
    "structure of a carry": (
        lambda v: graphc.scan(lambda c, r: ((c, c), None), v.sum(), v), TypeError, "expected"
    ),
    "no pair": (lambda v: graphc.scan(lambda c, r: c, v.sum(), v), TypeError, "pair"),
    "lengths": (lambda v: graphc.scan(lambda c, r: (c, r), v.sum(), v, length=7), ValueError, "lengths differ"),
    "no length": (lambda v: graphc.scan(lambda c, r: (c, r), v.sum()), ValueError, "pass xs or length"),
    "0-d xs": (lambda v: graphc.map(lambda r: r, v.sum()), ValueError, "no dimension"),
    "no branches": (lambda v: graphc.switch(v.sum().long(), []), ValueError, "at least one"),
    "a vector predicate": (
        lambda v: graphc.cond(v > 0, lambda: v, lambda: v), (TypeError, RuntimeError), "single value|ambiguous"
    ),
    "a leaf that is no tensor": (lambda v: graphc.scan(lambda c, r: (c, None), "text", v), TypeError, "is a str"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
@pytest.mark.parametrize("traced", [False, True])
def test_mistakes_are_the_same_in_both_modes(name: str, traced: bool):
    program, kind, says = MISTAKES[name]
    with pytest.raises(kind, match=says):
        graphc.trace(program, torch.ones(3)) if traced else program(torch.ones(3))


@pytest.mark.parametrize(
    ("program", "says"),
    [
        (lambda v: graphc.cond(v.sum() > 0, lambda: v, lambda: v[:2]), r"f32\[2\]"),
        (lambda v: graphc.cond(v.sum() > 0, lambda: (v, v), lambda: v), "tuple"),
        (lambda v: graphc.switch(v.sum().long(), [lambda: v, lambda: v.double()]), r"branch 1.*f64\[3\], expected f32"),
    ],
)
def test_branches_that_differ_are_refused_under_a_trace(program: Any, says: str):
    with pytest.raises(TypeError, match=says):
        graphc.trace(program, torch.ones(3))


def test_gradients_are_jaxs():
    jax = pytest.importorskip("jax")
    xs, h = x(6, 3, seed=8), x(3, seed=9)

    def theirs(xs, h, w, b):
        def step(h, v):
            h = jax.numpy.tanh(v + h @ w + b)
            return h, (h.sum(), h)

        last, (sums, hs) = jax.lax.scan(step, h, xs)
        return (last * last).sum() + hs.mean() + sums.sum()

    with jax.enable_x64(True):
        expected = jax.grad(theirs, (0, 1, 2, 3))(*(t.detach().numpy() for t in (xs, h, W, B)))
        for run in (rnn, graphc.compile(rnn)):
            assert_close(gradients(run, xs, h)[1], [np.asarray(e) for e in expected])


class Recurrent(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = torch.nn.LSTMCell(3, 4)
        self.out = torch.nn.Linear(4, 1)

    def forward(self, xs):
        def step(state, x):
            state = self.cell(x, state)
            return state, state[0]

        return self.out(graphc.scan(step, (torch.zeros(xs.shape[1], 4),) * 2, xs)[1]).mean()


def test_modules_inside_bodies():
    torch.manual_seed(0)
    model, xs = Recurrent(), torch.randn(6, 2, 3)
    found = []
    for run in (model, graphc.compile(model)):
        model.zero_grad()
        run(xs).backward()
        found.append([p.grad.numpy() for p in model.parameters()])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-7)


def complex_numbers(z):
    h, _ = graphc.scan(lambda c, v: (c * v + v, None), z[0], z)
    return (h * h.conj()).real.sum()


def half_precision(z):
    rows = torch.stack([z.real, z.imag], -1).to(torch.float16)
    return graphc.scan(lambda c, r: (c * r + 1, c), rows[0], rows)[1].float().sum()


def loops_in_loops(z):
    def outer(c, row):
        d, _ = graphc.scan(lambda d, v: (d + row.sum() * v * c, None), c, row)
        return d, d

    return graphc.scan(outer, torch.ones((), dtype=torch.float64), z.real)[1].sum()


def two_pullbacks(z):
    last, _ = graphc.scan(lambda c, v: (c * v.sin(), None), torch.ones((), dtype=torch.float64), z.real[0])
    (a,) = torch.autograd.grad(last, z, create_graph=True)
    (b,) = torch.autograd.grad(last * 2, z, create_graph=True)
    return (a.real * b.real).sum()


def traced_numbers(z):
    k = z.real.sum().item()
    return graphc.scan(lambda c, v: (c + v.real.sum() * k * v.imag.sum().item(), None), 0.0, z)[0]


@pytest.mark.parametrize(
    "program",
    [complex_numbers, half_precision, loops_in_loops, two_pullbacks, traced_numbers],
    ids=lambda p: p.__name__,
)
def test_more_programs_have_the_same_gradients(program: Callable[..., Any]):
    compiled = graphc.compile(program)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        z = torch.tensor(rng.uniform(0.3, 1, (3, 4)) + 1j * rng.uniform(0.3, 1, (3, 4)), requires_grad=True)
        ours, theirs = program(z), compiled(z)
        # whether XLA rounds a product to 16 bits that it adds something to depends on the processor
        rtol = 2e-3 if program is half_precision else 1e-6
        np.testing.assert_allclose(theirs.detach().numpy(), ours.detach().numpy(), rtol=rtol)
        a, b = (torch.autograd.grad(out, z)[0].numpy() for out in (ours, theirs))
        np.testing.assert_allclose(b, a, rtol=rtol, atol=1e-9)


def test_a_failed_check_ends_a_loop():
    def f(table, i):
        return graphc.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + table[s[1]], s[1] + 1), (table.sum() * 0, i))

    with pytest.raises(IndexError):
        graphc.compile(f)(torch.zeros(4), torch.tensor(0))


@pytest.mark.parametrize("program", [rnn, fori, nested, mapped], ids=lambda p: p.__name__)
def test_gradients_through_a_compiled_function_twice(program: Callable[..., Any]):
    """The graph is run again on Tensors, with its control flow."""
    found = []
    for run in (program, graphc.compile(program)):
        args = x(4, 3, seed=1), x(3, seed=2)
        (g,) = torch.autograd.grad(run(*args), args[1], create_graph=True)
        found.append([t.numpy() for t in torch.autograd.grad((g * g).sum(), args)])
    assert_close(*found)
