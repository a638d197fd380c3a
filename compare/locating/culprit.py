"""What is to blame where modes part, and what it was given there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

from graphc.ir import Node
from graphc.ops.aval import aval_of
from graphc.ops.dtypes import kind

KINK = "subgradient at a kink"
BACKWARD = "backward of the autograd.Function"
INHERITED = "graph that it was given"  # a pass that is sound, after one that is not
SHOWN = 8  # elements of an array that are printed one by one


@final
@dataclass(frozen=True)
class Culprit:
    """The first place where a mode goes wrong.

    part      what of it is wrong: "lowering", "gradient rule", "shape rule", "rewrite rule", "pass", ...
    op, node  the op and the node's number in the graph, "" and None if no single node is to blame
    where     the user's line
    rule      the rewrite rule
    pass_name the pass
    evidence  the numbers
    operands  what the op was given there, summarized
    """

    part: str
    op: str = ""
    node: int | None = None
    where: str = ""
    rule: str = ""
    pass_name: str = ""
    evidence: str = ""
    operands: tuple[str, ...] = ()

    def __str__(self) -> str:
        names = [f"{self.part}"]
        if self.rule:
            names.append(f"'{self.rule}'")
        if self.pass_name:
            names.append(f"in pass '{self.pass_name}'" if self.part != "pass" else f"'{self.pass_name}'")
        if self.op:
            names.append(f"of op '{self.op}'" if self.part != "pass" else f"at op '{self.op}'")
        place = ", ".join(filter(None, (f"v{self.node}" if self.node is not None else "", self.where)))
        text = " ".join(names) + (f" ({place})" if place else "")
        return f"{text}: {self.evidence}" if self.evidence else text


def blame(part: str, node: Node, evidence: str, values: Mapping[int, np.ndarray], pass_name: str = "") -> Culprit:
    return Culprit(part, node.op.name, node.id, node.where, "", pass_name, evidence, _operands(node, values))


def _operands(node: Node, values: Mapping[int, np.ndarray]) -> tuple[str, ...]:
    given = ((i, values[i]) for i in node.inputs)
    return tuple(f"v{i}: {summary(value)}" for i, value in given if isinstance(value, np.ndarray))


def summary(array: np.ndarray) -> str:
    """An array in one line: all of it if it is small, else its range and what stands out.

    >>> summary(np.float32([[1, 0.1], [2, 3]]))
    'f32[2,2] [[1. , 0.1], [2. , 3. ]]'
    >>> summary(np.arange(100.0))
    'f64[100] from 0 to 99, mean 49.5'
    """
    head = str(aval_of(array))
    if array.size <= SHOWN or kind(array.dtype) not in "iuf":
        some = np.array2string(array if array.size <= SHOWN else array.ravel()[:SHOWN], separator=", ")
        return f"{head} {' '.join(some.split())}" + "..." * (array.size > SHOWN)
    finite = array[np.isfinite(array)].astype(np.float64)
    parts = [f"from {finite.min():.6g} to {finite.max():.6g}, mean {finite.mean():.6g}"] if finite.size else []
    odd = {"nan": np.isnan(array).sum(), "infinite": np.isinf(array).sum()}
    return f"{head} " + ", ".join([*parts, *(f"{count} {name}" for name, count in odd.items() if count)])


def first_line(error: Exception) -> str:
    """What an exception says, without the rest of a long message."""
    return str(error).partition("\n")[0]
