"""Every op does what its declaration says. Derived from the registry: a new op is tested by being declared."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.ops import OPS, Op, Trait
from graphc.ops.dtypes import BOOL, FLOAT32, FLOAT64, INT64
from graphc.ops.references import reference_of
from graphc.ops.rules import integral
from tests.ops import checks
from tests.ops.cases import Case, cases_of, each_case, every_case
from tests.ops.parts import every_part

ALL = every_case(by_part=True)
SMOOTH = every_case(differentiable=True, by_part=True)
POINTWISE = [op for op in OPS.values() if op.pointwise and op.rule.promote]
KINKS = [pytest.param(op, kink, id=f"{op.name}-{kink.at}") for op in OPS.values() for kink in op.kinks]
SPECIAL = np.array([0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, 1e-310, 1e300])
# flags of operands that are symmetric, of which gradients are not those of every direction
SYMMETRIC = {("pinv", "hermitian")}
# references that are difference quotients themselves
BY_QUOTIENT: set[str] = set()


@each_case(ALL)
def test_rule_foretells_kernel(case: Case, rng: np.random.Generator):
    for dtype in (FLOAT32, FLOAT64):
        checks.check_rule(case.op, case.arrays(rng, dtype), case.sample.params)


@pytest.mark.parametrize("op", POINTWISE, ids=lambda op: op.name)
def test_rule_foretells_kernel_after_promotion(op: Op, rng: np.random.Generator):
    for kinds in ("ii", "bi", "ib", *(() if op.rule.infer is integral.infer else ("if", "fi"))):
        _check_promoted(op, kinds, rng)


def _check_promoted(op: Op, kinds: str, rng: np.random.Generator) -> None:
    arrays = [_operand(rng, kind) for kind in kinds[: len(op.args) - op.rule.first]]
    conditions = [rng.random((2, 3)) < 0.5 for _ in range(op.rule.first)]
    try:
        operands = checks.promoted(op, [*conditions, *arrays])
        op.rule.infer(op, [checks.aval_of(a) for a in operands], dict(op.params))
    except RuntimeError as refused:
        assert "not supported" in str(refused) or "not implemented" in str(refused)  # PyTorch refuses these dtypes
        return
    checks.check_rule(op, operands, {})


def _operand(rng: np.random.Generator, kind: str) -> np.ndarray:
    if kind == "f":
        return rng.uniform(0.3, 0.8, (2, 3)).astype(FLOAT32)
    return np.ones((2, 3), BOOL) if kind == "b" else rng.integers(1, 4, (2, 3)).astype(INT64)


@each_case(ALL)
def test_kernel_agrees_with_reference(case: Case, rng: np.random.Generator):
    tolerance = checks.QUOTIENT_TOLERANCE if case.op.name in BY_QUOTIENT else checks.REFERENCE_TOLERANCE
    checks.check_reference(case.op, case.arrays(rng), case.sample.params, tolerance)


@each_case(ALL)
def test_only_views_share_memory(case: Case, rng: np.random.Generator):
    checks.check_memory(case.op, case.arrays(rng), case.sample.params)


@pytest.mark.parametrize("op", every_part(), ids=lambda op: op.name)
def test_only_moves_move(op: Op, rng: np.random.Generator):
    calls = [(case.arrays(rng), case.sample.params) for case in cases_of(op)]
    if op.pointwise and not op.rule.first:  # with operands where it computes, and a dtype to which it rounds
        narrow = {"dtype": np.dtype(np.float16)} if "dtype" in op.params else {}
        calls += [(arrays[::-1], {**params, **narrow}) for arrays, params in calls]
    checks.check_moves(op, calls)


@each_case(ALL)
def test_kernel_rounds_as_declared(case: Case, rng: np.random.Generator):
    checks.check_rounding(case.op, case.arrays(rng, FLOAT32), case.sample.params)


@each_case([c for c in ALL if c.op.lens is not None])
def test_lens_shows_what_is_put(case: Case, rng: np.random.Generator):
    checks.check_lens(case.op, case.arrays(rng), case.sample.params, rng)


@each_case(SMOOTH)
def test_gradient_agrees_with_finite_differences(case: Case, rng: np.random.Generator):
    checks.check_gradient(case.op, case.arrays(rng), case.sample.params, rng)


@pytest.mark.parametrize(("op", "kink"), KINKS)
def test_subgradient_at_kink(op: Op, kink):
    checks.check_kink(op, kink)


@each_case([c for c in ALL if c.op.traits])
def test_traits_hold(case: Case, rng: np.random.Generator):
    arrays = case.arrays(rng)
    if Trait.COMMUTATIVE in case.op.traits and arrays[0].shape != arrays[1].shape:
        arrays = [np.array(a) for a in np.broadcast_arrays(*arrays)]
    checks.check_traits(case.op, arrays, case.sample.params, rng)


@each_case([c for c in ALL if c.op.claims or c.op.image or c.op.passes])
def test_declared_facts_hold(case: Case, rng: np.random.Generator):
    checks.check_facts(case.op, case.arrays(rng), case.sample.params)


@pytest.mark.parametrize("op", [op for op in POINTWISE if op.image or Trait.EVEN in op.traits], ids=lambda op: op.name)
def test_facts_hold_at_special_values(op: Op):
    values = np.append(SPECIAL, np.nan)
    arrays = [values > 0] if op.rule.first else []
    arrays += [np.array(a) for a in np.broadcast_arrays(*([values[:, None], values] if len(op.args) > 1 else [values]))]
    if op.rule.first:
        arrays = [np.array(a) for a in np.broadcast_arrays(*arrays)]
    with np.errstate(all="ignore"):
        checks.check_facts(op, arrays, {})
        if Trait.EVEN in op.traits:
            checks.check_even(op, [SPECIAL], {})


@pytest.mark.parametrize("op", [op for op in POINTWISE if Trait.COMMUTATIVE in op.traits], ids=lambda op: op.name)
def test_commutative_at_special_values(op: Op):
    values = SPECIAL if op.rule.infer is not integral.infer else np.array([0, -1, 1, 2**62, -(2**63)])
    x, y = (np.array(a) for a in np.broadcast_arrays(values[:, None], values))
    checks.check_commutative(op, [x, y], {})


@pytest.mark.parametrize("op", [op for op in POINTWISE if Trait.IDEMPOTENT in op.traits], ids=lambda op: op.name)
def test_idempotent_at_special_values(op: Op):
    checks.check_idempotent(op, [np.append(SPECIAL, np.nan)], {})


def test_every_op_has_cases_and_a_reference():
    plain = [op for op in OPS.values() if not op.structured]
    assert [op.name for op in plain if not list(cases_of(op)) or not callable(reference_of(op))] == []


@pytest.mark.parametrize("op", [op for op in OPS.values() if op.samples], ids=lambda op: op.name)
def test_samples_show_both_values_of_a_flag(op: Op):
    for name, default in op.params.items():
        given = {sample.params.get(name, default) for sample in op.samples if isinstance(default, bool)}
        assert len(given) != 1 or (op.name, name) in SYMMETRIC, f"in every sample of {op.name}, {name} is {given}"


@each_case(SMOOTH)
def test_gradient_has_the_operands_dtype(case: Case, rng: np.random.Generator):
    checks.check_gradient_dtype(case.op, case.arrays(rng, FLOAT32), case.sample.params)
