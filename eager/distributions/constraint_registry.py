"""Which transform leads from unconstrained numbers into a constraint. As `torch.distributions.constraint_registry`.

`biject_to(constraint)` is a bijection, for changes of variables; `transform_to(constraint)` may be many-to-one, for
optimization. Both are registries that one may add to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eager.distributions import constraints, transforms
from eager.distributions.utils import NUMBER

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """Type of constraint -> what makes a transform of such a constraint."""

    def __init__(self) -> None:
        self._registry: dict[type, Callable[[Any], Any]] = {}
        super().__init__()

    def register(self, constraint: Any, factory: Callable[[Any], Any] | None = None) -> Any:
        """Register `factory(constraint)`, or decorate one, for a constraint or its type. TypeError for others."""
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        if isinstance(constraint, constraints.Constraint):
            constraint = type(constraint)
        if not isinstance(constraint, type) or not issubclass(constraint, constraints.Constraint):
            raise TypeError(f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}")
        self._registry[constraint] = factory
        return factory

    def __call__(self, constraint: Any) -> Any:
        """The transform to `constraint`. NotImplementedError if its type is not registered."""
        try:
            factory = self._registry[type(constraint)]
        except KeyError:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints") from None
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _scaled(transform: transforms.Transform, loc: Any, scale: Any) -> transforms.Transform:
    return transforms.ComposeTransform([transform, transforms.AffineTransform(loc, scale)])


def _to_interval(constraint: Any) -> transforms.Transform:
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, NUMBER) and low == 0 and isinstance(high, NUMBER) and high == 1:
        return transforms.SigmoidTransform()
    return _scaled(transforms.SigmoidTransform(), low, high - low)


# constraints, and what makes the transform
_BOTH: list[tuple[tuple[Any, ...], Callable[[Any], Any]]] = [
    ((constraints.real,), lambda c: transforms.identity_transform),
    (
        (constraints.greater_than, constraints.greater_than_eq),
        lambda c: _scaled(transforms.ExpTransform(), c.lower_bound, 1),
    ),
    ((constraints.less_than,), lambda c: _scaled(transforms.ExpTransform(), c.upper_bound, -1)),
    ((constraints.interval, constraints.half_open_interval), _to_interval),
    ((constraints.corr_cholesky,), lambda c: transforms.CorrCholeskyTransform()),
]
_BIJECT = [((constraints.simplex,), lambda c: transforms.StickBreakingTransform())]
_TRANSFORM = [
    ((constraints.simplex,), lambda c: transforms.SoftmaxTransform()),
    ((constraints.lower_cholesky,), lambda c: transforms.LowerCholeskyTransform()),
    (
        (constraints.positive_definite, constraints.positive_semidefinite),
        lambda c: transforms.PositiveDefiniteTransform(),
    ),
]


def _of_parts(registry: ConstraintRegistry) -> list[tuple[tuple[Any, ...], Callable[[Any], Any]]]:
    """Constraints made of others: their transforms are made of those that `registry` has for the others."""
    return [
        (
            (constraints.independent,),
            lambda c: transforms.IndependentTransform(registry(c.base_constraint), c.reinterpreted_batch_ndims),
        ),
        ((constraints.cat,), lambda c: transforms.CatTransform([registry(p) for p in c.cseq], c.dim, c.lengths)),
        ((constraints.stack,), lambda c: transforms.StackTransform([registry(p) for p in c.cseq], c.dim)),
    ]


for _registry, _own in ((biject_to, _BIJECT), (transform_to, _TRANSFORM)):
    for _constraints, _factory in [*_BOTH, *_own, *_of_parts(_registry)]:
        for _constraint in _constraints:
            _registry.register(_constraint, _factory)
