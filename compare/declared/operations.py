"""Every op of the registry, in every mode, on the samples that it declares for itself."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np

from compare.checking.equivalence import check
from compare.checking.findings import Report
from compare.judging.tolerance import Verdict
from compare.layouts.layout import laid_out
from compare.modes import Mode
from eager.core.tensor import Tensor
from eager.engine.language import E
from graphc.display import Block, Displayed, Remark, Table
from graphc.ops import OPS, Op, Trait
from graphc.ops.aval import aval_of
from graphc.ops.dtypes import FLOAT32, is_inexact
from graphc.ops.interpret import run_kernel
from graphc.ops.rules import integral
from graphc.ops.samples import Bools, Far, Floats, Ints, Odd, Sample, Ties

_SHAPES: tuple[tuple[tuple[int, ...], ...], ...] = (
    ((3, 4), (3, 4), (3, 4)), ((2, 1, 3), (4, 1), (3,)), ((), (2,), ()), ((), (), ()),
)  # fmt: skip
_INTEGERS = (-8, 8)
_LENGTHS = (4099, 259, 67)  # odd, beyond the blocks of NumPy and XLA; the first that is not too much
_MOST = 13_000  # elements
_EXTENTS = {"shape", "size"}  # parameters that say how long operands or results are
IN_EVERY_MODE = ("step 2", "column by column, step 4", "step 3, one byte off")  # layouts that samples are checked in


@final
@dataclass(frozen=True, repr=False)
class OpsReport(Displayed):
    """One `Report` for each sample of each op, named "op[sample]"."""

    reports: tuple[tuple[str, Report], ...]

    @property
    def ok(self) -> bool:
        """Whether every report is."""
        return all(report.ok for _, report in self.reports)

    def rows(self) -> dict[str, dict[str, Verdict]]:
        """op -> mode -> the worst verdict over the samples."""
        rows: dict[str, dict[str, Verdict]] = {}
        for name, report in self.reports:
            row = rows.setdefault(name, {})
            for mode in report.modes:
                column = "passes" if mode.startswith("pass ") else mode
                row[column] = max(row.get(column, Verdict.NO_OPINION), report.verdict_of(mode))
        return rows

    def blocks(self) -> Iterator[Block]:
        """How many samples agree; a row for each op; and the reports that are not in order."""
        rows = self.rows()
        columns = list(dict.fromkeys(mode for row in rows.values() for mode in row))
        good = sum(report.ok for _, report in self.reports)
        summary = f"{len(rows)} ops, {len(self.reports)} samples: {good} agree"
        yield Remark(summary, "good" if self.ok else "bad")
        cells = [[name, *(Remark(str(row[c]), row[c].kind) for c in columns)] for name, row in rows.items()]
        yield Table(cells, ("op", *columns))
        for _, report in self.reports:
            if not report.ok:
                yield from report.blocks()

    def to_dict(self) -> dict[str, Any]:
        """The reports as plain values."""
        return {"ok": self.ok, "ops": [{"op": name, **report.to_dict()} for name, report in self.reports]}


def check_ops(names: Sequence[str] = (), modes: Sequence[str] | None = None, seed: int = 0) -> OpsReport:
    """`check` each op (all of them, or those named) on its samples.

    Raises ValueError for an op that is not registered.
    """
    found = [
        (op.name, check_sample(op, sample, modes=modes, seed=seed))
        for op in ops_named(names)
        for sample in samples_of(op)
    ]
    return OpsReport(tuple(found))


def ops_named(names: Sequence[str]) -> list[Op]:
    """The ops of these names; all that run no graphs, without names. Raises ValueError."""
    if unknown := [name for name in names if name not in OPS]:
        raise ValueError(f"no op named '{unknown[0]}'")
    return [OPS[name] for name in names] if names else [op for op in OPS.values() if not op.structured]


def check_sample(
    op: Op,
    sample: Sample,
    *,
    modes: Sequence[str | Mode] | None = None,
    seed: int = 0,
    dtype: np.dtype = FLOAT32,
    order: int = 1,
    layout: str = "",
) -> Report:
    """`check` one op on one of its samples, with floats of `dtype`, whose operands have a `layout` of `layouts_of`."""
    rng = np.random.default_rng((seed, zlib.crc32(f"{op.name}{sample!r}".encode())))
    call = call_of(op, sample, rng, dtype, layout)
    return check(call.function, *call.operands, modes=modes, seed=seed, order=order)


class OpCall(NamedTuple):
    """An op with the parameters of a sample, as a function of operands, and operands for it."""

    op: Op
    function: Callable[..., Any]
    operands: tuple[Tensor, ...]


def call_of(op: Op, sample: Sample, rng: np.random.Generator, dtype: np.dtype, layout: str = "") -> OpCall:
    """A sample with operands drawn from `rng`, floats of `dtype`; those that have a gradient rule require grad."""
    arrays = [np.asarray(a) for a in sample.arrays(rng, op.domain, dtype)]
    tensors = [Tensor._wrap(laid_out(a, layout)) for a in arrays]
    for k, tensor in enumerate(tensors):
        if op.arg_of(k) in op.vjp and is_inexact(tensor._dtype()):
            tensor.requires_grad_()

    function, params = getattr(E, op.name), sample.params

    def call(*operands: Tensor) -> Any:
        return function(*operands, **params)

    call.__name__ = (
        f"{op.name}[{sample!r}]" + (f" in {dtype}" if dtype != FLOAT32 else "") + (f", {layout}" if layout else "")
    )
    return OpCall(op, call, tuple(tensors))


def samples_of(op: Op) -> Iterator[Sample]:
    """The op's own samples, or, for an op without parameters, equal shapes, broadcast shapes and scalars."""
    if op.samples:
        yield from op.samples
        return
    params = {name: np.dtype(np.float64) for name in op.params if name == "dtype"}
    for shapes in _SHAPES:
        yield Sample(*(_operand(op, k, shape) for k, shape in enumerate(shapes[: len(op.args)])), **params)


