"""What a call of a compiled function costs beside bare `jax.jit`: its arguments, their memory, and arrays of state.

Run: python benchmarks/calls.py [--quick]

Ratios of medians of CPU time within rounds, results awaited on both sides. `jax.jit` is given the arrays that lie in
the tensors: those of JAX, or those of NumPy, which XLA copies at each call unless they are aligned to 64 bytes. A row
of state compares how much longer the call gets with each further array that only the program changes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any

from timing import Timing, interleaved, one_core, row

one_core()

import jax  # noqa: E402  (after one_core)
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

import eager  # noqa: E402
import graphc  # noqa: E402

rng = np.random.default_rng(0)
block = jax.block_until_ready


def floats(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


def square(x: Any) -> Any:
    return x * x


def affine(library: Any) -> Callable[..., Any]:
    return lambda x, w, b: library.tanh(x @ w + b)


def total(*xs: Any) -> Any:
    result = xs[0]
    for x in xs[1:]:
        result = result + x
    return result


def on_device(tensors: Sequence[Any]) -> tuple[Any, ...]:
    """The same values in JAX's memory: results of a program."""
    return graphc.compile(lambda *given: tuple(t + 0 for t in given))(*tensors)


def beside(theirs: Callable[[], object], ours: Callable[[], object], rounds: int, length: float = 0.001) -> Timing:
    return interleaved({"jit": theirs, "ours": ours}, rounds, length, time.process_time)


def arguments(rounds: int) -> None:
    """Functions of 1, 3 and 8 arguments."""
    for size in (1, 4, 64, 1000):
        cases = {
            "1 argument": (square, square, [floats(size, size)]),
            "3 arguments": (affine(eager), affine(jnp), [floats(size, size), floats(size, size), floats(size)]),
            "8 arguments": (total, total, [floats(size, size) for _ in range(8)]),
        }
        for name, (function, theirs, arrays) in cases.items():
            host = [eager.tensor(a) for a in arrays]
            for kind, tensors, goal in (("JAX", on_device(host), "<= 1.25"), ("NumPy", host, "<= 1.35")):
                ours = graphc.compile(lambda *given, function=function: function(*given))
                found = _call(ours, jax.jit(theirs), tensors, max(rounds // 10, 11) if size == 1000 else rounds)
                took = f"{found.ratio['ours']:.2f} x of {found.seconds['jit'] * 1e6:.1f} us"
                row(f"{name}, {size}x{size}, {kind}-backed", took, goal)


def _call(ours: Callable[..., Any], bare: Callable[..., Any], tensors: Sequence[Any], rounds: int) -> Timing:
    raw = [t._d if isinstance(t._d, np.ndarray) else t._d.array for t in tensors]
    return beside(lambda: block(bare(*raw)), lambda: block(ours(*tensors)._d.array), rounds)


def weights(width: int, rounds: int) -> None:
    """A model that is only read: its weights are NumPy's, made by `eager`; `jax.jit` is given JAX's."""
    model = eager.nn.Sequential(*(eager.nn.Linear(width, width) for _ in range(4)))
    x = eager.tensor(floats(8, width))

    @jax.jit
    def theirs(x: Any, *parameters: Any) -> Any:
        for w, b in zip(parameters[::2], parameters[1::2], strict=True):
            x = x @ w.T + b
        return x

    # copies: JAX would hold the memory of the model, which then could not be moved to where XLA reads it
    state = [jax.device_put(p.detach().numpy().copy()) for p in model.parameters()]
    with eager.no_grad():
        ours, given = graphc.compile(model), x.numpy()
        found = beside(lambda: block(theirs(given, *state)), lambda: block(ours(x)._d.array), rounds)
    took = f"{found.ratio['ours']:.2f} x of {found.seconds['jit'] * 1e6:.1f} us"
    row(f"4 linear layers of {width}: 8 arrays that are read", took, "<= 1.25")


def step(count: int, rounds: int) -> tuple[float, float]:
    """A step that updates so many arrays: the seconds of `jax.jit`, which is donated them, and ours."""
    arrays = [floats(4) for _ in range(count)]
    tensors = [eager.tensor(a) for a in arrays]

    @graphc.compile
    def ours(x: Any) -> Any:
        for p in tensors:
            p.mul_(0.999).add_(x)
        return x + 1

    def update(x: Any, state: Any) -> Any:
        return x + 1, [p * 0.999 + x for p in state]

    bare = jax.jit(update, donate_argnums=1)
    state = [jax.device_put(a) for a in arrays]
    (x,) = on_device([eager.tensor(floats(4))])

    def theirs() -> None:
        nonlocal state
        result, state = bare(x._d.array, state)
        block((result, state))

    found = beside(theirs, lambda: block(ours(x)._d.array), rounds, 0.002)
    row(
        f"step with {count} arrays of state",
        f"{found.ratio['ours']:.2f} x of {found.seconds['jit'] * 1e6:.0f} us",
        "< 1",
    )
    return found.seconds["jit"], found.seconds["ours"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rounds: a figure to see that everything runs")
    rounds = 31 if parser.parse_args().quick else 301
    arguments(rounds)
    for width in (16, 1000):
        weights(width, rounds)
    few, many = (step(count, max(rounds // 10, 11)) for count in (100, 400))
    jit, ours = ((b - a) / 300 * 1e6 for a, b in zip(few, many, strict=True))
    row("each further array of state", f"{ours / jit:.2f} x of {jit:.2f} us", "<= 0.25")


if __name__ == "__main__":
    main()
