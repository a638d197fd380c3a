"""The HTML report: its figures are the JSON's, it needs nothing else, and nothing in it is taken for markup."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import compare
import eager as torch
from compare.benchmarking import BenchReport
from compare.command_line import main
from compare.judging.tolerance import Verdict
from compare.reporting import HtmlReport
from graphc.display import Table
from graphc.display.as_html import escaped, fragment

VOID = {"meta", "br", "hr", "img", "input", "link"}


class Document(HTMLParser):
    """The cells of each table, the boxes that each tag is in, addresses, and the embedded data."""

    def __init__(self, html: str):
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self.inside: list[tuple[str, dict[str, Any]]] = []
        self.unscrolled: list[str] = []
        self.addresses: list[str] = []
        self.scripts: list[str] = []
        self.data = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]):
        known: dict[str, Any] = dict(attrs)
        classes = [a.get("class") for _, a in self.inside]
        if tag == "table":
            self.tables.append([])
        if (tag == "table" and "scroll" not in classes) or (tag == "svg" and not {"picture", "chart"} & set(classes)):
            self.unscrolled.append(tag)
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("td", "th"):
            self.tables[-1][-1].append("")
        if tag == "script":
            self.scripts.append(known.get("type") or "")
        sources = [v for k, v in known.items() if k in ("src", "href", "action", "srcset", "xlink:href")]
        self.addresses += [v for v in sources if not v.startswith("#")]  # a place in the same picture
        if tag not in VOID:
            self.inside.append((tag, known))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]):
        return

    def handle_endtag(self, tag: str):
        assert self.inside[-1][0] == tag, f"</{tag}> closes <{self.inside[-1][0]}>"
        self.inside.pop()

    def handle_data(self, data: str):
        tag = self.inside[-1][0] if self.inside else ""
        if tag in ("td", "th"):
            self.tables[-1][-1][-1] += data
        elif tag == "script" and self.inside[-1][1].get("type"):
            self.data += data


def loss(w: Any, x: Any) -> Any:
    """A rule of the optimizer fires on it, and it has a name to be escaped."""
    return torch.log(1 + torch.exp(x @ w)).sum()


@pytest.fixture(scope="module")
def report() -> HtmlReport:
    w, x = torch.ones(3, 2, requires_grad=True), torch.ones(4, 3)
    return compare.report(loss, w, x, modes=("eager", "compiled"), min_time=0.0)


@pytest.fixture(scope="module")
def document(report: HtmlReport) -> Document:
    return Document(report.html())


def test_the_figures_are_those_of_the_json(report: HtmlReport, document: Document):
    data = json.loads(document.data)
    assert data == json.loads(report.to_json())
    timings = [t for t in document.tables if t[0][0] in ("call", "first call")]
    bench = BenchReport.from_dict(data["bench"])
    assert timings == [[list(row) for row in (t.head, *t.rows)] for t in (bench.costs(), bench.first_calls())]
    origin = next(t for t in document.tables if t[0] == ["what", "value"])
    assert dict(origin[1:]) == data["environment"]
    verdicts = next(t for t in document.tables if t[0] == ["mode", "verdict", "compared"])
    alike = {mode: len(data["check"]["modes"]) for mode, *_ in verdicts[1:] if ", x" in mode}
    assert len(alike) == 1 and len(verdicts) < 12  # the passes
    for mode, verdict, compared in verdicts[1:]:
        ours = [f["verdict"] for f in data["check"]["findings"] if f["mode"] == mode]
        assert mode in alike or int(compared.split()[0] if compared else 0) == len(ours)
        assert verdict in [*ours, str(Verdict.IDENTICAL)]
    rewrites = next(t for t in document.tables if t[0][0] == "pass")
    assert len(rewrites) - 1 == len(data["rewrites"])


def test_a_figure_that_is_changed_is_found(report: HtmlReport):
    changed = Document(report.html().replace("forward+backward</td>", "forward</td>"))
    timings = next(t for t in changed.tables if t[0][0] == "call")
    costs = BenchReport.from_dict(json.loads(changed.data)["bench"]).costs()
    assert timings != [list(row) for row in (costs.head, *costs.rows)]


def test_the_rewrites_show_the_users_line(report: HtmlReport):
    rules = {r["rule"]: r["line"] for r in report.rewrites() if "rule" in r}
    assert rules["log_of_one_and_exp"] == "return torch.log(1 + torch.exp(x @ w)).sum()"


def test_it_needs_no_other_file(report: HtmlReport, document: Document):
    assert document.addresses == []
    assert document.scripts == ["application/json", ""]  # data, and what zooms pictures
    assert "http" not in report.html().replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"@import|url\((?!#)", report.html())


def test_it_fits_a_narrow_screen(report: HtmlReport, document: Document):
    assert document.unscrolled == []
    assert document.inside == []  # every tag is closed
    assert '<meta name="viewport" content="width=device-width' in report.html()


def test_a_table_outside_of_a_box_is_found():
    assert Document(fragment([Table(["b"], ["a"])])).unscrolled == []
    assert Document("<table></table>").unscrolled == ["table"]


def test_what_the_user_writes_is_no_markup():
    name = "</script><script>alert(1)</script><b title='\"'>"

    def fn(x: Any) -> Any:
        raise ValueError(name)

    fn.__name__ = name
    found = compare.report(fn, torch.ones(2), modes=("eager",), min_time=0.0)
    document = Document(found.html())
    assert document.scripts == ["application/json", ""]
    assert json.loads(document.data)["check"]["name"] == name
    assert escaped(name) in found.html() and name not in found.html()


def test_modes_that_disagree_are_not_timed():

    def unstable(x: Any) -> Any:
        import time

        return x + float(time.perf_counter() % 1.0)

    found = compare.report(unstable, torch.ones(2), modes=("eager", "compiled"), min_time=0.0)
    assert not found.ok
    assert found.bench is None
    assert json.loads(Document(found.html()).data)["bench"] is None
    assert "Not timed" in found.html()


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    program, out = tmp_path / "program.py", tmp_path / "out.html"
    program.write_text("import eager as torch\ndef make():\n    return torch.exp, (torch.ones(2),)\n")
    options = ["--out", str(out), "--min-time", "0", "--modes", "eager,compiled", "--json"]
    assert main(["report", f"{program}:make", *options]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(Document(out.read_text(encoding="utf-8")).data)


def test_what_all_passes_hand_on_is_one_finding():
    def f(x: Any) -> Any:
        return torch.sin(x) if torch.compiler.is_compiling() else torch.cos(x)

    report = compare.check(f, torch.ones(3), modes=["eager", "graph", "passes"])
    assert len(report.bugs) > 40
    assert str(report).count(": bug\n") == 2, report
