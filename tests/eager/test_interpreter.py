"""The interpreter in force, and the gates of the fast paths."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import eager as torch
from eager.core import state
from eager.core.interpreter import (
    IMMEDIATE,
    Interpreter,
    current_interpreter,
    forwarding,
    interpreting,
    on_arrays,
    under,
)
from eager.core.stand_ins import Deferred, Sealed
from eager.func.batching import BatchInterpreter
from graphc.ir import Builder
from graphc.ops.aval import Aval
from graphc.ops.stand_in import StandIn


def test_the_immediate_interpreter_is_in_force_where_no_other_is():
    assert current_interpreter() is IMMEDIATE and on_arrays()
    with interpreting(Interpreter()) as other:
        assert current_interpreter() is other and not on_arrays()
        with under(IMMEDIATE):
            assert current_interpreter() is IMMEDIATE and on_arrays()
        assert current_interpreter() is other
    assert current_interpreter() is IMMEDIATE and on_arrays()


def test_another_thread_runs_at_once_while_this_one_does_not():
    found: list[Any] = []
    closed = state.closed
    with interpreting(Interpreter()):
        thread = threading.Thread(
            target=lambda: found.extend((on_arrays(), (torch.ones(2) + 1).tolist(), state.closed))
        )
        thread.start()
        thread.join()
    assert found == [True, [2.0, 2.0], closed + 1]
    assert state.closed == closed


def test_leaving_twice_opens_the_fast_paths_once():
    closed = state.closed
    with interpreting(Interpreter()):
        inner = interpreting(Interpreter())
        with inner:
            pass
        inner.leave()
        assert state.closed == closed + 1
    assert state.closed == closed


def test_forwarded_methods_are_those_of_the_part():
    @forwarding({"outer": "is_constant guard"})
    class Around(Interpreter):
        outer: Any

    class Within(Interpreter):
        def is_constant(self, tensor: Any) -> bool:
            return False

    around = Around()
    around.outer = within = Within()
    assert around.guard == within.guard
    assert not around.is_constant(None)
    assert around.repeats(None) is False


@pytest.mark.parametrize(
    "data",
    [
        Deferred(np.ones(2), (2,), np.dtype(np.float64)),
        Sealed(np.ones(2)),
        Builder().input("x", Aval((2,), np.dtype(np.float64))),
        BatchInterpreter(1, "error", IMMEDIATE).wrap(torch.ones(1, 2, dtype=torch.float64))._d,
    ],
    ids=lambda data: type(data).__name__,
)
def test_what_lies_behind_a_tensor_knows_its_shape_and_dtype(data: StandIn):
    tensor = torch.ones(())
    tensor._d = data
    assert isinstance(data, StandIn)
    assert tensor.shape == (2,) and tensor.dtype == torch.float64
