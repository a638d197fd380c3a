"""The third opinion: what the independent references of the ops say on the operands that ops have in a program.

All that eager, graphs and lowerings share stands in an op's declaration, and may be wrong in all of them at once; the
reference and the gradients (`slopes`) that the declaration names beside it share nothing with that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from compare.judging.dtypes import result_dtype
from compare.judging.float64 import widen, widen_array
from compare.judging.isolate import alone
from compare.judging.numeric import evaluate
from compare.judging.tolerance import INDEPENDENT, Judgement, Verdict, judge
from compare.judging.yardstick import Yardstick
from graphc.ir import Node
from graphc.ops import Op, Trait
from graphc.ops.aval import aval_of, results_of
from graphc.ops.dtypes import FLOAT32, is_floating, is_inexact
from graphc.ops.gradient import rule_values, share
from graphc.ops.interpret import F, run_kernel, with_defaults
from graphc.ops.references import WORK, Each, opinion, reference_of
from graphc.ops.references import picked as picked_places

NOTHING = 1e-14  # a reference that computes with angles has this for 0
CLOSE = 1e-11  # relative: what both sides round in float64 is not worth a look at the noise
FAR = 0.01  # of the largest element: what is less far off is not worth a look at the noise
MODERATE = 1e3  # operands, of whose results float32 has no right to lose the range on the way


class Dispute(NamedTuple):
    """What a reference objects to. part: of the op, as culprits call it."""

    part: str
    detail: str


def disputes(node: Node, operands: Sequence[np.ndarray], value: Any, differentiated: bool) -> Iterator[Dispute]:
    """What the references of the node's op object to: its kernel, whose result is `value`, and its gradient rules.

    value           an array, or a tuple of several
    differentiated  whether gradients flow through the node
    """
    if node.op.ref is None or node.op.structured:
        return
    dtype = result_dtype(node.op, [a.dtype for a in operands]) if isinstance(value, np.ndarray) else None
    if dtype is not None and value.dtype != dtype:
        yield Dispute("shape rule", f"{value.dtype}, PyTorch has {dtype}")
        return
    found = _about_value(node, operands, value)
    if found is not None:
        yield found
    elif differentiated and not node.op.traits & Trait.SURROGATE:
        yield from _about_gradients(node, operands)


def _about_value(node: Node, operands: Sequence[np.ndarray], value: Any) -> Dispute | None:
    op, values = node.op, results_of(value)
    whole = not any(is_inexact(v.dtype) for v in values) or "dtype" in op.params or bool(op.traits & Trait.BITS)
    if whole:  # exact, and other numbers in double precision
        return _compared(node, operands, value, whole)
    wide = [widen_array(a) for a in operands]
    graph = widen(alone(node, operands))  # whose parameters are numbers of the program's precision
    wider = graph.nodes[len(operands)]
    with np.errstate(all="ignore"):
        found = evaluate(graph, wide, checked=False)[wider.id]
    dispute = _compared(wider, wide, found, whole)
    lost = (_out_of_range(node, operands, v, w) for v, w in zip(values, results_of(found), strict=True))
    return dispute or next(filter(None, lost), None) or _far_off(node, operands, value, found)


def _compared(node: Node, operands: Sequence[np.ndarray], found: Any, whole: bool) -> Dispute | None:
    op, params = node.op, with_defaults(node.op, node.params)
    try:
        said = opinion(op, operands, params, found)
    except Exception as error:  # of the reference, for operands that the op itself takes
        return Dispute("reference", f"raises {type(error).__name__}: {error}")
    pairs = () if said is None else enumerate(zip(said, results_of(found), strict=True))
    return next(filter(None, (_about_result(node, operands, k, *pair, whole) for k, pair in pairs)), None)


def _about_result(
    node: Node, operands: Sequence[np.ndarray], k: int, expected: np.ma.MaskedArray, found: np.ndarray, whole: bool
) -> Dispute | None:
    """What speaks against result number `k` of a node."""
    op = node.op
    if expected.shape != found.shape:
        return Dispute("shape rule", f"the kernel gives {aval_of(found)}, the reference {list(expected.shape)}")
    if expected.dtype != found.dtype:
        return Dispute("kernel", f"gives {found.dtype}, the reference {expected.dtype}")
    if (signs := _other_zeros(op, expected, found)) is not None:
        return Dispute("kernel", f"element {signs}: another sign of zero than the reference gives")
    if _close(expected, found, 0.0 if isinstance(reference_of(op), Each) else NOTHING):
        return None
    if whole or not is_inexact(found.dtype):
        judgement = judge(expected, found, found, np.zeros(found.shape, bool if not is_inexact(found.dtype) else float))
    else:
        graph = alone(node, operands)
        yardstick = Yardstick(graph, operands, 0).of(graph.outputs[k], found)
        judgement = judge(expected, found, *yardstick, slack=INDEPENDENT)
    return Dispute("kernel", _turned(judgement, expected, found)) if judgement.verdict is Verdict.BUG else None


def _close(expected: np.ma.MaskedArray, found: np.ndarray, nothing: float) -> bool:
    with np.errstate(all="ignore"):
        if not is_inexact(found.dtype):
            return bool(((expected.data == found) | expected.mask).all())
        near = np.isclose(expected.data, found, rtol=CLOSE, atol=nothing, equal_nan=True)
    return bool((near | expected.mask).all())


def _other_zeros(op: Op, expected: np.ma.MaskedArray, found: np.ndarray) -> tuple[int, ...] | None:
    """The first place where a pointwise op has a zero of another sign than its definition says."""
    if not isinstance(reference_of(op), Each) or not is_floating(found.dtype):
        return None
    zero = (expected.data == 0) & (found == 0) & ~expected.mask
    odd = zero & (np.signbit(expected.data) != np.signbit(found))
    return tuple(map(int, np.argwhere(odd)[0])) if odd.any() else None


def _turned(judgement: Judgement, expected: np.ma.MaskedArray, found: np.ndarray) -> str:
    """The detail with the kernel's number as the one in question."""
    at = np.unravel_index(int(np.argmax(judgement.bad)), found.shape) if judgement.bad is not None else ()
    element = f"element {tuple(map(int, at))}: " if found.shape else ""
    return f"{element}{found[at]!s}, the reference has {expected.data[at]!s}"


