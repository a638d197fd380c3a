"""A function that XLA takes as it is written and graphc does not: a chain of products, and a log that overflows."""

from __future__ import annotations

from typing import NamedTuple

import compare
import eager as torch
import graphc
from findings import Figures
from graphc.display import Displayed

SIZE, QUICK_SIZE = 600, 60
NAMES = {"eager": "eager", "compiled": "graphc.compile", "jax.jit": "jax.jit, no rewriting"}


class Rewriting(NamedTuple):
    """The graph as written and optimized, what was done to it, and what it costs in each mode."""

    before: graphc.Graph
    after: graphc.Graph
    explanation: Displayed
    table: Figures


def chain(a, x):
    """softplus(a.T a x), the long way."""
    return torch.log(1 + torch.exp(a.T @ a @ x)).mean()


def rewriting(quick: bool) -> Rewriting:
    """Optimize and time `chain`. Raises compare's DisagreementError if the modes differ."""
    size = QUICK_SIZE if quick else SIZE
    torch.manual_seed(0)
    a, x = torch.randn(size, size) / size**0.5, torch.randn(size)
    before = graphc.trace(chain, a, x)
    after = graphc.optimize(before)
    timed = compare.bench(chain, a, x, modes=tuple(NAMES), min_time=0.02 if quick else 0.5)
    rows = tuple(
        (NAMES[t.mode], f"{t.first_call * 1e3:.0f} ms", f"{t.steady.median * 1e6:,.0f} µs") for t in timed.timings
    )
    note = (
        f"log(1 + exp(a.T @ a @ x)).mean() with a of {size} by {size}, timed by compare.bench after compare.check "
        "had found that the modes agree. jax.jit runs the same graph without graphc's rules."
    )
    title = "A program that XLA takes as it is written, and graphc does not"
    return Rewriting(before, after, graphc.explain(after), Figures(title, ("mode", "first call", "call"), rows, note))
