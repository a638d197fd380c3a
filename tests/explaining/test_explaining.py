"""Steps, changes and explanations say what the optimizer did, and why it left the rest."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

import eager as torch
import graphc
from graphc.explaining import Explanation, Step, steps
from graphc.explaining.changes import changes, part_of
from graphc.ir import Graph
from graphc.passes import optimize

N = 40


def many(a: Any, b: Any, x: Any) -> Any:
    y = torch.log(1 + torch.exp(x.neg().neg()))
    return (a @ b @ x + y * x * x + y * x * x, (a @ b)[2:4].sum(0), torch.linalg.inv(a) @ x, torch.diag(x) @ b)


def looped(x: Any) -> Any:
    return graphc.fori_loop(0, 3, lambda k, c: torch.tanh(c.neg().neg() * 1.0), x)


PROGRAMS: dict[str, tuple[Any, tuple[tuple[int, ...], ...]]] = {
    "many": (many, ((N, N), (N, N), (N,))),
    "looped": (looped, ((3,),)),
    "nothing to do": (lambda x: torch.tanh(x), ((3,),)),
    "goes round": (lambda x, y: (x * 2.0 * 3.0, (x + y.neg()).abs().abs()), ((3,), (3,))),
}


def traced(name: str) -> Graph:
    f, shapes = PROGRAMS[name]
    return graphc.trace(f, *(torch.ones(*shape) for shape in shapes))


def details(f: Any, *shapes: tuple[int, ...], **how: Any) -> Explanation:
    graph = graphc.trace(f, *(torch.ones(*shape) for shape in shapes))
    found = graphc.explain(optimize(graph, **how), details=True, **how)
    assert isinstance(found, Explanation)
    return found


# --- steps


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("how", [{}, {"strict": True}, {"level": 3}, {"without": ("neg_neg", "sums")}], ids=str)
def test_steps_end_where_the_optimizer_ends(name: str, how: dict[str, Any]) -> None:
    graph = traced(name)
    whole = [step for step in steps(graph, **how) if not step.inside]
    assert all(a.after == b.before for a, b in itertools.pairwise(whole))
    end = whole[-1].after if whole else graph
    expected = optimize(graph, **how)
    assert end == expected or not whole  # what is inside loops has steps of its own
    for step in whole:
        step.after.check()


def test_each_application_of_a_rule_is_a_step() -> None:
    graph = graphc.trace(lambda x: x.neg().neg() * 1.0 + 2.0 * 3.0, torch.ones(3))
    assert [step.name for step in steps(graph)][-2:] == ["neg_neg", "mul_one"]
    fired = [f.rule for r in optimize(graph).history for f in r.firings]
    assert fired == ["neg_neg", "mul_one"]


def test_a_step_shows_the_lines_that_changed() -> None:
    (step,) = steps(graphc.trace(lambda x: x.neg().neg().tanh(), torch.ones(3)))
    assert isinstance(step, Step)
    gone, come = ([line for line in step.lines if line[0] == sign] for sign in "-+")
    assert len(gone) == 3 and len(come) == 1 and "tanh(x)" in come[0]
    assert str(step).splitlines()[0] == f"neg_neg at {step.where}" and "test_explaining.py" in step.where


def test_steps_inside_a_loop_name_the_loop() -> None:
    inside = [step for step in steps(traced("looped")) if step.inside]
    assert {"neg_neg", "mul_one"} <= {step.name for step in inside}


def test_steps_are_made_one_by_one() -> None:
    found = steps(traced("many"))
    assert next(found).before == traced("many")


# --- changes


def test_a_change_has_what_was_written_and_what_stands_there_now() -> None:
    graph = graphc.trace(lambda a, x: a @ a @ x, torch.ones(N, N), torch.ones(N))
    (step,) = steps(graph)
    (change,) = changes(step.before, step.after)
    assert change.written == "matmul(matmul(a, a), x)"
    assert change.plan == "einsum(a, einsum(a, x, equation='ab,b->a'), equation='ab,b->a')"
    assert change.before.operations == 2 * N**3 + 2 * N**2 and change.after.operations == 4 * N**2
    assert change.after.bytes == 2 * 4 * (N * N + 2 * N)


def test_changes_that_do_not_meet_are_apart() -> None:
    graph = graphc.trace(lambda x, y: (x.neg().neg(), y.abs().square()), torch.ones(3), torch.ones(3))
    written = {c.written for c in changes(graph, optimize(graph))}
    assert written == {"neg(neg(x))", "square(abs(y))"}


def test_a_graph_has_not_changed_from_itself() -> None:
    assert changes(traced("many"), traced("many")) == []


def test_both_parts_of_a_change_compute_the_same() -> None:
    graph = traced("many")
    for step in steps(graph, without="simplify"):
        for change in changes(step.before, step.after):
            one = part_of(step.before, change.gone, change.roots[0])
            other = part_of(step.after, change.come, change.roots[1])
            if one is not None and other is not None:
                one.check()
                other.check()
                assert [n.results for n in map(one.nodes.get, one.outputs) if n] == [
                    n.results for n in map(other.nodes.get, other.outputs) if n
                ]


# --- explain


def test_details_have_each_region_with_forms_that_were_considered() -> None:
    found = details(many, (N, N), (N, N), (N,))
    (first, *_) = (r for r in found.regions if r.mechanism == "sums of products")
    assert "matmul(a, b)" in first.written and "einsum" in first.plan and "test_explaining.py" in first.where
    assert first.after.units < first.before.units and len(first.considered) > 1
    assert first.considered == tuple(sorted(first.considered, key=lambda form: form.units))
    assert {"systems", "neg_neg", "log_of_one_and_exp", "common subexpressions"} <= {r.mechanism for r in found.regions}


def test_the_data_say_what_the_text_says() -> None:
    found = details(many, (N, N), (N, N), (N,))
    data = json.loads(json.dumps(found.to_dict()))
    assert data["nodes"] == [data["passes"][0]["nodes"][0], data["passes"][-1]["nodes"][1]]
    for region in data["regions"]:
        assert region["written"] in found and region["mechanism"] in found
    assert [p["name"] for p in data["passes"]] == [r.name for r in found.records]
    assert {f["rule"] for p in data["passes"] for f in p["rules"]} == {"neg_neg", "log_of_one_and_exp"}


def reason(found: Explanation, instead: str) -> str:
    (kept,) = (k for k in found.kept if k.instead == instead)
    assert "test_explaining.py" in kept.where and kept.reason in found
    return kept.reason


def test_why_an_equation_of_real_numbers_was_not_used() -> None:
    found = details(lambda x: (x / x, x - x, torch.exp(torch.log(x))), (3,),
                    without=("quotients", "div_self", "exp_log"))  # fmt: skip
    assert reason(found, "x / x = 1") == "at x = 0.0: 1.0, not nan; it takes a proof that x is finite and not 0"
    assert reason(found, "x - x = 0") == "at x = inf: 0.0, not nan; it takes a proof that x is finite"
    assert reason(found, "exp(log(x)) = x").endswith("it takes a proof that x is not negative")


def test_why_a_rule_was_not_used_under_strict() -> None:
    found = details(lambda x: torch.log(1 + torch.exp(x)), (3,), strict=True)
    assert "only what is exact" in reason(found, "log_of_one_and_exp")


def test_why_a_rule_was_not_used_that_is_switched_off() -> None:
    found = details(lambda x: x.neg().neg(), (3,), without=("neg_neg", "like terms"))
    assert reason(found, "neg_neg") == "it is switched off"


def test_why_a_rule_was_not_used_where_something_else_reads_its_inside() -> None:
    places = torch.arange(40)[:, None] % 7
    found = details(lambda a, b: ((a @ b).gather(1, places), a @ b), (40, 40), (40, 400))
    assert "matmul(a, b) is read elsewhere as well; it costs" in reason(found, "one_of_each_row")


def test_why_a_sum_of_products_was_left_that_something_else_reads() -> None:
    found = details(lambda a, b, x: (a @ b, a @ b @ x), (N, N), (N, N), (N,))
    (kept,) = [k for k in found.kept if "read elsewhere" in k.reason]
    assert kept.form == "matmul(matmul(a, b), x)" and "einsum(a, einsum(b, x" in kept.instead
    assert kept.reason.startswith("matmul(a, b) is read elsewhere as well; without that, it would cost")


def test_why_a_sum_of_products_was_left_that_would_save_little() -> None:
    shapes = ((300, 300), (300, 300), (300, 2), (300, 2), (300,))
    found = details(lambda a, b, p, q, x: a @ b + torch.outer(p @ q.T @ x, x), *shapes)
    (kept,) = found.kept
    assert "more than 90% is not worth a change" in kept.reason


def test_a_graph_that_no_pass_has_changed() -> None:
    text = str(graphc.explain(traced("nothing to do"), details=True))
    assert str(text) == "lambda_: no pass has changed this graph (2 nodes)"


def test_regions_are_measured_when_asked() -> None:
    graph = graphc.trace(lambda a, x: a @ a @ x, torch.ones(N, N), torch.ones(N))
    found = graphc.explain(optimize(graph), measured=True)
    assert isinstance(found, Explanation)
    (region,) = found.regions
    assert region.measured is not None and region.predicted is not None
    assert min(*region.measured, *region.predicted) > 0 and "measured:" in found


def test_compiled_functions_are_explained_in_detail() -> None:
    fast = graphc.compile(many)
    fast(torch.ones(N, N) + N * torch.eye(N), torch.ones(N, N), torch.ones(N))
    assert "written:" not in graphc.explain(fast) and "written: " in graphc.explain(fast, details=True)


def test_nothing_is_recorded_but_where_the_passes_began() -> None:
    graph = traced("many")
    origins = [record.origin for record in optimize(graph).history]
    assert origins[0] is not None and origins[0].graph is graph
    assert origins[1:] == [None] * (len(origins) - 1)
