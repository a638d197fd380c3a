"""Gradients of the modes that have only those, in float64, judged beside the rules' own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, final

import numpy as np

from compare.cases.case import Case
from compare.cases.outcome import Outcome
from compare.checking.findings import Finding
from compare.judging.tolerance import INDEPENDENT, Judgement, Verdict, judge
from compare.locating.culprit import KINK
from compare.modes import JAX, Mode
from compare.modes.protocol import is_foreign

CHAIN_RULE = "the chain rule multiplies 0 with an infinite derivative; by JAX's rules, too"
LOST = "JAX's own rules multiply 0 with an infinite derivative, and ours do not"
SENSITIVE = "JAX's own way to the gradient is that sensitive to rounding"


@final
class _Opinion(NamedTuple):
    """The gradient that a mode has `found` for `label`, node `id` of the float64 graph, where `exact` is the rules'."""

    case: Case
    mode: Mode
    label: str
    id: int
    found: np.ndarray
    exact: np.ndarray
    noise: np.ndarray
    bar: np.ndarray | float

    def judged(self) -> Judgement:
        return judge(self.found, self.exact, self.exact, self.noise, slack=INDEPENDENT, error_bar=self.bar)

    def judged_but_for(self, mask: np.ndarray, reason: str) -> Judgement | None:
        """A convention, of that `reason`, if nothing but the elements of `mask` speaks against the mode."""
        rest = np.ma.MaskedArray(self.found, np.ma.getmaskarray(self.found) | mask)
        wrong = not mask.any() or self._replace(found=rest).judged().verdict is Verdict.BUG
        return None if wrong else Judgement(Verdict.CONVENTION, reason)


def opinions_of(case: Case, mode: Mode, reference: Outcome, outcome: Outcome) -> Iterator[Finding]:
    """What the gradients in `outcome`, of `mode`, are worth."""
    if reference.error is not None:
        yield Finding(mode.name, "gradients", Verdict.NO_OPINION, "eager raises")
        return
    joint, yardstick = case.wide_joint, case.wide_yardstick
    # rules of the user's are traced in the program's precision: their numbers are rounded to it
    noise = (yardstick if case.program is None or case.program.recorded.rules is None else case.yardstick).noise
    for label, found in outcome.gradients.items():
        if label not in joint.labels:
            yield Finding(mode.name, label, Verdict.NO_OPINION, joint.lacking)
            continue
        id = joint.ids[label]
        exact = yardstick.exact.get(id)
        if exact is None or exact.shape != found.shape:
            yield Finding(mode.name, label, Verdict.NO_OPINION, "the graph has no float64 run")
            continue
        bar = outcome.error_bars.get(label, 0.0)
        yield _finding(_Opinion(case, mode, label, id, found, exact, noise[id], bar), outcome)


def _finding(opinion: _Opinion, outcome: Outcome) -> Finding:
    judgement = opinion.judged()
    for excuse in _EXCUSES:
        if judgement.verdict is Verdict.BUG:
            judgement = excuse(opinion) or judgement
    mode, label = opinion.mode, opinion.label
    if judgement.verdict is not Verdict.BUG:
        return Finding(mode.name, label, judgement.verdict, judgement.detail)
    culprit = mode.locate(opinion.case, label, outcome)  # the verdict depends on it
    verdict = Verdict.CONVENTION if culprit is not None and culprit.part == KINK else Verdict.BUG
    return Finding(mode.name, label, verdict, judgement.detail, culprit)


def _by_another_arithmetic(o: _Opinion) -> Judgement | None:
    if not is_foreign(o.mode):
        return None
    return o.case.wide_alternatives.excuse(o.id, o.found, o.exact, slack=INDEPENDENT, error_bar=o.bar)


def _by_the_chain_rule(o: _Opinion) -> Judgement | None:
    """JAX's rules, which are not ours, give no finite gradient either: as 0 times an infinite derivative."""
    odd = ~np.isfinite(o.exact) & np.isfinite(np.ma.getdata(o.found)) & ~np.ma.getmaskarray(o.found)
    found = JAX.run(o.case).gradients.get(o.label) if odd.any() else None
    return None if found is None or np.isfinite(found[odd]).any() else o.judged_but_for(odd, CHAIN_RULE)


def _by_the_chain_rule_of_jax(o: _Opinion) -> Judgement | None:
    return o.judged_but_for(np.isnan(o.found) & ~np.isnan(o.exact), LOST) if o.mode is JAX else None


def _by_sensitivity(o: _Opinion) -> Judgement | None:
    """Rounding moves JAX's gradient further than the rules'."""
    if o.mode is not JAX:
        return None
    wider = o._replace(bar=o.bar + JAX.spread(o.case)[o.label])
    return None if wider.judged().verdict is Verdict.BUG else Judgement(Verdict.WITHIN_ROUNDING, SENSITIVE)


_EXCUSES: tuple[Callable[[_Opinion], Judgement | None], ...] = (
    _by_another_arithmetic, _by_the_chain_rule, _by_the_chain_rule_of_jax, _by_sensitivity,
)  # fmt: skip
