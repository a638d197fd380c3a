"""Programs whose images have their channels last compute what their graphs say; and few images are turned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import compare
import eager as torch
import graphc
from eager import nn
from graphc.capture import capture
from graphc.ir import Builder, Graph, Ref
from graphc.lowering import layouts
from graphc.lowering.layouts import channels_last
from graphc.ops import OPS, Op
from graphc.ops.aval import Aval
from graphc.ops.samples import Floats, Sample
from tests.ops.cases import Case, cases_of

F = nn.functional


def images(op: Op) -> list[Case]:
    """The cases of `op` with three dimensions or more, and some of their own for what is pointwise."""
    found = [case for case in cases_of(op) if max((len(s) for s in shapes(case.sample)), default=0) >= 3]
    if op.pointwise and len(op.args) <= 2:
        first_case = next(iter(cases_of(op))).sample
        if {type(x) for x in first_case.inputs} == {Floats}:
            for first, second in (((2, 3, 4, 5), (3, 1, 1)), ((2, 3, 4), ()), ((2, 1, 4, 5), (2, 3, 1, 5))):
                operands = (Floats(first), Floats(second))[: len(op.args)]
                found.append(Case(op, f"{first}-{second}", Sample(*operands, **first_case.params)))
    return found


def shapes(sample: Sample) -> list[tuple[int, ...]]:
    return [np.shape(a) for a in sample.arrays(np.random.default_rng(0), None, np.float64)]


def alone(build: Callable[..., Any], arrays: list[np.ndarray]) -> Graph:
    builder = Builder()
    inputs = [builder.input(f"x{k}", Aval(a.shape, a.dtype)) for k, a in enumerate(arrays)]
    return builder.graph("f", Ref(build(builder, *inputs).id))


def turned(graph: Graph, arrays: list[np.ndarray]) -> bool:
    """Whether `graph` can be computed with channels last. It then has the same value."""
    forms = {id: form for id, node in graph.nodes.items() if (form := layouts._form(graph, node)) is not None}
    if not forms:
        return False
    arranged = layouts._Arranged(graph, forms, set(forms)).graph()
    got, expected = (g.evaluate(*arrays)[g.outputs[0]] for g in (arranged, graph))
    assert got.shape == expected.shape and got.dtype == expected.dtype
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)
    return True


OTHERS = [name for name in OPS if name not in layouts.WINDOWS and not OPS[name].several and not OPS[name].structured]


@pytest.mark.parametrize("name", OTHERS)
def test_what_follows_computes_the_same(name: str):
    op = OPS[name]
    for case in images(op):
        arrays = case.arrays(np.random.default_rng(0))
        try:
            graph = alone(lambda b, *xs, case=case: b.apply(op, xs, dict(case.sample.params)), arrays)
        except (TypeError, ValueError, RuntimeError):  # a sample of ours that the op does not take
            continue
        turned(graph, arrays)


IMAGE, ROW = (2, 3, 4, 5), (3, 1, 1)
FOLLOW: dict[str, Callable[..., Any]] = {
    "add a number for each channel": lambda F, x, y, c: x + c,
    "of two": lambda F, x, y, c: F.where(x > y, c, y * 2),
    "clone": lambda F, x, y, c: F.clone(F.stop_gradient(F.cast(x, dtype=np.dtype(np.float32)))),
    "over channels": lambda F, x, y, c: F.sum(x, axis=(1,), keepdims=False),
    "over pixels": lambda F, x, y, c: F.mean(x, axis=(2, 3), keepdims=False),
    "statistics": lambda F, x, y, c: F.var(x, axis=(0, 2, 3), keepdims=True, correction=1),
    "standardized": lambda F, x, y, c: F.standardize(x, axis=(1, 2, 3), eps=1e-3),
    "softmax": lambda F, x, y, c: F.softmax(x, axis=1) + F.log_softmax(x, axis=-1),
    "cat": lambda F, x, y, c: F.cat(x, y, x, axis=-3),
    "padded": lambda F, x, y, c: F.pad_zeros(x, low=(0, 1, 2, 0), high=(0, 0, 1, 3), interior=(0, 2, 0, 1)),
    "part": lambda F, x, y, c: F.slice(x, start=(0, 1, 0, 1), stop=(2, 3, 4, 5), step=(1, 1, 3, 2)),
    "turned round": lambda F, x, y, c: F.flip(x, axis=(1, 3)),
    "expanded": lambda F, x, y, c: F.broadcast_to(c, shape=IMAGE) + F.broadcast_to(F.sum(
        x, axis=(2, 3), keepdims=True), shape=IMAGE),
    "places": lambda F, x, y, c: F.gather(x, F.argsort(y, axis=1, descending=True), axis=1),
    "running": lambda F, x, y, c: F.cumsum(x, axis=2, reverse=True),
}  # fmt: skip
STAY: dict[str, Callable[..., Any]] = {
    "reshape": lambda F, x, y, c: F.reshape(x, shape=(2, 12, 5)),
    "permute": lambda F, x, y, c: F.permute(x, dims=(0, 2, 1, 3)),
    "product": lambda F, x, y, c: x @ F.permute(y, dims=(0, 1, 3, 2)),
    "triangle": lambda F, x, y, c: F.tril(x, diagonal=0),
    "pixels, apart from channels": lambda F, x, y, c: F.sum(x, axis=(0, 2), keepdims=False),
}


def evaluated(build: Callable[..., Any]) -> tuple[Graph, list[np.ndarray]]:
    arrays = [np.random.default_rng(0).normal(size=shape) for shape in (IMAGE, IMAGE, ROW)]
    return alone(lambda b, *xs: build(b.language, *xs), arrays), arrays


@pytest.mark.parametrize("what", FOLLOW)
def test_what_models_do_between_windows_follows(what: str):
    assert turned(*evaluated(FOLLOW[what]))


@pytest.mark.parametrize("what", STAY)
def test_other_operations_stay(what: str):
    graph, _ = evaluated(STAY[what])
    assert layouts._form(graph, graph.nodes[graph.outputs[0]]) is None


# --- programs


def turns(graph: Graph) -> int:
    """The images that a program turns."""
    graph = channels_last(graphc.optimize(graph))
    return sum(n.op.name == "permute" and n.aval.ndim > 2 and n.size > 64 for n in graph.operations())


class Block(nn.Module):
    """A residual block with a branch, a normalization and a gate of the whole image."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(4, 8, 3, padding=1), nn.Conv2d(8, 4, 3, padding=1, stride=1)
        self.norm, self.squeeze = nn.BatchNorm2d(8), nn.Conv2d(4, 4, 1)

    def forward(self, x: Any) -> Any:
        y = self.b(F.leaky_relu(self.norm(self.a(x)), 0.1))
        y = y * torch.sigmoid(self.squeeze(y.mean((2, 3), keepdim=True)))
        return F.relu(torch.cat([x + y, F.pad(y, (1, 1))[..., 2:]], 1))


