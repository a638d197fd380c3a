"""Every op, and its gradients, on the first device that is no CPU: what NumPy gives.

    JAX_PLATFORMS=cuda,cpu python -m pytest tests/lowering/test_devices.py

Derived from the registry: as a compiled graph, and op by op on tensors that lie there. Skipped where there is no such
device, or `JAX_PLATFORMS` hides it. Products of float32 are as exact as on the CPU there: TensorFloat-32 is off unless
`torch.set_float32_matmul_precision` asks for it.
"""

from __future__ import annotations

import copy
from typing import Any

import jax
import numpy as np
import pytest

import eager as torch
import graphc
from graphc.autodiff import gradients
from graphc.lowering import lower
from graphc.ops.dtypes import FLOAT32, FLOAT64, is_inexact
from tests.devices.test_memory import LOSSES, PROGRAMS, made, plain, same
from tests.lowering.test_ops import graph_of
from tests.ops import elsewhere
from tests.ops.cases import Case, by_op, every_case

DEVICES = [d.platform for d in jax.devices() if d.platform != "cpu"]
pytestmark = pytest.mark.skipif(not DEVICES, reason="JAX has no device but the CPU here")
THERE = "xla" if "tpu" in DEVICES else "cuda"  # PyTorch's name of it
CASES, DIFFERENTIABLE = (by_op(every_case(differentiable=d)) if DEVICES else [] for d in (False, True))
# Of results that are not small: a few ULP in a function, some hundred in a long sum.
TOLERANCES = {FLOAT64: 1e-9, FLOAT32: 2e-4}


@pytest.fixture
def device() -> Any:
    with jax.default_device(jax.devices(DEVICES[0])[0]):
        yield DEVICES[0]


def outputs(program: Any, arrays: list[np.ndarray]) -> list[np.ndarray]:
    with np.errstate(all="ignore"):
        found = program(*arrays)
    return [np.asarray(a) for a in (found if isinstance(found, tuple) else (found,))]


def _close(a: np.ndarray, b: Any, rtol: float) -> bool:
    if a.dtype != np.asarray(b).dtype or a.shape != np.shape(b):
        return False
    scale = np.max(np.abs(b), initial=0.0, where=np.isfinite(b)) if is_inexact(a.dtype) else 0.0
    return np.allclose(a, b, rtol=rtol, atol=rtol * scale, equal_nan=True)


@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
@pytest.mark.parametrize("cases", CASES)
def test_values(cases: list[Case], dtype: np.dtype, device: str, rng: np.random.Generator):
    for case in cases:
        graph, arrays, *_ = graph_of((case.op, case.arrays(rng, dtype), case.sample.params))
        found, expected = outputs(lower(graph, device), arrays), outputs(graph, arrays)
        if case.op.nearest is not None:  # a sign is free
            near = (
                case.op.nearest(tuple(expected), tuple(found)) if len(found) > 1 else case.op.nearest(*expected, *found)
            )
            expected = list(near) if len(found) > 1 else [near]
        for k, (a, b) in enumerate(zip(found, expected, strict=True)):
            assert _close(a, b, TOLERANCES[dtype]), f"{case.id} in {dtype}, result {k}: {a}, NumPy {b}"


@pytest.mark.parametrize("cases", DIFFERENTIABLE)
def test_gradients(cases: list[Case], device: str, rng: np.random.Generator):
    for case in cases:
        graph, arrays, *_ = graph_of((case.op, case.arrays(rng), case.sample.params))
        inexact = [f"x{i}" for i, a in enumerate(arrays) if is_inexact(a.dtype) and case.op.arg_of(i) in case.op.vjp]
        backward = gradients(graph, inexact, cotangents=True)
        forward = [out for out in outputs(graph, arrays) if is_inexact(out.dtype)]
        noise = [np.asarray(rng.normal(size=out.shape)).astype(out.dtype) for out in forward]
        there = here = noise
        if case.op.nearest is not None:  # of the squares of the results, whose sign is free
            made = [out for out in outputs(lower(graph, device), arrays) if is_inexact(out.dtype)]
            there, here = ([n * out for n, out in zip(noise, outs, strict=True)] for outs in (made, forward))
        found, expected = lower(backward, device)(*arrays, *there), backward(*arrays, *here)
        for name, e in expected.items():
            got = np.asarray(found[name])
            assert _close(got, e, TOLERANCES[FLOAT64]), f"{case.id}, d{name}: {got}, NumPy {e}"


@pytest.mark.parametrize("cases", CASES)
def test_op_by_op(cases: list[Case], rng: np.random.Generator):
    for case in cases:
        elsewhere.check(case, rng, lambda t: t.to(THERE), lambda t: t.device.type == THERE)


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_that_write(program: Any):
    here, there = made("cpu"), made(THERE)
    same([plain(program(here)), plain(here)], [plain(program(there)), plain(there)])


@pytest.mark.parametrize("loss", LOSSES)
def test_gradients_of_programs(loss: Any):
    found = []
    for device in ("cpu", THERE):
        x = made(device).requires_grad_()
        loss(x).backward()
        found.append(plain(x.grad))
    same(*found)


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


@pytest.mark.parametrize("optimizer", ["SGD", "Adam", "AdamW", "RMSprop"])
def test_a_training_step_there_is_the_same_op_by_op_and_compiled(optimizer: str):
    torch.manual_seed(0)
    batch = torch.randn(16, 3, 8, 8).to(THERE), torch.randint(0, 5, (16,)).to(THERE)
    first = torch.nn.Sequential(
        torch.nn.Conv2d(3, 6, 3, bias=False), torch.nn.BatchNorm2d(6), torch.nn.GELU(), torch.nn.MaxPool2d(2),
        torch.nn.Flatten(), torch.nn.Dropout(0.2), torch.nn.Linear(54, 5),
    ).to(THERE)  # fmt: skip
    losses, states = [], []
    for compiled in (False, True):
        model = copy.deepcopy(first)
        updates = getattr(torch.optim, optimizer)(model.parameters(), 0.01)

        def step(x, y, model=model, updates=updates):
            updates.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x), y)
            loss.backward()
            updates.step()
            return loss

        torch.manual_seed(1)
        run = graphc.compile(step) if compiled else step
        losses.append([run(*batch).item() for _ in range(10)])
        states.append([plain(t) for t in model.state_dict().values()])
        assert all(t.device.type == THERE for t in model.state_dict().values())
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-3)
    assert losses[0][-1] < losses[0][0]
    for a, b in zip(*states, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-2, atol=1e-3)
