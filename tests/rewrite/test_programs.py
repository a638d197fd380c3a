"""What each pass makes of random programs, and of their gradients, has the same values, shapes and dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import eager as torch
import graphc
from graphc.ir import Graph, Node
from graphc.passes import pipeline
from tests.rewrite.programs import Program

CLOSE = 1e-8  # of the largest element, and
SENSITIVE = 1e3  # times what changes when inputs change in their tenth digit


def values_of(graph: Graph, arrays: list[Any]) -> list[np.ndarray]:
    with np.errstate(all="ignore"):
        found = graph.evaluate(*arrays)
    return [np.asarray(found[id]) for id in graph.outputs]


def graphs_of(program: Program) -> list[Graph]:
    """The program, and its gradient with respect to all floats."""
    given = [torch.from_numpy(x.copy()) for x in program.inputs.values()]
    floats = tuple([k for k, x in enumerate(given) if x.dtype == torch.float64])
    return [graphc.trace(program, *given), graphc.trace(torch.func.grad(program.loss, floats), *given)]


def first_fault(program: Program) -> str | None:
    """What the optimizer has changed, and the pass after which it was so."""
    arrays = [*program.inputs.values()]
    rng = np.random.default_rng(3)
    near = [x * (1 + 1e-10 * rng.standard_normal(x.shape)) if x.dtype.kind == "f" else x for x in arrays]
    for graph in graphs_of(program):
        wanted = values_of(graph, arrays)
        if not all(np.isfinite(x).all() for x in wanted):
            continue
        slack = [SENSITIVE * abs(a - b) for a, b in zip(wanted, values_of(graph, near), strict=True)]
        scale = 1 + max([abs(x).max() for x in wanted if x.size], default=0)

        def fault(changed: Graph, wanted: Any = wanted, slack: Any = slack, scale: float = scale) -> str | None:
            for k, (a, b, some) in enumerate(zip(wanted, values_of(changed, arrays), slack, strict=True)):
                if (a.shape, a.dtype) != (b.shape, b.dtype):
                    return f"result {k} is {b.dtype}{b.shape}, not {a.dtype}{a.shape}"
                if a.size and not abs(a - b).max() <= CLOSE * scale + some.max():
                    return f"result {k} is off by {abs(a - b).max():.3g} of {abs(a).max():.3g}"
            return None

        stages: list[tuple[str, Graph]] = []
        optimized = graphc.optimize(graph, after_each=lambda name, done, stages=stages: stages.append((name, done)))
        if fault(optimized) is not None:
            name, found = next((name, found) for name, stage in stages if (found := fault(stage)) is not None)
            return f"seed {program.seed}, after {name}: {found}\n{graph}"
    return None


def test_random_programs_keep_their_values():
    assert [fault for seed in range(24) if (fault := first_fault(Program(seed))) is not None] == []


@pytest.mark.deep
def test_many_random_programs_keep_their_values():
    assert [fault for seed in range(24, 800) if (fault := first_fault(Program(seed))) is not None] == []


def test_programs_have_what_passes_change():
    """Most of the passes that may round find something to do in these programs."""
    done: set[str] = set()
    for seed in range(24):
        for graph in graphs_of(Program(seed)):
            done.update(record.name for record in graphc.optimize(graph).history)
    assert len(done) >= 12, done


def test_a_planted_fault_is_found_and_its_pass_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pipeline, "take_out_factors", _with_another_number)
    assert any("after factors of sums" in (first_fault(Program(seed)) or "") for seed in range(24))


def _with_another_number(graph: Graph) -> Graph:
    """With one of the numbers of the graph doubled."""
    for id, node in graph.nodes.items():
        if node.op.name == "full" and node.params["value"]:
            params = {**node.params, "value": 2 * node.params["value"]}
            changed = Node(id, node.op, node.inputs, params, node.results, node.where, node.scope)
            return graph.replace({**graph.nodes, id: changed}, graph.result)
    return graph


def test_bands_of_matrices_without_columns():
    x = torch.zeros(3, 0, dtype=torch.float64)
    graph = graphc.trace(lambda x: torch.tril(torch.triu(x, -1), 1) @ x.mT + torch.triu(torch.tril(x @ x.mT)), x)
    assert not values_of(graphc.optimize(graph), [x.numpy()])[0].any()
