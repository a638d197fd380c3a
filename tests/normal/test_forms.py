"""Every op that says how it is a sum of products is that: alone, in chains of ops, bit for bit in a ring."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest

import eager as torch
import graphc
from graphc.ir import Builder, Graph, Ref, Symbol
from graphc.normal.affine import Unsolved
from graphc.normal.emit import emit
from graphc.normal.factor import factored
from graphc.normal.form import Form
from graphc.normal.lift import forms
from graphc.normal.merge import merged
from graphc.ops import OPS, Trait
from graphc.ops.aval import Aval
from tests.normal import rings

LIFTED = [op for op in OPS.values() if op.lifting is not None]
FRACTIONS = ("mean", "div")  # which a ring has not
UNALIGNED = (("reshape", (3, 4)),)  # rows of 4 are cut anew into rows of 6
SHAPES = ((), (1,), (3,), (2, 3), (3, 3), (1, 4), (2, 1, 3), (0, 2))
PROGRAMS = 100
# ops that are linear in an operand, and yet no sums of products with places that are affine
ATOMS = {
    "tril": "triangles are no boxes of labels",
    "triu": "triangles are no boxes of labels",
    "cumsum": "a triangle of ones",
    "fft": "coefficients for each place",
    "rfft": "coefficients for each place",
    "shard": "a constraint, which has to stay",
    "segment": "a border, which has to stay",
    "resample": "coefficients for each place",
    "as_strided": "places that overlap",
    "as_strided_add": "places that overlap",
    **{f"max_pool{n}d_{how}": "places that values choose" for n in (1, 2, 3) for how in ("spread", "pick")},
    **{f"avg_pool{n}d{how}": "windows that overlap" for n in (1, 2, 3) for how in ("", "_spread")},
    **{f"conv{n}d{of}": "windows that overlap" for n in (1, 2, 3) for of in ("", "_input", "_weight")},
}


def lifted(graph: Graph) -> list[Form]:
    """The forms of the results of `graph`, in which only inputs are atoms."""
    found = forms(graph)
    result = [found[id] for id in graph.outputs]
    assert {f.atom for form in result for t in form.terms for f in t.factors} <= set(graph.inputs)
    return result


def equal(graph: Graph, *arrays: np.ndarray) -> None:
    values = graph.evaluate(*arrays)
    for id, form in zip(graph.outputs, lifted(graph), strict=True):
        got = rings.value(form, dict(zip(graph.inputs, arrays, strict=True)))
        np.testing.assert_array_equal(got, values[id])


def calls(op):
    if op.samples:
        return [([tuple(s.shape) for s in sample.inputs], sample.params) for sample in op.samples]
    return [([shape] * len(op.args), {}) for shape in SHAPES] + (
        [([(2, 3), (3,)], {}), ([(2, 1), (1, 3)], {}), ([(), (2,)], {})] if len(op.args) == 2 else []
    )


def test_what_is_linear_is_lifted_or_has_a_reason():
    linear = {op.name for op in OPS.values() if op.traits & (Trait.LINEAR | Trait.BILINEAR) and op.definition is None}
    assert linear == {op.name for op in LIFTED if op.name in linear} | ATOMS.keys()


@pytest.mark.parametrize("op", [op for op in LIFTED if op.args], ids=lambda op: op.name)
def test_each_op(op):
    rng = np.random.default_rng(0)
    for shapes, params in calls(op):
        if op.name in FRACTIONS or (op.name, shapes[0]) in UNALIGNED:
            continue
        builder = Builder()
        symbols = [builder.input(f"x{k}", Aval(shape, np.dtype(np.int64))) for k, shape in enumerate(shapes)]
        result = builder.apply(op, symbols, params)
        equal(builder.graph("f", Ref(result.id)), *[rings.integers(rng, shape) for shape in shapes])


@pytest.mark.parametrize("f", [
    lambda x: x.mean(1), lambda x: x / 4, lambda x: 0.5 * x + 2, lambda x: x.T * -1.5,
    lambda x: x / torch.full((4,), 8.0),
    lambda x: torch.eye(2) @ x, lambda x: torch.eye(4)[:3] @ x.T,
])  # fmt: skip
def test_numbers(f):
    x = torch.arange(8.0).reshape(2, 4)
    graph = graphc.trace(f, x)
    (form,) = lifted(graph)
    got = rings.value(form, {graph.inputs[0]: x.numpy()}, float)
    np.testing.assert_array_equal(got, f(x).numpy())


@pytest.mark.parametrize("f", [
    lambda x: x + torch.zeros(4),
    lambda x: torch.zeros(2, 4) + x.T.reshape(2, 4) + x,
    lambda x: (torch.zeros(2, 4) + x)[:, 1:].sum(0),
])  # fmt: skip
def test_zero_is_added_where_a_sum_says_so(f):
    x = torch.full((2, 4), -0.0)
    graph = graphc.trace(f, x)
    (form,) = lifted(graph)
    builder = Builder()
    symbol = builder.input("x", Aval((2, 4), np.dtype(np.float32)))
    atoms = dict.fromkeys(graph.inputs, symbol)
    result = emit(builder, form, atoms, np.dtype(np.float32))
    got = np.asarray(builder.graph("f", Ref(result.id))(x.numpy()))
    np.testing.assert_array_equal(np.signbit(got), np.signbit(f(x).numpy()))


@pytest.mark.parametrize("fn", [lambda x: (x - x) + 1, lambda x: torch.zeros(4) * 1.7 * x, lambda x: x.sum(0) * 0 * x])
def test_what_would_lose_a_nan_stays(fn):
    graph = graphc.trace(fn, torch.arange(8.0).reshape(2, 4))
    found = forms(graph)
    assert any(f.atom not in graph.inputs for t in found[graph.outputs[0]].terms for f in t.factors)


@pytest.mark.parametrize(("f", "terms", "factors"), [
    (lambda a, d: torch.diag(d) @ a, 1, 2),
    (lambda a, d: torch.eye(4, dtype=torch.float64) @ a, 1, 1),
    (lambda a, d: (a @ a)[2, 2], 1, 2),
    (lambda a, d: torch.trace(a @ a.T), 1, 2),
    (lambda a, d: torch.kron(a, a) @ a.reshape(16), 1, 3),
    (lambda a, d: torch.diag(torch.diag(d) @ a), 1, 2),
    (lambda a, d: torch.block_diag(a, a) @ torch.cat([d, d]), 2, 2),
    (lambda a, d: torch.cat([a, a], 1)[:, 4:], 1, 1),
    (lambda a, d: a.T.reshape(2, 2, 4).permute(2, 0, 1).reshape(4, 4), 1, 1),
    (lambda a, d: (a + a - 3 * a).T, 1, 1),
    (lambda a, d: (torch.diag(d) + torch.diag(d[:-1], 1)) @ a, 2, 2),
    (lambda a, d: torch.outer(d, d) @ d, 1, 3),
    (lambda a, d: a.flip(0)[::2], 1, 1),
    (lambda a, d: d.expand(3, 4).sum(0), 1, 1),
])  # fmt: skip
def test_structure_is_a_matter_of_places(f, terms, factors):
    rng = np.random.default_rng(0)
    a, d = (rng.integers(-9, 9, shape).astype(np.float64) for shape in ((4, 4), (4,)))
    graph = graphc.trace(f, torch.from_numpy(a), torch.from_numpy(d))
    (form,) = lifted(graph)
    assert [len(t.factors) for t in form.terms] == [factors] * terms
    got = rings.value(form, dict(zip(graph.inputs, (a, d), strict=True)), float)
    np.testing.assert_array_equal(got, f(torch.from_numpy(a), torch.from_numpy(d)).numpy())


def same_when_written(form: Form, values: Mapping[int, np.ndarray], message: str = "") -> None:
    """What is emitted for a form computes it."""
    builder = Builder()
    atoms = sorted({f.atom for t in form.terms for f in t.factors})
    symbols = {k: builder.input(f"x{k}", Aval(values[k].shape, values[k].dtype)) for k in atoms}
    try:
        result = emit(builder, form, symbols, np.dtype(np.int64))
    except Unsolved:
        UNWRITTEN.append(message)
        return
    got = builder.graph("f", Ref(result.id)).evaluate(*[values[k] for k in atoms])[result.id]
    np.testing.assert_array_equal(got, rings.value(form, values), err_msg=message)


UNWRITTEN: list[str] = []


def random_program(seed: int, results: int = 1) -> Graph:
    """A graph of ops with liftings on random shapes; some nodes are atoms, where a form has become too large.

    results: so many of the last nodes; with several, one of the inputs is a number
    """
    rng = np.random.default_rng(seed)
    builder = Builder()
    F = builder.language
    known: list[Symbol] = []
    for k in range(3):
        shape = tuple(int(n) for n in rng.choice([1, 2, 3, 4, 6], rng.integers(1, 4)))
        known.append(builder.input(f"x{k}", Aval(shape, np.dtype(np.int64))))
    if results > 1:
        known.append(builder.input("number", Aval((), np.dtype(np.int64))))
    for _ in range(int(rng.integers(2, 9)) + 2 * (results - 1)):
        x = known[rng.integers(len(known))]
        if (made := _step(rng, F, x, known)) is not None and made.aval.size <= 4096:
            known.append(made)
    return builder.graph("f", Ref(known[-1].id) if results == 1 else tuple([Ref(s.id) for s in known[-results:]]))


def _step(rng: np.random.Generator, F, x: Symbol, known: list[Symbol]) -> Symbol | None:
    n = len(x.shape)

    def dims() -> list[int]:
        return [int(k) for k in rng.permutation(n)]

    def reshape():
        size = x.aval.size
        first = int(rng.choice([k for k in range(1, size + 1) if size % k == 0])) if size else 0
        shapes = [(size,), (first, size // max(first, 1)), (1, *x.shape)]
        return F.reshape(x, shape=shapes[rng.integers(3)])

    def cut():
        start = [int(rng.integers(0, k + 1)) for k in x.shape]
        stop = [int(rng.integers(a, k + 1)) for a, k in zip(start, x.shape, strict=True)]
        return F.slice(x, start=tuple(start), stop=tuple(stop), step=tuple(int(rng.integers(1, 4)) for _ in x.shape))

    def pad():
        low, high, interior = (tuple(int(rng.integers(0, 3)) for _ in x.shape) for _ in range(3))
        return F.pad_zeros(x, low=low, high=high, interior=interior)

    def product():
        others = [y for y in known if y.shape and x.shape and y.shape[-2 if len(y.shape) > 1 else 0] == x.shape[-1]]
        others = [y for y in others if not (len(x.shape) > 2 and len(y.shape) > 2)]
        return F.matmul(x, others[rng.integers(len(others))]) if others else None

    def pointwise():
        others = [y for y in known if y.shape == x.shape or not y.shape]
        return getattr(F, str(rng.choice(["add", "sub", "mul"])))(x, others[rng.integers(len(others))])

    def diagonal():
        return F.diagonal(x, offset=int(rng.integers(-1, 2)), dim1=0, dim2=1) if n >= 2 else None

    steps = [
        reshape, cut, pad, product, product, pointwise, diagonal,
        lambda: F.permute(x, dims=tuple(dims())),
        lambda: F.flip(x, axis=tuple(dims()[:1])),
        lambda: F.sum(x, axis=tuple(dims()[: rng.integers(0, n + 1)]), keepdims=bool(rng.integers(2))),
        lambda: F.cat(x, x, axis=int(rng.integers(n))) if n else None,
        lambda: F.broadcast_to(x, shape=(2, *x.shape)),
        lambda: F.add(x, int(rng.integers(-3, 4))),
        lambda: F.mul(x, int(rng.integers(-3, 4))),
    ]  # fmt: skip
    return steps[rng.integers(len(steps))]()


def named(
    rewritten: Callable[[Form, Callable[[Form], int]], Form], form: Form, values: Mapping[int, np.ndarray]
) -> np.ndarray:
    """The value of a form that is rewritten with atoms for other forms, which `rewritten` gives a name."""
    inside: dict[int, Form] = {}

    def name(inner: Form) -> int:
        inside[-2 - len(inside)] = inner
        return -1 - len(inside)

    found = rewritten(form, name)
    known = dict(values)
    for number, inner in inside.items():
        known[number] = rings.value(inner, known)
    return rings.value(found, known)


def check_programs(seeds: range) -> tuple[int, int]:
    """How many results were forms of inputs alone, of how many."""
    whole = 0
    for seed in seeds:
        graph = random_program(seed)
        rng = np.random.default_rng(seed)
        arrays = [rings.integers(rng, aval.shape) for aval in graph.input_avals()]
        values = graph.evaluate(*arrays)
        for id, form in forms(graph).items():
            np.testing.assert_array_equal(rings.value(form, values), values[id], err_msg=f"seed {seed}, v{id}\n{graph}")
            same_when_written(form, values, f"seed {seed}, v{id}\n{graph}")
            for found in (named(merged, form, values), named(factored, form, values)):
                np.testing.assert_array_equal(found, values[id], err_msg=f"seed {seed}, v{id}\n{graph}")
        atoms = {f.atom for t in forms(graph)[graph.outputs[0]].terms for f in t.factors}
        whole += atoms <= set(graph.inputs)
    return whole, len(seeds)


def test_random_programs():
    whole, count = check_programs(range(PROGRAMS))
    assert whole >= 0.85 * count


@pytest.mark.deep
def test_many_random_programs():
    check_programs(range(PROGRAMS, 10_000))


@pytest.mark.parametrize(
    "value", [np.float64(3.0), np.full((1,), 3.0), np.full((1, 1), 3.0), np.eye(3), np.eye(3) * 2 - 1],
    ids=["number", "one element", "one by one", "diagonal", "diagonal among ones"],
)  # fmt: skip
def test_constants(value):
    value = np.asarray(value)
    graph = graphc.trace(lambda x: x * torch.tensor(value), torch.ones(value.shape, dtype=torch.float64))
    form = forms(graph)[graph.outputs[0]]
    assert len(form.terms) == (2 if value.size == 9 and value[0, 1] else 1), form
