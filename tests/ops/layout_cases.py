"""Operands of every op for sweeps over memory layouts: in each dtype that it takes, of lengths around vectors'."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from compare.declared.operations import samples_of
from compare.layouts.sweep import promoted
from graphc.ops import OPS, Op
from graphc.ops.dtypes import SHORT_NAMES, bfloat16, is_inexact
from graphc.ops.samples import Floats, Sample

DTYPES = tuple(dict.fromkeys((*SHORT_NAMES, bfloat16())))
LENGTHS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 31, 33, 65)  # around 2, 4, 8, 16, 32 and 64 elements
FEW = (1, 4, 9, 33)
STEPS = range(-17, 18)
BLOCKED = 2**13 + 5  # elements, from which on kernels that work block by block do so
SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1.0)

# those of control flow, and `where` what is run are graphs, lay out nothing themselves: tests/compile/test_layouts.py
SWEPT = [op for op in OPS.values() if op.args and not op.structured]


class Operands(NamedTuple):
    """Operands in the dtype in which an op computes, and its parameters."""

    arrays: Sequence[np.ndarray]
    params: Mapping[str, Any]


def operands_of(op: Op, dtypes: Sequence[np.dtype] = DTYPES, large: bool = True) -> Iterator[Operands]:
    """Each sample of `op` in each of `dtypes` that it takes, and a large one."""
    samples = list(samples_of(op))
    for dtype in dtypes:
        for sample in (*samples, *(_enlarged(op, samples[0]) if large else ())):
            found = _drawn(op, sample, dtype)
            if found is not None:
                yield Operands(found, sample.params)


def rows_for(op: Op, dtypes: Sequence[np.dtype] = DTYPES) -> Iterator[Operands]:
    """1-d operands of the greatest of `LENGTHS` for a pointwise op, with special numbers among them."""
    sample = next(iter(samples_of(op)))
    specs = [spec._replace(shape=(max(LENGTHS),)) for spec in sample.inputs]
    for dtype in dtypes:
        found = _drawn(op, Sample(*specs, **sample.params), dtype)
        if found is not None:
            for k, array in enumerate(found):
                if is_inexact(array.dtype):
                    array[k + 3 :: 11] = np.resize(np.array(SPECIAL), len(array[k + 3 :: 11])).astype(array.dtype)
            yield Operands(found, sample.params)


def _drawn(op: Op, sample: Sample, dtype: np.dtype) -> list[np.ndarray] | None:
    """The operands of a sample with `dtype` for its floats; None if the op does not compute in that."""
    rng = np.random.default_rng(zlib.crc32(f"{op.name}{sample!r}".encode()))
    given = [np.array(a) for a in sample.arrays(rng, op.domain)]
    kinds = {a.dtype.kind for a in given}
    changed = next((k for k in "fci" if k in kinds), "b")  # the kind of the operands that come in each dtype
    if (changed == "c" and dtype.kind != "c") or (changed in "ib" and dtype.kind not in "iub"):
        return None
    if changed in "ib" and not op.pointwise and dtype != next(a.dtype for a in given if a.dtype.kind == changed):
        return None  # indices and masks
    wanted = [_cast(a, dtype) if a.dtype.kind == changed else a for a in given]
    try:
        found = promoted(op, wanted, sample.params)
    except Exception:  # PyTorch's refusal of the dtype
        return None
    if [a.dtype for a in found] != [a.dtype for a in wanted]:
        return None  # it computes in another, which has its turn
    checked = op.check is None or op.check.ok(np, *found, **{**op.params, **sample.params})
    return found if checked else None


def _cast(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Numbers of `dtype`: integers, and other parts than real ones, where it has them."""
    if dtype.kind in "iu" and array.dtype.kind == "f":
        return np.round(np.abs(array) * 3 + 1).astype(dtype)
    if dtype.kind == "c" and array.dtype.kind == "f":
        return (array + 0.25j * array).astype(dtype)
    return array.astype(dtype)


def _enlarged(op: Op, sample: Sample) -> Iterator[Sample]:
    """The sample with many elements along the axis that an op works along."""
    axis = sample.params.get("axis")
    axis = axis[0] if isinstance(axis, tuple) and axis else axis
    shapes = {spec.shape for spec in sample.inputs}
    alike = all(isinstance(spec, Floats) for spec in sample.inputs) and len(shapes) == 1
    if not isinstance(axis, int) or not alike or not shapes or not next(iter(shapes)):
        return
    (shape,) = shapes
    places = axis % len(shape)
    larger = tuple(BLOCKED if k == places else n for k, n in enumerate(shape))
    yield Sample(*(spec._replace(shape=larger) for spec in sample.inputs), **sample.params)
