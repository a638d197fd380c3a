"""What a worker of pytest-xdist tells of a test: its outcome, and not that it began, was set up, and was cleared away.

Most tests take less time than the six messages that pytest-xdist sends for each.
"""

from __future__ import annotations

import pytest
from _pytest.runner import runtestprotocol

TOLD = 0.1  # seconds of a setup or a teardown that `--durations` shows


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
    """In place of pytest's own, which is the same with all reports."""
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed or report.duration > TOLD:
            item.ihook.pytest_runtest_logreport(report=report)
    return True
