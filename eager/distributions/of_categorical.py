"""What distributions that are made of a categorical one share."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from eager.core.tensor import Tensor
from eager.distributions.categorical import Categorical


class OfCategorical:
    """Parameters are those of `_categorical`; events are vectors with an element for each category."""

    _categorical: Categorical

    logits = property(attrgetter("_categorical.logits"), doc="Logarithms of the probabilities.")
    probs = property(attrgetter("_categorical.probs"), doc="Probabilities, which sum to 1.")
    _param = property(attrgetter("_categorical._param"))
    param_shape = property(attrgetter("_categorical.param_shape"), doc="The shape of `probs` and `logits`.")

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._categorical._new(*args, **kwargs)
