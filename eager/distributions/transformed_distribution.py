"""Distributions of transformed samples. As `torch.distributions.transformed_distribution`."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, ClassVar

from eager.core.dtypes import Size
from eager.core.grad_mode import no_grad
from eager.core.tensor import Tensor
from eager.distributions import constraints
from eager.distributions.distribution import Distribution
from eager.distributions.independent import Independent
from eager.distributions.transforms import ComposeTransform, Transform
from eager.distributions.utils import sum_rightmost

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """The distribution of t(x), where x is a sample of `base_distribution` and t one or several transforms in order.

    log p(y) = log p(x) - log |det dy/dx|.
    """

    arg_constraints: ClassVar[Any] = {}
    transforms: list[Any]
    base_dist: Any
    _expands = ()

    def __init__(self, base_distribution: Distribution, transforms: Any, validate_args: bool | None = None):
        if isinstance(transforms, Transform):
            self.transforms = [transforms]
        elif isinstance(transforms, list):
            if not all(isinstance(t, Transform) for t in transforms):
                raise ValueError("transforms must be a Transform or a list of Transforms")
            self.transforms = transforms
        else:
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        base_shape = base_distribution.batch_shape + base_distribution.event_shape
        base_event_dim = len(base_distribution.event_shape)
        transform = ComposeTransform(self.transforms)
        before, after = transform.domain.event_dim, transform.codomain.event_dim
        if len(base_shape) < before:
            raise ValueError(
                f"base_distribution needs to have shape with size at least {before}, but got {base_shape}."
            )
        shape = transform.forward_shape(base_shape)
        expanded = transform.inverse_shape(shape)
        if base_shape != expanded:
            base_distribution = base_distribution.expand(expanded[: len(expanded) - base_event_dim])
        if before > base_event_dim:
            base_distribution = Independent(base_distribution, before - base_event_dim)
        self.base_dist = base_distribution
        cut = len(shape) - max(after, base_event_dim + after - before)
        super().__init__(shape[:cut], shape[cut:], validate_args=validate_args)

    def _expand_into(self, new: Any, batch_shape: Size) -> None:
        super()._expand_into(new, batch_shape)
        shape = batch_shape + self.event_shape
        for t in reversed(self.transforms):
            shape = t.inverse_shape(shape)
        new.base_dist = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])
        new.transforms = self.transforms

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        extra = len(self.event_shape) - support.event_dim
        return constraints.independent(support, extra) if extra > 0 else support

    has_rsample = property(attrgetter("base_dist.has_rsample"))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return self._transformed(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self._transformed(self.base_dist.rsample(sample_shape))

    def _transformed(self, x: Tensor) -> Tensor:
        for transform in self.transforms:
            x = transform(x)
        return x

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        event_dim = len(self.event_shape)
        log_prob: Any = 0.0
        y = value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            change = transform.log_abs_det_jacobian(x, y)
            log_prob = log_prob - sum_rightmost(change, event_dim - transform.domain.event_dim)
            y = x
        return log_prob + sum_rightmost(self.base_dist.log_prob(y), event_dim - len(self.base_dist.event_shape))

    def _monotonize_cdf(self, value: Tensor) -> Tensor:
        """`value`, or 1 - `value` where the transforms fall."""
        sign: Any = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        return value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        for transform in self.transforms[::-1]:
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._monotonize_cdf(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        return self._transformed(self.base_dist.icdf(self._monotonize_cdf(value)))
