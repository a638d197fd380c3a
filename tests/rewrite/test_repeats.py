"""Repeated structure becomes loops: the same values, bit for bit, forwards and backwards, or it is left alone."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import eager as torch
import graphc
from eager import nn
from graphc.ir import Graph
from graphc.ir.check import check
from graphc.ir.structure import SCAN
from graphc.lowering.source import Source
from graphc.passes import loops, rolling, unrolled
from graphc.passes.cse import eliminate_common_subexpressions
from graphc.passes.pipeline import repeats
from graphc.passes.repeats import find_repeats
from graphc.passes.sums import join_pads
from tests.depth import one_in
from tests.work import lines_run

F = nn.functional
STEPS = 7


@pytest.fixture
def every_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops are made whether they pay or not."""
    monkeypatch.setattr(rolling, "chosen", lambda graph, found: found)


def rolled(graph: Graph) -> Graph:
    return check(rolling.roll_repeats(join_pads(graph), lambda body: body)[0])


def scans(graph: Graph) -> list[Any]:
    return [node for node in graph.nodes.values() if node.op is SCAN]


def ops(graph: Graph) -> Counter[str]:
    return Counter(node.op.name for node in graph.operations())


def arrays_for(graph: Graph) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(aval.shape).astype(aval.dtype) for aval in graph.input_avals()]


def flat(value: Any) -> list[np.ndarray]:
    if isinstance(value, dict):
        return [part for key in value for part in flat(value[key])]
    return [part for item in value for part in flat(item)] if isinstance(value, (tuple, list)) else [value]


def assert_same_bits(before: Graph, after: Graph) -> None:
    """On NumPy, where each operation is computed by itself."""
    given = arrays_for(before)
    for old, new in zip(flat(before(*given)), flat(after(*given)), strict=True):
        np.testing.assert_array_equal(old, new)


# --- programs made at random


class Program:
    """Steps that are alike: what they read of the input, of their own weights, and of the steps before."""

    def __init__(self, seed: int):
        self.choose = random.Random(seed)
        self.axis = self.choose.choice([0, 1])
        self.backward = self.choose.random() < 0.3
        self.own_weights = self.choose.random() < 0.4
        self.states = self.choose.choice([1, 2])
        self.kinds = [self.choose.randrange(6) for _ in range(self.choose.randint(2, 4))]
        self.end = self.choose.choice(["last", "stack", "sum", "reversed", "some", "cat"])

    def tensors(self) -> list[Any]:
        torch.manual_seed(0)
        x = torch.randn(STEPS, 3, 4) if self.axis == 0 else torch.randn(3, STEPS, 4)
        return [x, torch.randn(4, 4), *(torch.randn(4, 4) for _ in range(STEPS if self.own_weights else 0))]

    def __call__(self, x: Any, w: Any, *weights: Any) -> Any:
        h, c = torch.zeros(3, 4), x.sum(self.axis)
        outputs = []
        for t in reversed(range(STEPS)) if self.backward else range(STEPS):
            v = x[t] if self.axis == 0 else x[:, t]
            h, c = self.step(h, c, v, weights[t] if weights else w, w)
            outputs.append(h * 2)
        ends = {
            "last": lambda: (h, c), "stack": lambda: torch.stack(outputs), "sum": lambda: sum(outputs),
            "reversed": lambda: torch.stack(outputs[::-1]) * c, "some": lambda: (outputs[2], outputs[4].T, c),
            "cat": lambda: torch.cat(outputs, 1),
        }  # fmt: skip
        return ends[self.end]()

    def step(self, h: Any, c: Any, v: Any, own: Any, w: Any) -> Any:
        for kind in self.kinds:
            if kind == 0:
                h = torch.tanh(h @ own + v)
            elif kind == 1:
                h = h + (v * c).sin()
            elif kind == 2:
                a, b = (h @ w).chunk(2, 1)
                h = torch.cat([b.sigmoid(), a], 1)
            elif kind == 3:
                h = (h.T @ v).T[:3] * 0.1
            elif kind == 4 and self.states == 2:
                c = c * 0.5 + h.exp().clamp(max=2)
            else:
                h = h * own[:3] + 0.1
        return h.sin(), c


SEEDS = range(40)


def graphs_of(seed: int) -> list[Graph]:
    program = Program(seed)
    graph = graphc.trace(program, *program.tensors())
    total = graphc.trace(lambda *given: sum(part.sum() for part in flat(program(*given))), *program.tensors())
    return [graph, graphc.gradients(total)]


@pytest.mark.usefixtures("every_loop")
@pytest.mark.parametrize("seed", one_in(4, SEEDS))
def test_loops_compute_the_same_bits(seed: int):
    for graph in graphs_of(seed):
        after = rolled(graph)
        assert_same_bits(graph, after)
        assert rolled(graph) == after, "the same graph gives the same loops"
        assert rolled(after) == after, "nothing is left to do"


