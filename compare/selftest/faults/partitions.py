"""Wrong hand-over: what the forward part of a compiled function keeps for the backward part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import eager as torch
from compare.locating.partition import PARTITION
from compare.selftest.fault import Fault, Trials, of_part
from compare.selftest.planting import Plant, edited, wrapped
from compare.selftest.trials import numbers, program
from eager.core import tape
from graphc.execution import partition
from graphc.execution.gradients import Gradients
from graphc.execution.partition import Split
from graphc.ir import Ref

_fault = of_part("partition", PARTITION)


def _split(change: Callable[[Split], Split]) -> Plant:
    """Every split goes through `change`."""
    return wrapped(partition, "partition", lambda sound: lambda *args, **options: change(sound(*args, **options)))


def _residuals(change: Callable[[list[Ref], Any], list[Ref]]) -> Plant:
    """The forward part returns `change(residuals, its nodes)`."""

    def changed(parts: Split) -> Split:
        *results, residuals = parts.forward.result
        new = tuple(change(list(residuals), parts.forward.nodes))
        return parts._replace(forward=parts.forward.replace(parts.forward.nodes, (*results, new)))

    return _split(changed)


def _exchanged(refs: list[Ref], nodes: Any) -> list[Ref]:
    """Two of one type."""
    for a in range(len(refs)):
        for b in range(a + 1, len(refs)):
            if nodes[refs[a].id].aval == nodes[refs[b].id].aval:
                return [*refs[:a], refs[b], *refs[a + 1 : b], refs[a], *refs[b + 1 :]]
    return refs


def _first_twice(refs: list[Ref], nodes: Any) -> list[Ref]:
    """The first in place of each other of its type."""
    return [refs[0] if nodes[r.id].aval == nodes[refs[0].id].aval else r for r in refs]


def _saved_reversed(parts: Split) -> Split:
    return parts._replace(saved=parts.saved[::-1])


def _rounded(sound: Any) -> Any:
    """Residuals are kept in 16 bits."""

    def shares(self: Gradients, node: tape.Node, g: Any) -> Any:
        own, residuals, *rest = node[tape.SAVED]
        kept = [np.asarray(a) for a in residuals]
        short = [a.astype(np.float16).astype(a.dtype) if a.dtype == np.float32 else a for a in kept]
        changed = [*node]
        changed[tape.SAVED] = [own, short, *rest]
        return sound(self, changed, g)

    return shares


def _kept(x: Any, y: Any) -> Any:
    """Products whose factors are dear to compute again."""
    a, b = torch.matrix_exp(x), torch.linalg.inv(y)
    return (a @ b).sum() + (a * b).sin().sum()


def _compiled(fn: Callable[..., Any], *args: Any) -> Trials:
    """Only compiled functions are in two parts."""
    return program(fn, *args, modes=("compiled",))


_square, _other = numbers(3, 3), numbers(3, 3, seed=6)
_KEPT = _compiled(_kept, _square, _other + 2 * np.eye(3, dtype=np.float32))
_PLAIN = _compiled(lambda x, y: (x.sin() * y).cos() * x, _square, _other)

FAULTS: tuple[Fault, ...] = (
    _fault("two residuals of one type exchanged", _residuals(_exchanged), _KEPT),
    _fault("the first residual in place of others", _residuals(_first_twice), _KEPT),
    _fault("the first residual comes last", _residuals(lambda refs, nodes: [*refs[1:], *refs[:1]]), _compiled(
        lambda x, y: (torch.matrix_exp(x) @ y.sum(0)).sin().sum() * torch.matrix_exp(x).sum(), _square, _other)),
    _fault("inputs for backward in reverse order", _split(_saved_reversed), _PLAIN),
    _fault("inputs for backward are of another shape", _split(_saved_reversed), _compiled(
        lambda x, y: (x @ y).sin() * x, _square, numbers(3, seed=6))),
    _fault("gradients in reverse order", edited(Gradients, "shares", (
        "return [(parent, np.asarray(d)) for parent, d in self._shares(node, arrived)]",
        "parents, shares = zip(*self._shares(node, arrived), strict=True)\n"
        "    return [*zip(parents, map(np.asarray, shares[::-1]), strict=True)]")), _PLAIN),
    _fault("cotangents in reverse order", edited(Gradients, "shares", (
        "arrived(g)", "arrived(g[::-1] if isinstance(g, list) else g)")),
           _compiled(lambda x, y: (x.sin() * y, (y.cos() * x) @ x), _square, _other)),
    _fault("residuals rounded to 16 bits", wrapped(Gradients, "shares", _rounded), _KEPT),
)  # fmt: skip
