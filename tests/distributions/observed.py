"""What one can see of a distribution: the same questions to eager's and to PyTorch's."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from functools import partial
from operator import methodcaller
from typing import Any

import numpy as np

from tests.distributions.cases import Case

ATTRIBUTES = ("mean", "mode", "variance", "stddev")
METHODS = ("entropy", "perplexity")
NUMBER = re.compile(r"\d+\.\d+(e-?\d+)?")


class Parameters:
    """Makes the parameters of a case, in order, as leaves."""

    def __init__(self, torch: Any, dtype: str = "float64", scale: float = 1.0):
        self._torch, self._dtype, self.scale = torch, getattr(torch, dtype), scale
        self.made: list[Any] = []

    def __call__(self, values: Any) -> Any:
        made = self._torch.tensor(values, dtype=self._dtype, requires_grad=True)
        self.made.append(made)
        return made if self.scale == 1 else made * self.scale


def answer(question: Callable[[], Any]) -> Any:
    """What `question()` returns, as arrays; or the error that it raises, as text."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = question()
    except Exception as error:
        text = str(error).replace("eager.", "torch.").splitlines()
        return f"{type(error).__name__}: {text[0] if text else ''}"
    return plain(found)


def plain(found: Any) -> Any:
    if isinstance(found, (list, tuple)) and not hasattr(found, "numel"):
        return [plain(f) for f in found]
    if hasattr(found, "detach"):
        return found.detach().numpy().copy()
    return found if found is None or isinstance(found, (bool, int, float)) else str(found)


def gradients(torch: Any, result: Any, inputs: list[Any]) -> Any:
    """Of a random-looking sum of `result`, with respect to those of the inputs that it depends on."""
    if not result.requires_grad:
        return "no gradient"
    weights = torch.arange(result.numel(), dtype=result.dtype).reshape(result.shape).cos()
    return torch.autograd.grad((result * weights).sum(), inputs, allow_unused=True)


def observed(torch: Any, case: Case, dtype: str = "float64") -> dict[str, Any]:
    """question -> answer."""
    found: dict[str, Any] = {}
    d: Any = None

    def built() -> Any:
        nonlocal d
        d = case.build(torch.distributions, Parameters(torch, dtype))
        return d

    def slopes(of: Callable[[Any], Any], *others: Any) -> Any:
        make = Parameters(torch, dtype)
        new = case.build(torch.distributions, make)
        torch.manual_seed(6)
        return gradients(torch, of(new), [*make.made, *others])

    found["repr"] = answer(built)
    if d is None:
        return found
    found["shapes"] = answer(lambda: [d.batch_shape, d.event_shape])
    found["flags"] = answer(lambda: [d.has_rsample, d.has_enumerate_support])
    found["support"] = answer(lambda: repr(d.support))
    for name in ATTRIBUTES:
        found[name] = answer(partial(getattr, d, name))
    for name in METHODS:
        ask = methodcaller(name)
        found[name] = answer(partial(ask, d))
        found[f"gradients of {name}"] = answer(partial(slopes, ask))
    found["enumerated"] = answer(lambda: [d.enumerate_support(), d.enumerate_support(False)])
    torch.manual_seed(5)
    value: Any = None

    def sampled() -> Any:
        nonlocal value
        value = d.sample((2, 3))
        return [value, torch.rand(2)]  # the stream goes on alike

    found["sample"] = answer(sampled)
    found["drawn again"] = answer(lambda: [d.rsample(), d.rsample((4,)), torch.rand(2)])
    found["gradients of rsample"] = answer(lambda: slopes(lambda new: new.rsample((3,))))
    if value is None:
        return found
    value = value.detach()
    if value.is_floating_point():
        value.requires_grad_()
    found["log_prob"] = answer(lambda: d.log_prob(value))
    leaves = [value] if value.requires_grad else []
    found["gradients of log_prob"] = answer(lambda: slopes(lambda new: new.log_prob(value), *leaves))
    found["cdf"] = answer(lambda: d.cdf(value))
    found["gradients of cdf"] = answer(lambda: slopes(lambda new: new.cdf(value), *leaves))
    chances = torch.linspace(0.1, 0.9, 6, dtype=getattr(torch, dtype)).reshape(2, 3, *(1,) * (value.dim() - 2))
    found["icdf"] = answer(lambda: d.icdf(chances))
    found["bad value"] = answer(lambda: d.log_prob(value * float("nan")))
    found["bad type"] = answer(lambda: d.log_prob("x"))

    def expanded() -> Any:
        new = d.expand((2, *d.batch_shape))
        torch.manual_seed(7)
        return [str(new), new.batch_shape, new.event_shape, new.sample((2,)), new.log_prob(value[:, :1])]

    found["expanded"] = answer(expanded)
    return found


def same(ours: Any, theirs: Any) -> bool:
    """Whether two answers are equal up to rounding."""
    if isinstance(theirs, list):
        return isinstance(ours, list) and len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(theirs, np.ndarray):
        if not isinstance(ours, np.ndarray) or ours.dtype != theirs.dtype or ours.shape != theirs.shape:
            return False
        tolerance = 1e-7 if ours.dtype == np.float64 else 2e-5  # PyTorch's trigamma has 8 digits
        return bool(np.allclose(ours, theirs, rtol=tolerance, atol=tolerance, equal_nan=True))
    if isinstance(theirs, str) and isinstance(ours, str):
        return NUMBER.sub(_rounded, ours) == NUMBER.sub(_rounded, theirs)
    return type(ours) is type(theirs) and ours == theirs


def _rounded(number: re.Match[str]) -> str:
    return f"{float(number.group()):.4g}"
