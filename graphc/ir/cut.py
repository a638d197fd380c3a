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

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

import networkx as nx
import numpy as np

NEVER: Final = 1 << 60
# SciPy's flows are 32 bits wide: prices are scaled so that all of them together are no more than `_TOTAL`, which is
# less than what an edge that must not be cut can carry.
_TOTAL, _UNCUT = 1 << 30, (1 << 31) - 1
FEW = 3_000  # edges: a network in which NetworkX finds the flow in less time than SciPy takes to be loaded
SOURCE, SINK = 0, 1  # the numbers of these two nodes of a network


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

    >>> chain = {0: (), 1: (0,), 2: (1,)}
    >>> cheapest_cut(chain, {0: Price(2, NEVER), 1: Price(4, 1), 2: Price(4, 1)}, [1, 2])
    {0}
    """
    region = _region(operands, prices, needed)
    if not region:
        return set()
    into = {id: 2 * k + 2 for k, id in enumerate(region)}  # the numbers of the nodes in; those out come next
    edges = [(out + 1, SINK, NEVER) for id in needed if (out := into.get(id)) is not None]
    for id, number in into.items():
        hand_over, compute = prices[id]
        edges.append((number, number + 1, hand_over))
        edges.append((SOURCE, number, compute if compute < hand_over else NEVER))
        if compute < hand_over:
            edges += [(into[i] + 1, number, NEVER) for i in dict.fromkeys(operands[id]) if i in into]
    second = second_half(edges, 2 * len(region) + 2)
    return {id for id, number in into.items() if not second[number] and second[number + 1]}


def _region(operands: Mapping[int, Sequence[int]], prices: Mapping[int, Price], needed: Collection[int]) -> list[int]:
    """The values that may have to be handed over: what is needed, and what that can be computed from."""
    region: dict[int, None] = {}
    stack = list(needed)
    while stack:
        id = stack.pop()
        if id in region or prices[id].hand_over == 0:
            continue
        region[id] = None
        if prices[id].compute < prices[id].hand_over:
            stack.extend(operands[id])
    return list(region)


def second_half(edges: Sequence[tuple[int, int, int]], size: int) -> np.ndarray:
    """For each node of a network whether it is on the sink's side of the minimum cut, of several the nearest to it."""
    start, end, price = np.array(edges, np.int64).T
    finite = price < NEVER
    total = int(price[finite].sum())
    scaled = price if total <= _TOTAL else np.maximum(price * (_TOTAL / total), price > 0)
    capacity = np.where(finite, scaled, _UNCUT).astype(np.int32)
    reached = np.zeros(size, bool)
    reached[_small(start, end, capacity) if len(edges) <= FEW else _large(start, end, capacity, size)] = True
    return reached


def _small(start: np.ndarray, end: np.ndarray, capacity: np.ndarray) -> list[int]:
    """The nodes from which the sink can be reached in what the maximum flow leaves. SciPy takes 0.2 s to be loaded."""
    network = nx.DiGraph()
    network.add_nodes_from((SOURCE, SINK))
    for a, b, c in zip(start.tolist(), end.tolist(), capacity.tolist(), strict=True):
        if c:
            network.add_edge(a, b, capacity=c + (network.edges[a, b]["capacity"] if network.has_edge(a, b) else 0))
    left = nx.algorithms.flow.boykov_kolmogorov(network, SOURCE, SINK)
    found = [SINK]
    seen = {SINK}
    for node in found:
        for other in left.predecessors(node):
            edge = left.edges[other, node]
            if other not in seen and edge["flow"] < edge["capacity"]:
                seen.add(other)
                found.append(other)
    return found


def _large(start: np.ndarray, end: np.ndarray, capacity: np.ndarray, size: int) -> np.ndarray:
    """The same, by SciPy."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order, maximum_flow

    network = csr_array((capacity, (start, end)), shape=(size, size))
    left = network - maximum_flow(network, SOURCE, SINK).flow
    left.eliminate_zeros()
    return breadth_first_order(left.T.tocsr(), SINK, return_predecessors=False)
