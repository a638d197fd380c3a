"""What is the same for all that is wrong in a case, and is looked for once."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable

from compare.cases.case import Case
from compare.locating.culprit import Culprit


def once(find: Callable[[Case], Culprit | None]) -> Callable[[Case], Culprit | None]:
    """`find`, whose answer is kept for as long as the case."""
    known: weakref.WeakKeyDictionary[Case, Culprit | None] = weakref.WeakKeyDictionary()

    @functools.wraps(find)
    def found(case: Case) -> Culprit | None:
        if case not in known:
            known[case] = find(case)
        return known[case]

    return found
