"""Special functions. As `torch.special`."""

from __future__ import annotations

from typing import Any

from eager.core.state import sequence
from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.engine.node_names import enclosed
from eager.functional.arguments import shape_of
from eager.functional.checking import checking
from eager.functional.elementwise import (
    igamma,
    igammac,
    logit,
    mvlgamma,
    polygamma,
    round,
    underivable,
    wants_gradient,
)
from eager.functional.outputs import with_out
from eager.functional.reductions import log_softmax, logsumexp, softmax
from graphc.ops.spec import OPS
from graphc.ops.special import PREFIX

__all__ = ["log_softmax", "softmax"]

# public name -> op, for those that PyTorch also has outside this module
_SHARED = {
    **{name: name for name in ["digamma", "erf", "erfc", "erfinv", "exp2", "expm1", "i0", "log1p", "sinc", "xlogy"]},
    "psi": "digamma", "expit": "sigmoid", "gammaln": "lgamma",
}  # fmt: skip


def _zeta(input: Any, other: Any) -> Tensor:
    """The Hurwitz zeta function. As `torch.special.zeta`: no gradient of `input`."""
    if wants_gradient(input):
        error = NotImplementedError("the derivative for 'zeta' is not implemented.")
        node = f"SpecialZetaBackward{0 if isinstance(other, Tensor) else 2}"
        return underivable(E.special_zeta, node, error, input, other)
    return E.special_zeta(input, other)


def _ndtr(input: Tensor) -> Tensor:
    """The distribution function of the standard normal distribution. As `torch.special.ndtr`."""
    shape_of(input, "special_ndtr")
    since = next(sequence)
    return enclosed(E.mul(E.add(1, E.erf(E.mul(input, 0.5**0.5))), 0.5), "MulBackward1", since)


_OWN = {
    "gammainc": igamma, "gammaincc": igammac, "logit": logit, "logsumexp": logsumexp, "multigammaln": mvlgamma,
    "ndtr": _ndtr, "polygamma": polygamma, "round": round, "zeta": _zeta,
}  # fmt: skip
globals().update({name: checking(f"special_{name}", globals()[name], home=__name__) for name in __all__})
globals().update({
    name: checking(f"special_{name}", with_out(f"special_{name}", function), home=__name__)
    for name, function in _OWN.items()
})  # fmt: skip


def __getattr__(name: str) -> Any:
    op = _SHARED.get(name, PREFIX + name)
    if op not in OPS:
        raise AttributeError(f"module 'eager.special' has no attribute '{name}'")
    function = globals()[name] = checking(f"special_{name}", getattr(E, op), home=__name__)
    return function


def __dir__() -> list[str]:
    own = (name.removeprefix(PREFIX) for name in OPS if name.startswith(PREFIX))
    return sorted({*__all__, *_OWN, *_SHARED, *own} | {name for name in globals() if name.startswith("__")})
