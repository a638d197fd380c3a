"""Small programs by `backend="auto"`, beside naive `jax.jit`: thirty of them, of 16 to 1,000 elements a vector.

Run: python benchmarks/small_programs.py [--quick]

Ratios of medians of CPU time within rounds, results awaited on both sides; `jax.jit` is given arrays of JAX, the others
tensors in NumPy's memory. Also each backend by itself, and whether `auto` chose the one that is faster, or within a
tenth of it: in the quickest rounds, for `auto` runs the same code as that backend, and a median tells them apart.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

from timing import Timing, interleaved, one_core, row

one_core()

import jax  # noqa: E402  (after one_core)
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

import eager  # noqa: E402
import graphc  # noqa: E402

SETTLED = 0.5  # seconds of calls, after which `auto` has compared the backends
PROGRAMS: dict[str, Callable[..., Any]] = {
    "affine": lambda xp, x, y, a: xp.tanh(x * 2 + y),
    "squared error": lambda xp, x, y, a: ((x - y) ** 2).mean(),
    "logistic": lambda xp, x, y, a: 1 / (1 + xp.exp(-(x * y))),
    "normal density": lambda xp, x, y, a: xp.exp(-((x - y) ** 2) / 2).sum(),
    "matrix and vector": lambda xp, x, y, a: a @ x + y,
    "quadratic form": lambda xp, x, y, a: x @ (a @ y),
    "normalized": lambda xp, x, y, a: (x - x.mean()) / xp.sqrt(((x - x.mean()) ** 2).mean() + 1e-5),
    "cosine": lambda xp, x, y, a: (x * y).sum() / xp.sqrt((x * x).sum() * (y * y).sum()),
    "layer": lambda xp, x, y, a: xp.tanh(a @ x + y),
    "two layers": lambda xp, x, y, a: a @ xp.tanh(a @ x + y) + y,
}  # fmt: skip
SIZES = (16, 200, 1000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rounds: a figure to see that everything runs")
    rounds = 7 if parser.parse_args().quick else 41
    rng = np.random.default_rng(0)
    timings: list[Timing] = []
    for name, program in PROGRAMS.items():
        for n in SIZES:
            arrays = [rng.standard_normal(shape).astype(np.float32) for shape in ((n,), (n,), (n, n))]
            timings.append(found := timed(program, arrays, rounds))
            parts = ", ".join(f"{backend} {seconds * 1e6:.1f}" for backend, seconds in found.seconds.items())
            row(f"{name}, {n}", f"{1 / found.ratio['auto']:.2f} x as fast as jit ({parts} us)", ">= 0.97")
    gains = [1 / found.ratio["auto"] for found in timings]
    right = [t.least["auto"] <= 1.1 * min(t.least["numpy"], t.least["jax"]) for t in timings]
    row("geometric mean", f"{statistics.geometric_mean(gains):.2f} x", ">= 2.5")
    row("slowest", f"{min(gains):.2f} x", ">= 0.97")
    row("within a tenth of the better backend", f"{sum(right)} of {len(right)}", ">= 95%")


def timed(program: Callable[..., Any], arrays: list[np.ndarray], rounds: int) -> Timing:
    """One program, by `jax.jit` on arrays of JAX and by each backend on tensors."""
    tensors, given = [eager.tensor(a) for a in arrays], [jax.device_put(a) for a in arrays]
    bare = jax.jit(lambda *xs: program(jnp, *xs))
    calls: dict[str, Callable[[], object]] = {"jit": lambda: jax.block_until_ready(bare(*given))}
    for backend in ("auto", "numpy", "jax"):
        function = graphc.compile(lambda *xs: program(eager, *xs), backend=backend)
        if backend == "auto":
            _settle(function, tensors)
        calls[backend] = lambda function=function: _awaited(function(*tensors))
    return interleaved(calls, rounds, 0.004, time.process_time)


def _settle(function: Any, tensors: list[Any]) -> None:
    """Call until `auto` has compared the backends."""
    end = time.perf_counter() + SETTLED
    while time.perf_counter() < end:
        function(*tensors)


def _awaited(tensor: Any) -> None:
    if not isinstance(tensor._d, np.ndarray):
        jax.block_until_ready(tensor._d.array)


if __name__ == "__main__":
    main()
