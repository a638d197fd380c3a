"""Complex numbers and their parts.

A gradient with respect to a complex z is dL/dRe(z) + i dL/dIm(z), as in PyTorch; the rules here are written for that.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from graphc.ops import strides
from graphc.ops.aval import Aval
from graphc.ops.dtypes import FLOAT16, complex_of, real_of
from graphc.ops.lens import Lens
from graphc.ops.references import Each
from graphc.ops.rounding import EXACT, Rounding
from graphc.ops.rules import broadcast_shapes, refused, same, torch_name
from graphc.ops.samples import Complexes, Sample
from graphc.ops.spec import Op, Rule, Trait, op

NOT_COMPLEX = "{} is not implemented for tensors with non-complex dtypes."


def _part(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    (z,) = avals
    if z.dtype.kind != "c":
        raise RuntimeError(NOT_COMPLEX.format(op.name))
    return Aval(z.shape, real_of(z.dtype))


def _complex(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    a, b = avals
    names = torch_name(a.dtype), torch_name(b.dtype)
    if a.dtype.kind != "f" or b.dtype.kind != "f":
        raise RuntimeError(
            f"Expected both inputs to be Half, Float or Double tensors but got {names[0]} and {names[1]}"
        )
    if a.dtype != b.dtype:
        raise RuntimeError(
            f"Expected object of scalar type {names[0]} but got scalar type {names[1]} for second argument"
        )
    return Aval(broadcast_shapes([a.shape, b.shape]), complex_of(a.dtype))


def _join(re: np.ndarray, im: np.ndarray) -> np.ndarray:
    # part by part: re + 1j * im would turn an infinite part into nan in the other
    z = np.empty(np.broadcast_shapes(re.shape, im.shape), complex_of(re.dtype))
    z.real, z.imag = re, im
    return z


def _joined(xp: Any, re: Any, im: Any) -> Any:
    return (re + 1j * im).astype(complex_of(re.dtype))


def _as_real(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    (z,) = avals
    if z.dtype.kind != "c":
        raise RuntimeError("view_as_real is only supported for complex tensors")
    return Aval((*z.shape, 2), real_of(z.dtype))


def _as_complex(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    (x,) = avals
    if x.dtype == FLOAT16:  # there is no complex dtype with such parts
        raise refused(op, x.dtype)
    if x.dtype.kind != "f":
        raise RuntimeError(
            "view_as_complex is only supported for half, bfloat16, float and double tensors, but got a tensor of "
            f"scalar type: {torch_name(x.dtype)}"
        )
    if not x.ndim:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if x.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    return Aval(x.shape[:-1], complex_of(x.dtype))


def _np_as_complex(x: np.ndarray) -> np.ndarray:
    if x.strides[-1] != x.itemsize or any(step % (2 * x.itemsize) for step in x.strides[:-1]):
        x = np.ascontiguousarray(x)  # eager refuses; in a graph arrays have no strides
    return x.view(complex_of(x.dtype))[..., 0]


def _pairs(xp: Any, z: Any) -> Any:
    return xp.stack([z.real, z.imag], axis=-1)


def _angle(xp: Any, z: Any) -> Any:
    # of a real number PyTorch gives 0 or pi, and nan for nan
    return xp.arctan2(z.imag, z.real) if z.dtype.kind == "c" else xp.where(z < 0, np.pi, xp.where(z == z, 0, z))


def _phase(z: Any) -> float:
    if isinstance(z, builtins.complex):
        return math.atan2(z.imag, z.real)
    return z if z != z else math.pi if z < 0 else 0.0


def _typed_angle(xp: Any, z: Any) -> Any:
    return _angle(xp, z).astype(real_of(z.dtype))


def _angle_type(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    return Aval(avals[0].shape, real_of(avals[0].dtype))


def _angle_vjp(F: Any, g: Any, input: Any, input_shape: Any, input_dtype: Any) -> Any:
    if input_dtype.kind != "c":
        return g * 0
    x, y = F.real(input), F.imag(input)
    norm = x * x + y * y
    zero = norm == 0
    scale = g / F.where(zero, 1, norm)
    return F.where(zero, 0, F.complex(-(y * scale), x * scale))


def _only_imaginary(F: Any, g: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    return F.complex(F.full(shape=shape, value=0, dtype=real_of(dtype)), g)


def _np_conj(z: np.ndarray) -> np.ndarray:
    return np.conj(z) if z.dtype.kind != "b" else z.copy()  # of which NumPy makes int8


_Z = Sample(Complexes((3, 4)))

conj = op("conj", "input", impl="conj", numpy=_np_conj, rule=same, traits=Trait.MOVES,
          ref=Each(lambda z: z.conjugate()), samples=(_Z, Sample((3, 4))),
          vjp=dict(input=lambda F, g: F.conj(g)))  # fmt: skip
real = op("real", "input", impl="real", rule=Rule(_part), traits=Trait.VIEW, label="Select", samples=(_Z,),
          rounding=EXACT, lens=Lens(lambda F, whole, part: F.complex(part, F.imag(whole)), strides.of_real),
          ref=Each(lambda z: z.real),
          vjp=dict(input=lambda F, g, input_dtype: F.cast(g, dtype=input_dtype)))  # fmt: skip
imag = op("imag", "input", impl="imag", rule=Rule(_part), traits=Trait.VIEW, label="Select", samples=(_Z,),
          rounding=EXACT, lens=Lens(lambda F, whole, part: F.complex(F.real(whole), part), strides.of_imag),
          ref=Each(lambda z: z.imag),
          vjp=dict(input=lambda F, g, input_shape, input_dtype: _only_imaginary(
              F, g, input_shape, input_dtype)))  # fmt: skip
complex = op("complex", "real imag", impl=_joined, numpy=_join, rule=Rule(_complex),
             traits=Trait.BROADCASTS, rounding=EXACT, ref=lambda re, im: re + 1j * im,
             samples=(Sample((3, 4), (3, 4)),),
             vjp=dict(real=lambda F, g, real_dtype: F.cast(F.real(g), dtype=real_dtype),
                       imag=lambda F, g, imag_dtype: F.cast(F.imag(g), dtype=imag_dtype)))  # fmt: skip
angle = op("angle", "input", impl=_typed_angle, rule=Rule(_angle_type, "float", pointwise=False), samples=(_Z,),
           rounding=Rounding(3.0), ref=Each(_phase), vjp=dict(input=_angle_vjp))  # fmt: skip
view_as_real = op("view_as_real", "input", impl=_pairs,
                  numpy=lambda z: np.expand_dims(z, -1).view(real_of(z.dtype)), rule=Rule(_as_real), traits=Trait.VIEW,
                  rounding=EXACT, lens=Lens(lambda F, whole, part: F.view_as_complex(part), strides.of_pairs),
                  samples=(_Z,), ref=lambda z: np.array([[[v.real, v.imag] for v in row] for row in z]),
                  vjp=dict(input=lambda F, g: F.view_as_complex(F.clone(g))))  # fmt: skip
view_as_complex = op("view_as_complex", "input", impl=lambda xp, x: _joined(xp, x[..., 0], x[..., 1]),
                     numpy=_np_as_complex, rule=Rule(_as_complex), traits=Trait.VIEW, samples=(Sample((3, 2)),),
                     rounding=EXACT, lens=Lens(lambda F, whole, part: F.view_as_real(part), strides.of_joined),
                     ref=lambda x: np.array([builtins.complex(*pair) for pair in x]),
                     vjp=dict(input=lambda F, g: F.view_as_real(g)))  # fmt: skip
