"""How far cheaper forms of a region are searched for. Bounds count work: no clock decides what a program becomes."""

from __future__ import annotations

import math
from typing import NamedTuple


class Exhausted(Exception):
    """A search has done as much work as it may."""


class Bounds(NamedTuple):
    """Of one search.

    enough   what a form may cost at most, as a share of the cost as written
    worth    the share of the graph's cost that a region must have to be looked at, and that its form must save
    promising  what a choice of atoms must cost at most, as a share, for as many units as `per_operation` allows
    hopeful  what a usual choice of atoms may cost at most, as a share, for others to be tried
    tries    choices of atoms for a region, beside the usual ones
    work     units of work of the whole search, beside `PER_NODE` for each node of the graph, and `of_run`
    attempt  units of one choice of atoms, beside `PER_NODE` for each node of the region, and `of_run`
    of_run   units for each scalar operation that a graph or a region costs: a program that runs for a second may be
             searched for some tenths of one
    longer   how often the units that the cheapest choice so far has taken, another may take
    region   units of all choices for a region, beside `per_operation` for each scalar operation that it costs
    of_share the share of these, for each share of the graph's cost that is at stake in a region, up to all
    """

    enough: float = 0.9
    worth: float = 0.002
    promising: float = 0.97
    hopeful: float = 0.92
    tries: int = 12
    work: int = 160_000
    attempt: int = 100_000
    longer: float = 8.0
    region: int = 80_000
    per_operation: float = 2.0
    of_share: float = 2.0
    of_run: float = 5e-5

    def again(self) -> Bounds:
        """Those of a search where one has just found something: each region is as promising, and less is enough."""
        return self._replace(promising=math.inf, enough=max(self.enough, 0.95))


# units of work, each some 0.3 us of a processor of 2021: a pair of subsets of factors that is compared, and
PER_NODE = 500
PLAN = 100  # an order of products
KEY = 60  # what products have in common
WRITTEN = 300  # a term that is written as nodes
LIFTED = 100  # a term of a node's form
FACTORED = 60  # a term that may have a factor in common

BOUNDS = Bounds()
WIDER = Bounds(
    enough=0.99, worth=0.0, hopeful=1.0, tries=64, work=8_000_000, attempt=2_000_000, region=8_000_000,
    of_share=1e9,
)  # fmt: skip
