"""Forward mode by dual tensors. As `torch.autograd.forward_ad`.

Tangents are not carried along: `unpack_dual` computes the derivative from the history, by a vjp of a vjp.
"""

from __future__ import annotations

from typing import NamedTuple

from eager.core.grad_mode import enable_grad
from eager.core.tensor import Tensor
from eager.func.derivatives import pushforward
from eager.func.levels import Level, has_history, pull, zeros_like
from graphc.ops.dtypes import is_inexact

_duals: list[tuple[Level, list[tuple[Tensor, Tensor]]]] = []  # the dual level that is open, with (dual, tangent) pairs

NO_LEVEL = "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."


class UnpackedDualTensor(NamedTuple):
    """What `unpack_dual` returns: a tensor, and its tangent or None."""

    primal: Tensor
    tangent: Tensor | None


class dual_level:
    """Context in which dual tensors can be made. As `torch.autograd.forward_ad.dual_level`."""

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *error: object) -> None:
        exit_dual_level()


def enter_dual_level() -> int:
    """Open a level and return its number, 0. RuntimeError if one is open."""
    if _duals:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    level = Level()
    level.active = True
    _duals.append((level, []))
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Close the level. RuntimeError if none is open."""
    if not _duals:
        raise RuntimeError("Dual level must be a positive number.")
    closed, _ = _duals.pop()
    closed.active = False
    closed.end()


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """`tensor` with a `tangent` of its shape and dtype. RuntimeError outside of a level, ValueError for no floats."""
    if not _duals:
        raise RuntimeError(NO_LEVEL)
    if not is_inexact(tensor._dtype()):
        raise ValueError(f"Expected primal to be floating point or complex, but got: {tensor.dtype}")
    if not is_inexact(tangent._dtype()):
        raise ValueError(f"Expected tangent to be floating point or complex, but got: {tangent.dtype}")
    if tensor._d.shape != tangent._d.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
            f"supported. Tensor is of size {list(tensor._d.shape)} while the given forward gradient is of size "
            f"{list(tangent._d.shape)}."
        )
    level_, pairs = _duals[-1]
    with enable_grad():
        dual = level_.enter(tensor)
    pairs.append((dual, tangent))
    return dual


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """(the tensor without its tangent, the tangent or None). As `torch.autograd.forward_ad.unpack_dual`."""
    if not _duals:
        return UnpackedDualTensor(tensor, None)
    level_, pairs = _duals[-1]
    plain = tensor if level_.is_shared([tensor]) else tensor.detach()  # type: ignore[attr-defined]
    for dual, tangent in pairs:
        if dual is tensor:
            return UnpackedDualTensor(tensor.detach(), tangent)  # type: ignore[attr-defined]
    if not pairs or not has_history(tensor) or not is_inexact(tensor._dtype()):
        return UnpackedDualTensor(plain, None)
    with enable_grad():
        duals = [dual for dual, _ in pairs]
        if all(g is None for g in pull([tensor], duals, [zeros_like(tensor)], False)):
            return UnpackedDualTensor(plain, None)
        (moved,) = pushforward(level_, [tensor], duals, False)([tangent for _, tangent in pairs])
    return UnpackedDualTensor(plain, moved)


__all__ = [
    "UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual",
]  # fmt: skip
