"""Forms that a graph has kept although others are tempting, and why: each is one of

- an equation that floats do not satisfy (graphc.passes.rules.tempting): numbers that contradict it, and the fact that
  would make it true, are found by machine;
- a rule that is switched off, or claims more than `strict` allows, or whose right side costs more here;
- another form of a sum of products, which costs more, saves too little, or would but for what else reads it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import NamedTuple

from graphc.explaining.expressions import names_in, written
from graphc.explaining.forms import Tried, bounds_for, hindered, tried
from graphc.ir import Builder, Graph, Symbol
from graphc.passes import Settings
from graphc.passes.rules import ALL
from graphc.passes.rules.tempting import TEMPTING
from graphc.rewrite import ASSUMES, REASSOCIATES, RewriteRule, RuleIndex
from graphc.rewrite.cost import node_cost
from graphc.rewrite.driver import freed
from graphc.rewrite.licences import contradiction, fact_for, licence_of
from graphc.rewrite.match import applies


class Kept(NamedTuple):
    """A form that was kept: the user's line, the expression, the equation or rule or form not taken, and why."""

    where: str
    form: str
    instead: str
    reason: str


def kept_in(graph: Graph, settings: Settings) -> list[Kept]:
    """What tempts in an optimized graph, in order, each once."""
    found = [*_rules(graph, settings)]
    if settings.allow("sums of products", REASSOCIATES):
        every = tried(graph, settings)
        whole = [r for r in every if not any(set(r.members) < set(other.members) for other in every)]  # not their parts
        found += [_of_region(region, settings) for region in (*whole, *hindered(graph, settings))]
    return list(dict.fromkeys(found))


def _rules(graph: Graph, settings: Settings) -> Iterator[Kept]:
    builder, names = Builder(graph.nodes), names_in(graph)
    index, uses = RuleIndex((*ALL, *TEMPTING)), graph.uses()
    for id, node in graph.nodes.items():
        for rule in index.candidates(node, builder.nodes):
            if (found := applies(rule, builder, id)) is None:
                continue
            covered, values = found
            form = written(graph.nodes, covered, [id], names)
            reason = _forbidden(rule, settings)
            if not reason:
                mark = builder.next_id
                right = rule.right(builder.language, *values)
                made = range(mark, builder.next_id)
                more = sum(node_cost(builder.nodes[i], builder.nodes) for i in made) - freed(builder, covered, uses)
                builder.rollback(mark)
                if not isinstance(right, Symbol) or more <= rule.worth * node.size:
                    continue  # it goes round
                others = [i for i in covered[1:] if uses[i] > covered.count(i)]
                reason = f"it costs {more:,.0f} more here"
                if others:
                    inner = written(graph.nodes, [i for i in covered if i in others], others[:1], names)
                    reason = f"{inner} is read elsewhere as well; {reason}"
            yield Kept(node.where, form, rule.name, reason)


def _forbidden(rule: RewriteRule, settings: Settings) -> str:
    """Why a rule is not used anywhere; "" if it is."""
    if rule.licence is ASSUMES:
        return _assumption(rule)
    if settings.level == 0 or rule.name in settings.without or not settings.allow("simplify"):
        return "it is switched off"
    if rule.licence > settings.licence:
        because = _because(rule)
        return "it is not exact, and only what is exact was asked for" + (f": {because}" if because else "")
    return ""


@functools.cache
def _because(rule: RewriteRule) -> str:
    return licence_of(rule).because


@functools.cache
def _assumption(rule: RewriteRule) -> str:
    """Why an equation is none of floats, and what would have to be proven."""
    fact = fact_for(rule)
    return f"{contradiction(rule) or _because(rule)}; it takes a proof that {fact}" if fact else _because(rule)


def _of_region(region: Tried, settings: Settings) -> Kept:
    best = region.forms[0]
    reason = f"the cheapest of {len(region.forms)} other forms costs {best.units:,.0f}, and this {region.units:,.0f}"
    if region.shared:
        costs = f"it would cost {best.units:,.0f}, and not {region.units:,.0f}"
        reason = f"{region.shared[0]} is read elsewhere as well; without that, {costs}"
    elif best.units < region.units:
        reason += f": more than {bounds_for(settings).enough:.0%} is not worth a change"
    return Kept(region.where, region.written, best.text, reason)
