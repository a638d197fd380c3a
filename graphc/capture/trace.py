"""`trace`: run a function once with symbolic tensors, and return the graph of what it did."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from eager.state import interpreting
from eager.tensor import Tensor
from graphc import errors
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
    """

    graph: Graph
    sources: tuple[Source, ...]
    effects: tuple[Effect, ...]
    guards: tuple[Guard, ...]
    histories: tuple[History, ...]
    recorded: frozenset[int]


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
    tracer = Tracer(_Names(fn))
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
        graph, tuple(tracer.sources), tuple(effects), tuple(tracer.guards), tuple(histories), tracer.recorded
    )


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


class _Names:
    """Names for captured tensors: the variable, or the module's attribute path, by which the function knows them."""

    def __init__(self, fn: Callable[..., Any]):
        self._fn = fn
        self._names: dict[int, str] | None = None

    def __call__(self, tensor: Tensor) -> str | None:
        if self._names is None:
            self._names = {}
            for name, value in _visible(self._fn):
                self._add(name, value)
        return self._names.get(id(tensor))

    def _add(self, name: str, value: Any) -> None:
        assert self._names is not None
        if isinstance(value, Tensor):
            self._names.setdefault(id(value), name)
        elif hasattr(value, "named_parameters"):
            for member in (value.named_parameters(), value.named_buffers()):
                for path, tensor in member:
                    self._names.setdefault(id(tensor), f"{name}.{path}" if name else path)
        elif isinstance(value, (list, tuple)):
            for i, item in enumerate(value):
                if isinstance(item, Tensor):
                    self._add(f"{name}.{i}", item)


def _visible(fn: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    """The variables that `fn` can see: its own object, closure cells, and the globals it names."""
    yield "", getattr(fn, "__self__", fn)
    function = inspect.unwrap(getattr(fn, "__func__", fn))
    code = getattr(function, "__code__", None)
    if code is None:
        return
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:
            continue  # a variable that is not assigned yet
    for name in code.co_names:
        if name in function.__globals__:
            yield name, function.__globals__[name]
