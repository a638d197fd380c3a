"""What `graphc.compile` costs around XLA: a call, and a second process. `passes.py` has the compiler's own work.

Run: python benchmarks/capture.py [--quick]

A *call* is compared with bare `jax.jit` on the same arrays. The *second process* finds the programs that the first has
left in the cache on disk.
"""

from __future__ import annotations

import argparse
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
    second_process(1 if given.quick else 3)


if __name__ == "__main__":
    main()
