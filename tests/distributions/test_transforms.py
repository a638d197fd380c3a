"""All transforms: inverses, logarithms of changes of volume, shapes; and all constraints, at their edges."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import eager as torch
from tests.distributions.observed import answer, same
from tests.oracle import torch_or_skip

# name -> a transform of a library's `distributions`, whose parameters `t` makes, and an x for it
TRANSFORMS: dict[str, tuple[Callable[[Any, Any], Any], Any]] = {
    "AbsTransform": (lambda d, t: d.AbsTransform(), [0.3, 2.0]),
    "AffineTransform": (lambda d, t: d.AffineTransform(t([0.5, 1.0]), t([2.0, -3.0])), [0.3, -2.0]),
    "AffineTransform of vectors": (lambda d, t: d.AffineTransform(0.5, -2.0, event_dim=1), [[0.3, -2.0], [1.0, 4.0]]),
    "CatTransform": (
        lambda d, t: d.CatTransform([d.ExpTransform(), d.AffineTransform(1.0, 3.0)], 0, [2, 1]), [0.3, -2.0, 0.5],
    ),
    "CatTransform of vectors": (
        lambda d, t: d.CatTransform([d.IndependentTransform(d.ExpTransform(), 1), d.AffineTransform(1.0, 3.0, 1)], 0),
        [[0.3, -2.0], [0.5, 1.5]],
    ),
    "CatTransform of both": (
        lambda d, t: d.CatTransform([d.ExpTransform(), d.AffineTransform(1.0, 3.0, 1)], -2), [[0.3, -2.0], [0.5, 1.5]],
    ),
    "ComposeTransform": (lambda d, t: d.ComposeTransform([d.TanhTransform(), d.ExpTransform()]), [0.3, -0.9]),
    "ComposeTransform of vectors": (
        lambda d, t: d.ComposeTransform([d.ExpTransform(), d.StickBreakingTransform()]), [[0.3, -0.9], [1.0, 0.1]],
    ),
    "CorrCholeskyTransform": (lambda d, t: d.CorrCholeskyTransform(), [0.3, -0.9, 0.2, 0.7, -0.1, 0.4]),
    "CumulativeDistributionTransform": (
        lambda d, t: d.CumulativeDistributionTransform(d.Normal(t([0.5]), t([2.0]))), [0.3, -0.9],
    ),
    "ExpTransform": (lambda d, t: d.ExpTransform(), [0.3, -0.9]),
    "IndependentTransform": (lambda d, t: d.IndependentTransform(d.ExpTransform(), 1), [[0.3, -0.9], [1.0, 2.0]]),
    "LowerCholeskyTransform": (lambda d, t: d.LowerCholeskyTransform(), [[0.3, 0.0], [1.0, 2.0]]),
    "PositiveDefiniteTransform": (lambda d, t: d.PositiveDefiniteTransform(), [[0.3, 0.0], [1.0, 2.0]]),
    "PowerTransform": (lambda d, t: d.PowerTransform(t([2.0, -0.5])), [0.3, 2.0]),
    "ReshapeTransform": (lambda d, t: d.ReshapeTransform((2, 3), (3, 2)), [[0.3, 1.0, 2.0], [4.0, 5.0, 6.0]]),
    "SigmoidTransform": (lambda d, t: d.SigmoidTransform(), [0.3, -0.9]),
    "SoftmaxTransform": (lambda d, t: d.SoftmaxTransform(), [0.3, -0.9, 1.0]),
    "SoftplusTransform": (lambda d, t: d.SoftplusTransform(), [0.3, -0.9]),
    "StackTransform": (
        lambda d, t: d.StackTransform([d.ExpTransform(), d.AffineTransform(1.0, 3.0)], 1), [[0.3, -2.0], [0.5, 1.5]],
    ),
    "StickBreakingTransform": (lambda d, t: d.StickBreakingTransform(), [0.3, -0.9, 1.0]),
    "TanhTransform": (lambda d, t: d.TanhTransform(), [0.3, -0.9]),
}  # fmt: skip
FREE = {  # numbers that x and y have for a change of volume, where that is of fewer than there are
    "CorrCholeskyTransform": lambda y: y[np.tril_indices(y.shape[0], -1)],
    "StickBreakingTransform": lambda y: y[:-1],
    "ComposeTransform of vectors": lambda y: y[:, :-1],
}


def made(library: Any, name: str) -> tuple[Any, Any]:
    build, x = TRANSFORMS[name]
    t = lambda values: library.tensor(values, dtype=library.float64)
    return build(library.distributions, t), t(x)


def test_every_transform_has_a_case():
    names = {name for name in torch.distributions.transforms.__all__ if name.endswith("Transform")} - {"Transform"}
    assert names == {name.partition(" ")[0] for name in TRANSFORMS}


@pytest.mark.parametrize("name", [n for n in TRANSFORMS if n not in ("AbsTransform", "SoftmaxTransform")])
def test_inverse_is_the_inverse(name: str):
    transform, x = made(torch, name)
    y = transform(x)
    assert torch.allclose(transform.inv(y), x, rtol=1e-9)
    assert torch.allclose(transform.inv.inv(x), y)
    assert transform.forward_shape(x.shape) == y.shape and transform.inverse_shape(y.shape) == x.shape
    if name != "CatTransform of both":  # PyTorch cannot join the checks of events of two kinds
        assert bool(transform.codomain.check(y).all())


@pytest.mark.parametrize("name", TRANSFORMS)
def test_change_of_volume_is_that_of_the_matrix_of_derivatives(name: str):
    transform, x = made(torch, name)
    try:
        found = transform.log_abs_det_jacobian(x, transform(x))
    except NotImplementedError:
        assert not transform.bijective or name in ("LowerCholeskyTransform", "PositiveDefiniteTransform")
        return
    y = transform(x)
    free = FREE.get(name, lambda y: y.reshape(-1))
    matrix = torch.autograd.functional.jacobian(lambda x: free(transform(x)), x).reshape(free(y).numel(), -1)
    expected = torch.linalg.slogdet(matrix).logabsdet
    assert found.shape == x.shape[: x.dim() - transform.domain.event_dim]
    assert torch.allclose(found.sum(), expected, rtol=1e-9)


def test_every_answer_about_transforms_is_that_of_torch():
    def answers(library: Any, name: str) -> list[Any]:
        transform, x = made(library, name)
        y = transform(x)
        return [answer(question) for question in (
            lambda: y, lambda: transform.inv(y), lambda: transform.log_abs_det_jacobian(x, y), lambda: repr(transform),
            lambda: transform.inv.log_abs_det_jacobian(y, x), lambda: transform.sign, lambda: transform.bijective,
            lambda: repr(transform.domain), lambda: repr(transform.codomain), lambda: transform.event_dim,
            lambda: transform == made(library, name)[0], lambda: transform.inv == transform,
        )]  # fmt: skip

    oracle = torch_or_skip()
    for name in TRANSFORMS:
        ours, theirs = answers(torch, name), answers(oracle, name)
        for k, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            assert same(a, b), (name, k, a, b)


_MATRICES = [[[2.0, 0.0], [0.5, 1.0]], [[1.0, 0.0], [0.6, 0.8]], [[1.0, 0.5], [0.5, 1.0]], [[1.0, 2.0], [2.0, 1.0]],
             [[0.0, 0.0], [0.0, 0.0]], [[-1.0, 0.0], [0.0, 1.0]]]  # fmt: skip
_VECTORS = [[0.0, 1.0, 0.0], [0.2, 0.3, 0.5], [0.5, 0.5, 0.5], [1.0, 1.0, 0.0], [3.0, 0.0, 0.0], [-1.0, 1.0, 1.0]]
_NUMBERS = [-1.0, 0.0, 0.5, 1.0, 2.0, 3.0, float("nan")]
# constraint -> values, and which of them satisfy it
CONSTRAINTS: dict[str, tuple[Any, list[int]]] = {
    "boolean": (_NUMBERS, [0, 1, 0, 1, 0, 0, 0]),
    "greater_than(1.)": (_NUMBERS, [0, 0, 0, 0, 1, 1, 0]),
    "greater_than_eq(1.)": (_NUMBERS, [0, 0, 0, 1, 1, 1, 0]),
    "less_than(1.)": (_NUMBERS, [1, 1, 1, 0, 0, 0, 0]),
    "interval(0., 1.)": (_NUMBERS, [0, 1, 1, 1, 0, 0, 0]),
    "half_open_interval(0., 1.)": (_NUMBERS, [0, 1, 1, 0, 0, 0, 0]),
    "unit_interval": (_NUMBERS, [0, 1, 1, 1, 0, 0, 0]),
    "integer_interval(0, 2)": (_NUMBERS, [0, 1, 0, 1, 1, 0, 0]),
    "nonnegative_integer": (_NUMBERS, [0, 1, 0, 1, 1, 1, 0]),
    "positive_integer": (_NUMBERS, [0, 0, 0, 1, 1, 1, 0]),
    "nonnegative": (_NUMBERS, [0, 1, 1, 1, 1, 1, 0]),
    "positive": (_NUMBERS, [0, 0, 1, 1, 1, 1, 0]),
    "real": (_NUMBERS, [1, 1, 1, 1, 1, 1, 0]),
    "real_vector": (_VECTORS, [1, 1, 1, 1, 1, 1]),
    "one_hot": (_VECTORS, [1, 0, 0, 0, 0, 0]),
    "simplex": (_VECTORS, [1, 1, 0, 0, 0, 0]),
    "multinomial(3)": (_VECTORS, [1, 1, 1, 1, 1, 0]),
    "independent(positive, 1)": (_VECTORS, [0, 1, 1, 0, 0, 0]),
    "square": (_MATRICES, [1, 1, 1, 1, 1, 1]),
    "symmetric": (_MATRICES, [0, 0, 1, 1, 1, 1]),
    "lower_triangular": (_MATRICES, [1, 1, 0, 0, 1, 1]),
    "lower_cholesky": (_MATRICES, [1, 1, 0, 0, 0, 0]),
    "corr_cholesky": (_MATRICES, [0, 1, 0, 0, 0, 0]),
    "positive_semidefinite": (_MATRICES, [0, 0, 1, 0, 1, 0]),
    "positive_definite": (_MATRICES, [0, 0, 1, 0, 0, 0]),
    "cat([positive, unit_interval], 1, [2, 1])": (_VECTORS, [[0, 1, 1], [1, 1, 1], [1, 1, 1], [1, 1, 1], [1, 0, 1],
                                                             [0, 1, 1]]),
    "stack([real, positive, boolean], 1)": (_VECTORS, [[1, 1, 1], [1, 1, 0], [1, 1, 0], [1, 1, 1], [1, 0, 1],
                                                       [1, 1, 1]]),
}  # fmt: skip


@pytest.mark.parametrize("text", CONSTRAINTS)
def test_constraint_holds_up_to_its_edge(text: str):
    values, expected = CONSTRAINTS[text]
    constraint = eval(text, dict(vars(torch.distributions.constraints)))
    assert constraint.check(torch.tensor(values, dtype=torch.float64)).int().tolist() == expected


def test_every_constraint_has_a_case():
    c = torch.distributions.constraints
    kept = {"Constraint", "MixtureSameFamilyConstraint", "dependent_property", "is_dependent"}
    assert {name for name in c.__all__ if not any(name in text for text in CONSTRAINTS)} == kept


def test_constraints_are_checked_as_by_torch():
    def answers(library: Any, text: str, value: Any) -> Any:
        constraint = eval(text, dict(vars(library.distributions.constraints)))
        value = library.tensor([value], dtype=library.float64)  # of several matrices, PyTorch checks some less
        return [constraint.check(value), repr(constraint), constraint.is_discrete, constraint.event_dim]

    for text, (values, _) in CONSTRAINTS.items():
        for value in values:
            ours, theirs = (answer(partial(answers, lib, text, value)) for lib in (torch, torch_or_skip()))
            assert same(ours, theirs), (text, value, ours, theirs)


def test_a_mixture_is_asked_of_each_component():
    c = torch.distributions.constraints
    each = c.MixtureSameFamilyConstraint(c.interval(torch.tensor([0.0, 1.0]), torch.tensor([2.0, 3.0])))
    assert each.check(torch.tensor([0.5, 1.5, 2.5])).tolist() == [False, True, False]


def test_expanded_distributions_check_their_arguments_if_the_others_do():
    for validate in (True, False):
        normal = torch.distributions.Normal(0.0, 1.0, validate_args=validate).expand((2,))
        try:
            normal.log_prob(torch.tensor([float("nan"), 1.0]))
        except ValueError:
            assert validate
        else:
            assert not validate
