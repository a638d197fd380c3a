"""The cheapest set of values to hand from one half of a program to the other, as a minimum cut.

The second half needs some values of the first. Each can be handed over, at a price, or be computed again from its
operands, at another; what those need is a question of the same kind. The answer is a minimum cut (T. Chen et al.,
Training Deep Nets with Sublinear Memory Cost, 2016, ask the question; H. He, S. Yu, Transcending Runtime-Memory
Tradeoffs, MLSys 2023, give the network, here with a price on computing too): a value is two nodes, in and out,

    in -> out      the price of handing it over: cut if out is needed and in is not
    source -> in   the price of computing it again: cut if its operands are needed
    out -> in'     no price: who computes a user needs the operand
    out -> sink    no price: the second half needs it
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

import networkx as nx
from networkx.algorithms.flow import boykov_kolmogorov

NEVER: Final = 1 << 60
# Values in a network. Products and whatever else is not computed twice part a program into small networks; where they
# do not, it is cut in stretches of this length, because the time of a flow grows faster than its network.
LARGEST = 200
_SOURCE, _SINK = "source", "sink"


class Price(NamedTuple):
    """What it costs to have a value in the second half; integers, NEVER where it is impossible."""

    hand_over: int
    compute: int


def cheapest_cut(
    operands: Mapping[int, Sequence[int]], prices: Mapping[int, Price], needed: Collection[int]
) -> set[int]:
    """The values to hand over so that the second half has `needed`, at the least total price.

    operands  of each value, in an order in which they can be computed
    prices    of each value. One that costs nothing to hand over is not in the result: it is there anyway. For every
              needed value there must be some way to have it

    Takes time linear in the number of values. What hangs together is cut at once up to `LARGEST` values, and in
    stretches beyond: from last to first, each may compute from what an earlier one has to have anyway.

    >>> chain = {0: (), 1: (0,), 2: (1,)}
    >>> cheapest_cut(chain, {0: Price(2, NEVER), 1: Price(4, 1), 2: Price(4, 1)}, [1, 2])
    {0}
    """
    wanted = set(needed)
    region = _region(operands, prices, wanted)
    # what is needed anyway may be computed from at no price: only the other operands are in question
    open_ = {
        id: [i for i in dict.fromkeys(operands[id]) if i in region and i not in wanted]
        if _may_compute(prices[id])
        else []
        for id in operands
        if id in region
    }
    prices = _absorb(open_, prices, wanted)
    chosen = {id for id in open_ if id in wanted and not _may_compute(prices[id])}
    for id in chosen:
        del open_[id]
    batch: dict[int, Sequence[int] | None] = {}
    for part in _parts(open_):
        unknown = set(part)
        for end in range(len(part), 0, -LARGEST):
            stretch = part[max(end - LARGEST, 0) : end]
            unknown.difference_update(stretch)
            if len(batch) + len(stretch) > LARGEST:
                chosen |= _minimum(batch, prices, wanted)
                batch = {}
            batch.update(_within(stretch, open_, wanted, unknown, prices))
    return chosen | _minimum(batch, prices, wanted) if batch else chosen


def _may_compute(price: Price) -> bool:
    return price.compute < price.hand_over


def _region(operands: Mapping[int, Sequence[int]], prices: Mapping[int, Price], needed: Collection[int]) -> set[int]:
    """The values that may have to be handed over: what is needed, and what that can be computed from."""
    region: set[int] = set()
    stack = list(needed)
    while stack:
        id = stack.pop()
        if id in region or prices[id].hand_over == 0:
            continue
        region.add(id)
        if _may_compute(prices[id]):
            stack.extend(operands[id])
    return region


def _absorb(open_: dict[int, list[int]], prices: Mapping[int, Price], wanted: Collection[int]) -> dict[int, Price]:
    """Settle what needs no network: the prices with which the rest is left in `open_`.

    A value with one user, which is not dearer to hand over, is computed where its user is, or not at all: it becomes
    part of the user. Most of a program is gone then.
    """
    settled = dict(prices)
    users = Counter(i for operands in open_.values() for i in operands)
    for id in list(open_):
        operands, (hand_over, compute) = open_[id], settled[id]
        queue, left = deque(operands), dict.fromkeys(operands)
        while queue and compute < hand_over:
            operand = queue.popleft()
            if operand not in left or users[operand] > 1 or settled[operand].hand_over < hand_over:
                continue
            compute += settled[operand].compute
            del left[operand]
            for below in open_.pop(operand):
                if below in left:
                    users[below] -= 1
                else:
                    left[below] = None
                queue.append(below)
        if compute >= hand_over:
            compute, left = NEVER, {}
        open_[id] = list(left)
        settled[id] = Price(hand_over, compute)
    return settled


def _parts(open_: Mapping[int, Sequence[int]]) -> list[list[int]]:
    """The values of `open_` in groups that hang together, each in order. One that is alone poses no question."""
    leader = {id: id for id in open_}

    def find(id: int) -> int:
        while leader[id] != id:
            leader[id] = id = leader[leader[id]]
        return id

    for id, operands in open_.items():
        for operand in operands:
            leader[find(operand)] = find(id)
    parts: dict[int, list[int]] = {}
    for id in open_:
        parts.setdefault(find(id), []).append(id)
    return [part for part in parts.values() if len(part) > 1]


def _within(
    stretch: Sequence[int],
    open_: Mapping[int, Sequence[int]],
    wanted: set[int],
    earlier: Collection[int],
    prices: Mapping[int, Price],
) -> dict[int, Sequence[int] | None]:
    """The operands in question of the values in a stretch of a part; None for a value that is not to be computed.

    One that would have to be computed from earlier stretches is not, unless it cannot be handed over: then what it is
    computed from is added to `wanted`.
    """
    found: dict[int, Sequence[int] | None] = {}
    for id in stretch:
        operands: Sequence[int] = open_[id]
        if earlier and (missing := [i for i in operands if i in earlier and i not in wanted]):
            if prices[id].hand_over < NEVER:
                found[id] = None
                continue
            wanted.update(missing)
        found[id] = [i for i in operands if i not in earlier] if _may_compute(prices[id]) else None
    return found


def _minimum(
    operands: Mapping[int, Sequence[int] | None], prices: Mapping[int, Price], wanted: Collection[int]
) -> set[int]:
    """The minimum cut. In and out are one node where that is settled: what is wanted is out at the sink, what cannot be
    computed is in at the source, what cannot be handed over is both or neither."""
    network: Any = nx.DiGraph()
    ends: dict[int, tuple[Any, Any]] = {}
    for id, given in operands.items():
        price = prices[id]
        into = _SOURCE if given is None else ("in", id)
        out = _SINK if id in wanted else into if price.hand_over >= NEVER else ("out", id)
        ends[id] = into, out
        if into != out and (into, out) != (_SOURCE, _SINK):
            network.add_edge(into, out, **_capacity(price.hand_over))
        if given is not None:
            below = [ends[operand][1] for operand in given]
            network.add_edge(_SOURCE, into, **_capacity(NEVER if _SOURCE in below else price.compute))
            network.add_edges_from((end, into) for end in below if end not in (_SOURCE, _SINK))
    network.add_nodes_from((_SOURCE, _SINK))
    _, (first, second) = nx.minimum_cut(network, _SOURCE, _SINK, flow_func=boykov_kolmogorov)
    return {id for id, (into, out) in ends.items() if into in first and out in second}


def _capacity(price: int) -> dict[str, int]:
    """networkx takes an edge without the attribute for one of infinite capacity."""
    return {} if price >= NEVER else {"capacity": price}
