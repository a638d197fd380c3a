"""Numbers that are known before a program runs: generated code gives what the kernels give, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

import eager as torch
import graphc
from graphc.capture.example_values import HostedValues
from graphc.capture.sources import Argument


def computed(n: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    y = x * 0.5 + n / 3
    return n + n, n % 7, y, y - x / y, torch.cos(y), y < x, (n == 3) * x, n.float() - 2, y != y, torch.stack([x, y]) * n


@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning", "ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("number", [3, -4, 2**63 - 1])
@pytest.mark.parametrize("real", [1.5, 0.0, -0.0, float("inf"), float("nan")])
def test_code_gives_what_kernels_give(number, real):
    graph = graphc.trace(computed, torch.tensor(number), torch.tensor(real, dtype=torch.float64))
    sources = {id: Argument(k) for k, id in enumerate(graph.inputs)}
    steps = {id: (node, sources.get(id)) for id, node in graph.nodes.items()}
    hosted = HostedValues(steps, graph.outputs)
    plain, generated = (map(np.asarray, hosted._values({0: number, 1: real})) for _ in "12")
    assert hosted._written is not None
    for a, b in zip(plain, generated, strict=True):
        assert a.dtype == b.dtype and a.tobytes() == b.tobytes()


def test_code_on_numbers_of_python_gives_what_kernels_give_where_pythons_operators_raise():
    graph = graphc.trace(
        lambda x, n: (x / (x - x), n // 2 % 3, (-n) * n, abs(n) > 3, n / 4), *map(torch.tensor, (2.0, 5))
    )
    assert not graph.nodes[graph.outputs[0]].check
    sources = {id: Argument(k) for k, id in enumerate(graph.inputs)}
    hosted = HostedValues({id: (node, sources.get(id)) for id, node in graph.nodes.items()}, graph.outputs)
    with np.errstate(divide="ignore"):
        plain, generated = (hosted._values({0: 2.0, 1: 5}) for _ in "12")
    assert [np.asarray(a).item() for a in generated] == [np.asarray(a).item() for a in plain]
