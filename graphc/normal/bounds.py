"""How far cheaper forms of a region are searched for. Bounds count work: no clock decides what a program becomes."""

from __future__ import annotations

from typing import NamedTuple


class Bounds(NamedTuple):
    """Of one search.

    enough   what a form may cost at most, as a share of the cost as written
    worth    the share of the graph's cost that a region must have to be looked at, and that its form must save
    hopeful  what a usual choice of atoms may cost at most, for others to be tried
    tries    choices of atoms for a region, beside the usual ones
    work     nodes of all regions, each as often as it is tried; beside one for each node of the graph
    """

    enough: float = 0.9
    worth: float = 0.002
    hopeful: float = 0.92
    tries: int = 16
    work: int = 1000


BOUNDS = Bounds()
WIDER = Bounds(enough=0.99, worth=0.0, hopeful=1.0, tries=64, work=20_000)
