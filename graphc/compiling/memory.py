"""`graphc.memory`: what a function or a graph takes of memory when it runs as a compiled program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphc.compiling.compiled import Compiled
from graphc.compiling.decorator import compile
from graphc.footprint.liveness import liveness
from graphc.footprint.report import Memory, ProgramMemory, described
from graphc.ir import Graph
from graphc.lowering import lower
from graphc.lowering.stages import default_device
from graphc.sharding.one_device import on_one_device


def memory(fn: Callable[..., Any] | Graph, *args: Any, exact: bool = True, **kwargs: Any) -> Memory:
    """The memory that the compiled program of `fn(*args, **kwargs)`, or of a graph, takes at its peak; on a mesh, that
    of each device.

    Nothing is run. The figures are those of XLA's plan, which it makes before it generates code; kernels of its
    libraries take memory of their own, which it does not count. A function whose results can be differentiated has two
    programs, forward and backward; the outputs of the first include what it keeps for the second.

    exact   False: do not ask XLA, which takes about a second for 300 operations, but apply its habits (fusion,
            its order, memory that is used again) to the graph. This estimate is made for its CPU backend, where it is
            within a tenth of the plan for three programs of five, and within 40% for all that were tried. It is all
            that there is of a program with state on the host.

    Raises what tracing raises.

    >>> import eager as torch, graphc
    >>> found = graphc.memory(lambda x: (x @ x).tanh() @ x, torch.zeros(256, 256))
    >>> found.peak, found.programs[0].temporaries
    (786432, 262144)
    """
    if isinstance(fn, Graph):
        programs = [lower(fn)]
    else:
        compiled = getattr(fn, "_compiled", fn)
        known = compiled if isinstance(compiled, Compiled) else compile(fn)
        runner: Any = (known if isinstance(known, Compiled) else known._compiled).prepare(*args, **kwargs)
        programs = [p for p in (runner.forward, runner.backward) if p is not None and not p.on_host]
    return Memory(default_device().platform, tuple([_program(program, exact) for program in programs]))


def _program(program: Any, exact: bool) -> ProgramMemory:
    graph = on_one_device(program.lowered, program.layout)
    found = liveness(graph, program.aliases, program.offloaded.inputs)
    # what lies on the host XLA counts with the rest
    return described(graph, found, program.plan() if exact and not found.host else None)
