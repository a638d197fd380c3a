"""Naive linear algebra through `graphc.compile`, beside the best hand-written form under `jax.jit`: values, gradients.

Run: python benchmarks/linear_algebra.py [--size N] [--rounds N] [names or groups]

Ratios of medians within rounds, results awaited; one core. A row reaches its best form at 1.15 or less. `program` is
the optimized program alone, on arrays of JAX; `as written` that of the graph without passes. Gradients are those of
the sum of squares.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Sequence
from typing import Any

from timing import Timing, interleaved, one_core, row

one_core()

import jax  # noqa: E402  (after one_core)
import numpy as np  # noqa: E402

import eager  # noqa: E402
import graphc  # noqa: E402
from forms import ROWS, Row, arrays  # noqa: E402

GOAL = 1.15
SHORT = 50e-6  # seconds, below which the call is what is measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--forward", action="store_true", help="no gradients")
    parser.add_argument("only", nargs="*", help="names or groups")
    options = parser.parse_args()
    found: list[float] = []
    for case in ROWS:
        if options.only and not {case.name, case.group} & set(options.only):
            continue
        for kind in ("value", "gradient"):
            if kind == "gradient" and (options.forward or not case.differentiable):
                continue
            timing = timed(case, options.size, kind == "gradient", options.rounds)
            found.append(timing.ratio["graphc"])
            verdict = "" if found[-1] <= GOAL else "call" if timing.seconds["best"] < SHORT else "MISSED"
            form, naive, took = timing.ratio["form"], timing.ratio["naive"], timing.seconds["best"] * 1e6
            parts = f"{found[-1]:8.2f}  (program {form:6.2f}, as written {naive:7.2f}; {took:7.0f} us)"
            row(f"{case.group}: {case.name}, {kind}", parts, verdict)
    row("geometric mean", f"{statistics.geometric_mean(found):.2f}", f"<= {GOAL}")
    row("best form reached", f"{sum(r <= GOAL for r in found)} of {len(found)}", "")


def timed(case: Row, n: int, gradient: bool, rounds: int) -> Timing:
    """One row: by hand, by `graphc.compile`, and as written."""
    given = list(arrays(case, n))
    tensors = [eager.tensor(a) for a in given]
    best, naive = (_differentiated if gradient else _plain)(case, [a.dtype.kind == "f" for a in given])
    by_hand = jax.jit(best)
    on_device = [jax.device_put(a) for a in given]
    compiled = graphc.compile(naive)
    written = graphc.lower(graphc.trace(naive, *tensors))
    mixed = [t if a.dtype.kind == "i" else b for t, a, b in zip(tensors, given, on_device, strict=True)]
    program = graphc.lower(graphc.optimize(graphc.trace(naive, *tensors)))
    _agree(compiled(*tensors), by_hand(*on_device), case.name)
    calls: dict[str, Callable[[], object]] = {
        "best": lambda: jax.block_until_ready(by_hand(*on_device)),
        "graphc": lambda: _awaited(compiled(*tensors)),
        "form": lambda: jax.block_until_ready(program(*mixed)),
        "naive": lambda: jax.block_until_ready(written(*mixed)),
    }
    return interleaved(calls, rounds, 0.01)


def _plain(case: Row, _: Sequence[bool]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    return case.best, case.naive


def _differentiated(case: Row, floating: Sequence[bool]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    places = tuple([k for k, is_float in enumerate(floating) if is_float])

    def by_hand(*xs: Any) -> Any:
        return sum((y**2).sum() for y in jax.tree.leaves(case.best(*xs)))

    def naive(*xs: Any) -> Any:
        found = case.naive(*xs)
        return sum((y**2).sum() for y in (found if isinstance(found, tuple) else (found,)))

    return jax.grad(by_hand, places), eager.func.grad(naive, places)


def _awaited(result: Any) -> None:
    for tensor in result if isinstance(result, tuple) else (result,):
        if not isinstance(tensor._d, np.ndarray):
            jax.block_until_ready(tensor._d.array)


def _agree(ours: Any, theirs: Any, name: str) -> None:
    ours = ours if isinstance(ours, tuple) else (ours,)
    for a, b in zip(ours, jax.tree.leaves(theirs), strict=True):
        a, b = np.asarray(a.numpy(), np.float64), np.asarray(b, np.float64)
        off = np.abs(a - b).max() / (np.abs(b).max() + 1e-30)
        if not off <= 1e-3:
            print(f"{name}: the two forms differ by {off:.1e}")


if __name__ == "__main__":
    main()
