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

from findings import claims, headline, tables
from graphc.display import Remark, Table
from graphc.display.as_text import text
from graphc.display.terminal import colors
from graphc.display.terminal import columns as columns_shown
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
        task = progress.add_task("a chain of products, timed", total=1)
        rewritten = rewriting(options.quick)
        progress.advance(task)
    found = claims(comparisons, check_accuracy=not options.quick)
    shown = tables(comparisons)
    sentence = headline(comparisons, found)
    blocks = [table.section() for table in (*shown, rewritten.table)]
    print(text([*blocks, Table([claim.cells() for claim in found]), Remark(sentence)], columns_shown(), colors()))
    write_report(options.out, page(sentence, found, shown, comparisons, rewritten))
    print(f"report: {options.out}")
    return 0 if all(claim.holds for claim in found) else 1


if __name__ == "__main__":
    sys.exit(main())
