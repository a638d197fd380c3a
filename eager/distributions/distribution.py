"""`Distribution`: what all probability distributions share. As `torch.distributions.Distribution`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from eager.core.dtypes import Size
from eager.core.grad_mode import no_grad
from eager.core.interpreter import on_arrays
from eager.core.tensor import Tensor
from eager.distributions import constraints
from eager.distributions.utils import broadcast_all, lazy_property
from eager.engine.language import E

__all__ = ["Distribution"]

_SCALAR = Size()


class Distribution:
    """A batch of independent probability distributions of one kind, each over events of one shape.

    A sample has the shape `sample_shape + batch_shape + event_shape`; `log_prob(value)` takes values of any shape that
    ends like this or broadcasts, and has one number for each event.

    A subclass names in `_expands` the attributes (tensors of shape `batch_shape + ...`, distributions of batches) that
    `expand` expands, and in `_keeps` those that it hands on.

    Raises ValueError for parameters and values outside their constraints, unless `validate_args` is false.
    """

    has_rsample: Any = False
    has_enumerate_support: Any = False
    _validate_args: bool = __debug__
    _expands: ClassVar[tuple[str, ...] | None] = None
    _keeps: ClassVar[tuple[str, ...]] = ()

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether distributions check their arguments unless told otherwise; Python's `__debug__` at first."""
        if value not in [True, False]:
            raise ValueError
        Distribution._validate_args = value

    def __init__(
        self, batch_shape: Sequence[int] = _SCALAR, event_shape: Sequence[int] = _SCALAR, validate_args: Any = None
    ):
        self._batch_shape = batch_shape
        self._event_shape = event_shape
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._validate_parameters()
        super().__init__()

    def _set(self, validate_args: bool | None, **parameters: Any) -> None:
        """Take numbers and tensors that broadcast to the batch shape for parameters."""
        values = broadcast_all(*parameters.values())
        for name, value in zip(parameters, values, strict=True):
            setattr(self, name, value)
        Distribution.__init__(self, values[0].shape, validate_args=validate_args)

    def _validate_parameters(self) -> None:
        try:
            arg_constraints = self.arg_constraints
        except NotImplementedError:
            arg_constraints = {}
            warnings.warn(
                f"{self.__class__} does not define `arg_constraints`. Please set `arg_constraints = {{}}` or "
                "initialize the distribution with `validate_args=False` to turn off validation.", stacklevel=4,
            )  # fmt: skip
        for name, constraint in arg_constraints.items():
            if constraints.is_dependent(constraint):
                continue
            if name not in self.__dict__ and isinstance(getattr(type(self), name), lazy_property):
                continue  # it follows from others
            value = getattr(self, name)
            self._require(constraint, value, f"parameter {name}", "of distribution {} to satisfy the constraint {}")

    def _require(self, constraint: Any, value: Tensor, what: str, place: str) -> None:
        """ValueError unless `value` satisfies `constraint`: now, or under a trace at each call of the program.

        place: a text with the distribution and the constraint to be filled in. A program does not show values.
        """
        valid = constraint.check(value)
        message = f"Expected {what} ({type(value).__name__} of shape {tuple(value.shape)}) "
        if not on_arrays():
            place = place.format(type(self).__name__, type(constraint).__name__.lstrip("_"))
            E.valid(value.detach(), valid, message=f"{message}{place}, but found invalid values")
        elif not bool(valid.all()):
            raise ValueError(
                f"{message}{place.format(repr(self), repr(constraint))}, but found invalid values:\n{value}"
            )

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        """A distribution of the same kind with its batches expanded to `batch_shape`; tensors share memory.

        _instance: what a subclass with other attributes has made for the result.
        """
        owner = next((cls for cls in type(self).__mro__ if cls.__dict__.get("_expands") is not None), None)
        if owner is None:
            raise NotImplementedError
        new = self._get_checked_instance(owner, _instance)
        batch_shape = Size(batch_shape)
        self._expand_into(new, batch_shape)
        Distribution.__init__(new, batch_shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _expand_into(self, new: Any, batch_shape: Size) -> None:
        before = len(self._batch_shape)
        for name in self._expands or ():
            value = self.__dict__.get(name)
            if value is not None:
                inner = value._batch_shape if isinstance(value, Distribution) else value.shape
                setattr(new, name, value.expand(batch_shape + inner[before:]))
        for name in self._keeps:
            if name in self.__dict__:
                setattr(new, name, self.__dict__[name])

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        if _instance is None and type(self).__init__ is not cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(
                f"Subclass {self.__class__.__name__} of {cls.__name__} that defines a custom __init__ method must also "
                "define a custom .expand() method."
            )
        return self.__new__(type(self)) if _instance is None else _instance

    @property
    def batch_shape(self) -> Any:
        """The shape over which parameters are batched."""
        return self._batch_shape

    @property
    def event_shape(self) -> Any:
        """The shape of one event."""
        return self._event_shape

    @property
    def arg_constraints(self) -> Mapping[str, Any]:
        """Parameter name -> the constraint that it satisfies."""
        raise NotImplementedError

    @property
    def support(self) -> Any:
        """The constraint that samples satisfy."""
        raise NotImplementedError

    @property
    def mean(self) -> Any:
        """The mean, of shape `batch_shape + event_shape`."""
        raise NotImplementedError

    @property
    def mode(self) -> Any:
        """The most likely event."""
        raise NotImplementedError(f"{self.__class__} does not implement mode")

    @property
    def variance(self) -> Any:
        """The variance, of shape `batch_shape + event_shape`."""
        raise NotImplementedError

    @property
    def stddev(self) -> Any:
        """The root of the variance."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draw, without gradients, a sample of shape `sample_shape + batch_shape + event_shape`."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draw a sample as a differentiable function of the parameters."""
        raise NotImplementedError

    def sample_n(self, n: int) -> Tensor:
        """`sample((n,))`. Deprecated, as in PyTorch."""
        message = "`sample_n(n)` will be deprecated. Use `sample((n,))` instead."
        warnings.warn(message, category=FutureWarning, stacklevel=2)
        return self.sample(Size((n,)))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density, or of the probability, of `value`."""
        raise NotImplementedError

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of events up to `value`."""
        raise NotImplementedError

    def icdf(self, value: Tensor) -> Tensor:
        """The inverse of `cdf`."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All events of a discrete distribution, along a new first dim; NotImplementedError for others."""
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """The entropy in nats, of shape `batch_shape`."""
        raise NotImplementedError

    def perplexity(self) -> Tensor:
        """exp of the entropy."""
        return self.entropy().exp()

    def _extended_shape(self, sample_shape: Any = ()) -> Size:
        return Size(Size(sample_shape) + self._batch_shape + self._event_shape)

    def _validate_sample(self, value: Any) -> None:
        """Raise PyTorch's ValueError unless `value` can be an event of this distribution, or several."""
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        actual, expected = value.shape, Size(self._batch_shape + self._event_shape)
        if actual[len(actual) - len(self._event_shape) :] != self._event_shape:
            raise ValueError(f"The right-most size of value must match event_shape: {actual} vs {self._event_shape}.")
        for i, j in zip(reversed(actual), reversed(expected), strict=False):
            if i != 1 and j != 1 and i != j:
                raise ValueError(f"Value is not broadcastable with batch_shape+event_shape: {actual} vs {expected}.")
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{self.__class__} does not define `support` to enable sample validation. Please initialize the "
                "distribution with `validate_args=False` to turn off validation.", stacklevel=4,
            )  # fmt: skip
            return
        if support is None:
            raise AssertionError("support is unexpectedly None")
        self._require(support, value, "value argument", "to be within the support ({1}) of the distribution {0}")

    def _check(self, value: Any) -> None:
        if self._validate_args:
            self._validate_sample(value)

    def __repr__(self) -> str:
        given = {name: self.__dict__[name] for name in self.arg_constraints if name in self.__dict__}
        shown = [f"{name}: {value if value.numel() == 1 else value.size()}" for name, value in given.items()]
        return f"{self.__class__.__name__}({', '.join(shown)})"