def extremes_of(op: Op) -> Iterator[Sample]:
    """The op's samples at special places (see `Sample.extremes`): the first of each rank of operands, and of each set
    of operands."""
    seen: set[object] = set()
    for sample in samples_of(op):
        ranks = tuple((type(s), len(s.shape)) for s in sample.inputs)
        if ranks not in seen:
            seen.add(ranks)
            if op.rule.infer is integral.infer and sample.inputs[0].shape:
                yield Sample(*(Far(s.shape) for s in sample.inputs), **sample.params)
            for extreme in sample.extremes():
                odd = any(isinstance(s, Odd) for s in extreme.inputs)
                if not (odd and op.traits & Trait.PADS):  # 0 * inf may be among its products, or not
                    yield extreme


def long_of(op: Op) -> Iterator[Sample]:
    """The op's first sample with one extent, wherever operands have it, so long that kernels may take another way: by
    blocks, in another precision, by another algorithm. Of ops that order, with ties and nan as well."""
    first = next(samples_of(op))
    if first.params.keys() & _EXTENTS:  # these would have to change as well
        return
    for extent in sorted({n for s in first.inputs for n in s.shape if n > 1}, reverse=True)[
        : 1 if op.pointwise else None
    ]:
        for length in _LENGTHS:
            sample = Sample(*(_with_extent(s, extent, length) for s in first.inputs), **first.params)
            if _is_admitted(op, sample):
                yield sample
                if op.traits & Trait.ORDERS:
                    yield from (s for s in sample.extremes() if isinstance(s.inputs[0], (Ties, Odd)))
                break


def _with_extent(spec: Any, extent: int, length: int) -> Any:
    return spec._replace(shape=tuple(length if n == extent else n for n in spec.shape))


def _is_admitted(op: Op, sample: Sample) -> bool:
    """Whether the op takes operands of these shapes, and they are none too large."""
    if sum(math.prod(s.shape) for s in sample.inputs) > _MOST:
        return False
    arrays = [np.asarray(a) for a in sample.arrays(np.random.default_rng(0), op.domain, FLOAT32)]
    avals, params = list(map(aval_of, arrays)), {**op.params, **sample.params}
    try:
        result = op.rule.infer(op, avals, params)
        work = op.flops(avals, result, params) if op.flops is not None else 0
        if sum(a.size for a in (result if op.several else (result,))) > _MOST or work > _MOST * 100:
            return False
        run_kernel(op, arrays, params)  # parameters may be for other extents
    except (RuntimeError, ValueError, IndexError, TypeError, NotImplementedError):
        return False
    return True


def _operand(op: Op, k: int, shape: tuple[int, ...]) -> Any:
    if op.rule.infer is integral.infer:
        low, high = op.domain or _INTEGERS
        return Ints(shape, high, low)
    return Bools(shape) if k < op.rule.first else Floats(shape)
