"""What distributions that are made of a categorical one share."""

from __future__ import annotations

from typing import Any

from eager.core.tensor import Tensor
from eager.distributions.categorical import Categorical


class OfCategorical:
    """Parameters are those of `_categorical`; events are vectors with an element for each category."""

    _categorical: Categorical

    @property
    def logits(self) -> Tensor:
        """Logarithms of the probabilities."""
        return self._categorical.logits

    @property
    def probs(self) -> Tensor:
        """Probabilities, which sum to 1."""
        return self._categorical.probs

    @property
    def _param(self) -> Tensor:
        return self._categorical._param

    @property
    def param_shape(self) -> Any:
        """The shape of `probs` and `logits`."""
        return self._categorical.param_shape

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._categorical._new(*args, **kwargs)
