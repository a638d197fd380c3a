"""`trace`: run a function once with symbolic tensors, and return the graph of what it did."""

from __future__ import annotations

import contextlib
import functools
import inspect
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, ParamSpec, final

from eager.core.interpreter import interpreting
from eager.core.overriding import Asking
from eager.core.tensor import Tensor
from graphc import errors
from graphc.capture.calls import call_of
from graphc.capture.effects import gradient_ends, late_leaves
from graphc.capture.elsewhere import with_tensors
from graphc.capture.flow.control import scan_of_layer
from graphc.capture.location import user_line
from graphc.capture.materialization import Materializer
from graphc.capture.number import Number
from graphc.capture.number_functions import functions_of_numbers
from graphc.capture.program import Checks, Effects, Guarded, MadeLeaf, Program, Recorded, Result
from graphc.capture.sources import Computed, Drawn, History, ViewOf
from graphc.capture.state.append_only import done_once
from graphc.capture.state.argument_containers import Containers
from graphc.capture.state.environment import Environment
from graphc.capture.state.lifted_numbers import LiftedNumber
from graphc.capture.state.places import Change
from graphc.capture.tracer import LOOPS, Tracer
from graphc.capture.tree import Kept, OfClass, Slot, is_plain, map_leaves, tensors_of
from graphc.capture.user_objects import has_leaves, is_traced, opener
from graphc.ir import Graph, Node
from graphc.ir.garbage_collection import without_collector
from graphc.ir.structure import ITEM, ancestors, may_fail
from graphc.ops.dims import Dim, Sizes

P = ParamSpec("P")
LOOPS["scan"] = scan_of_layer


def trace(fn: Callable[P, Any], *args: P.args, **kwargs: P.kwargs) -> Graph:
    """The graph of `fn(*args, **kwargs)`, for arguments of these shapes and dtypes.

    Tensors among the arguments, in any nest of tuples, lists, dicts and dataclasses, become inputs named after the
    parameters; other values are fixed. Tensors that the function reaches by itself (parameters, buffers, globals)
    become further inputs, in the order in which they are met.

    Raises CaptureError, with the user's line, for what a graph alone cannot express: a branch on a traced value,
    reading values, or a change to tensors that outlive the call (use `graphc.compile` for those).

    >>> import eager as torch, graphc
    >>> print(graphc.trace(lambda x, y: torch.tanh(x @ y), torch.zeros(2, 3), torch.zeros(3)))
    def lambda_(x: f32[2,3], y: f32[3]):
        v2: f32[2] = matmul(x, y)  # ...
        v3: f32[2] = tanh(v2)  # ...
        return v3
    <BLANKLINE>
    """
    args, kwargs = with_tensors((args, kwargs))
    program = capture(fn, args, kwargs)
    if program.effects.tensors:
        raise errors.CaptureError(
            f"{program.graph.name} changes tensors that outlive the call, which a graph alone cannot express. "
            "Remedy: use graphc.compile, which carries the changes out."
        )
    graph = program.graph
    call = call_of(fn, args, kwargs, iter(graph.inputs))
    return Graph(graph.name, graph.nodes, graph.inputs, graph.result, graph.history, call)


@without_collector
def capture(
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    environment: Environment | None = None,
    failed: Callable[[Tracer, Containers], None] | None = None,
    batches: tuple[Sizes, Mapping[int, Dim]] | None = None,
    foretold: tuple[bytes, ...] = (),
    drawn: Drawn | None = None,
    keepers_stay: bool = False,
) -> Program:
    """Run `fn` under a tracer; everything there is to know about it, as a Program.

    environment  the Python state that `fn` can see, for a program that is to run in its place: what it puts there
                 becomes part of the program, Python may decide on values (the program is then right on one path), and a
                 tensor that is given twice is one
    failed       called with the tracer and the containers among the arguments if `fn` raises, before that goes on
    foretold     the values of the first decisions, as XLA computes them
    keepers_stay optimizers that `fn` makes are there after the call; KeeperStaysError if they are, and this is not said
    drawn        is given the random numbers that are needed during the trace
    batches      arguments whose first dims are symbolic, by position: then the program has Dims (see `dynamic`)
    """
    seen = environment or Environment(fn, args, kwargs)
    tracer = Tracer(lambda tensor: seen.names.get(id(tensor)), environment is not None)
    given = list(tensors_of((args, kwargs)))
    tracer.start(given)
    tracer.state.foretold, tracer.state.keepers_stay = foretold, keepers_stay
    if drawn is not None:
        tracer.state.drawn = drawn
        drawn.clear()
    tracer.state.sizes, tracer.state.batches = batches or (None, {})
    numbers = iter(range(len(given)))

    def stand_in(tensor: Tensor, path: str) -> Any:
        if isinstance(tensor, LiftedNumber):
            return tracer.number(tensor, next(numbers), path)
        return tracer.argument(tensor, next(numbers), path)

    containers = Containers((args, kwargs), list(_parameter_names(fn, len(args))), stand_in)
    undoing = _Undoing(environment, tracer, containers)
    scope = interpreting(tracer)
    try:
        scope.__enter__()
        with contextlib.nullcontext() if tracer.state.sizes is None else tracer.state.sizes.recording():
            if environment is not None:
                environment.start(tracer)
            result = _run(fn, tracer, containers, seen, failed if environment is not None else None)
            try:
                if environment is not None:
                    tracer.check_keepers()
                program = _recorded(fn, result, tracer, containers, environment)
            except errors.GraphcError:
                if environment is not None:
                    forget(environment, tracer, containers)  # else what is traced would stay in Python's state
                raise
            undoing.program = program
    except Exception:
        raise
    except BaseException:  # an interrupt: whatever has been done is undone
        undoing.whole = True
        raise
    finally:
        try:
            scope.leave()
            undoing.run()
        except BaseException:  # an interrupt in here: once more, as what has been undone stays so
            scope.leave()
            undoing.run()
            raise
    return program


