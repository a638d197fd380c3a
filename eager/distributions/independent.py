"""Batch dims as event dims. As `torch.distributions.independent`."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, ClassVar, Generic, TypeVar

from eager.core.tensor import Tensor
from eager.distributions import constraints
from eager.distributions.distribution import Distribution
from eager.distributions.utils import sum_rightmost

__all__ = ["Independent"]

D = TypeVar("D", bound=Distribution)


class Independent(Distribution, Generic[D]):
    """A distribution whose last `reinterpreted_batch_ndims` batch dims count as dims of an event."""

    arg_constraints: ClassVar[Any] = {}
    base_dist: D
    _expands = ("base_dist",)
    _keeps = ("reinterpreted_batch_ndims",)

    def __init__(self, base_distribution: D, reinterpreted_batch_ndims: int, validate_args: bool | None = None):
        batch = base_distribution.batch_shape
        if reinterpreted_batch_ndims > len(batch):
            raise ValueError(
                "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), actual "
                f"{reinterpreted_batch_ndims} vs {len(batch)}"
            )
        cut = len(batch) - reinterpreted_batch_ndims
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        super().__init__(batch[:cut], batch[cut:] + base_distribution.event_shape, validate_args=validate_args)

    has_rsample = property(attrgetter("base_dist.has_rsample"))

    @property
    def has_enumerate_support(self) -> bool:
        return self.base_dist.has_enumerate_support and not self.reinterpreted_batch_ndims > 0

    @constraints.dependent_property
    def support(self) -> Any:
        result = self.base_dist.support
        count = self.reinterpreted_batch_ndims
        return constraints.independent(result, count) if count else result

    mean = property(attrgetter("base_dist.mean"))
    mode = property(attrgetter("base_dist.mode"))
    variance = property(attrgetter("base_dist.variance"))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self.reinterpreted_batch_ndims > 0:
            raise NotImplementedError("Enumeration over cartesian product is not implemented")
        return self.base_dist.enumerate_support(expand=expand)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.base_dist}, {self.reinterpreted_batch_ndims})"
