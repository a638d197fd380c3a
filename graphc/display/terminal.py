"""What commands print: reports in the width of the terminal, in colour where it shows colours."""

from __future__ import annotations

import os
import shutil
import sys

from graphc.display.displayed import Displayed


def colors() -> bool:
    """Whether the terminal shows colours. NO_COLOR and FORCE_COLOR decide, if they are set (no-color.org)."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (sys.stdout.isatty() and os.environ.get("TERM") != "dumb")


def columns() -> int:
    """The width of the terminal; 80 where there is none."""
    return shutil.get_terminal_size((80, 24)).columns


def show(report: Displayed, as_json: bool = False) -> None:
    """Print a report: as JSON, or in the width and the colours of the terminal."""
    print(report.to_json() if as_json else report.text(columns(), color=colors()))
