"""`graphc.compile(step, offload="optimizer")`: what an optimizer keeps lies in the memory of the host."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import eager as torch
import eager.nn.functional as F
import graphc
from compare.selftest.planting import attribute
from eager import nn
from graphc.lowering import offloading


def trained(offload: str | None, **options: Any) -> tuple[list[np.ndarray], Any, tuple[Any, ...], Any, Any]:
    """Steps of training, among them one that fails: what is left; the step, its arguments, optimizer and model."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(7, 8), nn.Flatten(), nn.Linear(16, 8), nn.BatchNorm1d(8), nn.Linear(8, 4))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    x, y = torch.arange(12).reshape(6, 2) % 7, torch.arange(6) % 4

    @graphc.compile(offload=offload, **options)
    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    found = [step(x, y).detach().numpy() for _ in range(3)]
    with pytest.raises(IndexError):
        step(x + 7, y)
    optimizer.load_state_dict(optimizer.state_dict())  # which looks at the state, and makes it anew
    found += [step(x, y).detach().numpy() for _ in range(2)]
    found += [t.numpy().copy() for t in model.state_dict().values()]
    state = [t for p in model.parameters() for t in optimizer.state[p].values()]
    return [*found, *(t.numpy().copy() for t in state)], step, (x, y), optimizer, model


def kinds(tensors: Any) -> set[str]:
    """Where JAX has the arrays that programs have left."""
    arrays = [getattr(t._d, "array", None) for t in tensors]
    return {getattr(a.sharding, "memory_kind", "") for a in arrays if hasattr(a, "sharding")}


def test_a_step_has_the_same_bits_and_its_moments_lie_on_the_host():
    expected, plain, batch, *_ = trained(None, without="packs")  # which may round otherwise
    found, step, _, optimizer, model = trained("optimizer")
    assert all(np.array_equal(a, b) for a, b in zip(expected, found, strict=True))
    step(*batch)
    moments = [optimizer.state[p][name] for p in model.parameters() for name in ("exp_avg", "exp_avg_sq")]
    assert kinds(moments) == {"pinned_host"}
    others = kinds([*model.parameters(), *model.buffers()])
    assert "pinned_host" not in others
    apart, together = (graphc.memory(f, *batch).programs[0] for f in (step, plain))
    size = 2 * 4 * sum(p.numel() for p in model.parameters())
    assert apart.host == size and together.host == 0
    assert apart.arguments == together.arguments - size and apart.peak < together.peak
    assert "on the host" in str(apart)


def test_what_no_step_writes_stays():
    w = torch.ones(3, requires_grad=True)
    f = graphc.compile(lambda x: (x * w).sum(), offload="optimizer")
    f(torch.ones(3)).backward()
    assert w.grad is not None and w.grad.tolist() == [1.0] * 3
    assert graphc.memory(f, torch.ones(3)).programs[0].host == 0


def test_a_device_without_such_memory_is_named():
    with attribute(offloading, "HOST", "memory of another kind"), pytest.raises(RuntimeError, match=r"it has .*device"):
        trained("optimizer")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"offload": "all"}, "offload must be 'optimizer' or None, got 'all'"),
        ({"offload": "optimizer", "backend": "numpy"}, "for programs of XLA on one device, not for backend 'numpy'"),
        ({"offload": "optimizer", "mesh": {"data": 1}}, "not for a mesh"),
    ],
)
def test_what_does_not_go_together(options: Any, message: str):
    with pytest.raises(ValueError, match=message):
        graphc.compile(torch.relu, **options)
