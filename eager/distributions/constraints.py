"""Sets of numbers, vectors and matrices that values lie in. As `torch.distributions.constraints`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

from eager.core.limits import finfo
from eager.core.tensor import Tensor
from eager.functional.arithmetic import isclose
from eager.functional.creation import full
from eager.functional.joining import cat as joined
from eager.functional.joining import stack as stacked
from eager.linalg import cholesky_ex, eigvalsh, vector_norm

__all__ = [
    "Constraint", "MixtureSameFamilyConstraint", "boolean", "cat", "corr_cholesky", "dependent", "dependent_property",
    "greater_than", "greater_than_eq", "half_open_interval", "independent", "integer_interval", "interval",
    "is_dependent", "less_than", "lower_cholesky", "lower_triangular", "multinomial", "nonnegative",
    "nonnegative_integer", "one_hot", "positive", "positive_definite", "positive_integer", "positive_semidefinite",
    "real", "real_vector", "simplex", "square", "stack", "symmetric", "unit_interval",
]  # fmt: skip


class Constraint:
    """A set of values, each of which has `event_dim` dims; discrete or not."""

    is_discrete: Any = False
    event_dim: Any = 0

    def check(self, value: Any) -> Any:
        """Whether values lie in the set: a bool tensor of the shape of `value` without its event dims."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{self.__class__.__name__[1:]}()"


class _Dependent(Constraint):
    """A constraint that depends on other values, so that it cannot be checked by itself."""

    def __init__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented):
        self._is_discrete = is_discrete
        self._event_dim = event_dim
        super().__init__()

    @property
    def is_discrete(self) -> Any:
        if self._is_discrete is NotImplemented:
            raise NotImplementedError(".is_discrete cannot be determined statically")
        return self._is_discrete

    @property
    def event_dim(self) -> Any:
        if self._event_dim is NotImplemented:
            raise NotImplementedError(".event_dim cannot be determined statically")
        return self._event_dim

    def __call__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> Constraint:
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim,
        )

    def check(self, x: Any) -> Any:
        raise ValueError("Cannot determine validity of dependent constraint")


def is_dependent(constraint: Any) -> bool:
    """Whether `constraint` depends on other values."""
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """A property that on an instance is its constraint, and on the class a dependent one."""

    def __init__(
        self, fn: Callable[[Any], Any] | None = None, *, is_discrete: Any = NotImplemented,
        event_dim: Any = NotImplemented,
    ):  # fmt: skip
        super().__init__(fn)
        self._is_discrete = is_discrete
        self._event_dim = event_dim

    def __call__(self, fn: Any) -> Any:  # type: ignore[override]
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


def _instance(value: Any, cls: type, name: str) -> None:
    if not isinstance(value, cls):
        kind = "a Constraint" if cls is Constraint else "an int"
        raise AssertionError(f"{name} must be {kind}, got {type(value).__name__}")


class _OfBase(Constraint):
    """Constraints that are made of another one."""

    base_constraint: Constraint

    is_discrete = property(attrgetter("base_constraint.is_discrete"))
    event_dim = property(attrgetter("base_constraint.event_dim"))


