"""One call each for those who add to the system: `check_op` for an op of one's own, `check_mode` for a mode."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from compare.cases.case import Case
from compare.checking.equivalence import check
from compare.checking.findings import Finding, Report
from compare.declared.operations import (
    IN_EVERY_MODE,
    OpsReport,
    check_sample,
    extremes_of,
    long_of,
    ops_named,
    samples_of,
)
from compare.declared.specimens import specimens
from compare.judging.tolerance import Verdict, same_bits
from compare.layouts.sweep import Sweep, promoted, trials_of
from compare.locating.capturing import RULE
from compare.locating.culprit import Culprit
from compare.modes import Mode
from graphc.ir.structure import every_node
from graphc.ops import Op, aval_of
from graphc.ops.aval import results_of, type_of, types_text
from graphc.ops.dtypes import BOOL, COMPLEX64, FLOAT16, FLOAT32, FLOAT64, INT32, INT64, UINT8
from graphc.ops.interpret import run_kernel
from graphc.ops.samples import Floats, Sample

DTYPES = (FLOAT32, FLOAT64, FLOAT16, COMPLEX64, INT64, INT32, UINT8, BOOL)
DECLARATION = "declaration"


def check_op(
    op: Op | str, *, dtypes: Sequence[np.dtype] = DTYPES, modes: Sequence[str | Mode] | None = None, seed: int = 0
) -> OpsReport:
    """Whether an op means the same in every mode, on everything that its declaration admits.

    The op is run on its samples, or, if it declares none, on equal shapes, shapes that broadcast, scalars and an empty
    array; at special places (ties, large numbers, zeros of both signs, infinities, nan, repeated indices); with extents
    so long that kernels take other ways; on operands in memory with gaps, in another order and out of alignment; with
    each of `dtypes` in place of its samples' floats, where a refusal has to be the same in every mode; and its
    gradients are differentiated once more. The rows "declaration" say whether the kernel gives the shape and dtype that
    the rule declares, leaves its operands alone, and returns memory of its own (unless the op is a view); and whether
    it, eager's code, the in-place form and `out=` give the same wherever operands and results lie. Of an op that runs
    graphs, a few programs with it are checked.

    op     declared with `graphc.ops.op`, or its name
    modes  see `check`

    Raises ValueError for a name that is not registered, and for an op that runs graphs on a mesh.

    >>> import compare
    >>> from graphc.ops import OPS, op
    >>> from graphc.ops.rules import pointwise_float
    >>> double = op("double_doc", "x", impl=lambda xp, x: x + x, rule=pointwise_float,
    ...             vjp=dict(x=lambda F, g: 2 * g))
    >>> compare.check_op(double, dtypes=[]).ok
    True
    >>> OPS.remove("double_doc")
    """
    if isinstance(op, str):
        (op,) = ops_named([op])
    reports = _program_reports(op, modes, seed) if op.structured else _op_reports(op, dtypes, modes, seed)
    return OpsReport(tuple((op.name, report) for report in reports))


def _op_reports(op: Op, dtypes: Sequence[np.dtype], modes: Sequence[str | Mode] | None, seed: int) -> Iterator[Report]:
    samples = list(samples_of(op))
    if not op.samples and op.args:
        empty = [spec._replace(shape=(0, *spec.shape[1:])) for spec in samples[0].inputs]
        samples.append(Sample(*empty, **samples[0].params))
    first = samples[0]
    order = 2 if op.differentiable else 1
    for sample in samples:
        yield Report(f"{op.name}[{sample!r}]", (DECLARATION,), tuple(_declared(op, sample, seed)), seed)
        yield check_sample(op, sample, modes=modes, seed=seed, order=order if sample is first else 1)
    for sample in (*extremes_of(op), *long_of(op)):
        yield check_sample(op, sample, modes=modes, seed=seed)
    if any(s.shape for s in first.inputs):
        for layout in IN_EVERY_MODE:
            yield check_sample(op, first, modes=modes, seed=seed, layout=layout)
    if any(isinstance(s, Floats) for s in first.inputs):
        for dtype in dtypes:
            if dtype != FLOAT32:
                yield check_sample(op, first, modes=modes, seed=seed, dtype=np.dtype(dtype))


def _program_reports(op: Op, modes: Sequence[str | Mode] | None, seed: int) -> list[Report]:
    """`check` of the specimens whose graphs have the op."""
    found: list[Report] = []
    for _, fn, args in specimens(seed):
        program = Case(fn, args, {}, seed).program
        if program is not None and any(node.op is op for node in every_node(program.graph)):
            found.append(check(fn, *args, modes=modes, seed=seed))
    if not found:
        raise ValueError(f"'{op.name}' runs graphs on a mesh: check a function that uses it")
    return found


def _declared(op: Op, sample: Sample, seed: int) -> Iterator[Finding]:
    """What the kernel does, beside what the declaration says."""
    given = [np.asarray(a) for a in sample.arrays(np.random.default_rng(seed), op.domain, FLOAT32)]
    arrays = promoted(op, given, sample.params)
    kept = [a.copy() for a in arrays]
    result = run_kernel(op, arrays, {**op.params, **sample.params})
    declared = op.rule.infer(op, [aval_of(a) for a in kept], {**op.params, **sample.params})
    said, got = (types_text(avals if op.several else (avals,)) for avals in (declared, type_of(result)))
    yield _declaration(op, "shape and dtype", RULE, said == got, f"the rule says {said}, the kernel gives {got}")
    written = [op.arg_of(k) for k, (a, b) in enumerate(zip(arrays, kept, strict=True)) if not same_bits(a, b)]
    yield _declaration(op, "operands", "kernel", not written, f"the kernel writes to {', '.join(written)}")
    results = results_of(result)
    shared = [op.arg_of(k) for k, a in enumerate(arrays) if any(np.shares_memory(r, a) for r in results)]
    yield _declaration(
        op, "memory of the result", "kernel", op.view or not shared, f"it is that of {', '.join(shared)}"
    )
    deviations = list(Sweep(op, sample.params).run(trials_of(kept)))
    yield _declaration(op, "layouts", "kernel", not deviations, "; ".join(map(str, deviations[:3])))


def _declaration(op: Op, what: str, part: str, holds: bool, otherwise: str) -> Finding:
    if holds:
        return Finding(DECLARATION, what, Verdict.IDENTICAL)
    return Finding(DECLARATION, what, Verdict.BUG, otherwise, Culprit(part, op.name, evidence=otherwise))


def check_mode(mode: Mode | str, *, names: Sequence[str] = (), seed: int = 0) -> OpsReport:
    """Whether a mode agrees with eager: on a sample of each op (or of those named), and on a few programs.

    mode  a `compare.modes.Mode`, registered or not, or the name of a registered one
    Raises ValueError for an op or a mode that is not registered.

    >>> import compare
    >>> class Again:
    ...     name, wide, repeats = "again", False, False
    ...     def run(self, case): return case.observe(case.fn)
    ...     def locate(self, case, label, outcome): return None
    >>> compare.check_mode(Again(), names=["tanh"]).ok
    True
    """
    found = [(op.name, check_sample(op, next(samples_of(op)), modes=[mode], seed=seed)) for op in ops_named(names)]
    found += [(name, check(fn, *args, modes=[mode], seed=seed)) for name, fn, args in specimens(seed)]
    return OpsReport(tuple(found))
