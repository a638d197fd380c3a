"""Whole training steps, compiled by graphc, beside the hand-written donated JAX step of the same mathematics.

Run: python benchmarks/training_steps.py [--quick] [--pytorch] [word in a name]

*Steady*: interleaved on one core, results awaited, state in JAX's memory on both sides; the median of the ratios of CPU
time within rounds. *First call*: from the call to its awaited result, each in a process of its own with JAX already
started and no cache on disk; the ratio of the medians; and how many programs XLA compiles in graphc's second call.
Losses of the first steps, and what the model keeps beside its parameters, are compared before anything is timed.
`--pytorch` adds the same steps in PyTorch, eager and under torch.compile, to the table, where it is installed.
`--device cuda` takes the steady steps there, by the wall clock, with products as exact as on the CPU on both sides.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from timing import interleaved, numbers_of, one_core, row

if "--device" not in sys.argv:  # to choose kernels for a GPU takes XLA minutes on one core
    one_core()

import jax
import jax.numpy as jnp
import numpy as np

import eager as torch
import graphc
from pytorch_steps import pytorch_steps
from trainings import TRAININGS, Training, made

CHECKED = 5  # steps whose losses must agree
NO_OTHERS: Mapping[str, Callable[[], Any]] = {}
COMPILED = "/jax/core/compile/backend_compile_duration"  # the event of a program that XLA has compiled


class Side(NamedTuple):
    """A call that makes one step and returns its loss, awaited; and the present values of the model's buffers."""

    step: Callable[[], Any]
    buffers: Callable[[], Any]


