"""Every op, and its gradients, on the first device that is no CPU: what NumPy gives.

    JAX_PLATFORMS=cuda,cpu python -m pytest tests/lowering/test_devices.py

Derived from the registry. Skipped where there is no such device, or `JAX_PLATFORMS` hides it. Products of float32 are
as exact as on the CPU there: TensorFloat-32 is off unless `torch.set_float32_matmul_precision` asks for it.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import eager as torch
import graphc
from graphc.autodiff import gradients
from graphc.ir import Graph
from graphc.lowering import lower
from graphc.ops.dtypes import FLOAT32, FLOAT64, is_inexact
from tests.lowering.test_ops import graph_of
from tests.ops.cases import Case, by_op, every_case

DEVICES = [d.platform for d in jax.devices() if d.platform != "cpu"]
pytestmark = pytest.mark.skipif(not DEVICES, reason="JAX has no device but the CPU here")
# Of results that are not small: a few ULP in a function, some hundred in a long sum.
TOLERANCES = {FLOAT64: 1e-9, FLOAT32: 2e-4}


@pytest.fixture
def device() -> Any:
    with jax.default_device(jax.devices(DEVICES[0])[0]):
        yield DEVICES[0]


def differences(graph: Graph, arrays: list[np.ndarray], names: list[str], device: str, rtol: float) -> list[str]:
    """What the outputs of a graph, of these names, are on the device, where NumPy gives others."""
    with np.errstate(all="ignore"):
        expected = [graph(*arrays)] if len(graph.outputs) == 1 else list(graph(*arrays))
    found = lower(graph, device)(*arrays)
    pairs = zip(names, [found] if len(graph.outputs) == 1 else found, expected, strict=True)
    return [f"{name}: {np.asarray(a)}, NumPy {b}" for name, a, b in pairs if not _close(np.asarray(a), b, rtol)]


def _close(a: np.ndarray, b: Any, rtol: float) -> bool:
    if a.dtype != np.asarray(b).dtype or a.shape != np.shape(b):
        return False
    scale = np.max(np.abs(b), initial=0.0, where=np.isfinite(b)) if is_inexact(a.dtype) else 0.0
    return np.allclose(a, b, rtol=rtol, atol=rtol * scale, equal_nan=True)


@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
@pytest.mark.parametrize("cases", by_op(every_case()))
def test_values(cases: list[Case], dtype: np.dtype, device: str, rng: np.random.Generator):
    for case in cases:
        graph, arrays, *_ = graph_of((case.op, case.arrays(rng, dtype), case.sample.params))
        names = [f"{case.id} in {dtype}, result {k}" for k in range(len(graph.outputs))]
        whole = graph.replace(graph.nodes, tuple(graph.result)) if len(graph.outputs) > 1 else graph
        assert not differences(whole, arrays, names, device, TOLERANCES[dtype])


@pytest.mark.parametrize("cases", by_op(every_case(differentiable=True)))
def test_gradients(cases: list[Case], device: str, rng: np.random.Generator):
    for case in cases:
        graph, arrays, *_ = graph_of((case.op, case.arrays(rng), case.sample.params))
        inexact = [i for i, a in enumerate(arrays) if is_inexact(a.dtype) and case.op.arg_of(i) in case.op.vjp]
        outputs = [graph.nodes[id].aval for id in graph.outputs if is_inexact(graph.nodes[id].dtype)]
        cotangents = [np.asarray(rng.normal(size=o.shape)).astype(o.dtype) for o in outputs]
        backward = gradients(graph, [f"x{i}" for i in inexact], cotangents=True)
        expected = backward(*arrays, *cotangents)
        found = lower(backward, device)(*arrays, *cotangents)
        for name, e in expected.items():
            got = np.asarray(found[name])
            assert _close(got, e, TOLERANCES[FLOAT64]), f"{case.id}, d{name}: {got}, NumPy {e}"


def test_products_are_as_exact_as_is_asked(device: str):
    a = torch.from_numpy(np.random.default_rng(0).normal(size=(512, 512)).astype(np.float32))
    exact = a.double() @ a.double()
    errors = {}
    for precision in ("highest", "high"):
        torch.set_float32_matmul_precision(precision)
        try:
            errors[precision] = float((graphc.compile(lambda a: a @ a, device=device)(a).double() - exact).abs().max())
        finally:
            torch.set_float32_matmul_precision("highest")
    assert errors["highest"] < 1e-3 < errors["high"], errors


def test_matrices_with_nan_have_no_solution(device: str):
    x = np.eye(80) * 9 + np.random.default_rng(0).normal(size=(80, 80))
    x[4, 4] = np.nan
    for name in ("inv", "det"):
        assert torch.isnan(graphc.compile(getattr(torch.linalg, name), device=device)(torch.from_numpy(x))).any(), name


def test_a_training_step_is_the_cpus(device: str):
    losses = {}
    for where in ("cpu", device):
        torch.manual_seed(0)
        model = torch.nn.Sequential(
            torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Dropout(0.2), torch.nn.Linear(16, 1)
        )
        optimizer = torch.optim.Adam(model.parameters(), 0.01)

        def step(x, y, model=model, optimizer=optimizer):
            optimizer.zero_grad()
            loss = ((model(x) - y) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss

        compiled, x, y = graphc.compile(step, device=where), torch.randn(32, 8), torch.randn(32, 1)
        losses[where] = [float(compiled(x, y)) for _ in range(20)]
    np.testing.assert_allclose(losses[device], losses["cpu"], rtol=1e-4)
