"""What the REPL, a notebook, a terminal and a program get of a result: a line, HTML, text, JSON."""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pytest

import compare
import eager as torch
import graphc
from compare.benchmarking import BenchReport, ScalingReport
from compare.benchmarking.result import Timing
from compare.benchmarking.roofline import Roofline
from compare.benchmarking.statistics import Interval
from compare.checking.findings import Finding, Report
from compare.checking.localization import localized
from compare.declared.operations import OpsReport
from compare.fuzzing.batches import Failure
from compare.fuzzing.campaign import FuzzReport
from compare.fuzzing.coverage import Coverage
from compare.fuzzing.generator import generate
from compare.judging.tolerance import Verdict
from compare.locating.culprit import Culprit
from compare.minimizing.search import Minimized
from compare.selftest.campaign import SelftestReport
from eager import nn
from graphc.audit.report import Audit
from graphc.display import Beside, Code, Displayed, Picture, Remark, Section, Table, plain
from graphc.display import displayed as display_module
from graphc.display.as_html import fragment, page
from graphc.display.as_text import text
from graphc.display.terminal import colors
from graphc.running.comparing import Ran, TorchReport, ValueDifference
from graphc.running.texts import LineDifference

HOSTILE = "<img src=x onerror=alert(1)>"
VOID = {"meta", "img", "br"}


