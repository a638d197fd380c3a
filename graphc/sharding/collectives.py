"""What devices exchange: predicted for a node, or read off a program that XLA has compiled."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import NamedTuple, final

KINDS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute")
_BYTES = {"pred": 1, "bf16": 2, "c64": 8, "c128": 16}
_ARRAY = re.compile(r"(pred|bf16|[a-z]+\d+)\[([\d,]*)\]")
_CALL = re.compile(rf"^\s*(?:ROOT )?%?(\S+) = (.*?) ({'|'.join(KINDS)})(-start)?\((.*)$")
_COMPUTATION = re.compile(r"^(?:ENTRY )?%?(\S+) \(.*\{\s*$")
_TIMES = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')
_CALLED = re.compile(r"(?:body|calls|to_apply|condition)=%?([\w.\-]+)")


@final
class Collective(NamedTuple):
    """kind   one of KINDS
    bytes  per device, of the larger one of what goes in and what comes out
    times  how often: in the body of a loop, as often as that runs
    axes   of the mesh; () where it is not known
    node   the id of the node that needs it, and `why`; -1 where it is not known
    """

    kind: str
    bytes: int
    times: int = 1
    axes: tuple[str, ...] = ()
    node: int = -1
    why: str = ""


def total(found: Iterable[Collective]) -> dict[str, tuple[int, int]]:
    """kind -> (how many, bytes per device), of each kind that occurs."""
    sums: dict[str, tuple[int, int]] = {}
    for c in found:
        count, size = sums.get(c.kind, (0, 0))
        sums[c.kind] = count + c.times, size + c.bytes * c.times
    return {kind: sums[kind] for kind in KINDS if kind in sums}


def compiled(hlo: str) -> list[Collective]:
    """The collectives of a program, from the text of XLA's optimized HLO (`Executable.hlo`)."""
    inside: dict[str, list[Collective]] = {}
    calls: dict[str, list[tuple[str, int]]] = {}
    types: dict[str, str] = {}
    name, entry = "", ""
    for line in hlo.splitlines():
        if (head := _COMPUTATION.match(line)) is not None:
            name = head[1]
            entry = name if line.startswith("ENTRY") else entry
            continue
        if " = " not in line:
            continue
        left, _, right = line.strip().removeprefix("ROOT ").partition(" = ")
        types[left.lstrip("%")] = right
        if (call := _CALL.match(line)) is not None:
            inside.setdefault(name, []).append(_of_call(call, types))
        elif (called := _CALLED.findall(line)) and "all-" not in line.partition("(")[0]:
            loop = _TIMES.search(line)
            times = int(loop[1]) if loop is not None else 1
            calls.setdefault(name, []).extend((other, times) for other in called)

    def of(computation: str, times: int) -> list[Collective]:
        found = [c._replace(times=times) for c in inside.get(computation, ())]
        for other, n in calls.get(computation, ()):
            found += of(other, times * n)
        return found

    return of(entry, 1)


def _of_call(call: re.Match[str], types: dict[str, str]) -> Collective:
    _, result, kind, starts, rest = call.groups()
    arrays = _ARRAY.findall(result)
    if starts and kind != "all-reduce":  # (operands, results, ...)
        arrays = arrays[: 2 * max(1, len(arrays) // 2)]
        arrays = arrays[len(arrays) // 2 :]
    size = sum(_size(*a) for a in arrays)
    if kind == "reduce-scatter":  # whose operand is the larger one
        operands = re.findall(r"%([\w.\-]+)", rest.partition(")")[0])
        size = max(size, sum(_size(*a) for o in operands for a in _ARRAY.findall(types.get(o, "").partition("(")[0])))
    return Collective(kind, size)


def _size(dtype: str, dims: str) -> int:
    width = _BYTES.get(dtype) or -(-int(re.sub(r"\D", "", dtype)) // 8)
    return width * math.prod(int(n) for n in dims.split(",") if n)
