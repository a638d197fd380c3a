"""Whole training steps with Adam, compiled by graphc, beside the hand-written donated JAX step of the same mathematics.

Run: python benchmarks/training_steps.py [--quick] [word in a name]

*Steady*: interleaved on one core, results awaited, state in JAX's memory on both sides; the median of the ratios within
rounds. *First call*: from the call to its awaited result, each in a process of its own with JAX already started and no
cache on disk; the ratio of the medians. Losses of the first steps are compared before anything is timed.
"""

from __future__ import annotations

import argparse
import statistics
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
from trainings import TRAININGS, Training  # noqa: E402

Step = Callable[[], Any]
CHECKED = 5  # steps whose losses must agree
RATE, BETA1, BETA2, EPSILON = 1e-3, 0.9, 0.999, 1e-8


def graphc_step(training: Training) -> Step:
    """A call that makes one step and returns its loss, awaited."""
    model_loss = training.loss  # not `training` itself: its arrays would be compared at each call
    optimizer = eager.optim.Adam(training.model.parameters(), lr=RATE)

    @graphc.compile
    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = model_loss(x, y)
        loss.backward()
        optimizer.step()
        return loss

    onto = graphc.compile(lambda *tensors: tuple(t + 0 for t in tensors))
    x, y = onto(*map(eager.tensor, training.batch))
    return lambda: jax.block_until_ready(step(x, y)._d.array)


def jax_step(training: Training) -> Step:
    """The same by hand."""

    def update(state: Any, x: Any, y: Any) -> Any:
        loss, grads = jax.value_and_grad(training.jax_loss)(state["p"], x, y)
        t = state["t"] + 1
        m = jax.tree.map(lambda m, g: BETA1 * m + (1 - BETA1) * g, state["m"], grads)
        v = jax.tree.map(lambda v, g: BETA2 * v + (1 - BETA2) * g * g, state["v"], grads)
        rate, correction = RATE / (1 - BETA1**t), jnp.sqrt(1 - BETA2**t)
        p = jax.tree.map(lambda p, m, v: p - rate * m / (jnp.sqrt(v) / correction + EPSILON), state["p"], m, v)
        return {"p": p, "m": m, "v": v, "t": t}, loss

    donated = jax.jit(update, donate_argnums=0)
    parameters = jax.tree.map(jnp.array, training.parameters)
    zeros = [jax.tree.map(jnp.zeros_like, parameters) for _ in "mv"]
    state: Any = {"p": parameters, "m": zeros[0], "v": zeros[1], "t": jnp.zeros(())}
    batch = jax.block_until_ready([jnp.array(a) for a in training.batch])  # labels become int32

    def step() -> Any:
        nonlocal state
        state, loss = donated(state, *batch)
        return jax.block_until_ready(loss)

    return step


SIDES = {"jax": jax_step, "graphc": graphc_step}


def steps_of(name: str) -> dict[str, Step]:
    """Both steps, whose losses have been found equal."""
    eager.manual_seed(0)
    training = TRAININGS[name]()
    steps = {side: make(training) for side, make in SIDES.items()}
    losses = {side: [float(step()) for _ in range(CHECKED)] for side, step in steps.items()}
    np.testing.assert_allclose(losses["graphc"], losses["jax"], rtol=1e-4)
    assert len(set(losses["jax"])) == CHECKED, "the loss does not move: nothing is trained"
    return steps


def steady(name: str, rounds: int, block: float) -> float:
    """How long graphc's step takes, in hand-written steps."""
    t = interleaved(steps_of(name), rounds, block)
    row(f"{name}: steady step", f"{t.ratio['graphc']:.3f} x of {t.seconds['jax'] * 1e3:.2f} ms", "<= 1.05 each")
    return t.ratio["graphc"]


def first_call(name: str, repeats: int) -> float:
    """How long graphc's first call takes, in first calls of the hand-written step."""
    t: dict[str, list[float]] = {side: [] for side in SIDES}
    for _ in range(repeats):
        for side, samples in t.items():
            samples.append(seconds_of(__file__, "--first", side, name, GRAPHC_CACHE="0"))
    medians = {side: statistics.median(samples) for side, samples in t.items()}
    ratio = medians["graphc"] / medians["jax"]
    row(f"{name}: first call", f"{ratio:.3f} x of {medians['jax']:.2f} s", "<= 1.15 each")
    return ratio


def one_first_call(side: str, name: str) -> float:
    """Seconds of the first call in this process."""
    eager.manual_seed(0)
    step = SIDES[side](TRAININGS[name]())
    jax.block_until_ready(jax.jit(lambda x: x + 1)(jnp.zeros(3)))
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def summary(what: str, ratios: list[float], goal: str) -> None:
    row(what, f"mean {statistics.geometric_mean(ratios):.3f} x, worst {max(ratios):.3f} x", goal)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("word", nargs="?", default="", help="measure only models whose name contains it")
    parser.add_argument("--quick", action="store_true", help="few rounds: a figure to see that everything runs")
    parser.add_argument("--first", nargs=2, metavar=("SIDE", "NAME"), help="print the seconds of one first call")
    given = parser.parse_args()
    if given.first:
        print(one_first_call(*given.first))
        return
    names = [name for name in TRAININGS if given.word.lower() in name.lower()]
    rounds, block, repeats = (5, 0.02, 1) if given.quick else (41, 0.1, 7)
    summary("steady, geometric mean", [steady(name, rounds, block) for name in names], "<= 1.00, worst <= 1.05")
    summary("first call, geometric mean", [first_call(name, repeats) for name in names], "<= 1.15")


if __name__ == "__main__":
    main()