@pytest.mark.usefixtures("every_loop")
def test_most_programs_have_loops_forwards_and_backwards():
    counts = [[len(scans(rolled(graph))) for graph in graphs_of(seed)] for seed in SEEDS]
    assert sum(forward >= 1 for forward, _ in counts) > 0.9 * len(counts)
    assert sum(both >= 2 for _, both in counts) > 0.6 * len(counts)


FAULTS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "rows in the other order": lambda patch: patch.setattr(unrolled.Written, "index", lambda self, step: (
        step if self.reverse else self.loop.count - 1 - step)),
    "rows off by one": lambda patch: patch.setattr(unrolled.Written, "index", lambda self, step: min(
        step + 1, self.loop.count - 1)),
    "slices in the other order": lambda patch: patch.setattr(unrolled, "flipped", lambda x: x),
    "a carry begins with the value of the second step": lambda patch: patch.setattr(
        loops.Carry, "initial", property(lambda carry: carry.column[1])),
    "the last carry is the one before": lambda patch: patch.setattr(
        unrolled.Written, "is_last", lambda self, step, place: step >= self.loop.count - 2 and place in self.loop.last),
    "views of the first step are those of all": lambda patch: patch.setattr(
        loops.Loop, "views_alike", lambda self, column: self._graph.nodes[column[0]].op.view),
}  # fmt: skip


@pytest.mark.usefixtures("every_loop")
@pytest.mark.parametrize("fault", one_in(3, FAULTS))
def test_planted_faults_are_caught(fault: str, monkeypatch: pytest.MonkeyPatch):
    FAULTS[fault](monkeypatch)
    graphs = [graph for seed in SEEDS for graph in graphs_of(seed)]
    with pytest.raises((AssertionError, graphc.errors.GraphError, ValueError)):
        for graph in graphs:
            assert_same_bits(graph, rolled(graph))


def reads_two_steps_back() -> Graph:
    def f(x: Any) -> Any:
        a, b = x, x.sin()
        for _ in range(12):
            a, b = b, ((a * 0.5).sin() + b).cos()
        return b

    return graphc.trace(f, torch.randn(3))


