"""What a compiled function has stored before it raises: flags as in eager, and no gradient that is silently wrong."""

from collections.abc import Callable
from typing import Any

import pytest

import eager as torch
import graphc

stored: dict[str, Any] = {}


def step(x: Any) -> None:
    stored["result"] = x * 2
    stored["view"] = stored["result"][0]
    stored["detached"] = (x * 3).detach()
    stored["leaf"] = torch.ones(2, requires_grad=True)
    stored["parameter"] = torch.nn.Parameter(torch.ones(2))
    with torch.no_grad():
        stored["constant"] = x * 4
    stored["argument"] = x
    raise ValueError("stop", x * 5)


def flags(run: Callable[[Any], None], x: Any) -> dict[str, tuple[bool, bool]]:
    stored.clear()
    with pytest.raises(ValueError, match="stop") as error:
        run(x)
    found = {**stored, "in the error": error.value.args[1]}
    return {name: (t.requires_grad, t.is_leaf) for name, t in found.items()}


@pytest.mark.on_numpy
def test_what_is_stored_requires_grad_as_in_eager() -> None:
    x = torch.ones(2, requires_grad=True)
    compiled = graphc.compile(step)
    wanted = flags(step, x)
    for _ in range(2):
        assert flags(compiled, x) == wanted
        assert stored["argument"] is x
        torch.autograd.backward((stored["leaf"] * 3).sum())
        assert stored["leaf"].grad.tolist() == [3.0, 3.0]


@pytest.mark.on_numpy
@pytest.mark.parametrize("name", ["result", "view"])
def test_a_history_that_is_lost_is_missed(name: str) -> None:
    x = torch.ones(2, requires_grad=True)
    flags(graphc.compile(step), x)
    with pytest.raises(RuntimeError, match="had made before it raised"):
        (stored[name] * 2).sum().backward()
    assert x.grad is None