def program(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return (x @ w).tanh().sum()


def _arguments() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.ones(4, 3), torch.ones(3, 2, requires_grad=True)


def _optimized() -> graphc.Graph:
    return graphc.optimize(graphc.trace(program, *_arguments()))


@functools.cache
def _compiled() -> Any:
    compiled = graphc.compile(program)
    compiled(*_arguments())
    compiled(torch.ones(5, 3), torch.ones(3, 2))
    return compiled


def _report() -> Report:
    culprit = Culprit("gradient rule", HOSTILE, 3, "model.py:3", operands=(HOSTILE,))
    findings = [Finding(f"pass {k}: {HOSTILE}", "result", Verdict.IDENTICAL, difference=0.0) for k in range(1, 90)]
    bugs = [Finding("compiled", HOSTILE, Verdict.BUG, HOSTILE, culprit, float("inf")) for _ in range(50)]
    return Report(HOSTILE, (*(f.mode for f in findings), "compiled"), (*findings, *bugs), 0, HOSTILE)


def _bench() -> BenchReport:
    steady = Interval(1e-3, 0.9e-3, 1.1e-3)
    ratio, never = Interval(0.5, 0.4, 0.6), Interval(float("inf"), float("inf"), float("inf"))
    rows = (
        Timing(HOSTILE, "forward", 0.1, {}, steady, 10),
        Timing("compiled", "forward", 0.2, {"capture": 0.1, "xla": 0.05}, steady, 10, ratio, never, 100, 0.1),
    )
    return BenchReport(HOSTILE, True, rows, {"forward": Roofline(10.0, 100, 1e9, 1e9)}, {"host": HOSTILE}, 0)


def _failing() -> FuzzReport:
    failures = tuple(Failure(k, generate(k, 4, ()), _report()) for k in range(3))
    return FuzzReport(0, 9, Counter({Verdict.BUG: 3, Verdict.IDENTICAL: 6}), failures, Coverage(), 1.0, ((1, 2),))


def _html_report() -> compare.HtmlReport:
    graph = _optimized()
    return compare.HtmlReport(_report(), _bench(), graph, graph, {"host": HOSTILE})


def _torch_report() -> TorchReport:
    ours, theirs = Ran(HOSTILE, f"a\n{HOSTILE}", 1, 1.0, {}), Ran("", "", 0, 2.0, {"x": torch.ones(2).numpy()})
    lines, values = [LineDifference(1, HOSTILE, None)] * 90, [ValueDifference(HOSTILE, HOSTILE)] * 90
    return TorchReport(HOSTILE, "2", {"eager": ours, "PyTorch": theirs}, lines, values, 3, (0.5, HOSTILE))


# every class of results, with what is hard about it; names come from the user's program
RESULTS: dict[str, Callable[[], Displayed]] = {
    "Report": _report,
    "Report of a check": lambda: compare.check(program, *_arguments(), modes=["graph"]),
    "OpsReport": lambda: OpsReport((("tanh", _report()),)),
    "Localization": lambda: localized(_report()),
    "Divergence": lambda: localized(_report()).divergences[0],
    "BenchReport": _bench,
    "ScalingReport": lambda: ScalingReport({10: _bench(), 20: _bench()}),
    "Roofline": lambda: _bench().rooflines["forward"],
    "FuzzReport": _failing,
    "SelftestReport": lambda: SelftestReport((), _failing()),
    "Minimized": lambda: Minimized(generate(1, 4, ()), _report(), _report().bugs[0], 3, 1.0),
    "Verification": lambda: compare.Verification(HOSTILE, (HOSTILE,), (HOSTILE,), _report()),
    "HtmlReport": _html_report,
    "TorchReport": _torch_report,
    "Audit": lambda: Audit(10, {"exact": 3}, 1, (), 0, (0, 0), ()),
    "Explanation": lambda: graphc.explain(_optimized()),
    "Explanation with details": lambda: graphc.explain(_optimized(), details=True),
    "CompiledExplanation": lambda: graphc.explain(_compiled()),
    "ProgramExplanation": lambda: _compiled().explain().programs[0],
    "Memory": lambda: graphc.memory(program, *_arguments()),
    "ProgramMemory": lambda: graphc.memory(program, *_arguments()).programs[0],
    "Both": lambda: graphc.explain(_compiled(), details=True),
}


class WellFormed(HTMLParser):
    """Fails for tags that do not match, and collects the tags."""

    def __init__(self, html: str):
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.feed(html)
        self.close()
        assert not self.open, f"not closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not any(name.startswith("on") for name, _ in attrs), f"<{tag}> runs a program"
        self.tags.add(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def check_displayed(result: Displayed) -> None:
    """What holds of every result."""
    line, whole, html = repr(result), str(result), result._repr_html_()
    assert "\n" not in line and len(line) < 100 and line.startswith(f"<{type(result).__name__} ")
    assert whole and len(whole.splitlines()) <= 60 and result.text().startswith(whole[:20])
    assert "img" not in WellFormed(html).tags
    json.loads(result.to_json(), parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert json.loads(result.to_json()) == json.loads(json.dumps(result.to_dict()))
    assert "\x1b" not in whole


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_has_a_line_a_text_html_and_json(name: str):
    check_displayed(RESULTS[name]())


def _classes(base: type[Displayed]) -> set[str]:
    """The classes below `base` in the packages: other tests may have loaded those of benchmarks."""
    ours = {base.__name__} if base.__module__.split(".")[0] in ("graphc", "eager", "compare") else set()
    return ours.union(*map(_classes, base.__subclasses__())) - {"Displayed"}


def test_every_class_of_results_is_in_the_table():
    known = {type(make()).__name__ for make in RESULTS.values()}
    assert {name for name in _classes(Displayed) if not name.startswith("_")} == known
    named = [name for name in dir(compare) if name.endswith(("Report", "Localization", "Minimized", "Verification"))]
    assert len(named) >= 6 and all(issubclass(getattr(compare, name), Displayed) for name in named)


def test_words_that_are_not_escaped_are_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("graphc.display.as_html.escaped", str)
    with pytest.raises(AssertionError, match="runs a program"):
        check_displayed(_report())


def test_a_line_that_is_too_long_is_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(display_module, "WIDTH", 1000)
    monkeypatch.setattr(display_module, "MOST", 1000)
    with pytest.raises(AssertionError):
        check_displayed(_report())


def test_a_report_that_is_cut_says_so_and_has_the_rest():
    report = _report()
    last = str(report).splitlines()[-1]
    assert last.startswith("... ") and ".text()" in last
    assert len(report.text().splitlines()) == 59 + int(last.split()[1])
    assert "compiled" in report and "no such words" not in report


# --- blocks


BLOCKS = [
    Section(Remark("head", "good"), [Remark("one line\nand another"), Table([("a", 1), ("b", 22)], ("name", "count"))]),
    Section("closed", [Remark("secret")], closed=True),
    Beside([Code("    x = 1\n    y = 2"), Picture("<svg></svg>", "a picture")]),
]


def test_text_of_blocks():
    table = "  name  count\n  a         1\n  b        22\n\n"
    assert text(BLOCKS) == f"head\n  one line\n  and another\n{table}    x = 1\n    y = 2\na picture"
    assert text(BLOCKS, color=True).startswith("\x1b[32mhead\x1b[0m\n")


def test_html_of_blocks():
    for html in (fragment(BLOCKS), page("t", BLOCKS, '{"a": "</script>"}')):
        tags = WellFormed(html).tags
        assert {"table", "pre", "svg", "details"} <= tags and "secret" in html
    assert page("t", BLOCKS, '"</script>"').count("</script>") == 2


@pytest.mark.parametrize("width", [40, 60, 80])
def test_text_keeps_to_a_width(width: int):
    words = "word " * 40
    head = [f"column {k}" for k in range(12)]
    rows = [[f"row {k}", *(f"{k * 1000 + j} us" for j in range(11))] for k in range(4)]
    shown = text([Section("s", [Remark(words), Table(rows, head, labels=1), Table([("a", words), ("b", "x")])])], width)
    assert max(map(len, shown.splitlines())) <= width
    assert all(cell in shown for row in rows for cell in row) and shown.count("row 3") > 1
    assert shown.split().count("word") == 80


def test_tables_without_rows_or_columns():
    for table in (Table([]), Table([], ("a", "b")), Table([()])):
        WellFormed(fragment([table]))
        assert text([table], 80).split() == list(table.head)


def test_colours_follow_the_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert colors()
    monkeypatch.setenv("NO_COLOR", "1")
    assert not colors()
    monkeypatch.delenv("FORCE_COLOR")
    monkeypatch.delenv("NO_COLOR")
    assert not colors()  # pytest's output is no terminal


def test_plain_values_are_json():
    found = plain({"v": Verdict.BUG, "f": float("nan"), 3: (_report().findings[0], {1}, torch.ones(2).numpy())})
    assert found["v"] == "bug" and found["f"] == "nan" and found["3"][2] == [1.0, 1.0]
    json.dumps(found, allow_nan=False)


# --- tensors, modules, graphs


def test_small_matrices_are_tables_and_others_text():
    matrix = torch.tensor([[1.0, -2.5], [float("nan"), 4.0]], requires_grad=True)
    html = matrix._repr_html_()
    assert {"table"} <= WellFormed(html).tags and "-2.5000" in html and "requires_grad=True" in html
    assert "MulBackward0" in (matrix * 2)._repr_html_()
    others = (torch.ones(3), torch.ones(30, 30), torch.ones(0, 2), torch.ones(2, 2, dtype=torch.complex64),
              torch.ones(2, 2, device="meta"), torch.ones(1, 2, 2))  # fmt: skip
    for other in others:
        tags = WellFormed(other._repr_html_()).tags
        assert "pre" in tags and "table" not in tags
    graphc.trace(lambda x: WellFormed(x._repr_html_()) and x * 2, torch.ones(2, 2))


def test_modules_are_tables_of_layers():
    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.add_module(HOSTILE.replace(".", ""), nn.Linear(2, 3))

        def extra_repr(self) -> str:
            return HOSTILE

    html = Named()._repr_html_()
    assert "img" not in WellFormed(html).tags and "weight [3, 2], bias [3]" in html and "9 parameters" in html
    many = nn.Sequential(*(nn.ReLU() for _ in range(100)))._repr_html_()
    assert many.count("<tr>") == 62 and "and 41 more" in many


def test_graphs_are_pictures():
    assert "svg" in WellFormed(_optimized()._repr_html_()).tags


def test_graphs_programs_and_sessions_have_short_names():
    assert repr(_optimized()) == "<Graph program: 2 inputs, 3 operations>"
    assert "\n" not in repr(graphc.lower(_optimized()))
    assert repr(graphc.Session()) == "<Session on the default device>"


# --- explain of a function


def test_explain_of_a_function_has_fields():
    scale = [2.0]
    fast = graphc.compile(lambda x: x * scale[0] if x.sum() > 0 else -x)
    x = torch.ones(3)
    fast(x), fast(-x)
    scale[0] = 3.0
    fast(x)
    found = fast.explain()
    assert found.retraces == ("first call", "values of tensors lead along another path",
                              "`scale[0]` changed from 2.0 to 3.0")  # fmt: skip
    changed = found.programs[0]
    assert changed.reason == found.retraces[-1] and "test_displays.py" in changed.where
    assert [(d.kind, d.value) for d in changed.decisions] == [("path", "True")]
    assert changed.backend == "jax" and changed.memory and changed.memory >= 12
    assert {"trace", "passes"} <= changed.seconds.keys() and found.seconds["trace"] >= changed.seconds["trace"]
    data = json.loads(found.to_json())
    assert data["programs"][0]["inputs"] == dict(changed.inputs) and data["retraces"] == list(found.retraces)


def test_explain_of_a_function_knows_what_could_be_done():
    fast = graphc.compile(lambda x: x * 2, dynamic=False, backend="numpy")
    for size in (2, 3, 4):
        fast(torch.ones(size))
    found = fast.explain()
    assert found.programs[0].backend == "numpy" and found.programs[0].memory
    (remedy,) = found.remedies
    assert "dynamic=True" in remedy and f"remedy: {remedy}" in found
    fine = graphc.compile(lambda x: x * 2, backend="numpy")
    fine(torch.ones(2))
    assert fine.explain().remedies == ()
