"""What a call of a compiled function consists of, in microseconds, from its arguments to its result.

Run: python benchmarks/parts_of_a_call.py [--quick]

The generated code of a call names its parts in comments (`inspect.getsource` shows it); a clock is put in place of
each. Medians of many calls, each of which is awaited: so the caches are as cold as XLA leaves them, and the parts take
several times as long as in a loop of their own. What a clock costs is in every part (some 0.1 us). "awaited" is what
of the program is left when the function has returned.
"""

from __future__ import annotations

import argparse
import inspect
import re
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

from timing import WARM, one_core, row

one_core()

import jax  # noqa: E402  (after one_core)
import numpy as np  # noqa: E402

import eager  # noqa: E402
import graphc  # noqa: E402
from eager import nn  # noqa: E402

_PART = re.compile(r"( *)# (.+)")


def clocked(call: Callable[..., Any]) -> tuple[Callable[..., Any], list[tuple[str, float]]]:
    """A generated function with a clock at the beginning of each part, and the list that it writes them to."""
    head, *body = (line[1:] for line in inspect.getsource(call).splitlines())
    marks: list[tuple[str, float]] = []
    lines = [_PART.sub(r"\1parts_.append(('\2', clock_()))", line) for line in body]
    scope = {**call.__globals__, "parts_": marks, "clock_": time.perf_counter}
    exec("\n".join([re.sub(r"(\w+)=\1", r"\1", head), *lines]), scope)
    made = scope[call.__name__]
    made.__defaults__ = call.__defaults__
    return made, marks


def parts(function: Any, arguments: Sequence[Any], rounds: int) -> dict[str, float]:
    """Microseconds by part."""
    for _ in range(WARM):
        function(*arguments)
    call, marks = clocked(function._fast_call)
    found: dict[str, list[float]] = {}
    for _ in range(rounds):
        marks.clear()
        result = call(function, tuple(arguments))
        marks.append(("awaited", time.perf_counter()))
        jax.block_until_ready(result._d.array)
        ends = [start for _, start in marks[1:]] + [time.perf_counter()]
        for (name, start), end in zip(marks, ends, strict=True):
            found.setdefault(name, []).append(end - start)
    return {name: 1e6 * statistics.median(seconds) for name, seconds in found.items()}


def training(layers: int, width: int) -> tuple[Any, list[Any]]:
    """A step of Adam of an MLP."""
    model = nn.Sequential(*(m for _ in range(layers) for m in (nn.Linear(width, width), nn.Tanh())))
    optimizer = eager.optim.Adam(model.parameters())

    @graphc.compile
    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step, [eager.randn(32, width), eager.randn(32, width)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rounds: a figure to see that everything runs")
    rounds = 50 if parser.parse_args().quick else 1000
    eager.manual_seed(0)
    affine = graphc.compile(lambda x, w, b: eager.tanh(x @ w + b))
    cases = {
        "tanh(x @ w + b), 4x4": (affine, [eager.tensor(np.ones(s, np.float32)) for s in ((4, 4), (4, 4), (4,))]),
        "step of Adam, 3 layers of 64": training(3, 64),
        "step of Adam, 30 layers of 16": training(30, 16),
    }
    for name, (function, arguments) in cases.items():
        for part, microseconds in parts(function, arguments, rounds).items():
            row(f"{name}: {part}", f"{microseconds:.1f} us", "")


if __name__ == "__main__":
    main()
