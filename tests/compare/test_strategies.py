"""The strategies: what they draw, that it can be checked, and that what fails shrinks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st

import compare
import eager as torch
from compare import strategies
from compare.fuzzing import Program
from eager.core.tensor import Tensor
from eager.rng.sampling import default_generator
from graphc.ops import OPS

QUICK = settings(
    max_examples=15, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
SEARCH = settings(QUICK, max_examples=200, phases=(Phase.generate, Phase.shrink))


@QUICK
@given(strategies.tensors(dtypes=(torch.float64, torch.int64), requires_grad=True))
def test_tensors(x: Tensor):
    assert x.dtype in (torch.float64, torch.int64) and x.requires_grad is (x.dtype is torch.float64)
    assert x.dim() <= 3 and all(n <= 4 for n in x.shape)


def test_tensors_have_all_values_unless_told():
    assert find(strategies.tensors(), lambda x: bool(x.isnan().any()), settings=SEARCH).numel() == 1
    small = strategies.tensors(st.just((2,)), elements=st.floats(0, 1, width=32))
    assert find(small, lambda x: bool((x > 0.5).any()), settings=SEARCH).amax() == 1.0


@QUICK
@given(strategies.op_calls(strategies.ops(lambda op: op.pointwise and op.name != "planted"), torch.float64))
def test_pointwise_ops_do_not_care_for_the_order_of_elements(call: Any):
    assert call.op.pointwise
    result = call.function(*call.operands)
    if all(x.dim() == 2 for x in call.operands):
        turned = call.function(*(x.detach().T for x in call.operands))
        assert np.array_equal(result.T.numpy(force=True), turned.numpy(force=True), equal_nan=True)


@QUICK
@given(strategies.programs(size=3, without=["tanh"]))
def test_programs_run_and_agree(program: Program):
    assert "tanh" not in program.ops
    results = program.function(*program.arguments())
    assert len(results) == len(program.results) >= 1
    assert compare.check(program.function, *program.arguments(), modes=["graph"]).ok


def test_a_failing_program_shrinks_to_few_statements():
    wanted = {name for name, op in OPS.items() if op.pointwise}

    def fails(program: Program) -> bool:
        return any(op in wanted for op in program.ops)

    found = find(strategies.programs(size=8), fails, settings=SEARCH)
    assert fails(found) and len(found.statements) <= 3, found.source


def test_drawing_leaves_the_generator_as_it_was():
    state = default_generator.get_state()
    find(strategies.programs(size=4), lambda program: True, settings=SEARCH)
    assert torch.equal(default_generator.get_state(), state)


def test_the_script_of_a_failing_program_is_printed():
    @settings(QUICK, max_examples=3, phases=(Phase.generate,))
    @given(strategies.programs(size=2))
    def fails(program: Program) -> None:
        raise AssertionError("it does")

    with pytest.raises(AssertionError) as error:
        fails()
    notes = "\n".join(error.value.__notes__)
    assert "report = compare.check(program" in notes and "import eager as torch" in notes
