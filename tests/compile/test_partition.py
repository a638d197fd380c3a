"""What forward saves for backward: few bytes, the same bits, and nothing that eager would not have read."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import eager as torch
import graphc
from graphc.autodiff import gradients
from graphc.execution.partition import Split, partition
from graphc.ir import Builder, Graph, Ref, refs_of
from graphc.ir.structure import ancestors
from graphc.ops.aval import Aval
from graphc.passes import optimize
from tests import rounding
from tests.depth import one_in
from tests.work import lines_run

F = torch.nn.functional
F32 = np.dtype(np.float32)


def joint_of(function: Callable[..., Any], *shapes: tuple[int, ...]) -> Graph:
    """The optimized graph of ((result,), gradients of all arguments), the result's cotangent being the last input."""
    graph = graphc.trace(function, *(torch.ones(*shape) for shape in shapes))
    whole = gradients(graph, values=True, cotangents=True)
    result, grads = whole.result
    return optimize(whole.replace(whole.nodes, ((result,), tuple(grads.values()))))


def split(function: Callable[..., Any], *shapes: tuple[int, ...]) -> Split:
    return partition(joint_of(function, *shapes), len(shapes))


def bytes_of(aval: Aval) -> int:
    return aval.size * aval.dtype.itemsize


def residual_bytes(parts: Split) -> int:
    """The memory that is kept between forward and backward, besides the inputs and the results themselves."""
    *results, residuals = parts.forward.result
    held = {ref.id for ref in refs_of(results)}
    return sum(bytes_of(parts.forward.nodes[ref.id].aval) for ref in residuals if ref.id not in held)


def everything_bytes(joint: Graph, forward_inputs: int) -> int:
    """What would be kept if backward computed nothing of forward again."""
    nodes = joint.nodes
    result, grads = joint.result
    first = ancestors(nodes, [r.id for r in refs_of(result)])
    needed = ancestors(nodes, [r.id for r in grads]) - first
    read = {i for id in needed for i in nodes[id].inputs if i in first and nodes[i].inputs}
    return sum(bytes_of(nodes[i].aval) for i in read)


def check_parts(joint: Graph, forward_inputs: int, arrays: list[np.ndarray], parts: Split) -> None:
    """Raise AssertionError unless forward and backward together give the bits of `joint`."""
    expected, grads = joint(*arrays)
    *got, residuals = parts.forward.check()(*arrays[:forward_inputs])
    found = parts.backward.check()(*residuals, *(arrays[k] for k in parts.saved), *arrays[forward_inputs:])
    for mine, theirs in zip([*got, *found], [*expected, *grads], strict=True):
        assert mine.dtype == theirs.dtype
        np.testing.assert_array_equal(mine, theirs)


N = 64
SQUARE = (N, N)
ARRAY = N * N * 4