def graphc_step(training: Training) -> Callable[..., torch.Tensor]:
    """One step, as a PyTorch user writes it."""
    model_loss = training.loss  # not `training` itself: its arrays would be compared at each call
    optimizer = training.optimizer.of(training.model.parameters())

    def step(*batch: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        loss = model_loss(*batch)
        loss.backward()
        optimizer.step()
        return loss

    return step


def graphc_side(training: Training, device: str = "cpu") -> Side:
    training.model.to(device)
    step = graphc.compile(graphc_step(training))
    onto = graphc.compile(lambda *tensors: tuple(t + 0 for t in tensors))
    batch = onto(*(torch.tensor(a, device=device) for a in training.batch))
    return Side(lambda: jax.block_until_ready(step(*batch)._d.array), training.buffers or tuple)


def jax_step(training: Training) -> tuple[Callable[..., Any], Any, Any]:
    """The same by hand: (f(state, batch) -> (new state, loss), state, batch)."""
    optimizer = training.optimizer

    def loss_and_buffers(parameters: Any, buffers: Any, batch: Any) -> Any:
        if training.buffers:
            return training.jax_loss(parameters, buffers, *batch)
        return training.jax_loss(parameters, *batch), buffers

    def update(state: Any, batch: Any) -> Any:
        parameters, buffers, slots = state
        (loss, buffers), grads = jax.value_and_grad(loss_and_buffers, has_aux=True)(parameters, buffers, batch)
        parameters, slots = optimizer.update(parameters, grads, slots)
        return (parameters, buffers, slots), loss

    parameters = jax.tree.map(jnp.array, training.parameters)
    buffers = jax.tree.map(jnp.array, training.buffers()) if training.buffers else ()
    state = jax.block_until_ready((parameters, buffers, optimizer.slots(parameters)))
    batch = jax.block_until_ready([jnp.array(a) for a in training.jax_batch or training.batch])  # labels become int32
    return update, state, batch


def jax_side(training: Training, device: str = "cpu") -> Side:
    """On JAX's own first device, whatever PyTorch calls it."""
    update, state, batch = jax_step(training)
    donated = jax.jit(update, donate_argnums=0)

    def step() -> Any:
        nonlocal state
        state, loss = donated(state, batch)
        return jax.block_until_ready(loss)

    return Side(step, lambda: state[1])


SIDES = {"jax": jax_side, "graphc": graphc_side}


def steps_of(
    name: str, others: Mapping[str, Callable[[], Any]] = NO_OTHERS, device: str = "cpu"
) -> dict[str, Callable[[], Any]]:
    """Both steps and `others`, whose losses and buffers have been found equal."""
    torch.manual_seed(0)
    training = made(name)
    sides = {side: make(training, device) for side, make in SIDES.items()}
    sides |= {other: Side(step, tuple) for other, step in others.items()}
    losses = {name: [float(side.step()) for _ in range(CHECKED)] for name, side in sides.items()}
    for found in losses.values():
        np.testing.assert_allclose(found, losses["jax"], rtol=1e-4)
    assert len(set(losses["jax"])) == CHECKED, "the loss does not move: nothing is trained"
    ours, theirs = (jax.tree.leaves(sides[side].buffers()) for side in ("graphc", "jax"))
    for our, their in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(our, their, rtol=1e-4, atol=1e-5)
    return {name: side.step for name, side in sides.items()}


def steady(name: str, rounds: int, block: float, pytorch: bool, device: str) -> float:
    """How long graphc's step takes, in hand-written steps; and that of PyTorch."""
    others: dict[str, Callable[[], Any]] = {}
    if pytorch:
        try:
            others = pytorch_steps(name)
        except (ImportError, TypeError) as error:
            print(f"{name}: no step in PyTorch: {str(error).splitlines()[0]}")
    clock = time.process_time if device == "cpu" else time.perf_counter
    t = interleaved(steps_of(name, others, device), rounds, block, clock)
    row(f"{name}: steady step", f"{t.ratio['graphc']:.3f} x of {t.seconds['jax'] * 1e3:.2f} ms", "<= 1.03 each")
    for other in others:
        row(f"    {other}", f"{t.ratio[other]:.3f} x", "")
    return t.ratio["graphc"]


def first_call(name: str, repeats: int) -> float:
    """How long graphc's first call takes, in first calls of the hand-written step."""
    runs: dict[str, list[list[float]]] = {side: [] for side in SIDES}
    for _ in range(repeats):
        for side, samples in runs.items():
            samples.append(numbers_of(__file__, "--first", side, name, GRAPHC_CACHE="0"))
    seconds = {side: statistics.median(took for _, took in samples) for side, samples in runs.items()}
    compiles = max(int(count) for count, _ in runs["graphc"])
    ratio = seconds["graphc"] / seconds["jax"]
    measured = f"{ratio:.3f} x of {seconds['jax']:.2f} s, 2nd call compiles: {compiles}"
    row(f"{name}: first call", measured, "<= 1.30 each, 0")
    return ratio


def one_first_call(side: str, name: str) -> tuple[int, float]:
    """(programs compiled in the second call, seconds of processor time of the first call) of this process."""
    torch.manual_seed(0)
    step = SIDES[side](made(name)).step
    jax.block_until_ready(jax.jit(lambda x: x + 1)(jnp.zeros(3)))
    start = time.process_time()
    step()
    seconds = time.process_time() - start
    events: list[str] = []
    jax.monitoring.register_event_duration_secs_listener(lambda event, *_, **__: events.append(event))
    step()
    return events.count(COMPILED), seconds


def summary(what: str, ratios: list[float], goal: str) -> None:
    row(what, f"mean {statistics.geometric_mean(ratios):.3f} x, worst {max(ratios):.3f} x", goal)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("word", nargs="?", default="", help="measure only models whose name contains it")
    parser.add_argument("--quick", action="store_true", help="few rounds: a figure to see that everything runs")
    parser.add_argument("--first", nargs=2, metavar=("SIDE", "NAME"), help="print the figures of one first call")
    parser.add_argument("--pytorch", action="store_true", help="show PyTorch's steps, too")
    parser.add_argument("--device", default="cpu", help="where the steady steps run: cpu, or cuda")
    given = parser.parse_args()
    if given.first:
        print(*one_first_call(*given.first))
        return
    names = [name for name in TRAININGS if given.word.lower() in name.lower()]
    rounds, block, repeats = (5, 0.02, 1) if given.quick else (25, 0.1, 5)
    if given.device != "cpu":
        jax.config.update("jax_default_matmul_precision", "highest")
    ratios = [steady(name, rounds, block, given.pytorch, given.device) for name in names]
    summary("steady, geometric mean", ratios, "<= 0.95, worst <= 1.03")
    if given.device != "cpu":
        return
    summary("first call, geometric mean", [first_call(name, repeats) for name in names], "<= 1.00, worst <= 1.30")


if __name__ == "__main__":
    main()
