"""What graphc tells of itself: logs by topic, and the line of a long compilation."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

import eager as torch
import graphc
from graphc import logs
from graphc.lowering import timing


@pytest.mark.on_numpy
def test_each_topic_has_its_records(logged: list[logging.LogRecord]) -> None:
    f = graphc.compile(lambda x: x.neg().neg().exp().sum())
    try:
        graphc.set_logs("trace", "recompiles", "passes")
        f(torch.ones(3))
        f(torch.ones(2, 2))
        told = {record.name for record in logged}
        assert told == {"graphc.trace", "graphc.recompiles", "graphc.passes"}
        text = "\n".join(record.getMessage() for record in logged)
        assert "program 2, because: an argument has shape (2, 2), not (3,)" in text
        assert "simplify, " in text and "6 -> 4 nodes" not in text
        graphc.set_logs()
        logged.clear()
        f(torch.ones(4, 2, 2))
        assert not logged
    finally:
        graphc.set_logs()


def test_an_unknown_topic_is_refused() -> None:
    with pytest.raises(ValueError, match=r"no logs about 'pases'.* Did you mean 'passes'\?"):
        graphc.set_logs("pases")
    assert logging.getLogger(logs.TOPICS["passes"]).level == logging.NOTSET


def test_a_long_compilation_says_why_and_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        for _ in range(1000):
            x = torch.tanh(x) + 1
        return x

    graph = graphc.trace(f, torch.ones(2))
    monkeypatch.setattr(timing, "_measured", timing.deque())
    text = timing.announcement(graph)
    assert f"{Path(__file__).name}:" in text and "from a loop of Python" in text
    assert "graphc.scan" in text
    before = timing.estimate(2000)
    timing.learn(2000, 10 * before)
    assert timing.estimate(2000) == pytest.approx(10 * before)
    assert "Remedy" not in timing.announcement(graphc.trace(lambda x: x + 1, torch.ones(2)))
