"""Programs for any batch size: one trace, from which the program for each size is made by putting the sizes in.

Python has run once, on sizes that it could not tell from numbers (`graphc.ops.dims`). What it asked of them is kept as
conditions; the program stands for all sizes that meet these.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, final

from eager.core.tensor import Tensor
from graphc import errors
from graphc.capture.program import Program
from graphc.capture.sources import Draw, Drawn, Source, ViewOf
from graphc.capture.tree import with_sizes
from graphc.ir.dimensions import concrete, sizes_in
from graphc.ops.dims import Dim, Sizes, is_dim, substituted
from graphc.ops.steps import Step


@final
class SymbolicProgram:
    """A program with symbolic sizes, and the arguments whose first dims they are.

    sizes    the named sizes, and the conditions on them
    batches  argument position -> its size
    tensors  the arguments that it was traced with: the other first dims are theirs
    """

    def __init__(self, program: Program, sizes: Sizes, batches: Mapping[int, Dim], tensors: Sequence[Tensor]):
        self._program = program
        self.sizes = sizes
        self._names = [(position, dim.text) for position, dim in batches.items()]
        self._fixed = {k: t._d.shape[0] for k, t in enumerate(tensors) if t._d.shape and k not in batches}

    def sizes_of(self, tensors: Sequence[Tensor]) -> dict[str, int] | None:
        """The named sizes of a call with these tensors; None if the program is not for them."""
        found: dict[str, int] = {}
        if any(tensors[position]._d.shape[0] != n for position, n in self._fixed.items()):
            return None
        for position, name in self._names:
            n = int(tensors[position]._d.shape[0])
            if found.setdefault(name, n) != n:
                return None
        return found if self.sizes.broken(found) is None else None

    def at(self, sizes: Mapping[str, int]) -> Program:
        """The program for these sizes. Raises GraphError if a node does not fit them, which no trace should lead to."""
        return derived(self._program, sizes)


def derived(program: Program, sizes: Mapping[str, int]) -> Program:
    """A program with symbolic sizes, for these sizes by name; one without is returned as it is. Raises GraphError."""
    kept = sizes_in(program.graph)
    if kept is None:
        return program
    result, effects = program.result, program.effects
    leaves = [
        dataclasses.replace(r, steps=_steps(r.steps, sizes)) if isinstance(r, ViewOf) else r for r in result.leaves
    ]
    return program._replace(
        graph=concrete(program.graph, sizes),
        sources=tuple(_source(kept, source, sizes) for source in program.sources),
        result=result._replace(structure=with_sizes(result.structure, sizes), leaves=tuple(leaves)),
        effects=effects._replace(state=tuple((change, with_sizes(tree, sizes)) for change, tree in effects.state)),
        drawn=Drawn(),
    )


def sizes_of_shapes(shapes: Iterable[tuple[Any, Any]]) -> dict[str, int]:
    """The named sizes, given pairs of a shape that has them and one of numbers. ValueError where those do not fit."""
    pairs = [(n, int(m)) for wanted, given in shapes for n, m in zip(wanted, given, strict=True) if is_dim(n)]
    found: dict[str, int] = {}
    for n, m in sorted(pairs, key=lambda pair: not pair[0].is_name):
        if n.is_name:
            found.setdefault(n.text, m)
        if substituted(n, found) != m:
            raise ValueError(errors.SIZES_DIFFER.format(size=n.text, a=substituted(n, found), b=m))
    return found


def _source(kept: Sizes, source: Source, sizes: Mapping[str, int]) -> Source:
    if not isinstance(source, Draw):
        return source
    return Draw(functools.partial(_drawn, kept, dict(sizes), source.draw), source.generator)


def _drawn(kept: Sizes, sizes: Mapping[str, int], draw: Any) -> Any:
    """What `draw` gives for these sizes, wherever in it they are."""
    with kept.at(sizes):
        return draw()


def _steps(steps: Sequence[Step], sizes: Mapping[str, int]) -> tuple[Step, ...]:
    return tuple(
        Step(step.op, {name: substituted(value, sizes) for name, value in step.params.items()}) for step in steps
    )