def _out_of_range(node: Node, operands: Sequence[np.ndarray], value: np.ndarray, wide: np.ndarray) -> Dispute | None:
    """Where a result that float32 has room for is lost on the way: of moderate numbers, or by an elementwise op."""
    if value.dtype == wide.dtype or not is_inexact(value.dtype) or value.shape != wide.shape:
        return None
    if node.op.pointwise and value.dtype == FLOAT32:
        room = np.finfo(FLOAT32).max / 8  # for the pi in sin(pi x)
        lost = ~np.isfinite(value) & (np.abs(wide) < room)
        for a in operands:
            lost &= ~(np.isfinite(a) & (np.abs(a) >= room)) if is_inexact(a.dtype) else True
        return Dispute("kernel", f"{value[lost][0]}, in float64 {wide[lost][0]}") if lost.any() else None
    largest = max((float(np.abs(a).max(initial=0.0)) for a in operands if is_inexact(a.dtype)), default=0.0)
    terms = max((a.size for a in operands), default=1) / max(value.size, 1)
    if not largest <= MODERATE or terms * np.log10(max(largest, 1.0)) > 30:
        return None
    lost = ~np.isfinite(value) & (np.abs(wide) < 1e4) & (wide != 0)
    return Dispute("kernel", f"{value[lost][0]}, in float64 {wide[lost][0]}") if lost.any() else None


def _far_off(node: Node, operands: Sequence[np.ndarray], value: Any, wide: Any) -> Dispute | None:
    """Where the kernel has code of its own for the program's precision, and that gives something else by far."""
    if node.op.several or node.op.nearest is not None or value.dtype == wide.dtype or value.shape != wide.shape:
        return None
    known = np.isfinite(value) & np.isfinite(wide)
    if not (np.abs(value - wide)[known] > FAR * np.abs(wide[known]).max(initial=0.0)).any():
        return None
    graph = alone(node, operands)
    exact, noise = Yardstick(graph, operands, 0).of(graph.outputs[0], value)
    judgement = judge(value, np.asarray(exact, value.dtype), exact, noise)
    return Dispute("kernel", judgement.detail) if judgement.verdict is Verdict.BUG else None


def _about_gradients(node: Node, operands: Sequence[np.ndarray]) -> Iterator[Dispute]:
    op, params = node.op, with_defaults(node.op, node.params)
    judged = op.slopes.keys() & op.vjp.keys()
    wanted = [k for k, a in enumerate(operands) if is_floating(a.dtype) and op.arg_of(k) in judged]
    if not wanted or node.op.several or not is_floating(node.dtype):
        return
    wide = [widen_array(a) for a in operands]
    pointwise = all(isinstance(op.slopes[op.arg_of(k)], Each) for k in wanted)
    if not pointwise and sum(a.size for a in operands) > WORK:
        return
    if pointwise:  # broadcast, so that each element has an opinion of its own
        wide = [np.array(a) for a in np.broadcast_arrays(*wide)]
        places = picked_places([a.reshape(-1) for a in wide])
        wide = [a.reshape(-1)[places] for a in wide]
    with np.errstate(all="ignore"):
        result = run_kernel(op, wide, params)
        g = np.random.default_rng(0).uniform(0.5, 1.5, result.shape)
        g = g * np.where(np.arange(g.size).reshape(g.shape) % 2, -1.0, 1.0)
        for k in wanted:
            values = rule_values(op, set(op.vjp[op.arg_of(k)].names), wide, result, params)
            found = np.asarray(share(F, op, k, g, values, None))
            yield from _about_gradient(op, k, g, wide, params, found)


def _about_gradient(
    op: Op, k: int, g: np.ndarray, wide: Sequence[np.ndarray], params: Mapping[str, Any], found: np.ndarray
) -> Iterator[Dispute]:
    slope, part = op.slopes[op.arg_of(k)], f"gradient rule for '{op.arg_of(k)}'"
    if isinstance(slope, Each):
        said = list(slope.at([g, *wide], params, range(g.size)))
        expected = [np.nan if v is None else v for v in said]
        known = np.array([v is not None for v in said], bool)
    else:
        try:
            expected = slope(g, *wide, **params)
        except ValueError:  # no opinion
            return
        known = np.ones(np.shape(expected), bool)
    expected = np.asarray(expected, found.dtype).reshape(found.shape)
    near = np.isclose(expected, found, rtol=1e-6, atol=1e-9, equal_nan=True) | ~known.reshape(found.shape)
    if not near.all():
        at = tuple(np.argwhere(~near)[0])
        given = ", ".join(str(a[at]) for a in wide if a.shape == found.shape)
        yield Dispute(part, f"{found[at]} for a cotangent of {g[at] if g.shape == found.shape else 'random numbers'} "
                      f"at {given or at}, the definition has {expected[at]}")  # fmt: skip
