"""Runs a sample of every op in a few programs, and saves their results: what a new process makes of kept programs.

    python -m tests.lowering.every_op results.npz

Prints how many programs were compiled, and how many loaded.
"""

from __future__ import annotations

import sys
from collections import Counter

import numpy as np

from graphc.ir import Builder, Graph, Ref
from graphc.lowering import cache, lower
from graphc.ops.aval import Aval, results_of
from graphc.ops.bessel import ON_HOST
from graphc.ops.draws import draw
from tests.ops.cases import Case, every_case

TOGETHER = 32  # ops of a program


def first_cases() -> list[Case]:
    """One case of each op that does not call Python."""
    found: dict[str, Case] = {}
    for case in every_case():
        if case.op not in ON_HOST and case.op is not draw:
            found.setdefault(case.op.name, case)
    return list(found.values())


def graph_of(cases: list[Case], rng: np.random.Generator) -> tuple[Graph, list[np.ndarray]]:
    builder, arrays, results = Builder(), list[np.ndarray](), []
    for case in cases:
        given = case.arrays(rng)
        inputs = [builder.input(f"x{len(arrays) + k}", Aval(a.shape, a.dtype)) for k, a in enumerate(given)]
        arrays += given
        results.append(tuple(Ref(s.id) for s in results_of(builder.apply(case.op, inputs, case.sample.params))))
    return builder.graph("f", tuple(results)).check(), arrays


def main() -> None:
    cache.WORTHWHILE = 0.0
    cases, rng = first_cases(), np.random.default_rng(0)
    results: dict[str, np.ndarray] = {}
    how: Counter[str] = Counter()
    for k in range(0, len(cases), TOGETHER):
        group = cases[k : k + TOGETHER]
        graph, arrays = graph_of(group, rng)
        program = lower(graph)
        for case, found in zip(group, program(*arrays), strict=True):
            results |= {f"{case.op.name} {i}": np.asarray(a) for i, a in enumerate(found)}
        how["loaded" if "load" in program.seconds else "compiled"] += 1
    np.savez(sys.argv[1], **results)
    print(how["compiled"], how["loaded"])


if __name__ == "__main__":
    main()
