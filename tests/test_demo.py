"""The demo, in its quick form; and that it notices what it says it checks."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from tests import quick

ROOT = Path(__file__).resolve().parent.parent
pytest.importorskip("sklearn")
pytest.importorskip("rich")
VOID = {"meta"}


@pytest.fixture
def demo(monkeypatch: pytest.MonkeyPatch):
    """The demo's modules: what `python examples/digits.py` can import."""
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    import findings
    import training

    return training, findings


class Outline(HTMLParser):
    """Checks that elements nest, and collects what the document would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        self.fetched += [value or "" for name, value in attrs if name in ("src", "href", "xlink:href")]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_quick_demo_writes_a_report_with_the_printed_figures(tmp_path: Path):
    out = tmp_path / "new" / "index.html"
    command = [sys.executable, str(ROOT / "examples" / "digits.py"), "--quick", "--out", str(out)]
    flags = {} if os.environ.get("GRAPHC_TEST_XLA") else {"XLA_FLAGS": quick.FLAGS}
    environment = {**os.environ, **flags, "PYTHONPATH": str(ROOT), "COLUMNS": "200"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    document = out.read_text(encoding="utf-8")
    outline = Outline()
    outline.feed(document)
    assert outline.open == []
    assert outline.fetched == []
    assert not re.search(r"url\((?!#)", document) and "@import" not in document
    printed = re.findall(r"\d\.\de-\d\d|\d+\.\d\d ms", done.stdout)
    assert len(printed) > 20
    assert [figure for figure in printed if figure not in document] == []


def test_the_picture_in_the_readme_shows_two_graphs(demo):
    from chain import picture

    made, kept = picture(), (ROOT / "docs" / "graph.svg").read_text(encoding="utf-8")
    for svg in (made, kept):
        ElementTree.fromstring(svg)
        assert "as written: 10 nodes" in svg and "optimized: 6 nodes" in svg and ".py" not in svg


def test_gradients_agree_and_the_run_goes_on_as_if_unobserved(demo):
    training, _ = demo
    data = training.digits()
    (x, y), (x2, y2) = list(training.batches(data, 1))[:2]
    watched, alone = (training.Trainer(training.mlp, training.STEP) for _ in range(2))
    start = watched.parameters()
    watched.train(x, y)
    alone.train(x, y)
    eager = training.Trainer(training.mlp, training.EAGER)
    eager.train(x, y)
    found = watched.gradients_at(start, x, y)
    assert training.difference(eager.gradients(), found).value < 1e-5
    watched.train(x2, y2)
    alone.train(x2, y2)
    assert watched.losses == alone.losses
    assert all(np.array_equal(a, b) for a, b in zip(watched.parameters(), alone.parameters(), strict=True))


def comparison(training, **changed):
    """A run of four steps that satisfies every claim, with some fields replaced."""
    made = training.Comparison("MLP", 10)
    made.losses = {mode: np.array([2.0, 1.0, 0.5, 0.25] * 3) for mode in training.MODES}
    made.seconds = {mode: np.full(12, 0.5) for mode in training.MODES}
    made.accuracy = dict.fromkeys(training.MODES, 0.97)
    made.differences = {(0, mode): training.Difference(1e-7, "0.weight") for mode in (training.LOSS, training.STEP)}
    for name, value in changed.items():
        getattr(made, name)[training.STEP if name != "differences" else (0, training.STEP)] = value
    return made


def test_everything_holds(demo):
    training, findings = demo
    assert all(c.holds for c in findings.claims([comparison(training)], check_accuracy=True))


@pytest.mark.parametrize(
    ("field", "value", "broken"),
    [
        ("accuracy", 0.9599, "accuracy"),
        ("losses", np.array([2.0, 1.001, 0.5, 0.25] * 3), "losses"),
        ("losses", np.array([2.0, np.nan, 0.5, 0.25] * 3), "losses"),
        ("differences", 2e-5, "gradient"),
        ("differences", np.nan, "gradient"),
    ],
)
def test_a_broken_claim_is_reported(demo, field: str, value, broken: str):
    training, findings = demo
    if field == "differences":
        value = training.Difference(value, "0.weight")
    changed = comparison(training, **{field: value})
    found = findings.claims([changed], check_accuracy=True)
    (failed,) = [c for c in found if not c.holds]
    assert broken in failed.text
    assert failed.text in findings.headline([changed], found)


def test_difference_names_the_worst_parameter(demo):
    training, _ = demo
    expected = {"a": np.array([1.0, -2.0]), "b": np.array([0.0]), "c": np.array([4.0])}
    assert training.difference(expected, expected) == (0.0, "none")
    assert training.difference(expected, {**expected, "a": np.array([1.5, -2.0])}) == (0.25, "a")
    assert training.difference(expected, {**expected, "b": np.array([1e-9])}) == (np.inf, "b")
    assert training.difference(expected, {**expected, "a": np.array([np.nan, 0.0])}).parameter == "a"


def test_break_even_counts_the_start_and_the_steps(demo):
    training, findings = demo
    seconds = np.full(12, 0.5)
    made = comparison(training)
    made.seconds[training.STEP] = np.array([10.5 - 0.25, *(seconds[1:] - 0.25)])  # 10 s to start, 0.25 s gained a step
    assert findings.timing(made, training.STEP).break_even == 40
    made.seconds[training.STEP] = seconds + 0.1
    assert findings.timing(made, training.STEP).break_even is None


def test_every_batch_is_full_and_every_image_is_in_range(demo):
    training, _ = demo
    data = training.digits()
    assert (len(data.train_x), len(data.test_x)) == (1437, 360)
    assert data.train_x.min() == 0 and data.train_x.max() == 1
    made = list(training.batches(data, 2))
    assert len(made) == 2 * (1437 // 64)
    assert {x.shape for x, _ in made} == {(64, 64)}
