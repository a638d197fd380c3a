"""Settings that a function changes, and leaves changed: a compiled function does so at each call, as eager does."""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from typing import Any

import pytest

import eager as torch
import graphc
from eager.core import state
from graphc.capture.state.settings import SETTINGS

VARIABLE: contextvars.ContextVar[float] = contextvars.ContextVar("variable", default=1.0)

# by the name of a setting: a call that changes it, and one that changes it back
CHANGES: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "torch.get_default_dtype()": (
        lambda: torch.set_default_dtype(torch.float64), lambda: torch.set_default_dtype(torch.float32),
    ),
    "torch.is_grad_enabled()": (lambda: torch.set_grad_enabled(False), lambda: torch.set_grad_enabled(True)),
    "torch.is_autocast_enabled()": (
        lambda: torch.set_autocast_enabled("cpu", True), lambda: torch.set_autocast_enabled("cpu", False),
    ),
    "torch.is_anomaly_enabled()": (
        lambda: torch.autograd.set_detect_anomaly(True), lambda: torch.autograd.set_detect_anomaly(False),
    ),
    "torch.get_printoptions()": (
        lambda: torch.set_printoptions(precision=2), lambda: torch.set_printoptions(profile="default"),
    ),
    "torch.get_num_threads()": (lambda: torch.set_num_threads(1), lambda: torch.set_num_threads(2)),
    "torch.get_deterministic_debug_mode()": (
        lambda: torch.use_deterministic_algorithms(True), lambda: torch.use_deterministic_algorithms(False),
    ),
    "torch.get_float32_matmul_precision()": (
        lambda: torch.set_float32_matmul_precision("high"), lambda: torch.set_float32_matmul_precision("highest"),
    ),
}  # fmt: skip


def test_all_settings_are_tried():
    assert CHANGES.keys() == {setting.shown for setting in SETTINGS}


@pytest.mark.parametrize("setting", SETTINGS, ids=[s.shown for s in SETTINGS])
def test_a_setting_is_left_changed_by_each_call(setting: Any):
    change, back = CHANGES[setting.shown]
    before, closed = setting.read(), state.closed

    def fn(x: Any) -> Any:
        change()
        return x * 2 + torch.ones(1)

    compiled, x = graphc.compile(fn, max_retraces=0), torch.ones(3)
    try:
        back()
        at_first = setting.read()
        expected = fn(x)
        changed = setting.read()
        assert changed != at_first
        for _ in range(3):
            back()
            assert setting.read() == at_first
            result = compiled(x)
            assert setting.read() == changed
            back()
            assert torch.equal(result, expected) and result.dtype == expected.dtype
    finally:
        setting.write(before)
    assert state.closed == closed  # the fast paths


def test_a_refused_function_leaves_settings_as_they_were():
    def refused(x: Any) -> Any:
        torch.set_default_dtype(torch.float64)
        return x * bool(x.data_ptr())

    with pytest.raises(graphc.errors.CaptureError):
        graphc.compile(refused)(torch.ones(3))
    assert torch.get_default_dtype() == torch.float32


def test_a_context_variable_is_set_by_each_call():
    def fn(x: Any) -> Any:
        VARIABLE.set(VARIABLE.get() + 1)
        return x * VARIABLE.get()

    compiled, token = graphc.compile(fn), VARIABLE.set(1.0)
    try:
        assert [(compiled(torch.ones(1)).item(), VARIABLE.get()) for _ in range(4)] == [(k, k) for k in (2, 3, 4, 5)]
    finally:
        VARIABLE.reset(token)


def test_texts_of_tensors_follow_the_options():
    third = torch.ones(1) / 3
    compiled = graphc.compile(lambda x: x * len(str(third)))
    try:
        assert compiled(torch.ones(1)).item() == len("tensor([0.3333])")
        torch.set_printoptions(precision=2)
        assert compiled(torch.ones(1)).item() == len("tensor([0.33])")
    finally:
        torch.set_printoptions(profile="default")


def test_a_setting_that_python_asks_for_is_guarded():
    compiled = graphc.compile(lambda x: x * (2 if torch.are_deterministic_algorithms_enabled() else 1))
    try:
        assert compiled(torch.ones(1)).item() == 1
        torch.use_deterministic_algorithms(True)
        assert compiled(torch.ones(1)).item() == 2
        assert "torch.get_deterministic_debug_mode()" in str(graphc.explain(compiled))
    finally:
        torch.use_deterministic_algorithms(False)