class _IndependentConstraint(_OfBase):
    """A constraint on each element along the last `reinterpreted_batch_ndims` dims."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int):
        _instance(base_constraint, Constraint, "base_constraint")
        _instance(reinterpreted_batch_ndims, int, "reinterpreted_batch_ndims")
        if reinterpreted_batch_ndims < 0:
            raise AssertionError(f"reinterpreted_batch_ndims must be >= 0, got {reinterpreted_batch_ndims}")
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        super().__init__()

    event_dim = property(lambda self: self.base_constraint.event_dim + self.reinterpreted_batch_ndims)

    def check(self, value: Tensor) -> Tensor:
        result = self.base_constraint.check(value)
        if result.dim() < self.reinterpreted_batch_ndims:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        return result.reshape((*result.shape[: result.dim() - self.reinterpreted_batch_ndims], -1)).all(-1)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__[1:]}({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(_OfBase):
    """What all components of a mixture, which lie along a dim before the event dims, satisfy."""

    def __init__(self, base_constraint: Constraint):
        _instance(base_constraint, Constraint, "base_constraint")
        self.base_constraint = base_constraint
        super().__init__()

    def check(self, value: Tensor) -> Tensor:
        result = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        if value.dim() < self.event_dim:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        return result.reshape((*result.shape[: value.dim() - self.event_dim], -1)).all(-1)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.base_constraint!r})"


class _Bounded(Constraint):
    """Numbers within the bounds that are its attributes."""

    def __repr__(self) -> str:
        bounds = ", ".join(f"{name}={value}" for name, value in vars(self).items())
        return f"{self.__class__.__name__[1:]}({bounds})"


class _Below(_Bounded):
    def __init__(self, upper_bound: Any):
        self.upper_bound = upper_bound


class _Above(_Bounded):
    def __init__(self, lower_bound: Any):
        self.lower_bound = lower_bound


class _Between(_Bounded):
    def __init__(self, lower_bound: Any, upper_bound: Any):
        self.lower_bound = lower_bound
        self.upper_bound = upper_bound


class _GreaterThan(_Above):
    def check(self, value: Tensor) -> Any:
        return self.lower_bound < value


class _GreaterThanEq(_Above):
    def check(self, value: Tensor) -> Any:
        return self.lower_bound <= value


class _LessThan(_Below):
    def check(self, value: Tensor) -> Any:
        return value < self.upper_bound


class _Interval(_Between):
    def check(self, value: Tensor) -> Any:
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class _HalfOpenInterval(_Between):
    def check(self, value: Tensor) -> Any:
        return (self.lower_bound <= value) & (value < self.upper_bound)


def _whole(value: Tensor, inside: Any) -> Any:
    """Where `inside` is true and the value a whole number: a division that integers need not pay for."""
    inexact = value.dtype.is_floating_point or value.dtype.is_complex
    return (value % 1 == 0) & inside if inexact else inside


class _IntegerGreaterThan(_Above):
    is_discrete = True

    def check(self, value: Tensor) -> Any:
        return _whole(value, value >= self.lower_bound)


class _IntegerInterval(_Between):
    is_discrete = True

    def check(self, value: Tensor) -> Any:
        return _whole(value, (self.lower_bound <= value) & (value <= self.upper_bound))


class _Real(Constraint):
    def check(self, value: Tensor) -> Any:
        return value == value  # not nan


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value: Tensor) -> Any:
        return (value == 0) | (value == 1)


class _OneHot(Constraint):
    is_discrete = True
    event_dim = 1

    def check(self, value: Tensor) -> Any:
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class _Simplex(Constraint):
    event_dim = 1

    def check(self, value: Tensor) -> Any:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _Multinomial(Constraint):
    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: Any):
        self.upper_bound = upper_bound
        super().__init__()

    def check(self, x: Tensor) -> Any:
        return (x >= 0).all(-1) & (x.sum(-1) <= self.upper_bound)


class _LowerTriangular(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Any:
        return (value.tril() == value).flatten(-2).all(-1)


class _LowerCholesky(_LowerTriangular):
    def check(self, value: Tensor) -> Any:
        return super().check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(_LowerCholesky):
    def check(self, value: Tensor) -> Any:
        tolerance = finfo(value.dtype).eps * value.size(-1) * 10  # the rounding of a norm of a row
        unit = ((vector_norm(value.detach(), dim=-1) - 1.0).abs() <= tolerance).all(-1)
        return super().check(value) & unit


class _Square(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Any:
        rows, columns = value.shape[-2:]
        return self._of_square(value) if rows == columns else full(value.shape[:-2], False)

    def _of_square(self, value: Tensor) -> Any:
        return full(value.shape[:-2], True)


class _Symmetric(_Square):
    def _of_square(self, value: Tensor) -> Any:
        return isclose(value, value.mT, atol=1e-6).all(-2).all(-1)


class _PositiveSemidefinite(_Symmetric):
    def _of_square(self, value: Tensor) -> Any:
        return super()._of_square(value) & (eigvalsh(value) >= 0).all(-1)


class _PositiveDefinite(_Symmetric):
    def _of_square(self, value: Tensor) -> Any:
        return super()._of_square(value) & (cholesky_ex(value).info == 0)


class _Several(Constraint):
    cseq: list[Any]
    dim: int

    def __init__(self, cseq: Sequence[Any], dim: int = 0):
        if not all(isinstance(c, Constraint) for c in cseq):
            raise AssertionError("All elements of cseq must be Constraint instances")
        self.cseq = list(cseq)
        self.dim = dim
        super().__init__()

    is_discrete = property(lambda self: any(c.is_discrete for c in self.cseq))
    event_dim = property(lambda self: max(c.event_dim for c in self.cseq))

    def _check_dim(self, value: Tensor) -> None:
        if not -value.dim() <= self.dim < value.dim():
            raise AssertionError(f"dim {self.dim} out of range for value with {value.dim()} dimensions")


class _Cat(_Several):
    """Constraints of pieces of the given lengths (1 each) along `dim`."""

    def __init__(self, cseq: Sequence[Any], dim: int = 0, lengths: Sequence[int] | None = None):
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise AssertionError(f"lengths ({len(self.lengths)}) must match cseq ({len(self.cseq)})")

    def check(self, value: Tensor) -> Tensor:
        self._check_dim(value)
        pieces = value.narrow(self.dim, 0, sum(self.lengths)).split(self.lengths, self.dim)
        return joined([c.check(piece) for c, piece in zip(self.cseq, pieces, strict=True)], self.dim)


class _Stack(_Several):
    """Constraints of the slices along `dim`."""

    @property
    def event_dim(self) -> int:
        dim = max(c.event_dim for c in self.cseq)
        return dim + 1 if self.dim + dim < 0 else dim

    def check(self, value: Tensor) -> Tensor:
        self._check_dim(value)
        slices = value.unbind(self.dim)
        return stacked([c.check(v) for v, c in zip(slices, self.cseq, strict=False)], self.dim)


dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
cat = _Cat
stack = _Stack