def block(x: Any, net: Any) -> Any:
    return net(x)


def pools(x: Any, net: Any) -> Any:
    y = F.max_pool2d(net.a(x), 3, 2, 1)
    return F.avg_pool2d(F.conv_transpose2d(y, net.a.weight), 2).flatten(1).sum(1)


def softmax_over_channels(x: Any, net: Any) -> Any:
    return F.cross_entropy(net.a(x), torch.ones(x.shape[0], *x.shape[2:], dtype=torch.int64))


def sequence_over_images(x: Any, net: Any) -> Any:
    """What is convolved along one dimension is broadcast over images, which are convolved along two."""
    rows = F.conv1d(x.mean(0), torch.linspace(-1, 1, 108, dtype=x.dtype).reshape(6, 6, 3)).relu()
    return F.conv2d((net.a(x)[:, :4, :, :4] * rows).relu(), net.squeeze.weight)


@pytest.mark.parametrize(
    ("program", "most"),
    [
        (block, 2),
        (sequence_over_images, 5),
        pytest.param(pools, 3, marks=pytest.mark.deep),
        pytest.param(softmax_over_channels, 3, marks=pytest.mark.deep),
    ],
)
def test_programs_turn_few_images_and_agree(program: Any, most: int):
    torch.manual_seed(0)
    net = Block().double()
    x = torch.randn(2, 4, 6, 6, dtype=torch.float64, requires_grad=True)
    assert turns(capture(program, (x, net), {}).graph) <= most
    report = compare.check(program, x, net, modes=["compiled", "jax.grad", "finite differences"])
    assert report.ok, str(report)
    with torch.no_grad():  # a program of its own
        torch.testing.assert_close(graphc.compile(program)(x, net), program(x, net))


RANKS = [pytest.param(1, marks=pytest.mark.deep), 2, pytest.param(3, marks=pytest.mark.deep)]
GROUPS = [1, pytest.param(2, marks=pytest.mark.deep)]


@pytest.mark.parametrize("rank", RANKS)
@pytest.mark.parametrize("kernel", [1, 3])
@pytest.mark.parametrize("channels", [2, 40])
@pytest.mark.parametrize("groups", GROUPS)
def test_convolutions_of_every_kind(rank: int, kernel: int, channels: int, groups: int):
    torch.manual_seed(0)
    size = (7, 6, 5)[:rank]
    x = torch.randn(2, channels * groups, *size, dtype=torch.float64, requires_grad=True)
    w = torch.randn(3 * groups, channels, *(kernel,) * rank, dtype=torch.float64, requires_grad=True)
    for options in ({}, {"padding": 1}, {"stride": 2, "padding": 2, "dilation": 2}):

        def run(x: Any, w: Any, options: Any = options) -> Any:
            y = getattr(F, f"conv{rank}d")(x, w, groups=groups, **options)
            return (y * y).sum()

        grads = [torch.autograd.grad(f(x, w), (x, w)) for f in (run, graphc.compile(run))]
        for a, b in zip(*grads, strict=True):
            torch.testing.assert_close(a, b)


def test_strict_programs_are_left_as_they_are():
    torch.manual_seed(0)
    net = Block()
    graph = graphc.trace(net.eval(), torch.randn(2, 4, 6, 6))
    assert "channels_last" not in graphc.lower(graph, strict=True).source
    assert "channels_last=True" in graphc.lower(graph).source


def test_images_of_loops_are_turned_inside():
    x = torch.randn(3, 1, 2, 5, 5, dtype=torch.float64, requires_grad=True)
    w = torch.randn(2, 2, 3, 3, dtype=torch.float64)

    def run(x: Any) -> Any:
        return graphc.scan(lambda c, v: (F.conv2d(c + v, w, padding=1), c.sum()), x[0], x)[0]

    report = compare.check(run, x, modes=["compiled", "jax.grad"])
    assert report.ok, str(report)
