"""The audit finds equations and licences that are right; the optimizer reaches the share that its page promises."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphc.audit import VOCABULARIES, audit, vocabulary
from graphc.audit.__main__ import main
from graphc.audit.costs import cost_of, graph_of
from graphc.audit.licences import behaviour, licence
from graphc.audit.terms import Term, terms
from graphc.audit.values import FINITE, SPECIAL, Values
from graphc.errors import AuditError
from graphc.ops import OPS
from graphc.ops.dtypes import FLOAT32, FLOAT64
from graphc.passes import default_passes, optimize
from graphc.passes.pipeline import simplify
from graphc.passes.rules import ALL
from graphc.rewrite import ASSUMES, EXACT, REASSOCIATES

ROOT = Path(__file__).resolve().parents[2]
PROMISED = re.compile(r"(\d+)% of the equations between (\w+) of up to (\w+) operations")
COUNTS = {"two": 2, "three": 3}


def named(leaves: str, operations: str, size: int = 2) -> dict[str, Term]:
    """The terms of a vocabulary by their text."""
    return {str(t): t for t in terms(vocabulary(leaves, operations), size)}


@pytest.mark.parametrize(("left", "right", "operations", "expected"), [
    ("neg(neg(x))", "x", "neg", EXACT),
    ("abs(exp(x))", "exp(x)", "abs exp", EXACT),
    ("sub(sub(x, y), x)", "neg(y)", "sub neg", ASSUMES),  # nan where x is infinite
    ("log(exp(x))", "x", "log exp", REASSOCIATES),  # right where exp overflows
    ("exp(log(x))", "x", "log exp", ASSUMES),  # nan where x is negative
    ("sqrt(square(x))", "x", "sqrt square", ASSUMES),
    ("sqrt(square(x))", "abs(x)", "sqrt square abs", REASSOCIATES),
    ("mul(exp(x), exp(y))", "exp(add(x, y))", "mul exp add", ASSUMES),  # of large sums, exp loses digits
    ("div(div(x, y), x)", "reciprocal(y)", "div reciprocal", ASSUMES),  # nan where x is 0
    ("mul(mul(x, y), y)", "mul(square(y), x)", "mul square", ASSUMES),  # y * y may overflow by itself
    ("neg(sub(x, y))", "sub(y, x)", "neg sub", ASSUMES),  # the sign of 0
])  # fmt: skip
def test_licence(left: str, right: str, operations: str, expected: Any):
    found, values = named("x[e] y[e]", operations, 3), Values()
    a, b = found[left], found[right]
    same = behaviour(values, a) == behaviour(values, b)
    assert (EXACT if same else licence(values, a, b).licence) == expected


def test_every_reason_is_given():
    found = named("x[e] y[e]", "exp log sub neg add mul")
    values = Values()
    assert licence(values, found["exp(log(x))"], found["x"]).reason == "finite numbers of the domain"
    assert licence(values, found["neg(sub(x, y))"], found["sub(y, x)"]).reason == "no zero, or any sign of it"


def test_terms_have_types_and_come_once():
    made = terms(vocabulary("x[e] A[n,n] 1", "add lt logical_not matmul"), 2)
    texts = [str(t) for t in made]
    assert len(set(texts)) == len(texts)
    assert "add(1, x)" in texts and "add(x, 1)" not in texts  # there is one of what is the same for all operands
    assert "logical_not(lt(x, x))" in texts
    assert "matmul(A, A)" in texts and "add(A, x)" not in texts  # extents that do not fit
    assert not any("lt" in t and "add(" in t and t.startswith("add") for t in texts)  # a bool is not made a number


def test_points_hold_what_is_special():
    x, values = next(iter(named("x[e]", "neg", 0).values())), Values()
    assert {0.0, 100.0, -1.0} <= {*values.of(x, FINITE).tolist()}
    assert np.isfinite(values.of(x, FINITE)).all() and np.isnan(values.of(x, SPECIAL)).any()
    assert values.of(x, SPECIAL, FLOAT32).astype(FLOAT64).tobytes() == values.of(x, SPECIAL).tobytes()


def test_what_is_one_number_is_counted_apart():
    values, found = Values(), named("x[e] y[e]", "sub exp")
    assert values.number_inside(found["exp(sub(x, x))"])
    assert not values.number_inside(found["exp(sub(x, y))"])


def test_cost_is_that_of_shared_parts():
    found = named("x[e]", "exp mul", 3)
    shared = cost_of(graph_of(found["mul(exp(x), exp(x))"]))
    assert shared == cost_of(graph_of(found["mul(exp(x), x)"]))


def test_seed_and_limit_choose_the_sample():
    words = vocabulary("x[e] 1", "add mul neg")
    assert str(audit(words, size=2)) == str(audit(words, size=2))
    assert len(audit(words, size=2, limit=5).judged) == 5
    assert audit(words, size=2, limit=5).judged != audit(words, size=2, limit=5, seed=1).judged


# (vocabulary, size, sample): what is asked at each run
QUICK = [("scalars", 2, None), ("matrices", 2, None), ("scalars", 3, 300), ("matrices", 3, 300)]


@pytest.mark.parametrize(("name", "size", "limit"), QUICK)
def test_share_that_is_reached(name: str, size: int, limit: int | None):
    leaves, operations = VOCABULARIES[name]
    if limit and name == "scalars":
        operations = "add mul div neg abs exp log"  # a vocabulary whose terms of three operations are few
    found = audit(vocabulary(leaves, operations), size=size, limit=limit)
    promised = _promised()[name, size]
    assert 100 * found.share >= promised - 4 * bool(limit), found  # a sample of 300 is off by as much


def _promised() -> dict[tuple[str, int], int]:
    text = " ".join((ROOT / "docs/internals/audit.md").read_text(encoding="utf-8").split())
    return {(name, COUNTS[count]): int(share) for share, name, count in PROMISED.findall(text)}


@pytest.mark.deep
@pytest.mark.parametrize("name", ["scalars", "matrices"])
def test_share_of_all_equations(name: str):
    """The figure of the page, which is rounded down."""
    found = audit(vocabulary(*VOCABULARIES[name]), size=3)
    assert 100 * found.share >= _promised()[name, 3], found


def without(*names: str):
    """The optimizer without some rules."""
    rest = simplify([r for r in ALL if r.licence <= REASSOCIATES and r.name not in names])
    passes = [(name, rest if name == "simplify" else run) for name, run in default_passes()]
    return lambda graph: optimize(graph, passes=passes)


@pytest.mark.parametrize(("rule", "text"), [
    ("abs_of_nonnegative", "abs(exp(x)) = exp(x)"), ("reciprocal_div", "reciprocal(div(x, y)) = div(y, x)"),
    ("log_of_exp", "log(exp(x)) = x"),
])  # fmt: skip
def test_a_missing_rule_is_named(rule: str, text: str):
    words = vocabulary("x[e] y[e]", "abs exp log div reciprocal")
    assert rule in {r.name for r in ALL}
    whole, less = audit(words, size=2), audit(words, size=2, optimizer=without(rule))
    assert text not in [c.text for c in whole.missing]
    assert less.share < whole.share
    assert text in [c.text for c in less.missing]


def test_larger_terms_belong_to_what_they_hold():
    found = audit(vocabulary("x[e]", "exp abs neg"), size=3, optimizer=without("abs_of_nonnegative"))
    assert found.missing[0].text == "abs(exp(x)) = exp(x)"
    assert len(found.missing[0].cases) > 2


OWN = """
from graphc.ops import op, rules
size = op("size_for_audit", "x", impl=lambda xp, x: xp.abs(x), rule=rules.pointwise)
def cubed(F, x):
    return x * x * x
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "own_for_audit.py").write_text(OWN)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "own_for_audit"
    OPS.remove("size_for_audit")
    sys.modules.pop("own_for_audit")


