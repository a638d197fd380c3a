"""The report: one HTML file that needs nothing else. The figures are those of the printed tables."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np

import eager as torch
import graphc
from charts import Line, Mark, line_chart
from compare.environment import environment
from eager.nn import functional as F
from findings import Claim, Table, timing
from rewriting import Rewriting
from training import BATCH, EAGER, LOSS, MODES, STEP, Comparison, mlp

LOOKS = {EAGER: ("#c9b458", 5.0, ""), LOSS: ("#2f6f9f", 1.6, ""), STEP: ("#b03a2e", 1.6, "5 3")}

STYLE = """
:root { color-scheme: light }
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 1120px; padding: 40px 20px 64px; background: #fff; color: #222;
       font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif }
h1 { font-size: 26px; line-height: 1.25; margin: 0 0 12px; font-weight: 650 }
h2 { font-size: 19px; margin: 48px 0 10px; font-weight: 650 }
h3 { font-size: 15px; margin: 24px 0 6px; font-weight: 650 }
p { max-width: 46em; margin: 8px 0 }
.finding { font-size: 19px; line-height: 1.5 }
.note { color: #666; font-size: 14px }
.scroll { overflow-x: auto }
table { border-collapse: collapse; font-size: 15px; font-variant-numeric: tabular-nums }
th, td { padding: 5px 18px 5px 0; text-align: left; white-space: nowrap; border-bottom: 1px solid #e4e4e0 }
th { font-weight: 600; color: #555 }
ul { list-style: none; padding: 0 }
li { padding: 3px 0 }
.holds, .fails { display: inline-block; min-width: 3.6em; font-weight: 600; color: #2f7a3c }
.fails { color: #b0261b }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); gap: 28px 40px }
.charts svg { width: 100%; height: auto; display: block }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); gap: 0 28px }
.pair > div { min-width: 0 }
.graph { overflow: auto; max-height: 760px; border: 1px solid #e4e4e0; border-radius: 6px; padding: 8px }
pre { overflow-x: auto; font: 13px/1.5 ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace;
      background: #f7f7f5; padding: 14px 16px; border-radius: 6px; max-height: 480px }
details { margin: 14px 0 }
summary { cursor: pointer; font-weight: 600 }
@media (max-width: 560px) {
  body { padding: 24px 16px 48px }
  h1 { font-size: 22px }
  .finding { font-size: 17px }
  table { font-size: 13px }
  th, td { padding-right: 10px; white-space: normal; vertical-align: top }
}
"""


def write_report(path: Path, document: str) -> None:
    """Write the report to `path`; its folder is made if there is none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(document, encoding="utf-8")


def page(
    sentence: str,
    claims: Sequence[Claim],
    tables: Sequence[Table],
    comparisons: Sequence[Comparison],
    rewritten: Rewriting,
) -> str:
    """The document as text. `tables` are those of `findings.tables`."""
    accuracy, agreement, gradients, times = tables
    parts = [
        "<h1>Handwritten digits, eagerly and compiled</h1>",
        f'<p class="finding">{_text(sentence)}</p>',
        "<ul>" + "".join(map(_claim, claims)) + "</ul>",
        "<p>The data are scikit-learn's 1,797 digits of 8 by 8 pixels, 1,437 of them to train on. Both models are "
        f"trained with Adam on batches of {BATCH}, from the same seed and in the same order, in three modes: "
        "<b>eager</b> on NumPy; <b>compiled loss</b>, where graphc compiles loss and gradients, and eager's tape and "
        "optimizer do the rest; and <b>compiled step</b>, where zero_grad, loss, backward() and the update of Adam "
        "are one XLA program.</p>",
        _section("Accuracy", _table(accuracy)),
        _section("Agreement", _table(agreement) + _details(gradients.title, _table(gradients))),
        _section("Time", _table(times)),
        _section("Training, step by step", f'<div class="charts">{"".join(map(_charts, comparisons))}</div>'),
        _section("The graph, before and after optimization", _graphs()),
        _section("A program with more to gain", _rewriting(rewritten)),
        _section("What was compiled", _programs(comparisons)),
        _section("Where this ran", _table(_environment())),
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>graphc: digits, eagerly and compiled</title>\n<style>{STYLE}</style>\n"
        + "\n".join(parts)
        + "\n</html>\n"
    )


def _environment() -> Table:
    """Versions, machine and date."""
    rows = (*environment().items(), ("scikit-learn", version("scikit-learn")))
    return Table("Environment", ("what", "version"), rows, "")


def _charts(comparison: Comparison) -> str:
    losses = [Line(mode, comparison.losses[mode], *LOOKS[mode]) for mode in MODES]
    spent = [Line(mode, np.cumsum(comparison.seconds[mode]), *LOOKS[mode]) for mode in MODES]
    even = timing(comparison, STEP).break_even
    marks = [Mark(even, f"break-even: {even:,}")] if even and even <= len(comparison.losses[EAGER]) else []
    name = comparison.model
    return line_chart(f"{name}: loss of each batch", "step", "cross entropy", losses, logarithmic=True) + line_chart(
        f"{name}: seconds since the start", "step", "seconds", spent, marks
    )


def _graphs() -> str:
    """Loss and gradients of the MLP as graphs."""
    torch.manual_seed(0)
    model = mlp()

    def loss(x, y):
        return F.cross_entropy(model(x), y)

    traced = graphc.trace(loss, torch.zeros(BATCH, 64), torch.zeros(BATCH, dtype=torch.int64))
    names = [name for name in traced.input_names if name not in ("x", "y")]
    before = graphc.gradients(traced, wrt=names, values=True)
    after = graphc.optimize(before)
    return (
        "<p>The loss of the MLP with its gradients: what <code>graphc.trace</code> and <code>graphc.gradients</code> "
        "give, and what <code>graphc.optimize</code> makes of it. Point at a node for its operands and the line it "
        "comes from; thick frames are results.</p>"
        f"{_drawing(before, 'Before')}{_drawing(after, 'After')}"
        f"<h3>graphc.explain</h3><pre>{_text(graphc.explain(after))}</pre>"
        + _details("The optimized graph as text", f"<pre>{_text(str(after))}</pre>")
    )


def _rewriting(rewritten: Rewriting) -> str:
    return (
        f"<p>Training steps as people write them leave little to rewrite. {_text(rewritten.table.note)}</p>"
        f"{_table(rewritten.table._replace(note=''))}"
        f"<h3>graphc.explain</h3><pre>{_text(rewritten.explanation)}</pre>"
        f'<div class="pair">{_drawing(rewritten.before, "Before")}{_drawing(rewritten.after, "After")}</div>'
    )


def _drawing(graph: graphc.Graph, title: str) -> str:
    svg = graph.to_svg(f"{title}: {len(graph)} nodes")
    width = re.search(r'viewBox="0 0 (\d+)', svg)
    assert width is not None
    scroll = f'<div class="graph" tabindex="0"><div style="width:{width[1]}px">{svg}</div></div>'
    return f"<div><h3>{title}</h3>{scroll}</div>"


def _programs(comparisons: Sequence[Comparison]) -> str:
    parts = []
    for comparison in comparisons:
        for mode, compiled in comparison.compiled.items():
            parts.append(f"<h3>{comparison.model}, {mode}</h3><pre>{_text(graphc.explain(compiled))}</pre>")
            if mode == STEP:
                parts.append(_details("What the passes did", f"<pre>{_text(graphc.explain(compiled.graph))}</pre>"))
                parts.append(_details("The JAX program", f"<pre>{_text(compiled.source)}</pre>"))
    whole = comparisons[0].compiled[STEP].graph
    return "".join(parts) + _details(
        f"The whole training step of the {comparisons[0].model} as a graph", _drawing(whole, "Optimized")
    )


def _section(title: str, body: str) -> str:
    return f"<section><h2>{title}</h2>{body}</section>"


def _details(title: str, body: str) -> str:
    return f"<details><summary>{_text(title)}</summary>{body}</details>"


def _claim(claim: Claim) -> str:
    word = "holds" if claim.holds else "fails"
    return f'<li><span class="{word}">{word}</span> {_text(claim.text)}: {claim.measured}</li>'


def _table(table: Table) -> str:
    def cells(tag: str, row: Sequence[str]) -> str:
        return "<tr>" + "".join(f"<{tag}>{_text(cell)}</{tag}>" for cell in row) + "</tr>"

    note = f'<p class="note">{_text(table.note)}</p>' if table.note else ""
    body = "".join(cells("td", row) for row in table.rows)
    return f'<div class="scroll"><table>{cells("th", table.columns)}{body}</table></div>{note}'


def _text(value: str) -> str:
    return html.escape(value)
