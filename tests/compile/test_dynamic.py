"""`graphc.compile(dynamic=)` and placeholders with open sizes: one trace for any batch size, right at each."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable

import numpy as np
import pytest

import eager as torch
import eager.nn.functional as F
import graphc
from eager import nn
from graphc import errors
from graphc.compiling import choice
from graphc.lowering import HostExecutable
from graphc.lowering.machine import Machine
from tests.compile import dynamic_programs
from tests.compile.dynamic_programs import ONE_GRAPH, PER_SIZE, SIZES, TWO_GRAPHS
from tests.depth import one_in

pytestmark = pytest.mark.on_numpy


def leaves(result):
    if isinstance(result, dict):
        return [leaf for key, value in result.items() for leaf in (key, *leaves(value))]
    if isinstance(result, (tuple, list)):
        return [leaf for value in result for leaf in leaves(value)]
    return [result]


def assert_same(a, b):
    a, b = leaves(a), leaves(b)
    assert len(a) == len(b)
    for x, y in zip(a, b, strict=True):
        assert type(x) is type(y)
        if isinstance(x, torch.Tensor):
            assert (x.shape, x.dtype) == (y.shape, y.dtype)
            np.testing.assert_allclose(y.detach().numpy(), x.detach().numpy(), rtol=1e-4, atol=1e-5)
        else:
            assert x == y


def counted(fn):
    """`fn`, and a function that tells how often it has run."""
    ticks = itertools.count()

    def counting(*args, **kwargs):
        next(ticks)
        return fn(*args, **kwargs)

    return counting, lambda: int(repr(ticks)[6:-1])


def runs_at(fn, sizes, **options):
    """How often Python ran when `fn` was called with these batch sizes; each result is eager's."""
    counting, runs = counted(fn)
    compiled = graphc.compile(counting, **options)
    for k in sizes:
        x = torch.randn(k, *getattr(fn, "rest", (3,)))
        y = x.clone()
        torch.manual_seed(k)
        expected = outcome(fn, x)
        torch.manual_seed(k)
        found = outcome(compiled, y)
        assert_same(expected, found)
        assert_same(x, y)
    return runs(), compiled


def outcome(fn, x):
    try:
        return fn(x)
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("fn", one_in(2, ONE_GRAPH, lambda fn: fn.__name__))
def test_python_runs_once_more_for_the_second_size(fn):
    runs, compiled = runs_at(fn, (5, 7, 32, 5, 7, 11, 6, 32))
    assert runs == 2, compiled.explain()
    assert "one graph for any s0" in compiled.explain()


@pytest.mark.parametrize("fn", one_in(2, ONE_GRAPH, lambda fn: fn.__name__))
def test_asked_for_python_runs_once(fn):
    runs, compiled = runs_at(fn, (7, 5, 12), dynamic=True)
    assert runs == 1, compiled.explain()


@pytest.mark.parametrize("fn", one_in(2, ONE_GRAPH[::-1], lambda fn: fn.__name__))
def test_sizes_0_and_1_are_right(fn):
    runs_at(fn, [k for k in (5, 7, 1, 0, 2, 3, 4) if k >= SIZES.get(fn, 0)], dynamic=True)


@pytest.mark.parametrize("fn", TWO_GRAPHS, ids=lambda fn: fn.__name__)
def test_a_branch_on_the_size_has_two_graphs(fn):
    runs, compiled = runs_at(fn, (5, 7, 64, 6, 40, 8, 33), dynamic=True)
    assert runs == 2, compiled.explain()


def test_what_fails_with_a_symbolic_size_is_traced_for_each_size_from_then_on():
    def f(x):
        n = x.shape[0]
        if n > 8 and type(n) is not int:
            raise TypeError("a plain number is needed")
        return x * n

    compiled = graphc.compile(f)
    for size in (3, 4, 5):
        assert compiled(torch.ones(size)).tolist() == [size] * size
    assert "one graph for any s0" in compiled.explain()
    for size in (9, 6, 10):
        assert compiled(torch.ones(size)).tolist() == [size] * size
    assert "with symbolic sizes it raised TypeError: a plain number is needed" in compiled.explain()
    assert "one graph for any" not in compiled.explain()


@pytest.mark.parametrize("fn", PER_SIZE, ids=lambda fn: fn.__name__)
def test_what_takes_the_size_is_traced_for_each(fn):
    runs, compiled = runs_at(fn, (5, 7, 9, 5, 7))
    assert runs == 3
    assert (
        "takes a size as a plain number" in compiled.explain()
        and dynamic_programs.__name__.rpartition(".")[2] in compiled.explain()
    )


def test_not_dynamic():
    runs, _ = runs_at(lambda x: x * 2, (5, 7, 9, 5), dynamic=False)
    assert runs == 3