def _run(
    fn: Callable[..., Any],
    tracer: Tracer,
    containers: Containers,
    environment: Environment,
    failed: Callable[[Tracer, Containers], None] | None,
) -> Any:
    """What `fn` returns for symbols. If it raises: the refusal that this stands for, or what it raised itself."""
    try:
        with environment.watching(), functions_of_numbers(environment.places):
            return fn(*containers.args, **containers.kwargs)
    except Exception as raised:
        error = tracer.concretization.refusal(raised) or raised
        if failed is not None:
            if isinstance(error, errors.GraphcError):
                failed = functools.partial(forget, environment)  # it is not the program that has failed
            failed(tracer, containers)
            Materializer(tracer).reveal(error)
        if error is not raised:
            raise error from raised
        raise


def _recorded(
    fn: Callable[..., Any], result: Any, tracer: Tracer, containers: Containers, environment: Environment | None
) -> Program:
    """The program of a run that has ended. CaptureError for changes that a graph without an environment cannot make."""
    changes = containers.changes()
    if environment is not None:
        tracer.autograd.grads.settle(to_run=True)
        changes += done_once(environment.written(), has_leaves)
        changes += tracer.autograd.hooks.staying() + tracer.autograd.grads.sparse_changes()
        return finished(
            tracer, fn, result, changes, containers.existing() | environment.existing(), environment.owners()
        )
    if tracer.autograd.hooks.staying():
        raise errors.CaptureError(errors.HOOK_STAYS.format(used=user_line()))
    if changes:
        raise errors.CaptureError(errors.CHANGES_ARGUMENT.format(what=changes[0].path))
    return finished(tracer, fn, result, changes, {}, frozenset())


@final
class _Undoing:
    """The end of a trace: what Python's state was is put back. May be run twice.

    program what the trace has come to, if it has: its changes are made by a run
    whole   whether all is undone that the function has done
    """

    def __init__(self, environment: Environment | None, tracer: Tracer, containers: Containers):
        self.program: Program | None = None
        self.whole = False
        self._environment = environment
        self._tracer = tracer
        self._containers = containers

    def run(self) -> None:
        self._tracer.builder.closed = True
        if self._environment is not None:
            if self.whole and self.program is None:
                forget(self._environment, self._tracer, self._containers)
            self._environment.restore()
        for change, _ in reversed(self.program.effects.state) if self.program is not None else ():
            if change.find is None:  # else it is a change of a copy
                change.write(change.before)


def forget(environment: Environment, tracer: Tracer, containers: Any) -> None:
    """Undo what a traced function has done before it raised: it will be traced again."""
    for change in reversed(environment.written()):
        change.write(change.before)
    tracer.state.drawn.put_back()


