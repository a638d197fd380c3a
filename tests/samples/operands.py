"""Operands of sample calls, from a short notation.

    f32[3,4]      uniform numbers in (-2, 2), integers from -4 to 5, bools
    f32[3,4]+     in (0.5, 2.5); integers from 1 to 6
    f32[3,4]1     in (-0.9, 0.9)
    i64[5]<3      integers from 0 to 2
    f32[3,4]t     the last two dims swapped in memory
    f32[3,4]s     every other element of a longer last dim
    f32[3,4]e     the first dim has stride 0
    f32[8]v       zeros of both signs, infinities, ties, a number near the smallest
    f32[8]n       the same with nan
    f64[3,3]p     symmetric (or Hermitian) positive definite in the last two dims
    f32[4]c       a constant: no gradient is asked for

Several marks may follow each other. The class letters A (all dtypes), N (numbers), R (real numbers), I (integers and
bool), F (real floats), D (float32 and float64), C (floats and complex), L (the wide ones of these) stand for each dtype
of the class in turn, the same for all operands of a call. A star instead of the shape stands for a set of shapes and
layouts.
"""

from __future__ import annotations

import itertools
import re
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

SHORT = {
    "bool": "bool", "u8": "uint8", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "f16": "float16",
    "bf16": "bfloat16", "f32": "float32", "f64": "float64", "c64": "complex64", "c128": "complex128",
}  # fmt: skip
_INTEGERS = ("u8", "i8", "i16", "i32", "i64")
_FLOATS = ("f16", "bf16", "f32", "f64")
CLASSES = {
    "A": ("bool", *_INTEGERS, *_FLOATS, "c64", "c128"),
    "N": (*_INTEGERS, *_FLOATS, "c64", "c128"),
    "R": (*_INTEGERS, *_FLOATS),
    "I": ("bool", *_INTEGERS),
    "F": _FLOATS,
    "D": ("f32", "f64"),
    "C": (*_FLOATS, "c64", "c128"),
    "L": ("f32", "f64", "c64", "c128"),
}
# what a star stands for: shapes and layouts that are tried in float32, float64 and int64 beside the plain one
LAYOUTS = ("[3,4]t", "[3,4]s", "[3,4]e", "[]", "[0,3]", "[12]v", "[12]nc")
_NOTATION = re.compile(r"(?P<dtype>[a-z]+\d*)\[(?P<shape>[\d,]*)\](?P<marks>[a-z+1]*)(?:<(?P<bound>\d+))?$")


class Operand(NamedTuple):
    """One operand: its name in the call and its notation, with a dtype and a shape."""

    name: str
    notation: str


def expand(operands: str) -> Iterator[tuple[Operand, ...]]:
    """Each choice of dtypes and layouts that `x:A[3,4] y:A[4]` stands for."""
    given = [Operand(*text.split(":", 1)) for text in operands.split()]
    starred = [i for i, o in enumerate(given) if "*" in o.notation]
    letter = next((o.notation[0] for o in given if o.notation[0] in CLASSES), "")
    plain = [_with_shape(o, "[3,4]") for o in given]
    dtypes = CLASSES[letter] if letter else ("",)
    yield from (tuple(_with_dtype(o, d) for o in plain) for d in dtypes)
    if starred:
        kinds = [d for d in ("f32", "f64", "i64") if d in dtypes] if letter else [""]
        for dtype, layout in itertools.product(kinds, LAYOUTS):
            if not (dtype == "i64" and layout[-1] in "vc"):
                yield tuple(_with_dtype(_with_shape(o, layout), dtype) for o in given)


def _with_shape(operand: Operand, shape: str) -> Operand:
    return operand._replace(notation=operand.notation.replace("*", shape))


def _with_dtype(operand: Operand, dtype: str) -> Operand:
    text = operand.notation
    return operand._replace(notation=dtype + text[1:]) if text[0] in CLASSES else operand


def make(torch: Any, operand: Operand) -> Any:
    """The operand as a tensor of `torch`, PyTorch or eager; it requires grad if it can and is no constant."""
    found = _NOTATION.match(operand.notation)
    assert found is not None, f"not an operand: {operand}"
    shape = tuple(int(n) for n in found["shape"].split(",") if n)
    marks, bound = found["marks"], found["bound"]
    rng = np.random.default_rng(zlib.crc32(f"{operand.name}:{operand.notation}".encode()))
    kind = found["dtype"]
    if "s" in marks:
        made = _tensor(torch, _values(rng, (*shape[:-1], 2 * shape[-1]), kind, marks, bound), kind)[..., ::2]
    elif "t" in marks:
        made = _tensor(torch, _values(rng, (*shape[:-2], *shape[:-3:-1]), kind, marks, bound), kind).mT
    elif "e" in marks:
        made = _tensor(torch, _values(rng, (1, *shape[1:]), kind, marks, bound), kind).expand(shape)
    else:
        made = _tensor(torch, _values(rng, shape, kind, marks, bound), kind)
    wanted = kind[0] in "fbc" and kind != "bool" and "c" not in marks
    return made.detach().requires_grad_(wanted)


def _tensor(torch: Any, values: np.ndarray, kind: str) -> Any:
    made = torch.tensor(values)
    return made.to(torch.bfloat16) if kind == "bf16" else made


def _values(rng: np.random.Generator, shape: tuple[int, ...], kind: str, marks: str, bound: str | None) -> np.ndarray:
    dtype = np.dtype(np.float32 if kind == "bf16" else SHORT[kind])
    uniform = rng.random(shape)
    if bound is not None:
        return np.asarray(uniform * int(bound)).astype(dtype)
    if dtype.kind == "b":
        return np.asarray(uniform < 0.5)
    if dtype.kind in "iu":
        low, high = (1, 7) if "+" in marks else (0, 6) if dtype.kind == "u" else (-4, 6)
        return np.asarray(np.floor(low + (high - low) * uniform)).astype(dtype)
    if "v" in marks or "n" in marks:
        return np.resize(_special(dtype, 0.25 if "v" in marks else np.nan), shape)
    low, high = (0.5, 2.5) if "+" in marks else (-0.9, 0.9) if "1" in marks else (-2, 2)
    values = low + (high - low) * uniform
    if dtype.kind == "c":
        values = values + 1j * (low + (high - low) * rng.random(shape))
    if "p" in marks:
        values = values @ values.conj().swapaxes(-1, -2) + 2 * np.eye(shape[-1])
    return np.asarray(values).astype(dtype)


def _special(dtype: np.dtype, other: float) -> np.ndarray:
    small = 64 * float(np.finfo(dtype).tiny)  # not the smallest: XLA takes denormal intermediate results for zero
    return np.array([0.0, -0.0, 1.0, 1.0, -1.0, np.inf, -np.inf, other, 0.5, 2.5, -2.5, small], dtype)