# --- several arguments


def test_sizes_that_were_equal_need_not_stay_so():
    compiled = graphc.compile(lambda x, y: (x.sum(0) + y.sum(0), torch.cat([x, y])))
    for a, b in ((5, 5), (7, 7), (8, 8), (5, 9), (3, 4), (9, 9), (30, 2), (6, 11), (1, 4), (4, 1)):
        x, y = torch.randn(a, 3), torch.randn(b, 3)
        assert_same(compiled._fn(x, y), compiled(x, y))


def test_broadcasting_is_decided_anew():
    compiled = graphc.compile(lambda x, y: x + y, dynamic=True)
    for a, b in ((5, 5), (7, 7), (1, 8), (8, 1), (3, 3), (1, 1)):
        x, y = torch.randn(a, 3), torch.randn(b, 3)
        assert_same(x + y, compiled(x, y))
    with pytest.raises(RuntimeError, match=r"size of tensor a \(5\) must match"):
        compiled(torch.randn(5, 3), torch.randn(6, 3))
    assert_same(compiled(torch.ones(9, 3), torch.ones(9, 3)), torch.full((9, 3), 2.0))


def test_weights_among_the_arguments():
    compiled = graphc.compile(lambda x, w, b: torch.tanh(x @ w + b), dynamic=True)
    for k in (5, 3, 4, 7, 32):  # 3 and 4 are sizes of the weights, too
        x, w, b = torch.randn(k, 3), torch.randn(3, 4), torch.randn(4)
        assert_same(torch.tanh(x @ w + b), compiled(x, w, b))


def test_nests_and_keywords():
    compiled = graphc.compile(lambda d, *, w=None: d["x"] @ d["y"].T * w)
    for k in (5, 7, 32, 9):
        x = torch.randn(k, 3)
        assert_same(x @ x.T * 2, compiled({"x": x, "y": x}, w=torch.tensor(2.0)))


def test_arguments_that_do_not_lie_plainly():
    counting, runs = counted(lambda x: x.reshape(-1) * 2)
    compiled = graphc.compile(counting)
    for k in (5, 7, 32, 9):
        for x in (torch.randn(3, k).t(), torch.randn(k, 3), torch.randn(k, 6)[:, ::2]):
            assert_same(x.reshape(-1) * 2, compiled(x))
    assert runs() <= 6


# --- gradients, effects, state


@pytest.mark.parametrize("dynamic", one_in(2, [None, True]))
@pytest.mark.parametrize("make", dynamic_programs.TRAINING, ids=lambda make: make.__name__)
def test_training_steps(make, dynamic):
    sizes = (5, 7, 32, 9, 5, 3, 32, 7, 11, 2, 16, 4)
    data = [(torch.randn(k, 3), torch.randint(0, 4, (k,))) for k in sizes]
    found = []
    for way in (lambda fn: fn, lambda fn: graphc.compile(fn, dynamic=dynamic)):
        torch.manual_seed(0)
        step, parameters = make()
        run = way(step)
        torch.manual_seed(9)
        found.append(([run(x, y).detach().clone() for x, y in data], [p.detach().clone() for p in parameters]))
    assert_same(*found)
    assert len(run._log) <= 4, run.explain()


def test_gradients_outside_of_any_order():
    net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
    compiled = graphc.compile(net)
    for k in (5, 7, 32, 7, 4):
        x = torch.randn(k, 3)
        found = []
        for fn in (net, compiled):
            leaf = x.clone().requires_grad_()
            fn(leaf).sum().backward()
            (g,) = torch.autograd.grad((fn(leaf) ** 2).sum(), leaf, create_graph=True)
            g.sum().backward()
            found.append([leaf.grad, *(p.grad.clone() for p in net.parameters())])
            net.zero_grad()
        assert_same(*found)
    assert len(compiled._compiled._log) == 2


def test_a_function_of_the_users_is_traced_for_each_size():
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return g * 2 * ctx.saved_tensors[0] * ctx.saved_tensors[0].shape[0]

    compiled = graphc.compile(lambda x: Square.apply(x).sum())
    for k in (5, 7, 32):
        x = torch.randn(k, 3, requires_grad=True)
        compiled(x).backward()
        assert_same(2 * k * x.detach(), x.grad)


def test_views_and_writes():
    def fn(x):
        y = x[1:]
        y += 1
        return y, x[:, 0], x.reshape(-1), x.shape[0] * 2

    compiled = graphc.compile(fn)
    for k in (5, 7, 32, 6):
        x = torch.randn(k, 3)
        z = x.clone()
        assert_same(fn(x), found := compiled(z))
        found[0].zero_()
        assert (z[1:] == 0).all()
    assert len(compiled._log) == 2


