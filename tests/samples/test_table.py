"""docs/ops.md is what the samples say."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

from tests.samples import table


def test_the_table_in_the_docs_is_up_to_date() -> None:
    made = io.StringIO()
    with contextlib.redirect_stdout(made):
        table.main()
    written = (Path(__file__).parents[2] / "docs" / "ops.md").read_text()
    assert made.getvalue() == written, "python -m tests.samples.table > docs/ops.md"
