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
        "real": total(compiled(program.hlo)),
    }  # fmt: skip


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
        parts = {"surface": surface(), "pipeline": pipeline(), "scatters": scatters.wrong({"data": 4, "model": 2})}
    print(json.dumps({**parts, **{name: trained(case) for name, case in wanted.items()}}))  # fmt: skip
