"""The outcome of one mode beside eager's: what differs, what each difference is worth, and what is to blame."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from compare.cases.case import Case
from compare.cases.outcome import Outcome, largest_difference, opaque_in, same_structure
from compare.cases.sharing import differences
from compare.checking.findings import Finding
from compare.checking.judged_gradients import opinions_of
from compare.judging.alternatives import REORDERED
from compare.judging.tolerance import (
    IN_RANGE,
    INDEPENDENT,
    Judgement,
    Verdict,
    close,
    in_range,
    judge,
    judge_in_float64,
    same_bits,
)
from compare.judging.work import JUDGED, LOCATED
from compare.judging.yardstick import stand_in
from compare.locating.batching import in_batching, independent_of_batching
from compare.locating.culprit import KINK, Culprit
from compare.locating.surroundings import in_surroundings
from compare.modes import EAGER, Mode
from compare.modes.protocol import is_foreign
from graphc.errors import CaptureError, ProcessorError
from graphc.ir import INPUT
from graphc.ir.structure import every_node
from graphc.ops.aval import aval_of
from graphc.ops.dtypes import is_inexact

SECOND = "second call: "  # what a finding about it begins with
# PyTorch's cond gives zeros, too
UNREAD = (
    "an operand of control flow that this call does not read has no gradient in eager mode, and zeros in one program"
)


def findings_of(case: Case, mode: Mode, reference: Outcome, outcome: Outcome) -> Iterator[Finding]:
    """What `outcome`, of `mode`, is worth beside eager's."""
    if mode is EAGER:
        yield from _own_gradients(case, reference)
        yield from _own_batching(case, reference)
    elif outcome.silent:
        yield Finding(mode.name, "everything", Verdict.NO_OPINION, outcome.silent)
    elif outcome.objections is not None:
        yield from _objections(mode, outcome, reference)
    elif mode.wide:
        yield from opinions_of(case, mode, reference, outcome)
    elif reference.error is not None or outcome.error is not None:
        yield _exceptions(case, mode, reference, outcome)
    else:
        found = list(_differences(case, mode, reference, outcome))
        where = _narrow_decision(case) if any(f.verdict is Verdict.BUG for f in found) else ""
        yield from (_on_another_path(f, where) for f in found) if where else found


def _objections(mode: Mode, outcome: Outcome, reference: Outcome) -> Iterator[Finding]:
    if reference.error is not None and not outcome.objections:
        yield Finding(mode.name, "everything", Verdict.NO_OPINION, "eager raises")
    elif not outcome.objections:
        yield Finding(mode.name, "everything", Verdict.WITHIN_ROUNDING, "no reference objects")
    for what, verdict, detail, culprit in outcome.objections or ():
        yield Finding(mode.name, what, verdict, detail, culprit)


def _exceptions(case: Case, mode: Mode, reference: Outcome, outcome: Outcome) -> Finding:
    expected, raised = reference.error, outcome.error
    if expected is not None and type(raised) is type(expected):
        return Finding(mode.name, "exception", Verdict.IDENTICAL, type(expected).__name__)
    detail = f"{_described(raised)}, eager {_described(expected)}"
    if expected is None and isinstance(raised, CaptureError):
        return Finding(mode.name, "exception", Verdict.UNSUPPORTED, detail)
    if expected is None and isinstance(raised, ProcessorError):
        return Finding(mode.name, "exception", Verdict.NO_OPINION, str(raised))
    return Finding(mode.name, "exception", Verdict.BUG, detail, _located(case, mode, "", outcome))


def _located(case: Case, mode: Mode, label: str, outcome: Outcome) -> Culprit | None:
    affordable = case.program is None or not case.too_large(LOCATED * case.work)
    return mode.locate(case, label, outcome) if case.locates and affordable else None


def _described(error: Exception | None) -> str:
    if error is None:
        return "returns"
    return f"raises {type(error).__name__}: {' '.join(str(error).split())}"


def _narrow_decision(case: Case) -> str:
    """The line in which Python decides on a value that rounding can change; "" if there is none."""
    decisions = () if case.program is None else case.program.checks.decisions
    spreads = ((d.where, case.yardstick.noise.get(d.id)) for d in decisions)
    return next((where for where, s in spreads if s is not None and s.dtype == bool and s.any()), "")


