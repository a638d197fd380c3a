"""Many functions on arrays of the size that users have, forward and backward: eager beside PyTorch, the worst first.

Run: python benchmarks/operators.py [small | large] [word in a call ...]

The calls are those of operators.txt, or the same with other sizes. Of each the quickest of some interleaved rounds
counts, in CPU time on one core.
Needs the extra `torch`.
"""

from __future__ import annotations

import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from timing import interleaved, one_core

one_core()

import numpy as np  # noqa: E402  (after one_core)
import torch  # noqa: E402

import eager  # noqa: E402

Operands = dict[str, np.ndarray]
rng = np.random.default_rng(0)

SIZES: dict[str, Callable[[int], int]] = {
    "small": lambda n: 2 ** (n.bit_length() // 2) if n >= 16 else n,
    "large": lambda n: 4 * n if n >= 256 else n,
}
"""What becomes of each number of a line. Equal numbers stay equal, and products of powers of two stay products."""


def operand(text: str) -> tuple[str, np.ndarray]:
    """The name and the numbers of an operand such as `x:f[3,4]`."""
    parts = re.fullmatch(r"(\w):([fui])(\d*)\[([\d,]+)\]", text)
    if parts is None:
        raise ValueError(f"no operand: {text}")
    name, kind, high, sizes = parts.groups()
    shape = tuple(map(int, sizes.split(",")))
    if kind == "i":
        return name, rng.integers(0, int(high), shape)
    return name, (rng.standard_normal(shape) if kind == "f" else rng.uniform(0.05, 0.95, shape)).astype(np.float32)


def calls(size: str | None) -> Iterator[tuple[str, Operands]]:
    """The expressions of operators.txt, and the operands of each."""
    for original in Path(__file__).with_suffix(".txt").read_text().splitlines():
        line = re.sub(r"(?<![\d.])\d{2,}", lambda n: str(SIZES[size](int(n[0]))), original) if size else original
        if not line.startswith("#") and (line != original or size is None):
            names, expression, operands = line.split("|")
            for name in names.split():
                yield expression.strip().replace("{}", name), dict(map(operand, operands.split()))


def step(t: Any, expression: str, operands: Operands, backward: bool) -> Callable[[], object] | None:
    """The call in the terms of `t`, torch or eager; or the call with its gradients, None if it has none."""
    code = compile(expression, expression, "eval")
    tensors = {k: t.tensor(a, requires_grad=backward and a.dtype.kind == "f") for k, a in operands.items()}
    leaves = [x for x in tensors.values() if x.requires_grad]
    names = {"t": t, "F": t.nn.functional, **tensors}
    if not backward:
        return lambda: eval(code, names)
    result = eval(code, names)
    if not result.requires_grad:
        return None
    ones = t.ones(tuple(result.shape))

    def both() -> None:
        for leaf in leaves:
            leaf.grad = None
        eval(code, names).backward(ones)

    return both


def ratio(expression: str, operands: Operands, backward: bool) -> float:
    """Eager's time by PyTorch's; nan where there is no gradient."""
    steps = {t.__name__: step(t, expression, operands, backward) for t in (torch, eager)}
    calls = {name: call for name, call in steps.items() if call is not None}
    if len(calls) < 2:
        return float("nan")
    least = interleaved(calls, rounds=7, block=0.004, clock=time.process_time).least
    return least["eager"] / least["torch"]


def main() -> None:
    warnings.simplefilter("ignore")
    size = next((word for word in sys.argv[1:] if word in SIZES), None)
    words = [word for word in sys.argv[1:] if word != size]
    found = []
    for expression, operands in calls(size):
        if not words or any(word in expression for word in words):
            ratios = [ratio(expression, operands, backward) for backward in (False, True)]
            found.append((*ratios, expression, [list(a.shape) for a in operands.values()]))
    print("forward  with backward   eager's CPU time by PyTorch's")
    for forward, both, expression, shapes in sorted(found, key=lambda row: -np.nanmax(row[:2])):
        print(f"{forward:7.2f} {both:14.2f}   {expression}  {' '.join(map(str, shapes))}")
    means = np.exp(np.nanmean(np.log([row[:2] for row in found]), axis=0))
    print(f"{means[0]:7.2f} {means[1]:14.2f}   geometric means")


if __name__ == "__main__":
    main()
