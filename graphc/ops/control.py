"""Structured control flow: `switch`, `while_loop` and `scan` run graphs that they hold as parameters.

Such a graph is here anything with the protocol `Body`. Its graphs say how many results an op has; `item` takes one out.
Arguments and results mean what they mean in jax.lax. Their gradients differentiate a body, which no rule in the op
language can: see graphc.autodiff.control.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, final

import numpy as np

from graphc.ops.aval import Aval
from graphc.ops.dtypes import BOOL
from graphc.ops.references import everywhere
from graphc.ops.samples import Ints, Sample
from graphc.ops.spec import Op, Rule, Trait, op

PREDICATE = (Aval((), BOOL),)


class Body(Protocol):
    """A program with flat arguments and a flat tuple of results."""

    def __call__(self, *arrays: Any) -> tuple[Any, ...]:
        """Run it on arrays."""
        ...

    def input_avals(self) -> tuple[Aval, ...]:
        """What it takes."""
        ...

    def output_avals(self) -> tuple[Aval, ...]:
        """What it returns."""
        ...


@final
class BodyProxy:
    """A body that another function runs."""

    def __init__(self, body: Body, run: Callable[..., tuple[Any, ...]]):
        self.input_avals, self.output_avals = body.input_avals, body.output_avals
        self._run = run

    def __call__(self, *arrays: Any) -> tuple[Any, ...]:
        return self._run(*arrays)


def _shown(avals: Sequence[Aval]) -> str:
    return f"({', '.join(map(str, avals))}{',' if len(avals) == 1 else ''})"


def _expect(what: str, got: Sequence[Aval], wanted: Sequence[Aval]) -> None:
    if tuple(got) != tuple(wanted):
        raise TypeError(f"{what} are {_shown(got)}, expected {_shown(wanted)}")


def _switch_rule(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> tuple[Aval, ...]:
    index, *operands = avals
    branches: tuple[Body, ...] = params["branches"]
    if not branches:
        raise ValueError("switch: needs at least one branch")
    if index.shape or index.dtype.kind not in "iu":
        raise TypeError(f"switch: the index must be a single integer, got {index}")
    for k, branch in enumerate(branches):
        _expect(f"switch: the arguments of branch {k}", branch.input_avals(), operands)
        _expect(f"switch: the results of branch {k}", branch.output_avals(), branches[0].output_avals())
    return tuple(branches[0].output_avals())


def run_switch(index: Any, *operands: Any, branches: tuple[Body, ...]) -> tuple[Any, ...]:
    return branches[min(max(int(index), 0), len(branches) - 1)](*operands)


def _while_rule(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> tuple[Aval, ...]:
    condition, body, consts = params["condition"], params["body"], params["consts"]
    carry = _counted("while_loop", avals, consts)[consts:]
    _expect("while_loop: the arguments of the condition", condition.input_avals(), avals)
    _expect("while_loop: the results of the condition", condition.output_avals(), PREDICATE)
    _expect("while_loop: the arguments of the body", body.input_avals(), avals)
    _expect("while_loop: the results of the body", body.output_avals(), carry)
    return tuple(carry)


def _counted(name: str, avals: list[Aval], *counts: int) -> list[Aval]:
    if any(count < 0 for count in counts) or sum(counts) > len(avals):
        raise ValueError(f"{name}: {len(avals)} operands cannot be split at {counts}")
    return avals


def run_while(*operands: Any, condition: Body, body: Body, consts: int) -> tuple[Any, ...]:
    fixed, carry = operands[:consts], operands[consts:]
    while condition(*fixed, *carry)[0]:
        carry = body(*fixed, *carry)
    return tuple(carry)


def _scan_rule(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> tuple[Aval, ...]:
    body, consts, carries, length = params["body"], params["consts"], params["carries"], params["length"]
    _counted("scan", avals, consts, carries)
    if length < 0:
        raise ValueError(f"scan: the length must not be negative, got {length}")
    carry, xs = avals[consts : consts + carries], avals[consts + carries :]
    for x in xs:
        if x.shape[:1] != (length,):
            raise ValueError(f"scan: expected xs with {length} elements along their first dimension, got {x}")
    rows = [Aval(x.shape[1:], x.dtype) for x in xs]
    _expect("scan: the arguments of the body", body.input_avals(), [*avals[: consts + carries], *rows])
    results = body.output_avals()
    _expect("scan: the carries that the body returns", results[:carries], carry)
    return (*carry, *(Aval((length, *y.shape), y.dtype) for y in results[carries:]))


def run_scan(
    *operands: Any, body: Body, consts: int, carries: int, length: int, reverse: bool, unroll: int
) -> tuple[Any, ...]:
    fixed, carry, xs = operands[:consts], operands[consts : consts + carries], operands[consts + carries :]
    ys = [np.empty((length, *y.shape), y.dtype) for y in body.output_avals()[carries:]]
    for i in reversed(range(length)) if reverse else range(length):
        results = body(*fixed, *carry, *(x[i] for x in xs))
        carry = results[:carries]
        for y, row in zip(ys, results[carries:], strict=True):
            y[i] = row
    return (*carry, *ys)


def _item_rule(op: Op, avals: list[Any], params: Mapping[str, Any]) -> Aval:
    (results,), index = avals, params["index"]
    if isinstance(results, Aval):
        raise TypeError(f"item: expected the results of an operation with several, got {results}")
    if not 0 <= index < len(results):
        raise ValueError(f"item: there is no result number {index} among {_shown(results)}")
    return results[index]


def _custom_rule(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> tuple[Aval, ...]:
    results, pullback, wrt = params["results"], params["pullback"], params["wrt"]
    _counted("custom_vjp", avals, results)
    values, given = avals[:results], avals[results:]
    if pullback is not None:
        _expect("custom_vjp: the arguments of the pullback", pullback.input_avals(), [*given, *values])
        if any(not results <= k < len(avals) for k in wrt):
            raise ValueError(f"custom_vjp: gradients for operands {wrt}, of {len(avals)}, {results} of them results")
        _expect("custom_vjp: the results of the pullback", pullback.output_avals(), [avals[k] for k in wrt])
    return tuple(values)


def run_custom(
    *operands: Any, results: int, pullback: Body | None, wrt: tuple[int, ...], message: str
) -> tuple[Any, ...]:
    return operands[:results]


# rows: where a loop keeps values by number. Indices are clamped, so there is nothing to check
def _row_rule(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    x, index = avals
    _row_operands(op, x, index)
    return Aval(x.shape[1:], x.dtype)


def _with_row_rule(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    x, row, index = avals
    _row_operands(op, x, index)
    _expect(f"{op.name}: the row", [row], [Aval(x.shape[1:], x.dtype)])
    return x


def _row_operands(op: Op, x: Aval, index: Aval) -> None:
    if not x.shape or not x.shape[0]:
        raise ValueError(f"{op.name}: expected an array with rows, got {x}")
    if index.shape or index.dtype.kind not in "iu":
        raise TypeError(f"{op.name}: the index must be a single integer, got {index}")


def _clamped(xp: Any, index: Any, size: int) -> Any:
    return xp.clip(index, 0, size - 1)


@everywhere
def _ref_with_row(x: np.ndarray, row: np.ndarray, index: np.ndarray) -> np.ndarray:
    at = min(max(int(index), 0), len(x) - 1)
    return np.stack([row if k == at else old for k, old in enumerate(x)])


def _np_with_row(x: np.ndarray, row: np.ndarray, index: np.ndarray) -> np.ndarray:
    result = x.copy()
    result[_clamped(np, index, len(x))] = row
    return result


row = op(
    "row", "input index", impl=lambda xp, x, index: x[_clamped(xp, index, x.shape[0])], rule=Rule(_row_rule),
    traits=Trait.MOVES,
    numpy=lambda x, index: np.array(x[_clamped(np, index, len(x))]),
    ref=everywhere(lambda x, index: x[min(max(int(index), 0), len(x) - 1)]),
    vjp=dict(input=lambda F, g, input_shape, input_dtype, index: F.with_row(
        F.full(shape=input_shape, value=0, dtype=input_dtype), g, index)),
    samples=(Sample((3, 4), Ints((), 3)), Sample((3,), Ints((), 9, 5))),
)  # fmt: skip
with_row = op(
    "with_row", "input row index", rule=Rule(_with_row_rule), numpy=_np_with_row, ref=_ref_with_row,
    traits=Trait.MOVES,
    impl=lambda xp, x, row, index: x.at[_clamped(xp, index, x.shape[0])].set(row),
    vjp=dict(input=lambda F, g, row_shape, row_dtype, index: F.with_row(
                 g, F.full(shape=row_shape, value=0, dtype=row_dtype), index),
             row=lambda F, g, index: F.row(g, index)),
    samples=(Sample((3, 4), (4,), Ints((), 3)), Sample((3,), (), Ints((), 9, 5))),
)  # fmt: skip
switch = op(
    "switch", "index *operands", results=None, params={"branches": None}, rule=Rule(_switch_rule),
    traits=Trait.STRUCTURED,
    impl=lambda xp, index, *operands, branches: run_switch(index, *operands, branches=branches), ref=run_switch,
    doc="Run branch number `index`, clamped to the branches there are, on the operands.",
)  # fmt: skip
while_loop = op(
    "while_loop", "*operands", results=None, rule=Rule(_while_rule),
    params={"condition": None, "body": None, "consts": 0},
    impl=lambda xp, *operands, **params: run_while(*operands, **params), ref=run_while, traits=Trait.STRUCTURED,
    doc="carry = body(*consts, *carry) while condition(*consts, *carry). The first `consts` operands stay as they are.",
)  # fmt: skip
scan = op(
    "scan", "*operands", results=None,
    params={"body": None, "consts": 0, "carries": 0, "length": 0, "reverse": False, "unroll": 1},
    impl=lambda xp, *operands, **params: run_scan(*operands, **params), ref=run_scan, rule=Rule(_scan_rule),
    traits=Trait.STRUCTURED,
    doc="(*carry, *ys[i]) = body(*consts, *carry, *xs[i]) for each i. Operands: constants, first carry, xs.",
)  # fmt: skip
# what a user's gradient rule is in a graph, once it has been traced
custom_vjp = op(
    "custom_vjp", "*operands", results=None, params={"results": 1, "pullback": None, "wrt": (), "message": ""},
    rule=Rule(_custom_rule), ref=run_custom, traits=Trait.STRUCTURED,
    impl=lambda xp, *operands, **params: run_custom(*operands, **params),
    doc="The first `results` operands, as results whose gradients `pullback` computes from the other operands and the "
        "cotangents: those of the operands number `wrt`. Without a pullback, `message` says why there is none; without "
        "that, the rule is a program of the user's, which only a trace can run.",
)  # fmt: skip
item = op(
    "item", "results", params={"index": 0}, rule=Rule(_item_rule), traits=Trait.STRUCTURED,
    impl=lambda xp, results, index: results[index], ref=lambda results, index: results[index],
    doc="Result number `index` of an operation with several.",
)  # fmt: skip