# function, shapes of its arguments, bytes that are kept at most
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...], int]] = {
    "exp of tanh": (lambda x: torch.exp(torch.tanh(x)), (SQUARE,), ARRAY),
    "chain of five": (lambda x: ((x.tanh() * 2 + 1).exp().sin() * 3).sum(), (SQUARE,), ARRAY),
    "polynomial": (lambda x: ((x * x + 1) * x - 2) * x * (x + 3), (SQUARE,), 0),
    "silu": (F.silu, (SQUARE,), 0),
    "gelu of tanh": (lambda x: F.gelu(x, approximate="tanh"), (SQUARE,), ARRAY),
    "softmax": (lambda x: x.softmax(-1), (SQUARE,), 0),  # it is the result
    "softmax inside": (lambda x, w: (x.softmax(-1) * w).sum(), (SQUARE, SQUARE), ARRAY + 4 * N),
    "layer norm": (lambda x, w, b: F.layer_norm(x, (N,), w, b), (SQUARE, (N,), (N,)), ARRAY + 4 * N),
    "MLP, relu": (lambda x, w, v: (F.relu(x @ w) @ v).sum(), (SQUARE, SQUARE, SQUARE), ARRAY),
    "MLP, gelu": (lambda x, w, b, v: F.gelu(x @ w + b) @ v, (SQUARE, SQUARE, (N,), SQUARE), ARRAY),
    "dropout": (
        lambda x, u, w: (torch.where(u < 0.5, x @ w, 0.0) * 2).tanh().sum(),
        (SQUARE, SQUARE, SQUARE),
        ARRAY + N * N,  # a mask of bytes, not of floats
    ),
    "attention": (
        lambda q, k, v: ((q @ k.transpose(-1, -2)) / 8.0).softmax(-1) @ v,
        ((2, N, 16), (2, N, 16), (2, N, 16)),
        2 * ARRAY,
    ),
    "normalized rows": (lambda x: x / (x * x).sum(1, keepdim=True).sqrt(), (SQUARE,), 4 * N),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_residuals_are_few_and_parts_give_the_same_bits(name: str, rng: np.random.Generator):
    function, shapes, most = PROGRAMS[name]
    joint = joint_of(function, *shapes)
    found = partition(joint, len(shapes))
    assert residual_bytes(found) <= most
    assert residual_bytes(found) <= everything_bytes(joint, len(shapes))
    arrays = [rng.uniform(0.1, 1.0, a.shape).astype(a.dtype) for a in joint.input_avals()]
    check_parts(joint, len(shapes), arrays, found)


def test_a_block_keeps_less_than_half_of_everything():
    def block(x, w, b, v, scale, shift):
        h = F.layer_norm(x, (N,), scale, shift)
        return x + F.gelu(h @ w + b, approximate="tanh") @ v

    shapes = (SQUARE, SQUARE, (N,), SQUARE, (N,), (N,))
    joint = joint_of(block, *shapes)
    assert residual_bytes(partition(joint, len(shapes))) * 2 < everything_bytes(joint, len(shapes))


# --- what is not computed again


def ops_of(graph: Graph) -> set[str]:
    return {node.op.name for node in graph.operations()}


def test_products_and_sorts_are_not_computed_twice():
    found = split(lambda x, w: ((x @ w).sort(-1).values * 2).tanh().sum(), SQUARE, SQUARE)
    assert not {"argsort", "gather", "softmax"} & ops_of(found.backward)
    assert sum(node.op.name == "matmul" for node in found.backward.operations()) == 2  # those of the gradients


def test_an_input_that_no_rule_reads_is_not_read():
    # the rules of exp and tanh read results; in eager x may be written once they have been computed
    found = split(lambda x: torch.exp(x).tanh(), SQUARE)
    assert found.saved == ()
    assert split(lambda x: torch.sin(x), SQUARE).saved == (0,)


def test_a_small_input_is_copied_rather_than_a_large_value_kept():
    found = split(lambda x, b, w: torch.sin(x + b) @ w, SQUARE, (N,), SQUARE)
    assert residual_bytes(found) <= ARRAY + 4 * N


def test_inputs_that_backward_did_not_read_may_be_written_in_between():
    f = graphc.compile(lambda x, b, w: ((torch.sin(x * 2) + b) @ w).sum())
    x, w = torch.rand(*SQUARE).requires_grad_(), torch.rand(*SQUARE).requires_grad_()
    b = torch.rand(N)
    result, before = f(x, b, w), b.clone()
    b += 100  # in eager, the rules of + read nothing
    result.backward()
    expected = (torch.sin(x.detach() * 2) + before).sum(0, keepdim=True).T.expand(N, N)
    np.testing.assert_allclose(w.grad.numpy(), expected.numpy(), rtol=1e-4)


def test_a_constant_input_costs_nothing():
    joint = joint_of(lambda x, mask, w: (x @ w) * (mask * 2) @ w, SQUARE, SQUARE, SQUARE)
    assert residual_bytes(partition(joint, 3)) >= 2 * ARRAY
    found = partition(joint, 3, constant=[1])
    assert residual_bytes(found) == ARRAY
    assert 1 in found.saved


def test_chains_are_bounded():
    def chain(x, w):
        for k in range(40):
            x = torch.tanh(x * w + x)
            if k.bit_count() % 2:  # so that no steps repeat: they would be a loop
                x = x + w
        return x

    found = split(chain, (8,), (8,))
    repeated = [n for n in found.backward.operations() if n.op.name == "tanh"]
    assert 0 < len(repeated) < 30
    assert residual_bytes(found) > 0


def test_a_check_stays_where_it_is():
    found = split(lambda x: torch.where(x > 0, x, x * 2) * (x[torch.tensor([0, 1])]).sum(), (4,))
    checked = [n for g in (found.forward, found.backward) for n in g.operations() if n.op.check is not None]
    assert len(checked) == sum(n.op.check is not None for n in joint_of(
        lambda x: torch.where(x > 0, x, x * 2) * (x[torch.tensor([0, 1])]).sum(), (4,)).operations())  # fmt: skip


# --- random programs


def random_joint(seed: int) -> tuple[Graph, int]:
    rng = random.Random(seed)
    builder = Builder()
    values = [builder.input(f"x{k}", Aval((4, 4), F32)) for k in range(3)]
    language = builder.language
    steps = [
        lambda a, b: a + b, lambda a, b: a * b, lambda a, b: a - b, lambda a, b: language.matmul(a, b),
        lambda a, b: language.tanh(a), lambda a, b: language.sin(a), lambda a, b: language.softmax(a, axis=1),
        lambda a, b: language.permute(a, dims=(1, 0)), lambda a, b: language.where(a > b, a, 0.5),
        lambda a, b: a * language.sum(b, axis=(1,), keepdims=True), lambda a, b: language.maximum(a, b),
        lambda a, b: language.broadcast_to(language.slice(a, start=(1, 0), stop=(2, 4), step=(1, 1)), shape=(4, 4)),
        lambda a, b: language.stop_gradient(a) * b,
    ]  # fmt: skip
    for _ in range(rng.randrange(3, 40)):
        values.append(rng.choice(steps)(rng.choice(values[-8:]), rng.choice(values[-8:])))
    result = tuple(Ref(v.id) for v in rng.sample(values, 2))
    whole = gradients(builder.graph("random", result), values=True, cotangents=True)
    joint = whole.replace(whole.nodes, (whole.result[0], tuple(whole.result[1].values())))
    return optimize(joint) if rng.random() < 0.7 else joint, 3


@pytest.mark.parametrize("seed", one_in(3, range(80)))
def test_parts_of_random_programs_are_the_whole(seed: int, rng: np.random.Generator):
    joint, forward_inputs = random_joint(seed)
    found = partition(joint, forward_inputs)
    arrays = [rng.uniform(-1, 1, a.shape).astype(a.dtype) for a in joint.input_avals()]
    check_parts(joint, forward_inputs, arrays, found)
    assert residual_bytes(found) <= everything_bytes(joint, forward_inputs)


def test_a_missing_residual_is_caught(monkeypatch, rng):
    joint, forward_inputs = random_joint(3)
    arrays = [rng.uniform(-1, 1, a.shape).astype(a.dtype) for a in joint.input_avals()]
    honest = partition(joint, forward_inputs)
    wrong = honest._replace(saved=honest.saved[::-1] if len(honest.saved) > 1 else ())
    with pytest.raises((AssertionError, TypeError)):
        check_parts(joint, forward_inputs, arrays, wrong)


# --- compiled functions


@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_gradients_are_eagers(name: str):
    function, shapes, _ = PROGRAMS[name]
    torch.manual_seed(0)
    given = [torch.rand(*shape) + 0.1 for shape in shapes]

    def run(f: Callable[..., Any]) -> list[np.ndarray]:
        leaves = [t.clone().requires_grad_() for t in given]
        (f(*leaves) * 0.5).sum().backward()
        return [np.zeros(t.shape) if t.grad is None else t.grad.numpy() for t in leaves]

    rounding.assert_agree(run(graphc.compile(function)), lambda: run(function), rtol=1e-3, atol=1e-5)


def test_a_result_that_is_saved_shares_its_memory():
    graph = graphc.trace(lambda x: torch.exp(x), torch.zeros(3))
    twice = graph.replace(graph.nodes, (graph.result, graph.result, Ref(graph.inputs[0])))
    a, b, c = graphc.lower(twice).call(np.zeros(3, np.float32))
    assert a is b
    assert c is not a


def test_work_is_linear():
    def program(n: int) -> Callable[..., Any]:
        def f(x, w):
            for k in range(n):
                x = (x * w).tanh() if k % 5 else x @ w + x.sin()
            return x

        return f

    lines = {}
    for n in (50, 500):
        joint = joint_of(program(n), (4, 4), (4, 4))
        lines[n] = lines_run(lambda joint=joint: partition(joint, 2))
    assert lines[500] < 15 * lines[50], lines
