"""Results that are no tensors: arrays, lists of numbers, dataclasses, sets, objects."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import compare
import eager as torch
from compare.judging.tolerance import Verdict
from compare.selftest.planting import entry
from graphc.lowering.overrides import OVERRIDES

MODES = ["eager", "graph", "compiled"]
STATE = np.zeros(64, np.float32)


@dataclasses.dataclass
class Pair:
    first: Any
    second: Any = None


def values(x: Any) -> Any:
    return x.sin().exp().tanh()


def write(x: Any) -> Any:
    STATE[:] = values(x).numpy()
    return x


FORMS: dict[str, Callable[[Any], Any]] = {
    "an array": lambda x: values(x).numpy(),
    "beside a tensor": lambda x: (values(x), values(x).numpy()),
    "a list": lambda x: values(x).tolist(),
    "a dataclass": lambda x: Pair(values(x), {"a": [x * 2]}),
    "a written array": write,
}


@pytest.mark.parametrize("form", FORMS)
def test_judged_as_tensors_are(form: str):
    torch.manual_seed(0)
    report = compare.check(FORMS[form], torch.randn(64), modes=MODES)
    assert report.verdict is Verdict.WITHIN_ROUNDING, str(report)
    with entry(OVERRIDES, "tanh", lambda x: x - x * x * x / 3):
        assert compare.check(FORMS[form], torch.randn(64), modes=MODES).verdict is Verdict.BUG


@pytest.mark.parametrize("made", [lambda x: (object(), x * 2), lambda x: ({x * 2}, x * 2)])
def test_what_equals_only_itself_gets_no_opinion(made: Callable[[Any], Any]):
    report = compare.check(made, torch.randn(3), modes=MODES)
    assert report.ok and any(f.verdict is Verdict.NO_OPINION and "result.0" in f.detail for f in report.findings)
    with entry(OVERRIDES, "mul", lambda x, y: x + y + 1):
        assert compare.check(made, torch.randn(3), modes=MODES).verdict is Verdict.BUG


def test_other_objects_are_a_bug():
    kinds = iter([object(), 3.5, object(), object(), object()])
    assert compare.check(lambda x: (next(kinds, None), x), torch.randn(3), modes=MODES).verdict is Verdict.BUG
