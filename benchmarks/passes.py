"""What the compiler's own work takes: trace, gradients and passes, beside JAX's trace and lowering.

Run: python benchmarks/passes.py [--quick] [--passes] [word in a name]

*Lines* are programs of 1,000 and 10,000 operations in a row, beside `jax.value_and_grad` of the same program. *Steps*
are the trainings of `training_steps.py`, beside the step that is written by hand for JAX, with its own loops. Medians
of interleaved runs. `--passes` shows each pass that takes a fiftieth of all passes: its time, its time for each node,
the nodes before and after it.
"""

from __future__ import annotations

import argparse
import gc
import random
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from timing import one_core, row

one_core()

import jax  # noqa: E402  (after one_core)
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

import eager  # noqa: E402
import graphc  # noqa: E402
from graphc.capture.state.environment import Environment  # noqa: E402
from graphc.capture.trace import capture  # noqa: E402
from graphc.ir import Graph, Ref  # noqa: E402
from training_steps import graphc_step, jax_step  # noqa: E402
from trainings import TRAININGS, made  # noqa: E402

SIZES = 1_000, 10_000
SHOWN = 0.02  # of the time of all passes


class Case(NamedTuple):
    """A program as a graph before the passes, and JAX's lowering of it."""

    graph: Callable[[], Graph]
    lower: Callable[[], object]


# --- lines of code


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


def straight(n: int, tanh: Callable[[Any], Any]) -> Callable[..., Any]:
    """`n` operations on random ones of the latest twenty values: nothing repeats."""
    choose = random.Random(0)
    drawn = [(choose.randrange(5), choose.randrange(20), choose.randrange(20)) for _ in range(n)]

    def f(x: Any, w: Any) -> Any:
        values = [x, w] * 10
        for kind, i, j in drawn:
            a, b = values[i], values[j]
            values = values[1:]
            values.append((a * b, a + b, a - b, a * 0.5)[kind] if kind < 4 else tanh(a))
        return sum(values[-8:]).sum()

    return f


LINES = {"chain": chain, "residual layers": layers, "random operands": straight}


def case_of_lines(program: Callable[..., Any], n: int) -> Case:
    ours, theirs = program(n, eager.tanh), program(n, jnp.tanh)
    arrays = [np.random.default_rng(k).standard_normal((8, 8)).astype(np.float32) for k in range(2)]
    tensors = [eager.tensor(a, requires_grad=True) for a in arrays]
    return Case(
        lambda: graphc.gradients(graphc.trace(ours, *tensors)),
        lambda: jax.jit(jax.value_and_grad(lambda *given: theirs(*given), (0, 1))).lower(*arrays),
    )


# --- training steps


def case_of_training(name: str) -> Case:
    eager.manual_seed(0)
    training = made(name)
    step, batch = graphc_step(training), tuple(map(eager.tensor, training.batch))
    update, state, jax_batch = jax_step(training)

    def graph() -> Graph:
        """The step with its loss and what it writes as results."""
        program = capture(step, batch, {}, environment=Environment(step, batch, {}))
        written = [effect.id for effect in program.effects.tensors if effect.id is not None]
        return program.graph.replace(program.graph.nodes, tuple(map(Ref, [*program.graph.outputs, *written])))

    return Case(graph, lambda: jax.jit(lambda *given: update(*given), donate_argnums=0).lower(state, jax_batch))


# --- timing


class Figures(NamedTuple):
    """Seconds, and those of each pass: (name, nodes before, nodes after) -> seconds."""

    graph: float
    passes: float
    lower: float
    each: dict[tuple[int, str, int, int], float]

    @property
    def ratio(self) -> float:
        return (self.graph + self.passes) / self.lower


def measured(case: Case, repeats: int) -> Figures:
    samples: list[Figures] = []
    case.lower()
    graphc.optimize(case.graph())
    for _ in range(repeats):
        gc.collect()
        start = time.perf_counter()
        graph = case.graph()
        traced = time.perf_counter() - start
        gc.collect()
        start = time.perf_counter()
        graphc.optimize(graph)
        optimized = time.perf_counter() - start
        gc.collect()
        start = time.perf_counter()
        case.lower()
        samples.append(Figures(traced, optimized, time.perf_counter() - start, each_pass(graph)))
    graph, passes, lower = (statistics.median(column) for column in list(zip(*samples, strict=True))[:3])
    each = {key: statistics.median(s.each[key] for s in samples) for key in samples[0].each}
    return Figures(graph, passes, lower, each)


def each_pass(graph: Graph) -> dict[tuple[int, str, int, int], float]:
    found: dict[tuple[int, str, int, int], float] = {}
    before, last = len(graph), time.perf_counter()

    def note(name: str, after: Graph) -> None:
        nonlocal before, last
        found[len(found), name, before, len(after)] = time.perf_counter() - last
        before, last = len(after), time.perf_counter()

    graphc.optimize(graph, after_each=note)
    return found


def shown(name: str, figures: Figures, goal: float, passes: bool) -> None:
    parts = f"{figures.graph * 1e3:.0f} + {figures.passes * 1e3:.0f} of {figures.lower * 1e3:.0f} ms"
    row(f"{name}: trace + passes", f"{figures.ratio:.2f}: {parts}", f"<= {goal:.2f}")
    for (_, what, before, after), seconds in figures.each.items() if passes else ():
        if seconds >= SHOWN * figures.passes:
            per_node = f"{seconds / before * 1e6:5.1f} us a node, {before:,} -> {after:,} nodes"
            row(f"    {what}", f"{seconds * 1e3:7.1f} ms, {per_node}", "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("word", nargs="?", default="", help="measure only programs whose name contains it")
    parser.add_argument("--quick", action="store_true", help="one run: a figure to see that everything runs")
    parser.add_argument("--passes", action="store_true", help="show each pass")
    given = parser.parse_args()
    repeats, word = 1 if given.quick else 7, given.word.lower()
    for name, program in LINES.items():
        if word in name:
            found = {n: measured(case_of_lines(program, n), repeats) for n in SIZES}
            for n, figures in found.items():
                shown(f"{name}, {n:,} lines", figures, 0.15, given.passes)
            small, large = (found[n].graph + found[n].passes for n in SIZES)
            row(f"{name}: 10,000 lines beside 1,000", f"{large / small:.1f} x as long", "<= 12")
    for name in TRAININGS:
        if word in name.lower():
            shown(name, measured(case_of_training(name), repeats), 0.20, given.passes)


if __name__ == "__main__":
    main()
