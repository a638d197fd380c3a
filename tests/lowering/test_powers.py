"""Whole powers: products of a few factors, alike on NumPy and XLA, with the values of `pow`."""

from __future__ import annotations

import numpy as np
import pytest

import eager as torch
import graphc
from graphc.ops import OPS, powers
from graphc.ops.dtypes import FLOAT16, FLOAT32, FLOAT64, INT64
from tests.depth import one_in

SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e18, -1e18, 1e-18, -1e-5, 0.7, -3.1])
EXPONENTS = [*range(-6, 11), 0.5, -0.5, 1.5, 2.5, 7.5, -1.5, -2.5, 9.5, 0.7, np.inf, np.nan]


def lowered(function, *arrays: np.ndarray) -> tuple[np.ndarray, str]:
    program = graphc.lower(graphc.trace(function, *map(torch.from_numpy, arrays)))
    return np.asarray(program(*arrays)), program.source


def by_tensor(exponent: float):
    """The power by a constant of the graph: a number would have PyTorch's own forms for roots and squares."""
    return lambda x: torch.pow(x, torch.tensor(exponent, dtype=x.dtype))


@pytest.mark.parametrize("exponent", EXPONENTS)
@pytest.mark.parametrize("dtype", one_in(2, [FLOAT32, FLOAT64]))
def test_special_values_are_those_of_a_power(dtype: np.dtype, exponent: float) -> None:
    x = SPECIAL.astype(dtype)
    expected = np.array([OPS["pow"].ref(np.array(v), np.array(dtype.type(exponent))) for v in x]).astype(dtype)
    tiny = np.abs(expected) < np.finfo(dtype).tiny  # flushed
    for found in (lowered(by_tensor(exponent), x)[0], OPS["pow"].kernel(x, np.array(exponent, dtype))):
        np.testing.assert_allclose(found[~tiny], expected[~tiny], rtol=8 * np.finfo(dtype).eps)
        assert (np.signbit(found) == np.signbit(expected))[~np.isnan(expected)].all()


@pytest.mark.parametrize("exponent", range(powers.LEAST, powers.MOST + 1))
def test_both_backends_round_alike(exponent: int) -> None:
    x = np.random.default_rng(0).uniform(-2, 2, 1000).astype(np.float32)
    found, source = lowered(by_tensor(exponent), x)
    assert found.tobytes() == OPS["pow"].kernel(x, np.array(exponent, np.float32)).tobytes()
    assert "jnp.power" not in source


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_the_declared_error_holds(exponent: float) -> None:
    x = np.random.default_rng(1).uniform(0.5, 2, 4000).astype(np.float32)
    exact = x.astype(np.float64) ** exponent
    found = OPS["pow"].kernel(x, np.float32(exponent)[None])
    rounding = OPS["pow"].rounding
    assert rounding.terms is not None
    terms = np.broadcast_to(rounding.terms(exact, x, np.array(float(exponent))), x.shape)
    if np.isfinite(exact).all():
        ulps = 2 * (np.spacing(np.abs(exact).astype(np.float32)) + np.spacing(terms.astype(np.float32)))
        assert (np.abs(found - exact) <= ulps).all()


@pytest.mark.parametrize("exponent", [1.5, 2.5, 7.5, -1.5, -3.5])
def test_powers_between_take_a_root(exponent: float) -> None:
    x = np.random.default_rng(0).uniform(-2, 2, 1000).astype(np.float32)
    found, source = lowered(by_tensor(exponent), x)
    np.testing.assert_allclose(found, OPS["pow"].kernel(x, np.array(exponent, np.float32)), rtol=4e-7)
    assert "jnp.power" not in source and "sqrt" in source


@pytest.mark.parametrize("exponent", [9, -5, 9.5, 0.7])
def test_other_powers_stay_what_they_are(exponent: float) -> None:
    assert "jnp.power" in lowered(by_tensor(exponent), np.ones(3, np.float32))[1]


@pytest.mark.parametrize("exponent", [0, 1, 2, 5])
def test_integers_and_half_precision(exponent: int) -> None:
    x = np.array([0, 1, -3, 7, 2**31])
    assert (lowered(by_tensor(exponent), x)[0] == x**exponent).all()
    half = np.array([0.5, -1.7, 3.0], FLOAT16)
    wide = half.astype(np.float32) ** exponent
    assert (lowered(by_tensor(exponent), half)[0] == wide.astype(FLOAT16)).all()
    assert lowered(by_tensor(exponent), x.astype(INT64))[0].dtype == INT64


def test_an_operand_that_is_broadcast() -> None:
    x = np.array([2.0], np.float32)
    found, _ = lowered(lambda x: torch.pow(x, torch.full((3,), 3.0)), x)
    assert found.tolist() == [8.0] * 3
    assert OPS["pow"].kernel(x, np.full(3, 3.0, np.float32)).tolist() == [8.0] * 3
    assert OPS["pow"].kernel(x[0], np.full((1, 1), 3.0, np.float32)).shape == (1, 1)


def test_the_first_power_is_another_array() -> None:
    x = torch.ones(3)
    y = x**1
    y += 1
    assert x.tolist() == [1.0] * 3


def test_gradients_are_powers_by_numbers_too() -> None:
    x = torch.tensor([0.0, -2.0, 3.0])
    compiled = graphc.compile(torch.func.grad(lambda x: (x**4).sum()))
    assert compiled(x).tolist() == [0.0, -32.0, 108.0]
    program = graphc.lower(graphc.optimize(graphc.trace(torch.func.grad(lambda x: (x**4).sum()), x)))
    assert "jnp.power" not in program.source
