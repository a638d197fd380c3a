"""The batching rules of `vmap`: all modes capture what they make of a function. Here each slice is run by itself."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

from compare.cases.case import Case
from compare.cases.outcome import Outcome
from compare.locating.culprit import Culprit
from eager.func import batch_rules
from eager.func.batching import BatchInterpreter
from graphc.ops import OPS, Op
from graphc.scoped import attribute

BATCHING = "batching rule"


@contextmanager
def watched() -> Iterator[set[str]]:
    """A context; gives the names of the ops whose batching rules are asked for, and "" if something is written."""
    found: set[str] = set()
    rule_of, assign = batch_rules.rule_of, BatchInterpreter.assign

    def noted(op: Op) -> Any:
        rule = rule_of(op)
        if rule is not None and rule is not batch_rules.one_by_one:
            found.add(op.name)
        return rule

    def assigned(self: BatchInterpreter, *args: Any, **kwargs: Any) -> Any:
        found.add("")
        return assign(self, *args, **kwargs)

    with attribute(batch_rules, "rule_of", noted), attribute(BatchInterpreter, "assign", assigned):
        yield found


def by_slices(case: Case, names: Collection[str]) -> Outcome:
    """Eager's outcome, with the ops of these names run on each slice by itself."""
    rule_of = batch_rules.rule_of
    with attribute(batch_rules, "rule_of", lambda op: batch_rules.one_by_one if op.name in names else rule_of(op)):
        return case.observe(case.fn)


def independent_of_batching(case: Case) -> Outcome | None:
    """Eager's outcome without batching rules; None if there are none, or it has no opinion.

    Where a function writes in place, views stay views: of copies, a write would not be seen.
    """
    names = _asked(case)
    found = by_slices(case, names) if names else None
    return None if found is None or found.error is not None else found


def _asked(case: Case) -> list[str]:
    return sorted(n for n in case.batched - {""} if not ("" in case.batched and OPS[n].view))


def in_batching(case: Case, agrees: Callable[[Outcome], bool]) -> Culprit | None:
    """The op whose rule is wrong: without it alone the outcome `agrees` with that without any."""
    for name in _asked(case):
        found = by_slices(case, [name])
        if found.error is None and agrees(found):
            return Culprit(BATCHING, name, evidence="on each slice by itself the op gives something else")
    return None
