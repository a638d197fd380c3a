"""What the REPL and a notebook show of results: a line, and all of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import compare
import eager as torch
import graphc
from graphc.display import WIDTH, Displayed


def program(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return (x @ w).tanh().sum()


def _arguments() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.ones(4, 3), torch.ones(3, 2, requires_grad=True)


def _optimized() -> graphc.Graph:
    return graphc.optimize(graphc.trace(program, *_arguments()))


def _compiled() -> Any:
    compiled = graphc.compile(program)
    compiled(*_arguments())
    return compiled


RESULTS: dict[str, Callable[[], Any]] = {
    "check": lambda: compare.check(program, *_arguments(), modes=["graph"]),
    "check_op": lambda: compare.check_op("tanh", modes=["graph"]),
    "localize": lambda: compare.localize(program, *_arguments(), modes=["graph"]),
    "explain a graph": lambda: graphc.explain(_optimized(), details=True),
    "explain a function": lambda: graphc.explain(_compiled()),
}


@pytest.mark.quick_xla
@pytest.mark.parametrize("name", RESULTS)
def test_a_line_names_a_result_and_a_notebook_shows_all_of_it(name: str):
    result = RESULTS[name]()
    assert isinstance(result, Displayed)
    assert "\n" not in repr(result)
    assert len(repr(result)) <= WIDTH + 40
    assert repr(result).startswith(f"<{type(result).__name__} ")
    shown = result._repr_html_()
    assert shown.startswith("<pre")
    assert "&lt;" not in shown or "<" in str(result)
    assert str(result).splitlines()[0].split("<")[0].strip() in shown


def test_graphs_programs_and_sessions_have_short_names():
    assert repr(_optimized()) == "<Graph program: 2 inputs, 3 operations>"
    assert "\n" not in repr(graphc.lower(_optimized()))
    assert repr(graphc.Session()) == "<Session on the default device>"


def test_classes_of_results_do_not_show_their_fields():
    """All that `compare` names as a report."""
    names = [name for name in dir(compare) if name.endswith(("Report", "Localization", "Minimized", "Verification"))]
    assert len(names) >= 6
    assert all(issubclass(getattr(compare, name), Displayed) for name in names)
