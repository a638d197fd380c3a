"""`check`: run a function in every mode and judge the differences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from compare.case import Case
from compare.localize import KINK
from compare.modes import EAGER, Mode, modes_named
from compare.outcome import Outcome, same_structure
from compare.report import Finding, Report
from compare.tolerance import INDEPENDENT, Judgement, Verdict, judge, same_bits
from compare.yardstick import stand_in
from graphc.errors import CaptureError
from graphc.ops.aval import aval_of


def check(
    fn: Callable[..., Any], *args: Any, modes: Sequence[str] | None = None, seed: int = 0, **kwargs: Any
) -> Report:
    """Whether `fn(*args, **kwargs)` means the same in every mode.

    Compared with eager: exceptions, the structure of the result, shapes, dtypes, values, the gradient of every input
    that requires grad under random cotangents, and what the call changes; in eager and compiled mode also a second
    call. Inputs are the Tensors in `args` and `kwargs`, in any nest, and those that `fn` reaches by itself. Tensors,
    `.grad` and the default generator are left as they were found; other Python state that `fn` changes is not.

    modes   names of registered modes; "passes" is one for each pass of the optimizer. None: all
    seed    of the cotangents

    Raises ValueError for an unknown mode.

    >>> import eager as torch, compare
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> report = compare.check(lambda x: (x * x).sum(), x)
    >>> report.ok
    True
    """
    chosen = modes_named(modes)
    case = Case(fn, args, kwargs, seed)
    reference = EAGER.run(case)
    findings: list[Finding] = []
    for mode in chosen:
        outcome = reference if mode is EAGER else mode.run(case)
        findings += _findings(case, mode, reference, outcome)
        if mode.repeats and outcome.error is None:
            findings += _repeated(case, mode, outcome, mode.run(case))
    return Report(case.name, tuple(m.name for m in chosen), tuple(findings), seed)


def _findings(case: Case, mode: Mode, reference: Outcome, outcome: Outcome) -> Iterator[Finding]:
    if mode is EAGER:
        return
    if outcome.silent:
        yield Finding(mode.name, "everything", Verdict.NO_OPINION, outcome.silent)
    elif mode.wide:
        yield from _opinions(case, mode, reference, outcome)
    elif reference.error is not None or outcome.error is not None:
        yield _exceptions(case, mode, reference, outcome)
    else:
        found = list(_differences(case, mode, reference, outcome))
        where = _narrow_decision(case) if any(f.verdict is Verdict.BUG for f in found) else ""
        yield from (_on_another_path(f, where) for f in found) if where else found


def _exceptions(case: Case, mode: Mode, reference: Outcome, outcome: Outcome) -> Finding:
    expected, raised = reference.error, outcome.error
    if expected is not None and type(raised) is type(expected):
        return Finding(mode.name, "exception", Verdict.IDENTICAL, type(expected).__name__)
    detail = f"{_described(raised)}, eager {_described(expected)}"
    if expected is None and isinstance(raised, CaptureError):
        return Finding(mode.name, "exception", Verdict.UNSUPPORTED, detail)
    return Finding(mode.name, "exception", Verdict.BUG, detail, mode.locate(case, "", outcome))


def _described(error: Exception | None) -> str:
    if error is None:
        return "returns"
    return f"raises {type(error).__name__}: {' '.join(str(error).split())}"


def _narrow_decision(case: Case) -> str:
    """The line in which Python decides on a value that rounding can change; "" if there is none."""
    decisions = () if case.program is None else case.program.decisions
    spreads = ((d.where, case.yardstick.noise.get(d.id)) for d in decisions)
    return next((where for where, s in spreads if s is not None and s.dtype == bool and s.any()), "")


def _on_another_path(finding: Finding, where: str) -> Finding:
    """`finding`, if Python decides in the line `where` on a value within rounding of its threshold."""
    if finding.verdict is not Verdict.BUG:
        return finding
    detail = f"the decision at {where} is within rounding: another path was taken"
    return Finding(finding.mode, finding.what, Verdict.WITHIN_ROUNDING, detail)


def _differences(case: Case, mode: Mode, reference: Outcome, outcome: Outcome) -> Iterator[Finding]:
    if not same_structure(reference.structure, outcome.structure):
        detail = f"{outcome.structure!r}, eager gives {reference.structure!r}"
        yield Finding(mode.name, "structure", Verdict.BUG, detail)
        return
    for label, flag in reference.requires_grad.items():
        if outcome.requires_grad[label] is not flag:
            detail = f"{outcome.requires_grad[label]}, eager has {flag}"
            yield Finding(mode.name, f"requires_grad of {label}", Verdict.BUG, detail)
    expected, found = reference.arrays(), outcome.arrays()
    for label in expected.keys() | found.keys():
        if label not in found or label not in expected:
            who = "only eager" if label not in found else f"only {mode.name}"
            yield Finding(mode.name, label, Verdict.BUG, f"{who} has it", mode.locate(case, "", outcome))
    for label in (label for label in expected if label in found):
        yield _array(case, mode, label, expected[label], outcome)


def _array(case: Case, mode: Mode, label: str, expected: np.ndarray, outcome: Outcome) -> Finding:
    found = outcome.arrays()[label]
    declared = outcome.declared.get(label, aval_of(found))
    for what, aval in (("declared", declared), ("found", aval_of(found))):
        if aval.shape != expected.shape or aval.dtype != expected.dtype:
            detail = f"{what} {aval}, eager has {aval_of(expected)}"
            part = "shape" if aval.shape != expected.shape else "dtype"
            return Finding(mode.name, f"{part} of {label}", Verdict.BUG, detail, mode.locate(case, label, outcome))
    judgement = _judged(case, label, found, expected)
    culprit = mode.locate(case, label, outcome) if judgement.verdict is Verdict.BUG else None
    return Finding(mode.name, label, judgement.verdict, judgement.detail, culprit)


def _judged(case: Case, label: str, found: np.ndarray, expected: np.ndarray) -> Judgement:
    if same_bits(found, expected):
        return Judgement(Verdict.IDENTICAL)
    if case.program is None or case.keeps_containers:  # one graph does not show what it has computed
        return judge(found, expected, *stand_in(expected))
    joint = case.joint
    if label not in joint.labels:
        return Judgement(Verdict.BUG, "the captured program does not compute it")
    id = joint.graph.outputs[joint.labels.index(label)]
    return judge(found, expected, *case.yardstick.of(id, expected))


def _opinions(case: Case, mode: Mode, reference: Outcome, outcome: Outcome) -> Iterator[Finding]:
    if reference.error is not None:
        yield Finding(mode.name, "gradients", Verdict.NO_OPINION, "eager raises")
        return
    joint, yardstick = case.wide_joint, case.wide_yardstick
    for label, found in outcome.gradients.items():
        id = joint.graph.outputs[joint.labels.index(label)]
        exact = yardstick.exact.get(id)
        if exact is None or exact.shape != found.shape:
            yield Finding(mode.name, label, Verdict.NO_OPINION, "the graph has no float64 run")
            continue
        bar: Any = outcome.error_bars.get(label, 0.0)
        judgement = judge(found, exact, exact, yardstick.noise[id], slack=INDEPENDENT, error_bar=bar)
        yield _opinion(case, mode, label, outcome, judgement)


def _opinion(case: Case, mode: Mode, label: str, outcome: Outcome, judgement: Judgement) -> Finding:
    if judgement.verdict is not Verdict.BUG:
        return Finding(mode.name, label, judgement.verdict, judgement.detail)
    culprit = mode.locate(case, label, outcome)
    verdict = Verdict.CONVENTION if culprit is not None and culprit.part == KINK else Verdict.BUG
    return Finding(mode.name, label, verdict, judgement.detail, culprit)


def _repeated(case: Case, mode: Mode, first: Outcome, second: Outcome) -> Iterator[Finding]:
    """A second call from the same state. Only what differs is a finding."""
    if second.error is not None:
        yield Finding(mode.name, "second call", Verdict.BUG, _described(second.error))
        return
    before: Mapping[str, np.ndarray] = first.arrays()
    for label, again in second.arrays().items():
        if label not in before or not same_bits(again, before[label]):
            yield Finding(mode.name, f"second call: {label}", Verdict.BUG, "differs from the first call's")
    if not same_structure(first.structure, second.structure):
        yield Finding(mode.name, "second call: structure", Verdict.BUG, f"{second.structure!r}")
