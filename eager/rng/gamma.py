"""Gamma and Dirichlet numbers, which gradients flow through to their parameters."""

from __future__ import annotations

from eager.core.tensor import Tensor
from eager.engine.conversion import converted
from eager.engine.language import E
from eager.rng.generator import Generator
from eager.rng.rejection import check_real_floating, rejected
from graphc.ops.dtypes import FLOAT64
from graphc.ops.gamma import beta_slope, gamma_slope


def standard_gamma(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Numbers of the gamma distribution with concentration `input` and rate 1. As `torch._standard_gamma`."""
    check_real_floating(input, "standard_gamma_cpu")
    return E.standard_gamma(rejected("standard_gamma", input.detach(), generator=generator), input)


def dirichlet(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Points on the simplex with concentration `input` along the last dim. As `torch._sample_dirichlet`.

    Gradients flow to `input`, as they do in PyTorch through `Dirichlet.rsample`.
    """
    check_real_floating(input, "dirichlet")
    return E.dirichlet(rejected("dirichlet", input.detach(), generator=generator), input)


def standard_gamma_grad(input: Tensor, output: Tensor) -> Tensor:
    """The slope of `output`, drawn by `standard_gamma(input)`. As `torch._standard_gamma_grad`."""
    slope = gamma_slope(E, converted(input.detach(), FLOAT64), converted(output.detach(), FLOAT64))
    return converted(slope, input._dtype())


def dirichlet_grad(x: Tensor, alpha: Tensor, total: Tensor) -> Tensor:
    """The slope of x / (1 - x), x being of beta(alpha, total - alpha). As `torch._dirichlet_grad`."""
    wide = [converted(t.detach(), FLOAT64) for t in (x, alpha, total)]
    return converted(beta_slope(E, *wide), x._dtype())