def reads_at_half_pace() -> Graph:
    def f(x: Any) -> Any:
        states = [x, x.sin()]
        for t in range(12):
            states.append(((states[-1] * 0.5).sin() + states[t // 2]).cos() * 2)
        return states[-1]

    return graphc.trace(f, torch.randn(3))


@pytest.mark.usefixtures("every_loop")
def test_what_is_read_two_steps_later_is_carried_twice():
    graph = reads_two_steps_back()
    after = rolled(graph)
    (loop,) = scans(after)
    assert (loop.params["length"], loop.params["carries"]) == (12, 2)
    assert_same_bits(graph, after)


@pytest.mark.usefixtures("every_loop")
def test_what_is_read_at_another_pace_is_no_loop():
    assert not scans(rolled(reads_at_half_pace()))


# --- what the loops look like


def test_slices_of_one_array_are_not_stacked_and_residuals_not_copied():
    w = torch.randn(4, 4)

    def f(x: Any, w: Any) -> Any:
        h = torch.zeros(2, 4)
        for v in x:
            h = torch.tanh(v + h @ w).sin()
        return h.sum()

    graph = graphc.gradients(graphc.trace(f, torch.randn(30, 2, 4), w), wrt=["w"])
    after = rolled(graph)
    forward, backward = scans(after)
    assert (forward.params["reverse"], backward.params["reverse"]) == (False, True)
    assert forward.params["length"] == backward.params["length"] == 28
    assert not {"cat", "flip"} & ops(after).keys()
    assert_same_bits(graph, after)


@pytest.mark.parametrize("end", [torch.stack, sum])
def test_the_number_of_slices_does_not_change_the_program(end: Callable[[Any], Any]):
    def program(n: int) -> str:
        w = torch.randn(4, 4)

        def f(x: Any) -> Any:
            return end([torch.tanh(x[i] @ w).exp().sum(0) * 0.5 for i in range(n)])

        return Source(graphc.optimize(graphc.trace(f, torch.randn(n, 3, 4)))).plain.replace(str(n), "n")

    assert program(16).count("\n") == program(256).count("\n")


def test_weights_that_are_trained_stay_apart():
    """Each would be cut out of a stack of gradients, which takes XLA longer than another layer."""
    model = nn.Sequential(*(layer for _ in range(40) for layer in (nn.Linear(8, 8), nn.Tanh())))
    graph = graphc.trace(lambda x: model(x).sum(), torch.randn(64, 8))
    wanted = [name for name in graph.input_names if "weight" in name]
    assert len(wanted) == 40
    assert not scans(graphc.optimize(graphc.gradients(graph, wrt=wanted)))
    assert len(scans(graphc.optimize(graph))) == 1


def test_large_weights_of_few_rows_are_not_stacked():
    model = nn.Sequential(*(nn.Linear(64, 64) for _ in range(40)))
    assert not scans(graphc.optimize(graphc.trace(model, torch.randn(1, 64))))


def test_strict_programs_stay_unrolled():
    def f(x: Any) -> Any:
        for _ in range(40):
            x = x.sin() * 0.5
        return x

    graph = graphc.trace(f, torch.randn(3))
    assert scans(graphc.optimize(graph))
    assert not scans(graphc.optimize(graph, strict=True))


def test_explain_says_what_was_rolled():
    def f(x: Any) -> Any:
        for _ in range(40):
            x = x.sin() * 0.5
        return x

    text = str(graphc.explain(graphc.optimize(graphc.trace(f, torch.randn(3)))))
    assert "  repeats: " in text
    assert "40 steps of 2 operations at " in text
    assert "test_repeats.py" in text


def test_graphs_without_repeats_are_returned_as_they_are():
    graph = graphc.trace(lambda x: (x.sin() + x.cos() * x.exp()).tanh().sum(), torch.randn(3))
    assert repeats(graph) is graph


# --- work


def shuffled(count: int) -> Graph:
    """Operations without order."""
    choose = random.Random(0)

    def f(x: Any) -> Any:
        values = [x]
        for _ in range(count):
            a, b = choose.choice(values[-9:]), choose.choice(values)
            values.append(choose.choice([torch.sin, torch.cos, torch.exp, torch.tanh, lambda v, b=b: v * b])(a))
        return sum(values[-9:])

    return graphc.trace(f, torch.randn(3))


def test_the_search_takes_a_few_lines_for_each_node():
    graph = eliminate_common_subexpressions(shuffled(3000))
    assert lines_run(lambda: find_repeats(graph)) < 30 * len(graph)


# --- compiled programs


def losses(step: Callable[..., Any], *batch: Any) -> list[float]:
    return [step(*batch).item() for _ in range(3)]


def training(compiled: bool, dropout: float = 0.0) -> list[float]:
    """Losses of a cell in a loop of Python, with a hook, an embedding, and a loss at each step."""
    torch.manual_seed(0)
    embedding, cell, head = nn.Embedding(9, 6), nn.LSTMCell(6, 8), nn.Linear(8, 9)
    parameters = [*embedding.parameters(), *cell.parameters(), *head.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=0.05)
    text = torch.randint(0, 9, (3, 13))

    def step(text: Any) -> Any:
        optimizer.zero_grad()
        h, c, loss = torch.zeros(3, 8), torch.zeros(3, 8), 0.0
        for t in range(12):
            h, c = cell(F.dropout(embedding(text[:, t]), dropout), (h, c))
            if h.requires_grad:
                h.register_hook(lambda g: g * 0.9)
            loss = loss + F.cross_entropy(head(h), text[:, t + 1])
        loss.backward()
        optimizer.step()
        return loss

    fast = graphc.compile(step) if compiled else step
    found = losses(fast, text)
    if compiled:
        assert "are a scan" in graphc.explain(fast)
    return found


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_training_a_cell_in_a_loop_is_as_in_eager(dropout: float):
    np.testing.assert_allclose(training(True, dropout), training(False, dropout), rtol=2e-5)


def test_an_index_out_of_range_in_a_step_names_the_line():
    table = torch.randn(5, 4)

    def f(x: Any) -> Any:
        h = torch.zeros(4)
        for i in x:
            h = torch.tanh(h * 0.5 + table[i]).sin() * 2
        return h

    fast = graphc.compile(f)
    good = torch.arange(20) % 5
    np.testing.assert_allclose(fast(good).numpy(), f(good).numpy(), rtol=1e-5, atol=1e-6)
    bad = good.clone()
    bad[13] = 7
    with pytest.raises(IndexError) as eager:
        f(bad)
    with pytest.raises(IndexError) as compiled:
        fast(bad)
    assert str(compiled.value).startswith(str(eager.value))


@pytest.mark.usefixtures("every_loop")
def test_loops_that_read_parts_of_an_array_turn_it_once():
    def f(x):
        h = x[:, 0]
        for t in range(1, 12):
            h = torch.sin(h * x[:, t])
        return h.sum()

    after = graphc.optimize(graphc.gradients(graphc.trace(f, torch.rand(3, 12, 5))))
    assert len(scans(after)) == 2
    (x,) = after.inputs
    of_all = [n for n in after.nodes.values() if n.op.name == "reshape" and n.inputs[0] == x and n.size == 180]
    turned = [n for n in after.nodes.values() if n.op.name == "permute" and n.inputs[0] in {m.id for m in of_all}]
    assert len(turned) == 1
