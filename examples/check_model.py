"""A user's path through `compare`: check a model, find a bug, time it, write a report, keep it right with pytest.

    python -m compare check examples/check_model.py:model
    python -m compare localize examples/check_model.py:model_with_bug
    python -m compare bench examples/check_model.py:model
    python -m compare report examples/check_model.py:model --out report.html
    python -m pytest examples/check_model.py

The second ends with exit code 1 and names the op, its gradient rule and the line. `python examples/check_model.py` is
the same path in Python. The last one needs the package to be installed: pytest then finds the fixture by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import compare
import eager as torch
from eager import nn
from eager.engine.language import E
from graphc.ops import OPS, op
from graphc.ops.rules import pointwise_float

Case = tuple[Callable[..., Any], tuple[Any, ...]]


def model(activation: Callable[[Any], Any] = torch.tanh) -> Case:
    """The loss of a small network, and arguments for it: what the commands are given."""
    torch.manual_seed(0)
    first, last = nn.Linear(4, 8), nn.Linear(8, 1)

    def loss(x: Any, y: Any) -> Any:
        hidden = activation(first(x))
        return nn.functional.mse_loss(last(hidden), y)

    return loss, (torch.randn(16, 4), torch.randn(16, 1))


def model_with_bug() -> Case:
    """The same with an activation of our own: f(x) = x^3, whose derivative is 3 x^2 and not x^2."""
    if "cubic" not in OPS:
        op("cubic", "x", impl=lambda xp, x: x * x * x, rule=pointwise_float, vjp={"x": lambda F, g, x: g * x * x})

    def cubic(x: Any) -> Any:
        return E.cubic(x)

    return model(cubic)


def test_model(compare_check: Callable[..., Any]) -> None:
    loss, args = model()
    compare_check(loss, *args)


def main() -> None:
    """Each step prints what it has found."""
    loss, args = model()
    wrong, wrong_args = model_with_bug()
    print(compare.check(loss, *args))
    print(compare.localize(wrong, *wrong_args).first)
    report = compare.report(loss, *args, min_time=0.05)
    print(report.bench)
    print(f"written to {report.write('report.html')}")


if __name__ == "__main__":
    main()
