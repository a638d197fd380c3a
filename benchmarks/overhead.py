"""What the two modes cost beside what they replace. Run: python benchmarks/overhead.py

Each row is measured in one process, interleaved; the figure to quote is the ratio or the difference, not the time.
PyTorch rows need the extra `torch`.
"""

from __future__ import annotations

import time

from timing import interleaved, one_core

one_core()

import jax  # noqa: E402  (after one_core)
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

import eager  # noqa: E402
import graphc  # noqa: E402
from workloads import small_mlp, tiny_chain  # noqa: E402

try:
    import torch
except ImportError:
    torch = None
else:
    torch.set_num_threads(1)

rng = np.random.default_rng(0)


def array(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


def row(what: str, measured: str, goal: str) -> None:
    print(f"{what:<58} {measured:<26} {goal}")


# --- eager beside PyTorch


def beside_torch() -> None:
    if torch is None:
        print("PyTorch is not installed: its rows are left out (extra `torch`)")
        return
    t = interleaved({"torch": tiny_chain(torch), "eager": tiny_chain(eager)})
    row("200 pointwise ops on 8 floats, forward + backward", f"{t.ratio['eager']:.2f} x PyTorch", "<= 0.50")
    t = interleaved({"torch": small_mlp(torch), "eager": small_mlp(eager)})
    row("MLP 16-64-4 step, batch 32, SGD", f"{t.ratio['eager']:.2f} x PyTorch", "<= 0.70")


# --- compiled beside jax.jit


def call_overhead() -> None:
    def f(x, w, b):
        return (x @ w + b).tanh()

    fast = graphc.compile(f)
    onto = graphc.compile(lambda *tensors: tuple(t + 0.5 for t in tensors))
    args = onto(eager.tensor(array(4, 4)), eager.tensor(array(4, 4)), eager.tensor(array(4)))  # in JAX's memory
    raw = [t._d.array for t in args]
    bare = jax.jit(lambda x, w, b: jnp.tanh(x @ w + b))
    block = jax.block_until_ready
    t = interleaved({"jax.jit": lambda: block(bare(*raw)), "graphc": lambda: block(fast(*args)._d.array)}, rounds=41)
    extra = (t.seconds["graphc"] - t.seconds["jax.jit"]) * 1e6
    row("tanh(x @ w + b), 4x4, jax-backed: beyond bare jax.jit", f"{extra:+.1f} us", "<= 3 us")


SIZES = (784, 256, 256, 10)


def compiled_step() -> None:
    eager.manual_seed(0)
    nn = eager.nn
    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = eager.optim.Adam(model.parameters(), lr=1e-3)
    onto = graphc.compile(lambda x: x * 1.0 + 0.0)
    x = onto(eager.tensor(array(128, 784)))
    labels = rng.integers(0, 10, 128)
    target = eager.nn.functional.one_hot(eager.tensor(labels), 10).float()
    target = onto(target)

    @graphc.compile
    def step(x, target):
        optimizer.zero_grad()
        loss = -(eager.log_softmax(model(x), 1) * target).sum() / 128
        loss.backward()
        optimizer.step()
        return loss

    params = [jnp.array(p.detach().clone().numpy(), copy=True) for p in model.parameters()]
    state = {
        "p": params,
        "m": [jnp.zeros_like(p) for p in params],
        "v": [jnp.zeros_like(p) for p in params],
        "t": jnp.zeros(()),
    }

    def jax_loss(params, x, target):
        for k in range(0, 6, 2):
            x = x @ params[k].T + params[k + 1]
            if k < 4:
                x = jax.nn.relu(x)
        return -(jax.nn.log_softmax(x) * target).sum() / 128

    def hand_written(state, x, target):
        loss, grads = jax.value_and_grad(jax_loss)(state["p"], x, target)
        t = state["t"] + 1
        m = [0.9 * m + 0.1 * g for m, g in zip(state["m"], grads, strict=True)]
        v = [0.999 * v + 0.001 * g * g for v, g in zip(state["v"], grads, strict=True)]
        rate = 1e-3 / (1 - 0.9**t)
        correction = jnp.sqrt(1 - 0.999**t)
        p = [p - rate * m / (jnp.sqrt(v) / correction + 1e-8) for p, m, v in zip(state["p"], m, v, strict=True)]
        return {"p": p, "m": m, "v": v, "t": t}, loss

    donated = jax.jit(hand_written, donate_argnums=0)
    raw = (x._d.array, target._d.array)
    losses: dict[str, float] = {}

    def by_hand() -> None:
        nonlocal state
        state, loss = donated(state, *raw)
        losses["jax"] = jax.block_until_ready(loss)

    def ours() -> None:
        losses["graphc"] = jax.block_until_ready(step(x, target)._d.array)

    by_hand()
    ours()
    np.testing.assert_allclose(losses["graphc"], losses["jax"], rtol=1e-4)
    t = interleaved({"jax": by_hand, "graphc": ours}, rounds=41, block=0.05)
    row(
        f"MLP {'-'.join(map(str, SIZES))} Adam step, batch 128, donated",
        f"{t.ratio['graphc']:.2f} x hand-written JAX",
        "<= 1.05",
    )


def compiler_speed() -> None:
    def program(n: int):
        def f(x, w):
            for _ in range(n // 4):
                x = x * w
                x = x + 1.5
                x = x.tanh()
                x = x - w
            return x.sum()

        return f

    x, w = eager.tensor(array(8)), eager.tensor(array(8))
    best = {}
    for n in (1_000, 10_000):
        times = []
        for _ in range(9 if n == 1_000 else 5):
            start = time.perf_counter()
            graphc.optimize(graphc.gradients(graphc.trace(program(n), x, w)))
            times.append(time.perf_counter() - start)
        best[n] = sorted(times)[len(times) // 2]
    row("trace + gradients + optimize, 1,000 nodes", f"{best[1_000] * 1e3:.1f} ms", "< 60 ms")
    row("the same, 10,000 nodes", f"{best[10_000] / best[1_000]:.1f} x as long", "< 13")


if __name__ == "__main__":
    beside_torch()
    call_overhead()
    compiled_step()
    compiler_speed()
