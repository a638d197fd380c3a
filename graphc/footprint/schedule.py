"""The order in which XLA's CPU backend runs the units of a program: breadth first, for the sake of parallel threads.

What is ready waits in a queue; arguments are ready at the start (XLA's bfs memory scheduler). So what only depends on
arguments is computed early, and kept until it is read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from graphc.footprint.units import Unit


def breadth_first(units: Mapping[int, Unit], inputs: Sequence[int]) -> list[Unit]:
    """`units` in the order in which they run; `inputs` are the arguments of the program."""
    by = {written: id for id, unit in units.items() for written, _ in unit.writes} | {i: i for i in inputs}
    users: dict[int, list[int]] = {id: [] for id in (*inputs, *units)}
    waits: dict[int, int] = {}
    for id, unit in units.items():
        known = {by[i]: None for i in unit.reads if i in by}
        waits[id] = len(known)
        for i in known:
            users[i].append(id)
    queue = deque([*inputs, *(id for id, count in waits.items() if not count)])
    order: list[Unit] = []
    while queue:
        id = queue.popleft()
        if id in units:
            order.append(units[id])
        for user in users[id]:
            waits[user] -= 1
            if not waits[user]:
                queue.append(user)
    return order


def with_copies(units: Mapping[int, Unit], aliases: Mapping[int, int]) -> dict[int, Unit]:
    """`units` with copies of the arguments that would be overwritten while they may still be read.

    aliases  argument -> the value that is written over it. XLA copies the argument unless whoever reads it runs, for
             whatever order, before that value is written (copy_insertion.cc)
    """
    by = {written: id for id, unit in units.items() for written, _ in unit.writes}
    readers: dict[int, list[int]] = {i: [] for i in aliases}
    for id, unit in units.items():
        for i in unit.reads:
            if i in readers:
                readers[i].append(id)
    copies: dict[int, Unit] = {}
    for argument, result in aliases.items():
        if len(readers[argument]) < 2 or result not in by:
            continue
        before = _before(by[result], units, by)
        if not before.issuperset(readers[argument]):
            number = min(units, default=0) - len(units) - len(copies) - 1  # no node's
            size = sum(size for written, size in units[by[result]].writes if written == result)
            copies[argument] = Unit(number, (argument,), ((number, size),), 0, frozenset())
    if not copies:
        return dict(units)
    made = {copy.id: copy for copy in copies.values()}
    for id, unit in units.items():
        reads = [copies[i].id if i in copies else i for i in unit.reads]
        made[id] = unit._replace(reads=tuple(reads))
    return made


def _before(last: int, units: Mapping[int, Unit], by: Mapping[int, int]) -> set[int]:
    """The units that unit `last` depends on, and itself."""
    found, stack = {last}, [last]
    while stack:
        for i in units[stack.pop()].reads:
            unit = by.get(i)
            if unit is not None and unit not in found:
                found.add(unit)
                stack.append(unit)
    return found
