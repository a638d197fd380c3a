"""The report: one HTML file that needs nothing else. The figures are those of the printed tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np

import eager as torch
import graphc
from compare.benchmarking.plots import lines_figure, svg_of
from compare.environment import environment
from compare.reporting.html_report import picture
from eager.nn import functional as F
from findings import Claim, Figures, timing
from graphc.display import Beside, Block, Code, Picture, Remark, Section, Table
from graphc.display.as_html import page as document
from rewriting import Rewriting
from training import BATCH, EAGER, MODES, STEP, Comparison, mlp

ABOUT = (
    "The data are scikit-learn's 1,797 digits of 8 by 8 pixels, 1,437 of them to train on. Both models are trained "
    f"with Adam on batches of {BATCH}, from the same seed and in the same order, in three modes: eager, on NumPy; "
    "compiled loss, where graphc compiles loss and gradients, and eager's tape and optimizer do the rest; and compiled "
    "step, where zero_grad, loss, backward() and the update of Adam are one XLA program."
)


def write_report(path: Path, text: str) -> None:
    """Write the report to `path`; its folder is made if there is none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def page(
    sentence: str,
    claims: Sequence[Claim],
    tables: Sequence[Figures],
    comparisons: Sequence[Comparison],
    rewritten: Rewriting,
) -> str:
    """The document as text. `tables` are those of `findings.tables`."""
    accuracy, agreement, gradients, times = tables
    more = (version("scikit-learn"),)
    parts: list[Block] = [
        Remark(sentence),
        Table([claim.cells() for claim in claims]),
        Remark(ABOUT),
        Section("What the optimizer does", [*_rewriting(rewritten)]),
        accuracy.section(),
        Section(agreement.title, [*agreement.blocks(), Section(gradients.title, [*gradients.blocks()], closed=True)]),
        times.section(),
        Section("Training, step by step", [Beside([chart for c in comparisons for chart in _charts(c)])]),
        Section("The graph of a training step, before and after optimization", [*_graphs()]),
        Section("What was compiled", [*_programs(comparisons)]),
        Section("Where this ran", [Table([*environment().items(), ("scikit-learn", *more)], ("what", "value"))]),
    ]
    return document("Handwritten digits, eagerly and compiled", parts)


def _charts(comparison: Comparison) -> Iterator[Block]:
    steps = range(1, len(comparison.losses[EAGER]) + 1)
    losses = {mode: comparison.losses[mode] for mode in MODES}
    spent = {mode: np.cumsum(comparison.seconds[mode]) for mode in MODES}
    even, name = timing(comparison, STEP).break_even, comparison.model
    marks = {f"break-even: {even:,}": even} if even and even <= len(steps) else None
    drawn = (
        lines_figure(f"{name}: loss of each batch", "step", "cross entropy", losses, steps, ("linear", "log")),
        lines_figure(f"{name}: seconds since the start", "step", "seconds", spent, steps, marks=marks),
    )
    yield from (Picture(svg_of(figure)) for figure in drawn)


def _graphs() -> Iterator[Block]:
    """Loss and gradients of the MLP as graphs."""
    torch.manual_seed(0)
    model = mlp()

    def loss(x, y):
        return F.cross_entropy(model(x), y)

    traced = graphc.trace(loss, torch.zeros(BATCH, 64), torch.zeros(BATCH, dtype=torch.int64))
    names = [name for name in traced.input_names if name not in ("x", "y")]
    before = graphc.gradients(traced, wrt=names, values=True)
    after = graphc.optimize(before)
    yield Remark(
        "The loss of the MLP with its gradients: what graphc.trace and graphc.gradients give, and what graphc.optimize "
        "makes of it. Point at a node for its operands and the line it comes from; thick frames are results."
    )
    yield Beside([picture(before, f"Before: {len(before)} nodes"), picture(after, f"After: {len(after)} nodes")])
    yield Section("graphc.explain", [*graphc.explain(after).blocks()], closed=True)
    yield Section("The optimized graph as text", [Code(str(after))], closed=True)


def _rewriting(rewritten: Rewriting) -> Iterator[Block]:
    before, after = rewritten.before, rewritten.after
    yield from rewritten.table.blocks()
    yield Beside([picture(before, f"Before: {len(before)} nodes"), picture(after, f"After: {len(after)} nodes")])
    yield Section("graphc.explain", [*rewritten.explanation.blocks()])


def _programs(comparisons: Sequence[Comparison]) -> Iterator[Block]:
    for comparison in comparisons:
        for mode, compiled in comparison.compiled.items():
            yield Section(f"{comparison.model}, {mode}", [*graphc.explain(compiled).blocks()])
            if mode == STEP:
                yield Section("What the passes did", [*graphc.explain(compiled.graph).blocks()], closed=True)
                yield Section("The JAX program", [Code(compiled.source)], closed=True)
    whole = comparisons[0].compiled[STEP].graph
    title = f"The whole training step of the {comparisons[0].model} as a graph"
    yield Section(title, [picture(whole, f"Optimized: {len(whole)} nodes")], closed=True)
