"""What the optimizer makes of the chain of products in chain.py, and what each mode costs then."""

from __future__ import annotations

from typing import NamedTuple

import compare
import graphc
from chain import chain, large
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


def rewriting(quick: bool) -> Rewriting:
    """Optimize and time `chain`. Raises compare's DisagreementError if the modes differ."""
    size = QUICK_SIZE if quick else SIZE
    _, (a, x) = large(size)
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
