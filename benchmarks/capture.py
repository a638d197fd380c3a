"""What `graphc.compile` costs around XLA: a call, capturing and differentiating large programs, a second process.

Run: python benchmarks/capture.py [--quick]

A *call* is compared with bare `jax.jit` on the same arrays. The compiler's own work (trace, gradients, passes) is
compared with what JAX takes to trace and lower `jax.value_and_grad` of the same program. The *second process* finds
the programs that the first has left in the cache on disk.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

from timing import interleaved, one_core, row, seconds_of

one_core()

import jax  # noqa: E402  (after one_core)
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

import eager  # noqa: E402
import graphc  # noqa: E402

rng = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


# --- a call


def affine(library: Any) -> Callable[..., Any]:
    return lambda x, w, b: library.tanh(x @ w + b)


def hit(rounds: int) -> None:
    """What a hit costs beyond `jax.jit`, for three arguments: of short rounds the quickest, which nothing disturbed."""
    on_host = floats(4, 4), floats(4, 4), floats(4)
    onto = graphc.compile(lambda *tensors: tuple(t + 0 for t in tensors))
    tensors = {"NumPy": tuple(map(eager.tensor, on_host))}
    tensors["jax"] = onto(*tensors["NumPy"])
    compiled, bare, block = graphc.compile(affine(eager)), jax.jit(affine(jnp)), jax.block_until_ready
    for kind, goal in (("jax", "<= 2 us"), ("NumPy", "<= 3 us")):
        given = tensors[kind]
        raw = [t._d.array if kind == "jax" else t._d for t in given]
        t = interleaved(
            {
                "jax.jit": lambda raw=raw: block(bare(*raw)),
                "graphc": lambda given=given: block(compiled(*given)._d.array),
            },
            rounds,
            block=0.001,
        )
        extra = (t.least["graphc"] - t.least["jax.jit"]) * 1e6
        what = f"tanh(x @ w + b), 4x4, {kind}-backed: beyond bare jax.jit"
        row(what, f"{extra:+.1f} us of {t.least['jax.jit'] * 1e6:.1f} us", goal)


# --- the compiler's own work


def chain(n: int, tanh: Callable[[Any], Any]) -> Callable[..., Any]:
    """A program of `n` operations, four kinds in turn."""

    def f(x: Any, w: Any) -> Any:
        for _ in range(n // 4):
            x = x * w
            x = x + 1.5
            x = tanh(x)
            x = x - w
        return x.sum()

    return f


def layers(n: int, tanh: Callable[[Any], Any]) -> Callable[..., Any]:
    """A residual network of about `n` operations: products, shapes and reductions among the pointwise ones."""

    def f(x: Any, w: Any) -> Any:
        for _ in range(n // 6):
            x = x + tanh(x @ w)
            x = x - x.mean(1).reshape(8, 1)
            x = x * 0.9
        return x.sum()

    return f


def median_seconds(call: Callable[[], object], repeats: int) -> float:
    times: list[float] = []
    for _ in range(repeats):
        gc.collect()
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def compiler_speed(repeats: int) -> None:
    """Trace, gradients and passes, beside JAX's own trace and lowering of the value and gradient."""
    for name, program in (("chain", chain), ("residual layers", layers)):
        took: dict[int, float] = {}
        for n in (1_000, 3_000, 10_000):
            ours, theirs = program(n, eager.tanh), program(n, jnp.tanh)
            arrays = floats(8, 8), floats(8, 8)
            tensors = [eager.tensor(a, requires_grad=True) for a in arrays]
            took[n] = median_seconds(
                lambda ours=ours, tensors=tensors: graphc.optimize(graphc.gradients(graphc.trace(ours, *tensors))),
                repeats,
            )
            by_jax = median_seconds(
                lambda theirs=theirs, arrays=arrays: jax.jit(
                    jax.value_and_grad(lambda *given: theirs(*given), (0, 1))
                ).lower(*arrays),
                max(1, repeats // 2),
            )
            what = f"{name}, {n:,} nodes: trace + gradients + passes"
            row(what, f"{took[n] * 1e3:.0f} ms, {took[n] / by_jax:.2f} of JAX's {by_jax * 1e3:.0f} ms", "<= 0.20")
        row(f"{name}: 10,000 nodes beside 1,000", f"{took[10_000] / took[1_000]:.1f} x as long", "<= 13")


# --- a second process


def slow_to_compile() -> Callable[[], object]:
    """A training step that XLA takes more than two seconds for."""
    eager.manual_seed(0)
    nn = eager.nn
    model = nn.Sequential(*(nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True) for _ in range(6)))
    optimizer = eager.optim.Adam(model.parameters())

    @graphc.compile
    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = (model(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    x = eager.tensor(floats(4, 16, 64))
    return lambda: step(x).item()


def first_call() -> float:
    """Seconds of the first call in this process, JAX being started."""
    step = slow_to_compile()
    jax.block_until_ready(jax.jit(lambda x: x + 1)(jnp.zeros(3)))
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def second_process(repeats: int) -> None:
    ratios: list[float] = []
    cold = 0.0
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as directory:
            cold, warm = (seconds_of(__file__, "--first-call", GRAPHC_CACHE_DIR=directory) for _ in range(2))
        ratios.append(warm / cold)
    row("second process, cache on disk", f"{statistics.median(ratios):.2f} of {cold:.1f} s", "<= 0.25")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rounds: a figure to see that everything runs")
    parser.add_argument("--first-call", action="store_true", help="print the seconds of one first call")
    given = parser.parse_args()
    if given.first_call:
        print(first_call())
        return
    hit(101 if given.quick else 501)
    compiler_speed(1 if given.quick else 7)
    second_process(1 if given.quick else 3)


if __name__ == "__main__":
    main()
