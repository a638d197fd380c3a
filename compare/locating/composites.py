"""Ops that eager computes at once, and that graphs never hold: no node of the graph shows where eager is wrong."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from compare.judging.isolate import eager_result, objections
from compare.judging.numeric import evaluate
from compare.judging.tolerance import INDEPENDENT, Verdict, judge
from compare.judging.yardstick import Yardstick
from compare.locating.culprit import Culprit
from graphc.ir import Builder, Graph, Node, Ref
from graphc.ops import OPS, Op
from graphc.ops.aval import aval_of


def in_composites() -> Culprit | None:
    """The first such op of which eager's form, on its own samples, contradicts the definition, or somebody its rule."""
    found = (_judged(op, op.kernel, *op.vjp.values()) for op in OPS.values() if not op.whole)
    return next(filter(None, found), None)


@functools.lru_cache(256)
def _judged(op: Op, *parts: Any) -> Culprit | None:
    """What is wrong with an op that has these parts: programs are located again and again while they are minimized."""
    return next(_wrong(op, 0), None)


def _wrong(op: Op, seed: int) -> Iterator[Culprit]:
    rng = np.random.default_rng(seed)
    for sample in op.samples or ():
        arrays = sample.arrays(rng, op.domain)
        defined = _defined(op, arrays, sample.params)
        aval = defined.nodes[defined.outputs[0]].aval
        node = Node(len(arrays), op, tuple(range(len(arrays))), sample.params, (aval,))
        try:
            found = eager_result(node, arrays)
        except Exception as error:  # a kernel may raise anything
            yield Culprit("kernel", op.name, evidence=f"raises {type(error).__name__}: {error}")
            return
        expected = evaluate(defined, arrays)[defined.outputs[0]]
        if aval_of(found) != aval_of(expected):
            yield Culprit("kernel", op.name, evidence=f"gives {aval_of(found)}, its definition {aval_of(expected)}")
            return
        yardstick = Yardstick(defined, arrays, seed).of(defined.outputs[0], expected)
        judgement = judge(found, expected, *yardstick, slack=INDEPENDENT)
        if judgement.verdict is Verdict.BUG:
            yield Culprit("kernel", op.name, evidence=f"against its definition: {judgement.detail}")
        for objection in objections(node, arrays, seed):
            if not (objection.kink or objection.lowered):
                yield Culprit(f"gradient rule for '{objection.argument}'", op.name, evidence=objection.evidence)


def _defined(op: Op, arrays: list[np.ndarray], params: dict[str, object]) -> Graph:
    builder = Builder()
    inputs = [builder.input(f"x{k}", aval_of(a)) for k, a in enumerate(arrays)]
    return builder.graph("defined", Ref(builder.apply(op, inputs, params).id))
