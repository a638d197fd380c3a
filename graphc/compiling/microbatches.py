"""A captured step as a loop over parts of its batch: `graphc.compile(step, microbatches=k)`."""

from __future__ import annotations

from graphc import errors
from graphc.capture.program import Program
from graphc.capture.sources import Argument, Draw, History
from graphc.ir import Ref
from graphc.sharding.over_time import over_time


def in_microbatches(program: Program, count: int) -> Program:
    """The program that computes `count` parts of its batch, the tensors among the arguments, one after the other.

    Raises MicrobatchError for batches that do not divide, and for what cannot be computed of parts.
    """
    graph, name = program.graph, program.graph.name
    if History.LIVE in program.result.histories:
        raise errors.MicrobatchError(errors.UNDIFFERENTIATED.format(name=name, count=count))
    given = dict(zip(graph.inputs, program.sources, strict=True))
    batch = [i for i, s in given.items() if isinstance(s, Argument) and graph.nodes[i].shape]
    shapes = [graph.nodes[i].shape for i in batch]
    if len({shape[0] for shape in shapes}) != 1:
        raise errors.MicrobatchError(errors.NO_BATCH.format(name=name, count=count, shapes=shapes))
    if shapes[0][0] % count or not shapes[0][0]:
        raise errors.MicrobatchError(errors.UNEVEN_BATCH.format(name=name, count=count, size=shapes[0][0]))
    wanted = [*graph.outputs, *(e.id for e in program.effects.tensors if e.id is not None)]
    wanted += [*(d.id for d in program.checks.decisions), *program.checks.unread]
    loose = [i for i, s in given.items() if isinstance(s, Draw)]
    looped = over_time(graph.replace(graph.nodes, tuple(map(Ref, wanted))), batch, loose, count)
    return program._replace(graph=graph.replace(looped.nodes, graph.result))