def _on_another_path(finding: Finding, where: str) -> Finding:
    """`finding`, if Python decides in the line `where` on a value within rounding of its threshold."""
    detail = f"the decision at {where} is within rounding: another path was taken"
    explained = Finding(finding.mode, finding.what, Verdict.WITHIN_ROUNDING, detail)
    return explained if finding.verdict is Verdict.BUG else finding


def _differences(case: Case, mode: Mode, reference: Outcome, outcome: Outcome) -> Iterator[Finding]:
    if not same_structure(reference.structure, outcome.structure):
        detail = f"{outcome.structure!r}, eager gives {reference.structure!r}"
        yield Finding(mode.name, "structure", Verdict.BUG, detail)
        return
    if opaque := opaque_in(reference.structure):
        yield Finding(mode.name, "structure", Verdict.NO_OPINION, f"{opaque}, which is not looked into")
    for label, flag in reference.requires_grad.items():
        if outcome.requires_grad[label] is not flag:
            detail = f"{outcome.requires_grad[label]}, eager has {flag}"
            yield Finding(mode.name, f"requires_grad of {label}", Verdict.BUG, detail)
    for label in reference.classes.keys() & outcome.classes.keys():
        given, wanted = outcome.classes[label], reference.classes[label]
        if given is not wanted:
            yield Finding(mode.name, f"class of {label}", Verdict.BUG, f"{given.__name__}, eager has {wanted.__name__}")
    if reference.reached is not None and outcome.reached is not None:
        for label, inputs in reference.reached.items():
            if (others := outcome.reached.get(label)) != inputs:
                detail = f"{_named(others)}, eager has {_named(inputs)}"
                what = f"inputs with a gradient of {label}"
                if _more(others, inputs) and _has_branches(case):
                    yield Finding(mode.name, what, Verdict.CONVENTION, f"{detail}: {UNREAD}")
                else:
                    yield Finding(mode.name, what, Verdict.BUG, detail, _located(case, mode, "", outcome))
    odd = tuple(_odd_state(reference.state, outcome.state))
    for label in odd:
        detail = f"{_shown(outcome.state, label)}, eager has {_shown(reference.state, label)}"
        yield _state_finding(case, mode, label, detail, outcome)
    expected, found = _without(reference.arrays(), odd), _without(outcome.arrays(), odd)
    for label in dict.fromkeys([*expected, *found]):
        lacks = label in reference.gradients and label not in outcome.gradients and case.program is not None
        if lacks and (why := case.joint.lacking):
            yield Finding(mode.name, label, Verdict.NO_OPINION, why)
        elif label in outcome.gradients and label not in expected and not found[label].any() and _has_branches(case):
            yield Finding(mode.name, label, Verdict.CONVENTION, UNREAD)
        elif label not in found or label not in expected:
            who = "only eager" if label not in found else f"only {mode.name}"
            yield Finding(mode.name, label, Verdict.BUG, f"{who} has it", _located(case, mode, "", outcome))
    for label in (label for label in expected if label in found):
        yield _array(case, mode, label, expected[label], outcome)
    yield from _for_later(case, mode, reference, outcome)


def _more(found: Any, expected: Any) -> bool:
    """Whether these are the inputs expected, and others."""
    return isinstance(found, frozenset) and isinstance(expected, frozenset) and found > expected


def _has_branches(case: Case) -> bool:
    """Whether the program has operands of control flow that some call does not read."""
    return case.program is not None and any(node.op.structured for node in every_node(case.program.graph))


def _named(inputs: frozenset[str] | str | None) -> str:
    return ", ".join(sorted(inputs)) or "none" if isinstance(inputs, frozenset) else str(inputs)


def _for_later(case: Case, mode: Mode, expected: Outcome, outcome: Outcome, prefix: str = "") -> Iterator[Finding]:
    """What later calls would see: memory that is shared in one of two runs only, and where the generator stands."""
    if expected.sharing is None or outcome.sharing is None:
        return
    for what, detail in differences(outcome.sharing, expected.sharing):
        yield Finding(mode.name, f"{prefix}{what}", Verdict.BUG, detail, _located(case, mode, "", outcome))
    if expected.drawn != outcome.drawn:
        what, detail = f"{prefix}random numbers after the call", "the generator goes on with other numbers than eager's"
        yield Finding(mode.name, what, Verdict.BUG, detail, _located(case, mode, "", outcome))


