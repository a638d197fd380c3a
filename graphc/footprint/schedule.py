"""The orders in which XLA may run the units of a program: it takes the one that needs the least memory of several."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Sequence

from graphc.footprint.units import Unit, Units


def order_of(units: Units, results: Collection[int]) -> Iterator[Sequence[Unit]]:
    """Each order that is a candidate."""
    yield [*units.units.values()]
    yield _greedy(units, results)


def _greedy(units: Units, results: Collection[int]) -> list[Unit]:
    """List scheduling: of the units that can run, always the one that frees most beyond what it writes."""
    found = units.units
    users: dict[int, list[int]] = {id: [] for id in found}
    waits: dict[int, int] = {}
    reads: dict[int, int] = {}  # how many readers a value still has
    for id, unit in found.items():
        own = [i for i in unit.reads if i in found]
        waits[id] = len(own)
        for i in own:
            users[i].append(id)
            reads[i] = reads.get(i, 0) + 1

    def gain(id: int) -> int:
        unit = found[id]
        freed = sum(found[i].size for i in unit.reads if reads.get(i) == 1 and i not in results)
        return freed - (unit.size if id not in results else 0)

    number = {id: k for k, id in enumerate(found)}
    ready = [(-gain(id), number[id], id) for id, count in waits.items() if not count]
    heapq.heapify(ready)
    order: list[Unit] = []
    done: set[int] = set()
    while ready:
        key, _, id = heapq.heappop(ready)
        if id in done:
            continue
        if (now := -gain(id)) < key:
            heapq.heappush(ready, (now, number[id], id))
            continue
        done.add(id)
        order.append(found[id])
        for i in found[id].reads:
            if i in reads:
                reads[i] -= 1
                if reads[i] == 1:  # whoever reads it last frees it now
                    for user in users[i]:
                        if user not in done and not waits[user]:
                            heapq.heappush(ready, (-gain(user), number[user], user))
        for user in users[id]:
            waits[user] -= 1
            if not waits[user]:
                heapq.heappush(ready, (-gain(user), number[user], user))
    return order
