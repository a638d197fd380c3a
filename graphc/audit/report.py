"""The audit: terms, equations, what of them the optimizer reaches, and what is missing."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, final

from graphc.audit.costs import Costs, Optimizer
from graphc.audit.equations import Equation, classes, equations
from graphc.audit.missing import Class, ranked, reached
from graphc.audit.terms import Term, terms
from graphc.audit.values import Values
from graphc.audit.vocabulary import Vocabulary
from graphc.display import Block, Displayed, Remark, Section, Table
from graphc.passes import optimize
from graphc.rewrite import ASSUMES

SHOWN = 20  # classes in a table


@final
@dataclass(frozen=True, repr=False)
class Audit(Displayed):
    """What an audit has found.

    terms      the number of terms
    licences   how many equations have each licence; those that assume something by what they assume
    numbers    how many of those without assumptions are about nan only: a part of a side, as x - x, is one number
               wherever it is no nan, and stays because it may be nan. They are counted apart
    judged     the others without assumptions that were judged: all of them, or a sample
    reached    how many of these come to equal cost on both sides
    different  how many of these differ in cost as written, and how many of those come to equal cost
    missing    the others, in classes, the largest first
    """

    terms: int
    licences: Mapping[str, int]
    numbers: int
    judged: tuple[Equation, ...]
    reached: int
    different: tuple[int, int]
    missing: tuple[Class, ...]

    @property
    def share(self) -> float:
        """The part of the equations judged that come to equal cost on both sides."""
        return self.reached / max(len(self.judged), 1)

    def blocks(self) -> Iterator[Block]:
        """How many terms and equations, what the optimizer makes of these, and what is missing."""
        found, reached = self.different
        licences = Table([(f"{count:,}", what) for what, count in self.licences.items()])
        yield Section(f"{self.terms:,} terms, {sum(self.licences.values()):,} equations", [licences])
        yield from map(Remark, (
            f"{self.numbers:,} without assumptions are about nan only, as x - x = square(x - x)",
            f"{len(self.judged):,} of the others judged: {self.reached:,} come to equal cost on both sides "
            f"({100 * self.share:.1f}%)",
            f"{found:,} of them differ in cost as written: {reached:,} come to equal cost",
        ))  # fmt: skip
        if self.missing:
            rows = [(f"{len(c.cases):,}", f"{c.missed:,.0f}", f"{c.possible:,.0f}", c.text)
                    for c in self.missing[:SHOWN]]  # fmt: skip
            rest = self.missing[SHOWN:]
            if rest:
                rows.append((f"{sum(len(c.cases) for c in rest):,}", "", "", f"in {len(rest):,} other classes"))
            yield Remark("missing, largest class first:")
            yield Table(rows, ("cases", "cost", "possible", "equation"))

    def to_dict(self) -> dict[str, Any]:
        """The figures, with the classes as text."""
        missing = [{"cases": len(c.cases), "cost": c.missed, "possible": c.possible, "equation": c.text}
                   for c in self.missing]  # fmt: skip
        return {"terms": self.terms, "licences": dict(self.licences), "numbers": self.numbers,
                "judged": len(self.judged), "reached": self.reached, "different": [*self.different],
                "missing": missing}  # fmt: skip


def audit(
    vocabulary: Vocabulary, *, size: int = 3, seed: int = 0, limit: int | None = None, optimizer: Optimizer = optimize
) -> Audit:
    """Find equations between terms of a vocabulary, and ask whether the optimizer makes both sides equally cheap.

    size       the most operations of a term
    seed       of the points on which terms are compared, and of the sample
    limit      judge a sample of this many of the equations without assumptions; all by default
    optimizer  what is audited
    """
    values, costs = Values(seed), Costs(optimizer)
    made = terms(vocabulary, size)
    found = [e for group in classes(values, made) for e in equations(values, costs, group)]
    without = [e for e in found if e.licence < ASSUMES]
    free = [e for e in without if not (values.number_inside(e.left) or values.number_inside(e.right))]
    known: dict[Term, Equation] = {e.left: e for e in free}
    judged = free if limit is None or limit >= len(free) else random.Random(seed).sample(free, limit)
    missed = [e for e in judged if not reached(costs, e)]
    written = {e for e in judged if costs.written(e.left) != costs.written(e.right)}
    return Audit(
        len(made),
        Counter(_described(e) for e in sorted(found, key=lambda e: (e.licence, e.reason))),
        len(without) - len(free),
        tuple(judged),
        len(judged) - len(missed),
        (len(written), len(written - set(missed))),
        tuple(ranked(values, costs, missed, known)),
    )


def _described(equation: Equation) -> str:
    name = equation.licence.name.lower()
    return f"{name}: {equation.reason}" if equation.reason else name