def _odd_state(expected: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[str]:
    """Labels of the Python state that only one of two runs has changed, or that nests in another way."""
    for label in dict.fromkeys([*expected, *found]):
        if label not in expected or label not in found or not same_structure(expected[label], found[label]):
            yield label


def _shown(state: Mapping[str, Any], label: str) -> str:
    return repr(state[label]) if label in state else "no change"


def _without(arrays: Mapping[str, np.ndarray], labels: tuple[str, ...]) -> dict[str, np.ndarray]:
    return {label: a for label, a in arrays.items() if not label.startswith(labels)}


def _array(case: Case, mode: Mode, label: str, expected: np.ndarray, outcome: Outcome) -> Finding:
    found = outcome.arrays()[label]
    declared = outcome.declared.get(label, aval_of(found))
    for what, aval in (("declared", declared), ("found", aval_of(found))):
        if aval.shape != expected.shape or aval.dtype != expected.dtype:
            detail = f"{what} {aval}, eager has {aval_of(expected)}"
            part = "shape" if aval.shape != expected.shape else "dtype"
            return Finding(mode.name, f"{part} of {label}", Verdict.BUG, detail, _located(case, mode, label, outcome))
    judgement = _judged(case, mode, label, found, expected)
    culprit = _located(case, mode, label, outcome) if judgement.verdict is Verdict.BUG else None
    return Finding(mode.name, label, judgement.verdict, judgement.detail, culprit, largest_difference(found, expected))


def _judged(case: Case, mode: Mode, label: str, found: np.ndarray, expected: np.ndarray) -> Judgement:
    if same_bits(found, expected):
        return Judgement(Verdict.IDENTICAL)
    if case.program is None or case.keeps_containers:  # one graph does not show what it has computed
        return judge(found, expected, *stand_in(expected))
    joint = case.joint
    if why := case.too_large(JUDGED * case.work):
        return Judgement(Verdict.NO_OPINION, f"other bits than eager's; whether rounding explains them: {why}")
    if label.startswith("gradient of ") and joint.lacking:  # no graph says what rounding can do
        return judge(found, expected, *stand_in(expected), slack=INDEPENDENT)
    if label not in joint.labels:
        return _judged_by_value(case, found, expected)
    id = joint.ids[label]
    exact, noise = case.yardstick.of(id, expected)
    judgement = judge(found, expected, exact, noise)
    if judgement.verdict is Verdict.BUG:
        if judge(found, in_range(expected, exact), exact, noise).verdict is not Verdict.BUG:
            return Judgement(Verdict.WITHIN_ROUNDING, IN_RANGE)
        overflown = ~np.isfinite(exact) & np.isfinite(found)
        if overflown.any() and case.yardstick.out_of_range(id):  # float64's range, too: by the forms that stay in it
            closer = np.where(overflown, case.stable_values[joint.labels.index(label)], exact)
            if judge(found, in_range(expected, closer), closer, noise).verdict is not Verdict.BUG:
                return Judgement(Verdict.WITHIN_ROUNDING, IN_RANGE)
        apart = case.alternatives.reordered(id, found, expected)
        if apart.any() and judge(np.ma.MaskedArray(found, apart), expected, exact, noise).verdict is not Verdict.BUG:
            return Judgement(Verdict.CONVENTION, REORDERED)
        if is_foreign(mode):
            return case.alternatives.excuse(id, found, expected) or judgement
    return judgement


def _judged_by_value(case: Case, found: np.ndarray, expected: np.ndarray) -> Judgement:
    """A number or array that Python has read from a traced tensor: judged as the node with the same value is."""
    graph = case.joint.graph
    same: list[Judgement] = []
    for id, value in case.node_values.items() if is_inexact(expected.dtype) else ():
        if graph.nodes[id].op is INPUT or not isinstance(value, np.ndarray) or value.dtype.kind not in "fc":
            continue
        exact, noise = case.yardstick.of(id, value)
        if value.shape == expected.shape and (value == expected).all():
            same.append(judge(found, expected, exact, noise))
        elif not expected.ndim and (at := np.flatnonzero(value == expected)).size:
            a, b = (np.asarray(n, value.dtype) for n in (found, expected))  # a number of Python's has more digits
            same.append(judge(a, b, np.asarray(exact.flat[at[0]]), np.asarray(noise.flat[at[0]])))
    wrong = Judgement(Verdict.BUG, "the captured program does not compute it")
    return min(same, key=lambda judgement: judgement.verdict, default=wrong)


def _own_gradients(case: Case, reference: Outcome) -> Iterator[Finding]:
    """Where eager's gradients are not those of the same rules in float64: others that agree share the rules.

    Float64 has a wider range, and may decide otherwise, anywhere on the way: so it only says where to look, and what
    is wrong is what the rule of some node loses on the operands that it has there.
    """
    if case.program is None or reference.error is not None or not reference.gradients:
        return
    try:
        exact = {} if case.too_large(JUDGED * case.work) else case.exact_gradients
    except Exception:  # what differentiating raises is a finding of the graph's mode
        return
    for label, found in reference.gradients.items():
        if label not in exact or exact[label].shape != found.shape or close(found, exact[label]):
            continue
        noise = case.yardstick.noise_of(case.joint.ids[label])
        judgement = judge_in_float64(found, exact[label], noise)
        if judgement.verdict is Verdict.BUG and (culprit := EAGER.locate(case, label, reference)) is not None:
            detail = f"against the same rules in float64: {judgement.detail}"
            verdict = Verdict.CONVENTION if culprit.part == KINK else Verdict.BUG
            yield Finding(EAGER.name, label, verdict, detail, culprit)


def _own_batching(case: Case, reference: Outcome) -> Iterator[Finding]:
    """Where `vmap` is not what the function makes of each slice: every mode is captured through its rules."""
    expected = independent_of_batching(case) if case.batched and reference.error is None else None
    if expected is None or expected.arrays().keys() != reference.arrays().keys():
        return

    def wrong(label: str, found: Outcome) -> str:
        """How an outcome differs from that without batching rules; "" if it does not."""
        a, b = found.arrays()[label], expected.arrays()[label]
        if aval_of(a) != aval_of(b):
            return f"{aval_of(a)}, expected {aval_of(b)}"
        judgement = _judged(case, EAGER, label, a, b)
        return judgement.detail if judgement.verdict is Verdict.BUG else ""

    for label in reference.arrays():
        if detail := wrong(label, reference):

            def right(found: Outcome, label: str = label) -> bool:
                return label in found.arrays() and not wrong(label, found)

            culprit = in_batching(case, right) if case.locates else None
            yield Finding(EAGER.name, label, Verdict.BUG, f"against the ops on each slice: {detail}", culprit)


def repeated(case: Case, mode: Mode, first: Outcome, second: Outcome) -> Iterator[Finding]:
    """A second call from the same state. Only what differs is a finding."""
    if second.error is not None:
        yield Finding(mode.name, "second call", Verdict.BUG, _described(second.error))
        return

    def around() -> Culprit | None:
        return in_surroundings(case, mode) if case.locates and mode is not EAGER else None

    yield from _for_later(case, mode, first, second, SECOND)
    odd = tuple(_odd_state(first.state, second.state))
    for label in odd:
        yield _state_finding(case, mode, label, "differs from the first call's", second, SECOND)
    before = _without(first.arrays(), odd)
    for label, again in _without(second.arrays(), odd).items():
        if label not in before or not same_bits(again, before[label]):
            yield Finding(mode.name, f"{SECOND}{label}", Verdict.BUG, "differs from the first call's", around())
    if not same_structure(first.structure, second.structure):
        yield Finding(mode.name, f"{SECOND}structure", Verdict.BUG, f"{second.structure!r}", around())


def _state_finding(case: Case, mode: Mode, label: str, detail: str, outcome: Outcome, prefix: str = "") -> Finding:
    """Python state that the mode has left otherwise than eager, or than in its first call."""
    if case.program is not None and label in case.traced_effects:
        why = "changed when the function is traced, not at each call"
        return Finding(mode.name, f"{prefix}{label}", Verdict.CONVENTION, why)
    return Finding(mode.name, f"{prefix}{label}", Verdict.BUG, detail, _located(case, mode, "", outcome))
