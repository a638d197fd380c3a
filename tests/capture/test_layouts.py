"""How computed tensors lie in memory is the same in both modes, where a program asks: `stride`, random fills."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import eager as torch
import eager.nn.functional as F
import graphc
from graphc.ops.aval import results_of
from graphc.ops.interpret import run_kernel, with_defaults
from graphc.ops.strides import strides_of
from tests.ops.cases import Case, each_case, every_case

PROGRAMS = {
    "a view of an argument": lambda x: x.mT,
    "pointwise": lambda x: x.mT + 1,
    "a chain": lambda x: torch.tanh(x.mT * 2) - x.mT,
    "row-major meets column-major": lambda x: x.mT.exp() * torch.ones(4, 3),
    "broadcast": lambda x: x.mT + torch.ones(3),
    "a swap of the last dims": lambda x: x.reshape(3, 2, 2).permute(2, 0, 1).sin(),
    "a sum": lambda x: x.reshape(3, 2, 2).permute(2, 0, 1).sum(1),
    "a product": lambda x: x.mT @ x,
    "a slice": lambda x: x.mT[::2].cos(),
    "repeated": lambda x: x[0].expand(3, 4).mT * 2,
    "in row-major order again": lambda x: (x.mT + 1).contiguous(),
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
@pytest.mark.parametrize("given", ["row-major", "column-major"])
def test_random_numbers_fill_memory_in_its_order(program, given):
    x = torch.arange(12.0).reshape(3, 4) / 10
    if given == "column-major":
        x = torch.arange(12.0).reshape(4, 3).mT / 10

    def f(x):
        y = program(x)
        return torch.rand_like(y), torch.randn_like(y) + y

    torch.manual_seed(5)
    expected = f(x)
    compiled = graphc.compile(f)
    for _ in range(3):
        torch.manual_seed(5)
        for a, b in zip(expected, compiled(x), strict=True):
            assert torch.allclose(a, b)


def test_another_layout_of_an_argument_is_another_program():
    f = graphc.compile(lambda x: torch.rand_like(x * 2))
    a = torch.ones(3, 4)
    for x in (a, torch.ones(4, 3).mT, a):
        torch.manual_seed(0)
        expected = torch.rand_like(x * 2)
        torch.manual_seed(0)
        assert torch.equal(f(x), expected)


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_strides_are_eager_s(program):
    x = torch.arange(12.0).reshape(3, 4)
    found = []
    graphc.trace(lambda x: found.append(program(x).stride()) or x, x)
    expected = program(x).stride()
    shape = program(x).shape
    assert all(a == b for n, a, b in zip(shape, found[0], expected, strict=True) if n > 1)


def test_large_tensors_too():
    x = torch.ones(700, 300).mT

    def f(x):
        return torch.rand_like(x + 1)

    torch.manual_seed(1)
    expected = f(x)
    torch.manual_seed(1)
    assert torch.equal(graphc.compile(f)(x), expected)


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_reshape_of_a_computed_tensor_is_a_copy_where_it_is_one_in_eager(program):
    def f(x):
        y = program(x) * 1.0
        flat = y.reshape(-1)
        y.sub_(1.0)
        return y, flat

    x = torch.arange(12.0).reshape(3, 4)
    expected, compiled = f(x), graphc.compile(f)
    for _ in range(2):
        for a, b in zip(expected, compiled(x), strict=True):
            assert torch.allclose(a, b)


@pytest.mark.parametrize("loop", ["scan", "cond", "while_loop", "map"])
def test_operands_of_a_body_and_what_it_reaches(loop):
    weights = torch.arange(12.0).reshape(3, 4).mT
    seen = []

    def body(h, x):
        left, right = h.chunk(2, 1)
        y = left @ weights[:2] + right @ weights[2:]
        seen.append((weights.stride(), (weights * 2).stride(), h.stride(), y.stride()))
        return torch.cat((y, x), 1)

    def f(h, xs):
        if loop == "scan":
            return graphc.scan(lambda h, x: (body(h, x),) * 2, h, xs)
        if loop == "map":
            return graphc.map(lambda x: body(h, x), xs)
        if loop == "cond":
            return graphc.cond(h.sum() > 0, body, lambda h, x: h, h, xs[0])
        return graphc.while_loop(lambda h: h.sum() < 100, lambda h: body(h, xs[0]), h)

    h, xs = torch.ones(2, 4), torch.ones(3, 2, 1)
    expected, asked = f(h, xs), set(seen)
    seen.clear()
    found = graphc.compile(f)(h, xs)
    assert set(seen) == asked
    for a, b in zip(*((r if isinstance(r, tuple) else (r,)) for r in (expected, found)), strict=True):
        assert torch.allclose(a, b)


def lie(t: Any) -> tuple[Any, ...]:
    steps = [step for n, step in zip(t.shape, t.stride(), strict=True) if n > 1]
    return steps, t.is_contiguous(), t.storage_offset()


VIEWS_OF_OTHER_ITEMS = {
    "real": lambda z: z.real,
    "imag": lambda z: z.imag,
    "pairs": torch.view_as_real,
    "pairs joined again": lambda z: torch.view_as_complex(torch.view_as_real(z)),
    "bits of half the size": lambda z: z.real.unfold(-1, 1, 1).view(torch.int32),
    "bits of twice the size": lambda z: torch.view_as_real(z).view(torch.float64),
    "bits of a quarter": lambda z: torch.view_as_real(z).view(torch.int16),
}
GIVEN: dict[str, Callable[[Any], Any]] = {
    "row-major": lambda z: z,
    "column-major": lambda z: z.mT,
    "with gaps": lambda z: z[1:, ::2],
    "repeated": lambda z: z[0].expand(5, 4),
}


VIEWS: dict[str, Callable[[Any], Any]] = {
    "windows": lambda y: y.unfold(0, 2, 2),
    "windows of columns": lambda y: y.unfold(1, 2, 2),
    "windows that overlap": lambda y: y.unfold(1, 2, 1)[:, ::2],
    "view": lambda y: y.view(y.shape[0], 1, y.shape[1]),
    "reshape": lambda y: y.mT.reshape(-1),
    "diagonal": lambda y: y.diagonal(1),
    "select": lambda y: y.select(1, 1),
    "split": lambda y: y.split(2, 1)[1],
    "unbind": lambda y: y.unbind(0)[1],
    "slices": lambda y: y[1:, None, ::2],
    "movedim": lambda y: y[None].movedim(0, 1),
    "unflatten": lambda y: y.unflatten(1, (-1, 1)),
    "data": lambda y: y[1:].data,
    "detach": lambda y: y[1:].detach(),
    "parts": lambda y: torch.view_as_complex(y.unflatten(1, (-1, 2))).imag,
    "contiguous": lambda y: y.contiguous(),
    "a row": lambda y: torch.atleast_3d(y[1]).squeeze(0),
}


@pytest.mark.on_numpy
@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
@pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)
def test_views_of_any_memory_are_views_in_graphs(view, given):
    def f(x):
        seen = view(given(x))
        if given is not GIVEN["repeated"]:
            seen.mul_(2)
        x.add_(1)
        return seen * 1, x * 1, lie(seen)

    def ran(run):
        try:
            *tensors, lies = run(torch.arange(24.0).reshape(4, 6))
        except RuntimeError as error:
            return str(error)
        return [t.tolist() for t in tensors], lies

    assert ran(f) == ran(graphc.compile(f))


@pytest.mark.on_numpy
@pytest.mark.parametrize("program", VIEWS_OF_OTHER_ITEMS.values(), ids=VIEWS_OF_OTHER_ITEMS)
@pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)
@pytest.mark.parametrize("outside", [True, False])
def test_views_as_items_of_another_size_lie_as_eager_s(program, given, outside: bool):
    z, found = torch.arange(12.0).reshape(3, 4).to(torch.complex64), []

    def f(x):
        y = program(x if outside else given(x))
        flat = y.reshape(-1)
        found.append([lie(t) for t in (y, y[1:], y.mT, y[..., 1:, :1])])
        if given is not GIVEN["repeated"]:
            y[:1] = 7  # `flat` shows it where it is a view
        return flat * 1

    def ran(run):
        try:
            return run(given(z.clone()) if outside else z.clone()).tolist()
        except RuntimeError as error:  # no whole items
            return str(error)

    assert ran(f) == ran(graphc.compile(f))
    assert found[:1] == found[1:]


def test_another_place_in_memory_of_an_argument_is_another_program():
    f = graphc.compile(lambda x: x[1:] + x[1:].storage_offset())
    whole = torch.zeros(8)
    assert [f(whole[k : k + 3])[0].item() for k in (0, 2, 2, 1)] == [1, 3, 3, 2]


@pytest.mark.parametrize("shape", [(3, 4), (4, 3), (3, 5, 4), (4, 4, 4)])
@pytest.mark.parametrize("offset", [0, 1, -1])
def test_diagonals_lie_as_eagers_although_graphs_make_them_of_other_steps(shape, offset):
    def strides(x):
        found = []
        for y in (x, x.transpose(0, -1)):
            for dims in ((0, 1), (1, 0), (-1, 0)):
                diagonal = y.diagonal(offset, *dims)
                found += [t.stride() for t in (diagonal, diagonal.reshape(-1), diagonal * 2, diagonal.T)]
        return found

    x = torch.arange(float(math.prod(shape))).reshape(shape)
    traced = []
    graphc.trace(lambda x: traced.append(strides(x)) or x.sum(), x)
    assert traced == [strides(x)]


def with_gaps(array: np.ndarray) -> np.ndarray:
    """The same values in row-major order, but not side by side."""
    if not array.ndim:
        return array
    wide = np.zeros([2 * n + 1 for n in array.shape], array.dtype)
    view = wide[tuple(slice(0, 2 * n, 2) for n in array.shape)]
    view[...] = array
    return view


@each_case(case for case in every_case() if not case.op.view)
def test_kernels_keep_row_major_order_and_leave_no_gaps(case: Case, rng: np.random.Generator):
    arrays = [np.ascontiguousarray(a) if a.ndim else a for a in case.arrays(rng)]
    params = with_defaults(case.op, case.sample.params)
    for given in (arrays, [with_gaps(a) for a in arrays]):
        assert all(strides_of(r) is None for r in results_of(run_kernel(case.op, given, params)))


@pytest.mark.parametrize(
    ("program", "tried"),
    [
        (lambda x: x[:, ::2].exp() @ torch.ones(2, 3), False),
        (lambda x: (x[1:, :3] * 2).reshape(3, 2).sin(), False),
        (lambda x: x.mT.exp() + 1, True),
    ],
)
def test_kernels_are_tried_only_for_dims_in_another_order(program, tried, monkeypatch):
    from graphc.capture.storage import layouts

    runs = []
    monkeypatch.setattr(layouts, "run_kernel", lambda *given: runs.append(given) or run_kernel(*given))
    x = torch.arange(12.0).reshape(3, 4)
    found = []
    graphc.trace(lambda x: found.append(program(x).stride()) or x, x)
    assert found == [program(x).stride()]
    assert bool(runs) == tried


DRAWS: dict[str, Callable[[Any], Any]] = {
    "dropout": lambda x: F.dropout(x, 0.5),
    "alpha_dropout": lambda x: F.alpha_dropout(x, 0.5, True),
    "dropout1d": lambda x: F.dropout1d(x[None], 0.5),
    "bernoulli": torch.bernoulli,
    "bernoulli_": lambda x: x.clone().bernoulli_(0.5),
    "poisson": torch.poisson,
    "rrelu": lambda x: F.rrelu(x - 0.5, training=True),
    "rand_like": torch.rand_like,
    "normal": lambda x: torch.normal(x, 1.0),
}


@pytest.mark.parametrize("name", DRAWS)
def test_random_numbers_lie_as_eagers_do(name: str):
    def fn(x: Any) -> Any:
        drawn = DRAWS[name](x.mT)
        return drawn, torch.rand_like(drawn), drawn.stride()

    x, seen = torch.arange(12.0).view(3, 4) / 12, []
    for run in (fn, graphc.compile(fn)):
        torch.manual_seed(0)
        seen.append([(drawn.tolist(), more.tolist(), strides) for drawn, more, strides in (run(x), run(x))])
    assert seen[0] == seen[1]
