"""What `test_on_devices` asks of eight devices: `python -m tests.sharding.on_devices quick` prints it as JSON.

XLA is told how many devices there are before it starts, so this runs in a process of its own.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import jax
import numpy as np

import compare
import eager as torch
import graphc
from compare.modes import ByParts, Sharded
from graphc.sharding import P, compiled, propagated, total
from tests.memory.programs import mlp, step
from tests.sharding import models, pipelines, scatters


def trained(case: models.Case) -> dict[str, Any]:
    """Training on the mesh against eager training: losses and parameters; what was predicted and what is exchanged."""
    plain, losses, _ = models.trained(case._replace(placed=lambda m: m), lambda step: step)
    model, found, run = models.trained(
        case,
        lambda step: graphc.compile(
            step, mesh=case.mesh, in_shardings=P("data"), state_shardings=case.rules
        ),
    )  # fmt: skip
    program = run._last().runner.forward
    said = dict(zip(program.graph.inputs, program.layout.inputs, strict=True))
    held = {
        name: [str(s) for s in (said[i],)]
        for i, name in zip(program.graph.inputs, program.graph.input_names, strict=True)
    }
    arrays = [p._d.array for p in model.parameters()]
    off = [
        float(np.abs(p.detach().numpy() - q.detach().cpu().numpy()).max())
        for p, q in zip(plain.parameters(), model.parameters(), strict=True)
    ]
    return {
        "losses": [losses, found], "off": max(off), "held": held, "donated": len(program.donated),
        "devices": [len(a.sharding.device_set) for a in arrays],
        "parts": [list(a.addressable_shards[0].data.shape) for a in arrays],
        "predicted": total(propagated(program.graph, program.layout).collectives),
        "real": total(compiled(program.hlo)), "memory": memory(case),
    }  # fmt: skip


def memory(case: models.Case) -> list[int]:
    """What a step of a larger batch takes on each device: by the model, and by XLA's plan."""
    torch.manual_seed(0)
    model = case.placed(case.make())
    shape, target = ((32 * n, *rest) for n, *rest in (case.x, case.y))
    x = torch.randint(0, 64, tuple(shape)) if case.words else torch.randn(*shape)
    run = graphc.compile(
        models.step_of(model), mesh=case.mesh, in_shardings=P("data"), state_shardings=case.rules
    )  # fmt: skip
    (found,) = graphc.memory(run, x, torch.randn(*target)).programs
    assert found.exact is not None
    return [found.estimate, found.exact]


def gradients(fn: Any, args: Any, weights: list[Any]) -> list[np.ndarray]:
    """Those of `weights`."""
    for w in weights:
        w.grad = None
    fn(*args).backward()
    return [w.grad.numpy() for w in weights]


def budget(fraction: float) -> dict[str, list[float]]:
    """Steps, and gradients through the tape, within a part of what each device takes without: what they take then, of
    that; and how far off the numbers are."""
    settings: dict[str, Any] = {"mesh": {"data": 8}, "in_shardings": P("data")}
    found: dict[str, list[float]] = {}
    trained = step(mlp(32, 6, 4), torch.optim.SGD, torch.randn(4096, 32), torch.randn(4096, 4))
    weights = [torch.randn(64, 64).div(8).requires_grad_() for _ in range(8)]

    def net(x: Any) -> Any:
        for w in weights:
            x = torch.tanh(x @ w) * torch.sigmoid(x)
        return x.square().sum()

    for name, fn, args in (("step", *trained[:2]), ("gradients", net, (torch.randn(4096, 64),))):
        whole = graphc.memory(graphc.compile(fn, **settings), *args).peak
        small = graphc.compile(fn, memory=int(fraction * whole), **settings)
        found[name] = [graphc.memory(small, *args).peak / whole]
        if name == "gradients":
            pairs = zip(gradients(small, args, weights), gradients(net, args, weights), strict=True)
            found[name] += [float(np.abs(a - b).max() / np.abs(b).max()) for a, b in pairs]
    return found


def surface() -> dict[str, Any]:
    """What else is asked of a mesh: results, gradients through the tape, errors, explanations, checks."""
    mesh = {"data": 4, "model": 2}
    torch.manual_seed(0)
    w, b = torch.randn(8, 6, requires_grad=True), torch.randn(6, requires_grad=True)
    x = torch.randn(4, 8)
    f = graphc.compile(
        lambda x: {"out": graphc.shard(torch.relu(x @ w + b), P("data"))}, mesh=mesh, in_shardings=(P("data"),),
        out_shardings={"out": P("data", "model")}, state_shardings={"w": P(None, "model")},
    )  # fmt: skip
    out = f(x)["out"]
    lies = str(out._d.array.sharding.spec)
    (out * out).sum().backward()
    assert w.grad is not None
    got = w.grad.numpy().copy()
    w.grad = None
    (torch.relu(x @ w + b) ** 2).sum().backward()
    found: dict[str, Any] = {
        "out": float(np.abs(out.detach().numpy() - torch.relu(x @ w + b).detach().numpy()).max()),
        "lies": lies, "gradient": float(np.abs(got - w.grad.numpy()).max()), "explained": str(graphc.explain(f)),
        "shown": str(f.graph),
    }  # fmt: skip
    for name, wrong in {
        "uneven": lambda: f(torch.randn(6, 8)),
        "axis": lambda: graphc.compile(torch.relu, mesh=mesh, in_shardings=(P("rows"),))(x),
        "prefix": lambda: graphc.compile(torch.relu, mesh=mesh, in_shardings=(P("data"), P()))(x),
        "devices": lambda: graphc.compile(torch.relu, mesh={"data": 64})(torch.zeros(64)),
    }.items():
        try:
            wrong()
        except Exception as error:
            found[name] = f"{type(error).__name__}: {error}"
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Dropout(0.5), torch.nn.BatchNorm1d(8))
    optimizer = torch.optim.Adam(model.parameters())

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = model(x).square().mean() + 0.0
        loss.backward()
        optimizer.step()
        return loss

    found["check"] = str(compare.check(step, x, modes=["sharded", "parts", Sharded(mesh, {"x": P("data")})]))
    return found


def pipeline() -> dict[str, Any]:
    """Stages on devices against the model as a whole; and a step, checked."""
    mesh = pipelines.MESH
    found, run = pipelines.piped(
        mesh["pipe"], compiled=lambda step: graphc.compile(step, mesh=mesh, in_shardings=P("data"))
    )
    program = run._last().runner.forward
    pipe = pipelines.pipeline(pipelines.model(), (), split_spec=pipelines.SPLITS, mesh=mesh["pipe"])
    step = pipelines.step_of(pipe, torch.optim.SGD(pipe.parameters(), 0.1), "GPipe")
    batch = {"x": P("data"), "y": P("data")}
    modes = ["compiled", ByParts(mesh, batch), Sharded(mesh, batch)]
    return {
        "found": found, "predicted": total(propagated(program.graph, program.layout).collectives),
        "real": total(compiled(program.hlo)),
        "check": str(compare.check(step, *pipelines.batch(), modes=modes)),
    }  # fmt: skip


if __name__ == "__main__":
    assert len(jax.devices()) == 8
    wanted = models.QUICK if sys.argv[1] == "quick" else models.DEEP
    parts: dict[str, Any] = {}
    if sys.argv[1] == "quick":
        parts = {
            "surface": surface(),
            "budget": budget(0.85),
            "pipeline": pipeline(),
            "scatters": scatters.wrong({"data": 4, "model": 2}),
        }
    print(json.dumps({**parts, **{name: trained(case) for name, case in wanted.items()}}))  # fmt: skip
