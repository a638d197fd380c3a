"""Which parameters of products to split over devices, and along which dim, by the cost model: for `graphc.plan`.

Names that differ in the number of a layer are decided on together. Starting from nothing split, and from columns and
rows in turn (Shoeybi et al., Megatron-LM, 2019), one decision at a time is changed as long as that helps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple, final

from graphc.ir import INPUT, Graph
from graphc.sharding.sharding import P
from graphc.sharding.simulation import Simulation

WHOLE, COLUMNS, ROWS = "whole", "columns", "rows"
_WEIGHT: Mapping[str, Any] = {COLUMNS: P("model"), ROWS: P(None, "model")}
SWEEPS = 3
GAIN = 0.002  # of a step, below which nothing is split


@final
class Proposal(NamedTuple):
    """rules  {pattern of names: spec}, as `tensor_parallel` of `graphc.plan` takes them
    why    for each pattern of a matrix, how it is split, and what a step takes without that
    """

    rules: Mapping[str, Any]
    why: tuple[str, ...]


def proposed(
    graph: Graph, batch: Collection[str], predict: Callable[[Mapping[str, Any]], Simulation | None]
) -> Proposal:
    """The rules that `predict`, which may refuse some by None, says a step is fastest with."""
    # how many inputs have each name, but for its first step: a parameter, and what an optimizer keeps for it
    tails = Counter(name.partition(".")[2] for name in graph.input_names)
    groups = _groups(graph, batch, tails)
    every = {_pattern(name, tails) for name in graph.input_names}
    known: dict[tuple[str, ...], float] = {}

    def rules(kinds: Mapping[str, str]) -> dict[str, Any]:
        found = {pattern: _WEIGHT[kind] for pattern, kind in kinds.items() if kind != WHOLE}
        biases = [p.removesuffix("weight") + "bias" for p, kind in kinds.items() if kind == COLUMNS]
        return found | {bias: P("model") for bias in biases if bias in every}

    def seconds(kinds: Mapping[str, str]) -> float:
        key = (*kinds.values(),)
        if key not in known:
            found = predict(rules(kinds))
            known[key] = float("inf") if found is None else found.seconds
        return known[key]

    def improved(kinds: dict[str, str]) -> dict[str, str]:
        for _ in range(SWEEPS):
            before = kinds
            for group in groups:
                kinds = min(({**kinds, group: kind} for kind in (kinds[group], WHOLE, COLUMNS, ROWS)), key=seconds)
            if kinds == before:
                break
        for group in groups:  # what makes no difference stays whole
            whole = {**kinds, group: WHOLE}
            kinds = whole if seconds(whole) <= (1 + GAIN) * seconds(kinds) else kinds
        return kinds

    starts = dict.fromkeys(groups, WHOLE), {g: (COLUMNS, ROWS)[k % 2] for k, g in enumerate(groups)}
    best = min(map(improved, starts), key=seconds)
    why = [
        f"{g}: {kind}; whole, a step would take {seconds({**best, g: WHOLE}) / seconds(best):.3g} times as long"
        for g, kind in best.items() if kind != WHOLE
    ]  # fmt: skip
    return Proposal(rules(best), tuple(why))


def _groups(graph: Graph, batch: Collection[str], tails: Mapping[str, int]) -> list[str]:
    """Patterns of the names of matrices that are multiplied, in the order of the program."""
    nodes, made = graph.nodes, dict[int, int]()  # views of inputs: which
    names = dict(zip(graph.inputs, graph.input_names, strict=True))
    found: dict[str, None] = {}
    for id, node in nodes.items():
        sources = [made.get(i, i) for i in node.inputs]
        if node.op.view and len(sources) == 1:
            made[id] = sources[0]
        elif node.op.flops is not None:
            for i in sources:
                if nodes[i].op is INPUT and names[i] not in batch and len(nodes[i].shape) == 2:
                    found[_pattern(names[i], tails)] = None
    return list(found)


def _pattern(name: str, tails: Mapping[str, int]) -> str:
    """A name for all layers, and for what is kept for each: of p.h.3.up.weight *.h.*.up.weight. The number of a layer
    that has no name of its own, as in a Sequential, stays."""
    steps = name.split(".")
    last = max((k for k, step in enumerate(steps) if step.isdecimal()), default=-1)
    if len(steps) - last >= 3:
        steps = ["*" if step.isdecimal() else step for step in steps]
    if tails[name.partition(".")[2]] > 1:
        steps[0] = "*"
    return ".".join(steps)
