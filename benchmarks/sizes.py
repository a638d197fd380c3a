"""Batches of many sizes: what compiling adds to the time of all calls, beside eager.

Run: python benchmarks/sizes.py [--quick]

CPU time from the first call to the last, each in a process of its own without a cache on disk. These are short runs, in
which XLA's first program alone may take as long as all calls by eager.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence

from timing import one_core, row, seconds_of

one_core()

import numpy as np  # noqa: E402  (after one_core)

import eager as torch  # noqa: E402
import graphc  # noqa: E402
from eager import nn  # noqa: E402

F = nn.functional
Step = Callable[..., torch.Tensor]
Calls = Sequence[tuple[torch.Tensor, ...]]


def perceptron() -> tuple[Step, Calls]:
    """A step of SGD, on 30 sizes of batches in turn, 100 times."""
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step, [(torch.randn(n, 8), torch.randint(0, 4, (n,))) for n in range(8, 38)] * 100


def actor_critic() -> tuple[Step, Calls]:
    """A step of Adam on episodes of 17 lengths, 1,000 of them in random order."""
    body, actor, critic = nn.Linear(4, 64), nn.Linear(64, 2), nn.Linear(64, 1)
    parameters = [*body.parameters(), *actor.parameters(), *critic.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=1e-3)

    def step(states: torch.Tensor, actions: torch.Tensor, returns: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        hidden = torch.relu(body(states))
        values = critic(hidden).squeeze(1)
        log = torch.log_softmax(actor(hidden), 1).gather(1, actions.unsqueeze(1)).squeeze(1)
        loss = F.smooth_l1_loss(values, returns) - (log * (returns - values.detach())).mean()
        loss.backward()
        optimizer.step()
        return loss

    lengths = np.random.default_rng(0).integers(8, 25, 1000)
    made = {n: (torch.randn(n, 4), torch.randint(0, 2, (n,)), torch.randn(n)) for n in range(8, 25)}
    return step, [made[int(n)] for n in lengths]


def sentences() -> tuple[Step, Calls]:
    """A gradient of a classifier of sentences of 4 to 63 words, 16 at a time: 1,500 batches in random order."""
    words, head = nn.Embedding(500, 32), nn.Linear(32, 5)

    def step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        loss = F.cross_entropy(head(words(x).mean(0)), y)
        loss.backward()
        return loss

    lengths = np.random.default_rng(0).integers(4, 64, 1500)
    made = {n: (torch.randint(0, 500, (n, 16)), torch.randint(0, 5, (16,))) for n in range(4, 64)}
    return step, [made[int(n)] for n in lengths]


def one_size() -> tuple[Step, Calls]:
    """`perceptron` with batches of 32, and a last one of 17 after each 50."""
    step, calls = perceptron()
    return step, ([calls[24]] * 50 + [calls[9]]) * 100


WORKLOADS = {f.__name__: f for f in (perceptron, actor_critic, sentences, one_size)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one run each: a figure to see that everything runs")
    parser.add_argument("--run", nargs=2, metavar=("MODE", "NAME"), help="print the seconds of one run")
    given = parser.parse_args()
    if given.run:
        mode, name = given.run
        torch.manual_seed(0)
        step, calls = WORKLOADS[name]()
        run = step if mode == "eager" else graphc.compile(step, backend=mode)
        start = time.process_time()
        results = [run(*arguments) for arguments in calls]
        results[-1].item()
        print(time.process_time() - start)
        return
    for name in WORKLOADS:
        seconds = {
            mode: statistics.median(
                seconds_of(__file__, "--run", mode, name, GRAPHC_CACHE="0") for _ in range(1 if given.quick else 3)
            )
            for mode in ("eager", "jax", "auto")
        }
        for mode in ("jax", "auto"):
            measured = f"{seconds[mode] / seconds['eager']:.2f} x of {seconds['eager']:.2f} s"
            row(f"{name}: backend {mode!r}", measured, "<= 1.10")


if __name__ == "__main__":
    main()