def finished(
    tracer: Tracer, fn: Any, result: Any, changes: list[Change], existing: Mapping[int, Kept], there: Collection[int]
) -> Program:
    """The program that `tracer` has recorded, which returns `result` and makes `changes`.

    existing  by id: what stands for containers that were there before the call
    there     ids of other objects, or of their namespaces, that were
    """
    leaves: list[Any] = []

    def numbered(leaf: Any, path: str) -> Any:
        if type(leaf) is Kept:
            return leaf
        if type(leaf) is Number and leaf.of_numpy:  # a program returns numbers of Python's
            return leaf.known()
        leaves.append(leaf)
        slot = Slot(len(leaves) - 1)
        own = vars(leaf) if isinstance(leaf, Tensor) else None  # a number that is asked would be known
        if not own and not isinstance(leaf, Asking):
            return slot
        namespace = map_leaves(own or {}, numbered, path, known, opened)
        return of_class.setdefault(
            id(leaf), OfClass(slot, type(leaf) if isinstance(leaf, Asking) else Tensor, namespace)
        )

    of_class: dict[int, OfClass] = {}
    known: dict[int, Any] = dict(existing)
    opened = opener(is_traced, there)
    structure = map_leaves(result, numbered, "", known, opened)
    alone = len(leaves)
    put = [map_leaves(change.after, numbered, "", known, opened) for change in changes]
    numbers = frozenset(k for k, leaf in enumerate(leaves) if type(leaf) is Number)
    tensors = [tracer.wrap(leaf.symbol, False) if k in numbers else leaf for k, leaf in enumerate(leaves)]
    histories = [tracer.autograd.history(t) for t in tensors]
    own = {id(t): (t, k) for k, t in reversed([*enumerate(tensors)]) if histories[k] is History.LEAF}
    own_leaves: list[MadeLeaf] = []
    for tensor, k in own.values():
        grad = tracer.get_grad(tensor)
        own_leaves.append(MadeLeaf(k, None if grad is None else len(tensors)))
        if grad is not None:
            tensors.append(grad)
            histories.append(tracer.autograd.history(grad))
    refs, returned, effects = tracer.finish(tensors)
    tree: Any = tuple(refs)
    if is_plain(structure) and alone == len(leaves):
        tree = map_leaves(structure, lambda slot, path: refs[slot.index])
    graph = tracer.builder.graph(identifier(getattr(fn, "__name__", type(fn).__name__)), tree)
    broken = dict(tracer.autograd.broken)
    # a view is made, after the run, of its base, which is what the program returns
    for ref, made, history in zip(refs, returned, histories, strict=True):
        if history is History.BROKEN and isinstance(made, ViewOf) and isinstance(made.base, Computed):
            broken[made.base.id] = broken[ref.id]
    state = tracer.state
    decisions, tape = tuple(state.decisions), tracer.autograd
    read = [*graph.outputs, *(e.id for e in effects if e.id is not None), *(d.id for d in decisions)]
    watched = tuple(tape.watched(zip(tensors, (graph.nodes[r.id] for r in refs), returned, histories, strict=True)))
    ends = gradient_ends(tracer, [tensor for tensor, _ in own.values()])
    return Program(
        graph,
        tuple(tracer.state.sources),
        Result(structure, tuple(returned), numbers, tuple(histories), tuple(own_leaves), watched),
        Effects(tuple(effects), tuple(zip(changes, put, strict=True))),
        Guarded(
            tuple(state.guards),
            tuple(state.argument_guards),
            tuple((a, b, how) for (a, b), how in tracer.state.overlaps.items()),
        ),
        Checks(decisions, _unread(graph.nodes, read)),
        Recorded(
            tracer.recorded, tuple(ends), late_leaves(state.sources, effects), broken, tape if tape.has_rules else None
        ),
        state.drawn,
        tracer.placement.settled(),
    )


def _unread(nodes: Mapping[int, Node], read: Sequence[int]) -> tuple[int, ...]:
    """The nodes that may fail, or what takes a result out of one, among those that `read` does not depend on."""
    failing = {id for id, node in nodes.items() if may_fail(node)}
    if not failing:
        return ()
    live = ancestors(nodes, read)
    one: dict[int, int] = {}  # of several results one is enough: a vector sooner than a matrix
    for id, node in nodes.items():
        if node.op is ITEM and (source := node.inputs[0]) in failing and source not in live:
            one[source] = min(one.get(source, id), id, key=lambda i: len(nodes[i].shape))
    failing.update(one.values())
    found: list[int] = []
    for id in sorted(failing - live, reverse=True):
        if id not in live and not nodes[id].op.several:
            found.append(id)
            live |= ancestors(nodes, [id])
    return tuple(reversed(found))


def identifier(name: str) -> str:
    """A Python identifier close to `name`."""
    cleaned = re.sub(r"\W", "", name) or "program"
    return f"{cleaned}_" if cleaned in ("lambda",) or cleaned[0].isdigit() else cleaned


def _parameter_names(fn: Callable[..., Any], count: int) -> Iterator[str]:
    """A name for each of `count` positional arguments: the parameter's, numbered for *args."""
    try:
        parameters = list(inspect.signature(getattr(fn, "forward", fn)).parameters.values())
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
