"""The chi-squared distribution. As `torch.distributions.chi2`."""

from __future__ import annotations

from typing import Any, ClassVar

from eager.core.tensor import Tensor
from eager.distributions import constraints
from eager.distributions.gamma import Gamma

__all__ = ["Chi2"]


class Chi2(Gamma):
    """The sum of the squares of `df` standard normal numbers: Gamma(df / 2, 1 / 2)."""

    concentration: Tensor
    arg_constraints: ClassVar[Any] = {"df": constraints.positive}
    _expands = Gamma._expands

    def __init__(self, df: Any, validate_args: bool | None = None):
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    @property
    def df(self) -> Tensor:
        """How many normal numbers."""
        return self.concentration * 2
