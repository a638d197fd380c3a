"""Complex numbers: their parts, conjugation, polar form; and what is asked about dtypes of tensors."""

from __future__ import annotations

from typing import Any

from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.engine.node_names import whole
from eager.functional.arguments import shape_of
from eager.functional.shapes import transpose
from graphc.ops.aval import Aval
from graphc.ops.dtypes import FLOAT16, default_float, is_half, is_inexact
from graphc.ops.rules import torch_name
from graphc.ops.spec import OPS


def _is_complex(x: Any, name: str) -> bool:
    shape_of(x, name)
    return x._dtype().kind == "c"


def _checked(name: str, input: Tensor) -> Any:
    """The op `name` of `input`, of whose dtype and shape it is told first: generated code looks at neither."""
    shape_of(input, name)
    op = OPS[name]
    op.rule.infer(op, [Aval(tuple(input._d.shape), input._dtype())], {})
    return getattr(E, name)(input)


def real(input: Tensor) -> Tensor:
    """The real part, a view; a real tensor itself. As `torch.real`."""
    return E.real(input) if _is_complex(input, "real") else input


def imag(input: Tensor) -> Tensor:
    """The imaginary part, a view. As `torch.imag`. RuntimeError for a real tensor."""
    return _checked("imag", input)


def conj(input: Tensor) -> Tensor:
    """The complex conjugate; a real tensor itself. As `torch.conj`, but computed at once."""
    return E.conj(input) if _is_complex(input, "conj") else input


def conj_physical(input: Tensor) -> Tensor:
    """The complex conjugate; a real tensor itself. As `torch.conj_physical`."""
    return conj(input)


def resolve_conj(input: Tensor) -> Tensor:
    """`input`: conjugation is never put off. As `torch.resolve_conj`."""
    shape_of(input, "resolve_conj")
    return input


def resolve_neg(input: Tensor) -> Tensor:
    """`input`: negation is never put off. As `torch.resolve_neg`."""
    shape_of(input, "resolve_neg")
    return input


def is_conj(input: Tensor) -> bool:
    """False: conjugation is never put off. As `torch.is_conj`."""
    shape_of(input, "is_conj")
    return False


def is_neg(input: Tensor) -> bool:
    """False: negation is never put off. As `torch.is_neg`."""
    shape_of(input, "is_neg")
    return False


def is_signed(input: Tensor) -> bool:
    """Whether the dtype has negative numbers. As `torch.is_signed`."""
    shape_of(input, "is_signed")
    return input.dtype.is_signed


def is_nonzero(input: Tensor) -> bool:
    """Whether the one element is not 0. As `torch.is_nonzero`. RuntimeError for any other number of elements."""
    shape_of(input, "is_nonzero")
    return bool(input)


def angle(input: Tensor) -> Tensor:
    """The angle of complex numbers to the positive axis; 0 or pi for real ones. As `torch.angle`."""
    shape_of(input, "angle")
    return E.angle(input if is_inexact(input._dtype()) else E.cast(input, dtype=default_float()))


def sgn(input: Tensor) -> Tensor:
    """z / |z|, 0 for 0; the sign of a real number. As `torch.sgn`."""
    shape_of(input, "sgn")
    return E.sgn(input)


def view_as_real(input: Tensor) -> Tensor:
    """The parts of complex numbers along a new last dim, a view. As `torch.view_as_real`."""
    return _checked("view_as_real", input)


def view_as_complex(input: Tensor) -> Tensor:
    """Complex numbers whose parts lie along the last dim, a view. As `torch.view_as_complex`, but for 16-bit floats."""
    if isinstance(input, Tensor) and input._dtype() == FLOAT16:
        raise NotImplementedError("view_as_complex of 16-bit floats: there is no dtype complex32 here")
    if isinstance(input, Tensor) and input._dtype().kind == "f" and input.shape[-1:] == (2,):
        *steps, last = input.stride()
        if last != 1:
            raise RuntimeError("Tensor must have a last dimension with stride 1")
        if any(step % 2 for step in steps):
            raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    return _checked("view_as_complex", input)


def complex(real: Tensor, imag: Tensor) -> Tensor:
    """Complex numbers from their parts. As `torch.complex`. RuntimeError unless both have one floating dtype."""
    shape_of(real, "complex", "real")
    shape_of(imag, "complex", "imag", 2)
    return E.complex(real, imag)


@whole("PolarBackward0")
def polar(abs: Tensor, angle: Tensor) -> Tensor:
    """Complex numbers from absolute value and angle. As `torch.polar`."""
    shape_of(abs, "polar", "abs")
    shape_of(angle, "polar", "angle", 2)
    names = torch_name(abs._dtype()), torch_name(angle._dtype())
    if any(t._dtype().kind != "f" for t in (abs, angle)):
        raise RuntimeError(
            f"Expected both inputs to be Half, Float or Double tensors but got {names[0]} and {names[1]}"
        )
    if abs._dtype() != angle._dtype():
        raise RuntimeError(
            f"Expected object of scalar type {names[0]} but got scalar type {names[1]} for second argument"
        )
    if is_half(abs._dtype()):
        raise NotImplementedError(f"\"polar_cpu\" not implemented for '{names[0]}'")
    return E.complex(E.mul(abs, E.cos(angle)), E.mul(abs, E.sin(angle)))


def adjoint(input: Tensor) -> Tensor:
    """The conjugate transpose of the last two dims. As `torch.adjoint`."""
    if len(shape_of(input, "adjoint")) < 2:
        raise RuntimeError(
            "tensor.adjoint() is only supported on matrices or batches of matrices. Got "
            f"{len(input._d.shape)}-D tensor."
        )
    return conj(transpose(input, -2, -1))


def matrix_adjoint(self: Tensor) -> Tensor:
    """The conjugate transpose of a matrix. As `torch.Tensor.H`. RuntimeError for other than a matrix."""
    if len(self._d.shape) not in (0, 2):
        raise RuntimeError(
            f"tensor.H is only supported on matrices (2-D tensors). Got {len(self._d.shape)}-D tensor."
            " For batches of matrices, consider using tensor.mH"
        )
    return adjoint(self) if self._d.shape else conj(self)
