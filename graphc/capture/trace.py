"""`trace`: run a function once with symbolic tensors, and return the graph of what it did."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from eager.state import interpreting
from eager.tensor import Tensor
from graphc import errors
from graphc.capture.environment import tensor_names
from graphc.capture.tracer import Effect, Guard, History, Source, Tracer
from graphc.capture.tree import map_tensors
from graphc.ir import Graph
from graphc.ir.memory import without_collector


class Program(NamedTuple):
    """A traced function: its graph, where the graph's inputs come from, and what else the function did.

    graph     returns the function's result
    sources   one for each input of the graph
    effects   in-place writes and gradients, to be carried out after a run
    guards    what must still hold for the graph to be right
    histories what autograd knows of each tensor of the result
    recorded  ids of the nodes that gradients flow through (not those made under no_grad, or from detached values)
    rules     the tracer, if gradients depend on autograd.Functions or hooks of the user's
    plain     positions of the arguments that have to fill their memory in row-major order
    """

    graph: Graph
    sources: tuple[Source, ...]
    effects: tuple[Effect, ...]
    guards: tuple[Guard, ...]
    histories: tuple[History, ...]
    recorded: frozenset[int]
    rules: Tracer | None
    plain: tuple[int, ...]


def trace(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Graph:
    """The graph of `fn(*args, **kwargs)`, for arguments of these shapes and dtypes.

    Tensors among the arguments, in any nest of tuples, lists and dicts, become inputs named after the parameters;
    other values are fixed. Tensors that the function reaches by itself (parameters, buffers, globals) become further
    inputs, in the order in which they are met.

    Raises CaptureError, with the user's line, for what cannot be captured: a branch on a traced value, reading
    values, or a change to tensors that outlive the call (use `graphc.compile` for those).

    >>> import eager as torch, graphc
    >>> print(graphc.trace(lambda x, y: torch.tanh(x @ y), torch.zeros(2, 3), torch.zeros(3)))
    def lambda_(x: f32[2,3], y: f32[3]):
        v2: f32[2] = matmul(x, y)  # ...
        v3: f32[2] = tanh(v2)  # ...
        return v3
    <BLANKLINE>
    """
    program = capture(fn, args, kwargs)
    if program.effects:
        raise errors.CaptureError(
            f"{program.graph.name} changes tensors that outlive the call, which a graph alone cannot express. "
            "Remedy: use graphc.compile, which carries the changes out."
        )
    return program.graph


@without_collector
def capture(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Program:
    """Run `fn` under a tracer; everything there is to know about it, as a Program."""
    names_of_tensors = tensor_names(fn)
    tracer = Tracer(lambda tensor: names_of_tensors.get(id(tensor)))
    count = 0

    def stand_in(tensor: Tensor, path: str) -> Tensor:
        nonlocal count
        count += 1
        return tracer.argument(tensor, count - 1, path)

    names = list(_parameter_names(fn, len(args)))
    traced_args = tuple(map_tensors(a, stand_in, name) for a, name in zip(args, names, strict=True))
    traced_kwargs = {name: map_tensors(value, stand_in, name) for name, value in kwargs.items()}
    try:
        with interpreting(tracer):
            result = fn(*traced_args, **traced_kwargs)
            histories = tracer.histories(result)
            refs, effects = tracer.finish(result)
    finally:
        tracer.builder.closed = True
    graph = tracer.builder.graph(identifier(getattr(fn, "__name__", type(fn).__name__)), refs)
    return Program(
        graph, tuple(tracer.sources), tuple(effects), tuple(tracer.guards), tuple(histories), tracer.recorded,
        tracer if tracer.has_rules else None, tuple(tracer.plain_arguments),
    )  # fmt: skip


def identifier(name: str) -> str:
    """A Python identifier close to `name`."""
    cleaned = re.sub(r"\W", "", name) or "program"
    return f"{cleaned}_" if cleaned in ("lambda",) or cleaned[0].isdigit() else cleaned


def _parameter_names(fn: Callable[..., Any], count: int) -> Iterator[str]:
    """A name for each of `count` positional arguments: the parameter's, numbered for *args."""
    try:
        parameters = list(inspect.signature(fn).parameters.values())
    except (TypeError, ValueError):  # builtins have no signature
        parameters = []
    for i in range(count):
        if i < len(parameters) and parameters[i].kind in (
            inspect.Parameter.POSITIONAL_ONLY,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
        ):
            yield parameters[i].name
        else:
            rest = [(k, p.name) for k, p in enumerate(parameters) if p.kind is inspect.Parameter.VAR_POSITIONAL]
            first, name = rest[0] if rest else (0, "arg")
            yield f"{name}_{i - first}"