def test_decisions_on_values():
    counting, runs = counted(lambda x: x * 2 if x.sum() > 0 else x - 1)
    compiled = graphc.compile(counting)
    for k in (5, 7, 32, 6, 8):
        for sign in (1, -1):
            x = torch.ones(k, 3) * sign
            assert_same(x * 2 if sign > 0 else x - 1, compiled(x))
    assert runs() == 4


def test_values_that_are_read_and_depend_on_random_numbers():
    def fn(x):
        y = F.dropout(x, 0.5)
        return y * 2 if y.sum() > 0 else y - torch.rand(x.shape[0], 1)

    compiled = graphc.compile(fn)
    for k in (5, 7, 32, 6, 8, 9, 10):
        x = torch.randn(k, 3)
        torch.manual_seed(k)
        expected = fn(x)
        torch.manual_seed(k)
        assert_same(expected, compiled(x))


def test_sizes_in_attributes():
    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.n, self.h, self.shapes = 7, None, {}

        def forward(self, x):
            self.n, self.h = x.shape[0], x.sum(0)
            self.shapes["last"] = x.shape
            return x * self.n

    module = Module()
    compiled = graphc.compile(module)
    for k in (5, 7, 32, 7, 6):
        x = torch.randn(k, 3)
        assert_same(x * k, compiled(x))
        assert (module.n, type(module.n), module.shapes) == (k, int, {"last": torch.Size([k, 3])})
        assert type(module.shapes["last"][0]) is int
        assert_same(x.sum(0), module.h)


def test_what_the_trace_cannot_do_with_a_size_is_done_with_a_number():
    from decimal import Decimal

    compiled = graphc.compile(lambda x: x * float(Decimal(x.shape[0])))
    for k in (5, 7, 9):
        assert_same(torch.ones(k, 3) * k, compiled(torch.ones(k, 3)))


def test_conditions_of_many_kinds_end_in_a_graph_for_each_size():
    counting, runs = counted(lambda x: x * 2 if x.shape[0] % 64 == 3 else x + x.shape[0])
    compiled = graphc.compile(counting, dynamic=True)
    for k in range(2, 40):
        x = torch.ones(k, 2)
        assert_same(x * 2 if k % 64 == 3 else x + k, compiled(x))
    assert runs() <= 2
    compiled = graphc.compile(lambda x: x * [*range(100)].index(x.shape[0]), dynamic=True)
    for k in range(2, 20):
        assert_same(torch.ones(k, 2) * k, compiled(torch.ones(k, 2)))
    assert "a graph for each size: there are 8 graphs" in compiled.explain() or "plain number" in compiled.explain()


def test_a_changed_global_is_seen_at_every_size():
    state = {"scale": 2.0}
    compiled = graphc.compile(lambda x: x * state["scale"], dynamic=True)
    for k, scale in ((5, 2.0), (7, 2.0), (7, 3.0), (9, 3.0), (9, 4.0), (5, 5.0)):
        state["scale"] = scale
        assert_same(torch.ones(k, 2) * scale, compiled(torch.ones(k, 2)))


def test_threads():
    compiled = graphc.compile(lambda x: F.dropout(x, 0.0) * x.shape[0] + torch.zeros(x.shape[0], 1), dynamic=True)
    wrong = []

    def work(seed):
        for k in np.random.default_rng(seed).integers(2, 12, 15).tolist():
            found = compiled(torch.ones(k, 2))
            if found.shape != (k, 2) or not (found == k).all():
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# --- placeholders


