"""The main job: train an MLP and a CNN on handwritten digits, eagerly and compiled, and prove that the modes agree.

    python examples/digits.py [--epochs N] [--out report/index.html] [--quick]

Prints what it finds, writes a report in HTML, and exits with 1 if anything that it claims does not hold.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

# Matrices this small gain nothing from OpenBLAS's threads, and stall when those wait for a busy core.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import extras  # noqa: F401  (first: it names the extra that has what the rest imports)

# isort: split
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table as RichTable

from findings import Claim, Table, claims, headline, tables
from report import page, write_report
from rewriting import rewriting
from training import BATCH, MODELS, TRAINING, compare_modes, digits

CHECKED, CHECKED_QUICKLY = (0, 10, 25, 50), (0, 10)


def main(argv: list[str] | None = None) -> int:
    """Run the demo. Returns the exit status."""
    parser = argparse.ArgumentParser(description="Train on handwritten digits, eagerly and compiled, and compare.")
    parser.add_argument("--epochs", type=int, default=40, help="passes over the training images (default: 40)")
    parser.add_argument("--out", type=Path, default=Path("report/index.html"), help="where the report goes")
    parser.add_argument("--quick", action="store_true", help="3 epochs, fewer checks, no claim about accuracy")
    options = parser.parse_args(argv)
    if options.epochs < 3:
        parser.error("--epochs must be at least 3")
    console = Console()
    epochs = 3 if options.quick else options.epochs
    checked = CHECKED_QUICKLY if options.quick else CHECKED
    data = digits()
    comparisons = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        for name in MODELS:
            task = progress.add_task(f"{name}, three modes", total=epochs * (TRAINING // BATCH))
            comparisons.append(compare_modes(name, data, epochs, checked, lambda task=task: progress.advance(task)))
    found = claims(comparisons, check_accuracy=not options.quick)
    shown = tables(comparisons)
    rewritten = rewriting(options.quick)
    for table in (*shown, rewritten.table):
        console.print(_rich(table))
    _print_claims(console, found)
    sentence = headline(comparisons, found)
    console.print(sentence, highlight=False)
    write_report(options.out, page(sentence, found, shown, comparisons, rewritten))
    console.print(f"report: {options.out}", highlight=False)
    return 0 if all(claim.holds for claim in found) else 1


def _rich(table: Table) -> RichTable:
    shown = RichTable(title=table.title, caption=table.note, title_justify="left", caption_justify="left")
    for k, column in enumerate(table.columns):
        shown.add_column(column, justify="right" if k and table.rows[0][k][:1].isdigit() else "left", no_wrap=True)
    for row in table.rows:
        shown.add_row(*row)
    return shown


def _print_claims(console: Console, found: list[Claim]) -> None:
    for claim in found:
        mark = "[green]holds[/]" if claim.holds else "[bold red]FAILS[/]"
        console.print(f"{mark}  {claim.text}: {claim.measured}", highlight=False)


if __name__ == "__main__":
    sys.exit(main())
