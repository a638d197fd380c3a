"""`cond`, `switch`, `while_loop`, `scan`, `fori_loop` and `map`: control flow with the arguments of jax.lax.

In eager mode they run as Python does, and the tape records what happens. Under a trace each is one operation of the
graph, whose functions are graphs themselves. In both, results share no memory with operands, and are row-major.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

import eager
from eager.core.interpreter import current_interpreter
from eager.core.state import grad_enabled
from eager.core.tensor import Tensor
from eager.engine.language import E
from graphc.capture.building import Building
from graphc.capture.flow.bodies import Stand, TracedBody, apply, reached
from graphc.capture.flow.draws import per_step
from graphc.capture.flow.nests import Nest, aval_of_tensor, check_leaves, check_structure, nest, own, unshared
from graphc.capture.location import user_line
from graphc.capture.number import Number
from graphc.capture.tracer import Tracer
from graphc.capture.tree import tensors_of
from graphc.ir.structure import SCAN, SWITCH, WHILE
from graphc.ops.aval import Aval
from graphc.ops.dtypes import BOOL, INT32, INT64, is_inexact

Function = Callable[..., Any]
R = TypeVar("R")


def _tracer(*values: Any) -> Tracer | None:
    """The trace in force; or that of the graph that a placeholder among `values` belongs to."""
    interpreter = current_interpreter()
    if isinstance(interpreter, Building):
        return interpreter.tracer if any(interpreter.has(t) for t in tensors_of(values)) else None
    return interpreter if isinstance(interpreter, Tracer) else None


def _single(value: Any, what: str) -> Tensor:
    tensor = nest(value, what).leaves[0] if not isinstance(value, Tensor) else value
    if tuple(tensor._d.shape):
        raise TypeError(f"{what} must be a single value, got {aval_of_tensor(tensor)}")
    return tensor


def _stands(leaves: Sequence[Tensor]) -> list[Stand]:
    return [Stand(aval_of_tensor(t), t._n is not None and grad_enabled()) for t in leaves]


def cond(pred: Any, true_fn: Callable[..., R], false_fn: Callable[..., R], *operands: Any) -> R:
    """`true_fn(*operands)` if `pred` is true, else `false_fn(*operands)`.

    pred: a single bool or number. Both functions return nests of tensors of the same structure, shapes and dtypes;
    in eager mode only one of them is run, in a compiled program only one is executed.
    Raises TypeError if, under a trace, the results of the branches differ in structure, shape or dtype.

    >>> import eager as torch, graphc
    >>> graphc.cond(torch.tensor(2.0) > 1, lambda x: x + 1, lambda x: x - 1, torch.tensor(5.0))
    tensor(6.)
    """
    tracer = _tracer(pred)
    if tracer is None or not (isinstance(pred, Tensor) or type(pred) is Number):
        chosen = true_fn if _known(pred, "cond: the predicate") else false_fn
        return unshared(chosen(*operands), "cond: the result")
    chosen = _single(pred, "cond: the predicate")
    index = _truth(chosen)
    return _branch(tracer, "cond", index, (false_fn, true_fn), ("false_fn", "true_fn"), operands)


def switch(index: Any, branches: Sequence[Callable[..., R]], *operands: Any) -> R:
    """`branches[index](*operands)`, with `index` clamped to the branches there are.

    index: a single integer. The branches return nests of tensors of the same structure, shapes and dtypes.
    Raises ValueError for no branches; TypeError as `cond` does, and for an index that is no integer.

    >>> import eager as torch, graphc
    >>> graphc.switch(7, [lambda x: x, lambda x: -x], torch.tensor(5.0))
    tensor(-5.)
    """
    branches = tuple(branches)
    if not branches:
        raise ValueError("switch: needs at least one branch")
    tracer = _tracer(index)
    if tracer is None or not (isinstance(index, Tensor) or type(index) is Number):
        known = operator.index(_known(index, "switch: the index"))
        return unshared(branches[min(max(known, 0), len(branches) - 1)](*operands), "switch: the result")
    chosen = _single(index, "switch: the index")
    if chosen._dtype().kind not in "iu":
        raise TypeError(f"switch: the index must be an integer, got {aval_of_tensor(chosen)}")
    if chosen._dtype() != INT32:
        chosen = eager.clamp(chosen, 0, len(branches) - 1)
    return _branch(tracer, "switch", chosen, branches, [f"branch {k}" for k in range(len(branches))], operands)


def _known(value: Any, what: str) -> Any:
    return _single(value, what).item() if isinstance(value, Tensor) else value


def _branch(
    tracer: Tracer, name: str, index: Tensor, branches: Sequence[Function], names: Sequence[str], operands: Any
) -> Any:
    where = user_line()
    given = nest(operands, f"{name}: operands")
    bodies: list[TracedBody] = []
    for fn, called in zip(branches, names, strict=True):
        body = TracedBody(
            tracer, "branch", fn, _stands(given.leaves), lambda fn, xs: fn(*given.fill(xs)), f"{name}: {called}",
            own=False,
        )  # fmt: skip
        body.refuse_draws()
        bodies.append(body)
    results = [body.results for body in bodies]
    for called, found in zip(names, results, strict=True):
        check_structure(f"{name}: the result of {called}", found, results[0])
    # a Python number takes the dtype of what another branch returns
    strong = [[r.avals[k] for r in results if not r.weak[k]] for k in range(len(results[0].leaves))]
    wanted = [(avals or [first])[0] for avals, first in zip(strong, results[0].avals, strict=True)]
    for called, found in zip(names, results, strict=True):
        check_leaves(f"{name}: the result of {called}", found, _expected(found, wanted), where)
    consts = reached(bodies)
    requires = [any(flags) for flags in zip(*(body.requires for body in bodies), strict=True)]
    graphs = tuple(body.graph(consts, [aval.dtype for aval in wanted]) for body in bodies)
    operands = [_cast(index, INT32), *consts, *given.leaves]
    return results[0].fill(apply(tracer, SWITCH, operands, requires, where, branches=graphs))


def _expected(found: Nest, wanted: Sequence[Aval]) -> list[Aval]:
    """`wanted`, with any dtype for what is a Python number in `found`."""
    return [
        Aval(w.shape, own.dtype) if weak else w for w, own, weak in zip(wanted, found.avals, found.weak, strict=True)
    ]


def _copies(given: Nest) -> Any:
    """The tree with copies of its tensors, for a step of a loop: what it writes to, or hooks, is its own."""
    return given.fill([own(t) for t in given.leaves])


def while_loop(cond_fn: Callable[[Any], Any], body_fn: Callable[[Any], Any], init_val: Any) -> Any:
    """`carry = body_fn(carry)`, from `init_val`, while `cond_fn(carry)` is true. Returns the last carry.

    The carry is a nest of tensors and numbers whose structure, shapes and dtypes stay the same (TypeError otherwise,
    which names the leaf). Reverse mode keeps 64 carries, whatever the number of steps.

    >>> import eager as torch, graphc
    >>> graphc.while_loop(lambda x: x < 100, lambda x: x * 2, torch.tensor(3.0))
    tensor(192.)
    """
    tracer, where = _tracer(init_val), user_line()
    carry = nest(init_val, "while_loop: the carry")
    if tracer is None:  # the condition may reach a placeholder by itself
        tracer = _tracer(cond_fn(_copies(carry))) if isinstance(current_interpreter(), Building) else None
    if tracer is None:
        value = _copies(carry)
        while _known(cond_fn(value), "while_loop: the condition"):
            _, carry = _next(body_fn(value), carry, "while_loop: the carry", where)
            value = _copies(carry)
        return value
    traced = tracer

    def trace(stands: list[Stand]) -> tuple[TracedBody, Nest]:
        body = TracedBody(traced, "body", body_fn, stands, lambda fn, xs: fn(carry.fill(xs)), "while_loop: body_fn")
        body.refuse_draws()
        return body, body.results

    body, stands, _ = _steady(trace, carry, [], "while_loop: the carry", where)

    def judge(fn: Function, xs: list[Tensor]) -> Tensor:
        return _truth(_single(fn(carry.fill(xs)), "while_loop: the condition"))

    test = TracedBody(traced, "condition", cond_fn, stands, judge, "while_loop: cond_fn")
    test.refuse_draws()
    consts = reached([test, body])
    dtypes = [stand.aval.dtype for stand in stands]
    first = [_cast(t, dtype) for t, dtype in zip(carry.leaves, dtypes, strict=True)]
    found = apply(
        traced, WHILE, [*consts, *first], [stand.requires_grad for stand in stands], where,
        condition=test.graph(consts), body=body.graph(consts, dtypes), consts=len(consts),
    )  # fmt: skip
    return carry.fill(found)


def _truth(tensor: Tensor) -> Tensor:
    return tensor if tensor._dtype() == BOOL else E.ne(tensor, 0)


def _cast(tensor: Tensor, dtype: np.dtype) -> Tensor:
    return tensor if tensor._dtype() == dtype else E.cast(tensor, dtype=dtype)


def _next(result: Any, carry: Nest, what: str, where: str) -> tuple[Any, Nest]:
    """The carry of the next step, in eager mode, and what it is held against. Numbers take the dtype of the carry."""
    found = nest(result, what)
    check_structure(what, found, carry)
    wanted = [
        Aval(w.shape, own.dtype) if weak and not own_weak else w
        for w, own, weak, own_weak in zip(carry.avals, found.avals, carry.weak, found.weak, strict=True)
    ]
    check_leaves(what, found, _expected(found, wanted), where)
    leaves = [_cast(t, w.dtype) for t, w in zip(found.leaves, wanted, strict=True)]
    weak = [a and b for a, b in zip(carry.weak, found.weak, strict=True)]
    carry = Nest(carry.template, leaves, carry.paths, weak)
    return carry.fill(leaves), carry


def _steady(
    trace: Callable[[list[Stand]], tuple[TracedBody, Nest]], carry: Nest, rows: list[Stand], what: str, where: str
) -> tuple[TracedBody, list[Stand], Nest]:
    """Trace the body of a loop until its carry comes out as it went in; also what stands for the carry, and returns.

    Again, if the result requires grad where the first value does not, or has a dtype that a Python number takes.
    """
    stands = _stands(carry.leaves)
    while True:
        body, found = trace([*stands, *rows])
        check_structure(what, found, carry)
        wanted = [
            Aval(s.aval.shape, own.dtype) if weak and not own_weak else s.aval
            for s, own, weak, own_weak in zip(stands, found.avals, carry.weak, found.weak, strict=True)
        ]
        check_leaves(what, found, _expected(found, wanted), where)
        live = [
            s.requires_grad or (body.requires[k] and is_inexact(w.dtype))
            for k, (s, w) in enumerate(zip(stands, wanted, strict=True))
        ]
        steady = [Stand(w, requires) for w, requires in zip(wanted, live, strict=True)]
        if steady == stands:
            return body, stands, found
        stands = steady


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any = None, length: int | None = None,
    reverse: bool = False, unroll: int = 1,
) -> tuple[Any, Any]:  # fmt: skip
    """`carry, y = f(carry, x)` for each x along the first dimension of `xs`. Returns the last carry and all ys.

    init     the first carry: a nest of tensors and numbers; structure, shapes and dtypes stay the same
    xs       a nest of tensors that are sliced along their first dimension, or None
    length   the number of steps, where xs does not tell it
    reverse  go from the last x to the first; ys stand where their x stood
    unroll   of a compiled loop, how many steps to do at once

    Raises TypeError for a carry that changes its type, ValueError for lengths that do not agree.

    >>> import eager as torch, graphc
    >>> graphc.scan(lambda total, x: (total + x, total), torch.tensor(0.0), torch.tensor([1.0, 2.0, 3.0]))
    (tensor(6.), tensor([0., 1., 3.]))
    """
    tracer, where = _tracer(init, xs), user_line()
    carry, rows = nest(init, "scan: the carry"), nest(xs, "scan: xs")
    steps = _length(rows, length)
    if tracer is None:
        return _scan(f, carry, rows, steps, reverse, where)
    return _traced_scan(tracer, f, carry, rows, steps, bool(reverse), int(unroll), where)


def scan_of_layer(step: Function, state: Any, rows: Tensor, reverse: bool) -> Any:
    """See `eager.core.interpreter.Interpreter.scan`."""
    return None if _tracer(state, rows) is None else scan(step, state, rows, reverse=reverse)


def _length(rows: Nest, length: int | None) -> int:
    known: dict[str, int] = {} if length is None else {"length": operator.index(length)}
    for path, aval in zip(rows.paths, rows.avals, strict=True):
        if not aval.shape:
            raise ValueError(f"scan: xs{path} is {aval}, which has no dimension to go along")
        known[f"xs{path}"] = aval.shape[0]
    if not known:
        raise ValueError("scan: the number of steps is not known. Remedy: pass xs or length.")
    if any(n != m for n, m in itertools.pairwise(known.values())):
        raise ValueError(f"scan: the lengths differ: {', '.join(f'{name} has {n}' for name, n in known.items())}")
    return next(iter(known.values()))


def _pair(result: Any) -> tuple[Any, Any]:
    if not isinstance(result, tuple) or len(result) != 2:
        raise TypeError(f"scan: f must return a pair (carry, y), got {type(result).__name__}")
    return result


def _scan(f: Function, carry: Nest, rows: Nest, steps: int, reverse: bool, where: str) -> tuple[Any, Any]:
    value: Any = _copies(carry)
    found: list[Nest] = []
    for i in reversed(range(steps)) if reverse else range(steps):
        result, y = _pair(f(value, rows.fill([own(x[i]) for x in rows.leaves])))
        _, after = _next(result, carry, "scan: the carry", where)
        value = _copies(after)
        if not found and after.avals != carry.avals:  # Python numbers that take a dtype: the ys must have it from here
            first = [_cast(t, a.dtype) for t, a in zip(carry.leaves, after.avals, strict=True)]
            return _scan(f, carry._replace(leaves=first, weak=[False] * len(first)), rows, steps, reverse, where)
        carry = after
        found.append(nest(y, "scan: y"))
        check_structure("scan: y", found[-1], found[0])
        check_leaves("scan: y", found[-1], found[0].avals, where)
    if not found:
        return value, _no_steps(f, carry, rows)
    columns = zip(*(y.leaves for y in (reversed(found) if reverse else found)), strict=True)
    return value, found[0].fill([eager.stack(column) for column in columns])


def _no_steps(f: Function, carry: Nest, rows: Nest) -> Any:
    """What no steps give: ys of the right shapes and dtypes, which a trace of `f` tells."""
    _, ys = _traced_body(Tracer(), f, carry, rows)[2:]
    return ys.fill([E.full(shape=(0, *a.shape), value=0, dtype=a.dtype) for a in ys.avals])


def _traced_body(tracer: Tracer, f: Function, carry: Nest, rows: Nest) -> tuple[TracedBody, list[Stand], Nest, Nest]:
    """The body of a scan, what stands for its carry, and what it returns: the carry, and y."""
    count = len(carry.leaves)

    def call(fn: Function, xs: list[Tensor]) -> Any:
        return _pair(fn(carry.fill(xs[:count]), rows.fill(xs[count:])))

    def trace(stands: list[Stand]) -> tuple[TracedBody, Nest]:
        body = TracedBody(tracer, "body", f, stands, call, "scan: f")
        return body, body.results.part(0)

    slices = [Stand(Aval(s.aval.shape[1:], s.aval.dtype), s.requires_grad) for s in _stands(rows.leaves)]
    body, stands, found = _steady(trace, carry, slices, "scan: the carry", user_line())
    return body, stands, found, body.results.part(1)


def _traced_scan(
    tracer: Tracer, f: Function, carry: Nest, rows: Nest, steps: int, reverse: bool, unroll: int, where: str
) -> tuple[Any, Any]:
    body, stands, _, ys = _traced_body(tracer, f, carry, rows)
    consts = reached([body])
    dtypes = [stand.aval.dtype for stand in stands]
    first = [_cast(t, dtype) for t, dtype in zip(carry.leaves, dtypes, strict=True)]
    drawn = per_step(tracer, list(body.draws.values()), body.draw_avals, steps, reverse)
    graph = body.graph(consts, [*dtypes, *(a.dtype for a in ys.avals)])
    requires = [*(stand.requires_grad for stand in stands), *body.requires[len(stands) :]]
    found = apply(
        tracer, SCAN, [*consts, *first, *rows.leaves, *drawn], requires, where,
        body=graph, consts=len(consts), carries=len(first), length=steps, reverse=reverse, unroll=unroll,
    )  # fmt: skip
    return carry.fill(found[: len(first)]), ys.fill(found[len(first) :])


def fori_loop(lower: Any, upper: Any, body_fun: Callable[[Any, Any], Any], init_val: Any) -> Any:
    """`carry = body_fun(i, carry)` for i from `lower` to `upper`, without `upper`. Returns the last carry.

    i is an int64 tensor. With bounds that Python knows this is a `scan`, with others a `while_loop`.

    >>> import eager as torch, graphc
    >>> graphc.fori_loop(0, 4, lambda i, x: x + i, torch.tensor(0))
    tensor(6)
    """
    if not any(isinstance(bound, Tensor) or type(bound) is Number for bound in (lower, upper)):
        counts = eager.arange(lower, max(lower, upper), dtype=eager.int64)
        return scan(lambda carry, i: (body_fun(i, carry), None), init_val, counts)[0]
    bounds = [_cast(_single(bound, "fori_loop: a bound"), INT64) for bound in (lower, upper)]
    return while_loop(
        lambda state: state[0] < state[1],
        lambda state: (state[0] + 1, state[1], body_fun(state[0], state[2])),
        (*bounds, init_val),
    )[2]


def map(f: Callable[[Any], Any], xs: Any) -> Any:
    """`f(x)` for each x along the first dimension of `xs`, stacked.

    >>> import eager as torch, graphc
    >>> graphc.map(lambda x: x * x, torch.tensor([1.0, 2.0, 3.0]))
    tensor([1., 4., 9.])
    """
    return scan(lambda carry, x: (carry, f(x)), None, xs)[1]