def test_placeholders_of_any_size():
    net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 4))
    x = graphc.placeholder((None, 3), torch.float32, name="x")
    y = graphc.placeholder((None,), torch.int64, name="y")
    out = net(x)
    loss = F.cross_entropy(out, y)
    grads = graphc.gradients(loss, list(net.parameters()))
    fetched = [
        out,
        loss,
        grads,
        x[: x.shape[0] // 2],
        torch.zeros(x.shape[0], 3) + x,
        x.reshape(-1).view(x.shape[0], -1),
    ]
    noise = x + torch.rand(x.shape[0], 1)
    assert str(out.shape) == "torch.Size([s0, 4])"
    with graphc.Session() as session:
        for k in (5, 7, 32, 1, 2):
            a, b = torch.randn(k, 3), torch.randint(0, 4, (k,))
            want = net(a)
            expected = F.cross_entropy(want, b)
            g = torch.autograd.grad(expected, list(net.parameters()))
            assert_same([want, expected, g, a[: k // 2], a, a], session.run(fetched, {x: a, y: b}))
            torch.manual_seed(1)
            drawn = session.run(noise, {x: a})
            torch.manual_seed(1)
            assert_same(a + torch.rand(k, 1), drawn)
        with pytest.raises(errors.GraphError, match="condition s0 == s1"):
            session.run(loss, {x: torch.randn(5, 3), y: torch.randint(0, 4, (6,))})
        with pytest.raises(ValueError, match=r"which has shape \(\?, 3\)"):
            session.run(out, {x: torch.randn(5, 4)})
    for take in (len, list, lambda t: range(t.shape[0])):
        with pytest.raises(errors.CaptureError, match="the size s0 of a placeholder is not known"):
            take(x)


@pytest.mark.parametrize(
    "fn", [lambda a, b: a @ b, lambda a, b: a.sum() * b.shape[0], lambda a, b: (a.sum() + b).shape], ids="abc"
)
def test_a_graph_for_any_size_of_one_argument_is_not_one_for_other_sizes_of_another(fn):
    compiled = graphc.compile(fn)
    for m, n in ((4, 5), (3, 5), (4, 6), (3, 6), (7, 6), (7, 5), (2, 5)):
        given = torch.ones(m, 5), torch.ones(n, 6)
        outcomes = []
        for mode in (fn, compiled):
            try:
                outcomes.append(str(mode(*given)))
            except RuntimeError as error:
                outcomes.append(str(error))
        assert outcomes[0] == outcomes[1]


def test_many_batch_sizes_run_eagerly_beyond_the_first_eight():
    torch.manual_seed(0)
    models = [torch.nn.Linear(3, 1), torch.nn.Linear(3, 1)]
    models[1].load_state_dict(models[0].state_dict())

    def steps(model: torch.nn.Module) -> Callable[[torch.Tensor], torch.Tensor]:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

        def step(x: torch.Tensor) -> torch.Tensor:
            optimizer.zero_grad()
            loss = (model(x) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss

        return step

    plain, compiled = steps(models[0]), graphc.compile(steps(models[1]))
    for k in [*range(2, 14), *range(13, 1, -1)]:  # eager and compiled calls take turns with the state
        x = torch.linspace(-1, 1, 3 * k).reshape(k, 3)
        assert_same(plain(x), compiled(x))
    found = compiled.explain()
    assert "eager for 4 more signatures" in found
    assert len(found.programs) == 8


def test_sizes_that_take_long_get_their_programs(monkeypatch):
    def slow(x: torch.Tensor) -> torch.Tensor:
        return x.sin().sum()

    compiled = graphc.compile(slow)
    for k in range(2, 13):
        compiled(torch.ones(k, 2))
    assert len(compiled.explain().programs) == 8
    allowed = compiled._waiting._allowed
    monkeypatch.setattr(allowed, "_left", dict.fromkeys(allowed._left, 0.0))
    for k in range(2, 13):
        assert_same(slow(torch.ones(k, 2)), compiled(torch.ones(k, 2)))
    assert len(compiled.explain().programs) == 11


def test_the_third_size_begins_on_numpy_and_is_compiled_when_that_pays(monkeypatch):
    compiled = graphc.compile(lambda x: torch.tanh(x).sum())
    for k in range(2, 6):
        assert_same(torch.tanh(torch.ones(k, 2)).sum(), compiled(torch.ones(k, 2)))
    assert [p.backend for p in compiled.explain().programs] == ["jax", "jax", "numpy", "numpy"]
    compiled(torch.ones(5, 2))  # the second one that is timed
    latest = compiled._latest
    monkeypatch.setattr(choice, "machine", lambda: Machine(0.0, 0.0, 0.0, 1.0, 0.0, 10.0, 0.0))
    monkeypatch.setattr(choice, "seconds_of_program", lambda p, _=(): 1.0 if isinstance(p, HostExecutable) else 1e-6)
    latest.choice.again, latest.calls = 0, 10**6  # as many as pay
    assert_same(torch.tanh(torch.ones(5, 2)).sum(), compiled(torch.ones(5, 2)))
    assert [p.backend for p in compiled.explain().programs] == ["jax", "jax", "numpy", "jax"]


@pytest.mark.parametrize("options", [{"dynamic": True}, {"dynamic": False}, {"strict": True}, {"max_retraces": 20}])
def test_who_says_how_to_compile_gets_a_program_for_each_size(options):
    compiled = graphc.compile(lambda x: x + 1, **options)
    for k in range(2, 13):
        compiled(torch.ones(k))
    assert len(compiled.explain().programs) == 11


def test_programs_that_differ_in_more_than_a_batch_size_are_not_counted_together():
    compiled = graphc.compile(lambda x: x + 1)
    for k in range(2, 13):
        compiled(torch.ones(2, k))
    assert len(compiled.explain().programs) == 11