def test_ops_of_ones_own(own: str, capsys: pytest.CaptureFixture[str]):
    assert main(["--ops", "neg", "--own", f"{own}:size", "--own", f"{own}:cubed", "--size", "2", "--limit", "0"]) == 0
    out = capsys.readouterr().out
    assert "size_for_audit(neg(x)) = size_for_audit(x)" in out  # no rule knows it
    assert "cubed(neg(x)) = neg(cubed(x))" not in out


def test_command_line(capsys: pytest.CaptureFixture[str]):
    assert main(["--ops", "neg abs", "--leaves", "x[e]", "--size", "2", "--least", "100"]) == 0
    assert "come to equal cost" in capsys.readouterr().out
    assert main(["--ops", "lt where", "--leaves", "x[e] y[e]", "--size", "2", "--least", "100"]) == 1
    for wrong in (["--ops", "nothing"], ["--leaves", "x[q]"], ["--ops", "sum(axes=1)"], ["--own", "no_module:f"],
                  ["--ops", "cat"]):  # fmt: skip
        assert main(wrong) == 2
        assert "Remedy" in capsys.readouterr().err


def test_words_that_are_no_vocabulary():
    with pytest.raises(AuditError, match="no op named"):
        vocabulary("x[e]", "addd")
    with pytest.raises(AuditError, match="is no leaf"):
        vocabulary("x[", "add")


def test_it_runs_as_a_module():
    command = [sys.executable, "-m", "graphc.audit", "--ops", "neg", "--size", "2"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "equal cost" in done.stdout
