"""What distributions that take `probs` or `logits` share."""

from __future__ import annotations

from typing import Any, ClassVar

from eager.core.tensor import Tensor
from eager.distributions.utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits

__all__ = ["LogitsOrProbs"]


def either(probs: Any, logits: Any) -> tuple[str, Any]:
    """The name and the value of the one that is given. ValueError unless it is one."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")
    return ("logits", logits) if probs is None else ("probs", probs)


class LogitsOrProbs:
    """Has one of `probs` and `logits`, and computes the other when it is first asked for."""

    _is_binary: ClassVar[bool] = True

    def _set_either(self: Any, probs: Any, logits: Any, validate_args: bool | None, total_count: Any = None) -> None:
        """As `Distribution._set`, of `probs` or `logits`, and of a count of trials in their dtype."""
        name, value = either(probs, logits)
        if total_count is None:
            self._set(validate_args, **{name: value})
        else:
            total_count, value = broadcast_all(total_count, value)
            self._set(validate_args, **{"total_count": total_count.type_as(value), name: value})

    @lazy_property
    def logits(self: Any) -> Tensor:
        """log(p / (1 - p)) of the probabilities, or their logarithms if there are several."""
        return probs_to_logits(self.probs, is_binary=self._is_binary)

    @lazy_property
    def probs(self: Any) -> Tensor:
        """Probabilities."""
        return logits_to_probs(self.logits, is_binary=self._is_binary)

    _param = property(lambda self: self.__dict__["probs" if "probs" in self.__dict__ else "logits"])

    @property
    def param_shape(self) -> Any:
        """The shape of `probs` and `logits`."""
        return self._param.size()

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._param.new(*args, **kwargs)


def enumerated(distribution: Any, values: Tensor, expand: bool) -> Tensor:
    """`values` along a new first dim before the batch dims, which are 1, or expanded."""
    batch = distribution._batch_shape
    values = values.view((-1,) + (1,) * len(batch))
    return values.expand((-1, *batch)) if expand else values
