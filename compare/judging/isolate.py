"""One node alone: its op on the operands it has in the program, in each of the forms that the op takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from compare.judging.float64 import widen, widen_array
from compare.judging.gradient_oracles import Differentiation
from compare.judging.numeric import evaluate
from compare.judging.tolerance import INDEPENDENT, Judgement, Verdict, judge, judge_in_float64
from compare.judging.yardstick import Yardstick
from eager import autograd
from eager.core.tensor import Tensor
from eager.engine.language import E
from graphc.autodiff import gradients
from graphc.ir import Builder, Graph, Node, Ref
from graphc.lowering import Executable, lower
from graphc.ops import Trait
from graphc.ops.aval import Aval, aval_of, results_of, type_of
from graphc.ops.dtypes import is_floating, is_inexact
from graphc.ops.interpret import with_defaults
from graphc.ops.references import opinion


class Objection(NamedTuple):
    """Somebody who gets another gradient for an argument. `kink`: only where the op has no derivative.

    lowered: it is JAX alone: its form of the op gives another value, or finite differences agree with the rule
    by_tape: it is eager's own code for the rule
    """

    argument: str
    evidence: str
    kink: bool = False
    lowered: bool = False
    by_tape: bool = False


def alone(node: Node, operands: Sequence[np.ndarray], results: Sequence[int] | None = None) -> Graph:
    """A graph that is this node only, with an input for each operand (repeated operands apart), and its results.

    results  those of several that it returns; all of them by default
    """
    builder = Builder()
    inputs = tuple(builder.input(f"x{k}", aval_of(a)).id for k, a in enumerate(operands))
    builder.where = node.where
    id = builder.append(node.op, inputs, node.params, node.results)
    if not node.op.several:
        return builder.graph("alone", Ref(id))
    returned = range(len(node.results)) if results is None else results
    return builder.graph("alone", tuple(Ref(builder.item(id, k).id) for k in returned))


def eager_result(node: Node, operands: Sequence[np.ndarray]) -> Any:
    """The result of eager's form of the op, an array or a tuple of several. Raises what it raises."""
    with autograd.no_grad():
        found = getattr(E, node.op.name)(*(Tensor._wrap(a) for a in operands), **node.params)
    return tuple(t._array() for t in found) if node.op.several else found._array()


def lowered_result(
    node: Node, operands: Sequence[np.ndarray], known: MutableMapping[Any, Executable] | None = None
) -> Any:
    """The result of the op as its own XLA program, an array or a tuple of several. Raises what lowering or JAX raises.

    known  the programs of ops, by what is computed of which types
    """
    programs = {} if known is None else known
    key = (node.key(()), *map(aval_of, operands))
    if key not in programs:
        programs[key] = lower(alone(node, operands))
    found = programs[key](*operands)
    return tuple(map(np.asarray, found)) if node.op.several else np.asarray(found)


def judge_alone(found: Any, value: Any, node: Node, operands: Sequence[np.ndarray]) -> Judgement:
    """Whether `found` is as good as `value`, the NumPy result of the node on these operands; each of several."""
    if node.op.nearest is not None and type_of(found) == type_of(value):
        found = node.op.nearest(found, value)
    graph = alone(node, operands)

    def worst(yardstick: Yardstick) -> Judgement:
        pairs = zip(graph.outputs, results_of(found), results_of(value), strict=True)
        return max((judge(f, v, *yardstick.of(id, v)) for id, f, v in pairs), key=lambda judgement: judgement.verdict)

    judgement = worst(Yardstick(graph, operands, 0))
    return worst(Yardstick(graph, operands, 0, flushing=True)) if judgement.verdict is Verdict.BUG else judgement


def judge_gradient(
    node: Node, operands: Sequence[np.ndarray], cotangents: Sequence[np.ndarray], k: int, found: np.ndarray
) -> Judgement:
    """Whether `found` is as good a gradient for operand number `k` as that of the rules on these operands."""
    return _Rules(alone(node, operands), [*operands, *cotangents], [k]).judge(k, found)


def sides_with(found: Any, value: Any, node: Node, operands: Sequence[np.ndarray]) -> bool:
    """Whether the independent reference of the op is on the side of `found` against `value`, the kernel's result."""
    try:
        with np.errstate(all="ignore"):
            said = opinion(node.op, operands, with_defaults(node.op, node.params), value)
    except LookupError:
        return False
    if said is None or any(
        not s.shape == f.shape == v.shape for s, f, v in zip(said, results_of(found), results_of(value), strict=True)
    ):
        return False
    return 8 * _distance(results_of(found), said) < _distance(results_of(value), said)


def _distance(found: Sequence[np.ndarray], said: Sequence[np.ma.MaskedArray]) -> float:
    """The norm of the difference; elements that only one of them has as a number count as infinitely far off."""
    apart = []
    with np.errstate(all="ignore"):
        for f, s in zip(found, said, strict=True):
            asked = ~np.ma.getmaskarray(s)
            a, b = np.asarray(f[asked], np.complex128), np.asarray(np.ma.getdata(s)[asked], np.complex128)
            same = (a == b) | (np.isnan(a) & np.isnan(b))
            apart.append(np.nan_to_num(np.where(same, 0, a - b), nan=np.inf))
        return float(np.linalg.norm(np.concatenate(apart)))


def objections(node: Node, operands: Sequence[np.ndarray], seed: int, *, by_jax: bool = True) -> Iterator[Objection]:
    """Who disagrees with the gradient rules of the node's op: eager's tape, finite differences, JAX.

    by_jax  False: JAX, which compiles for it, is asked only where finite differences cannot tell
    """
    found = list(_objections(node, operands, seed, by_jax))
    if found and node.op.pointwise and any(a.shape != node.shape for a in operands):
        # each element has an opinion of its own, and perhaps a kink; unless it is the sum over them that is wrong
        operands = _spread(node, operands)
        found = list(_objections(node, operands, seed, by_jax)) or found
    finite = _where_finite(node, operands) if any(o.kink for o in found) else None
    if finite is not None:  # one nan in a sum, and finite differences see no derivative anywhere
        yield from (o for o in _objections(*finite, seed, by_jax) if not o.kink)
    yield from found


def _spread(node: Node, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The operands of a pointwise node, each in the shape of its result."""
    return [np.array(np.broadcast_to(a, node.shape)) for a in operands]


def _where_finite(node: Node, operands: Sequence[np.ndarray]) -> tuple[Node, list[np.ndarray]] | None:
    """A pointwise node on its operands at the elements where all is finite; None if that is everywhere or nowhere."""
    if not node.op.pointwise:
        return None
    spread = _spread(node, operands)
    value = _value_alone(node, operands)
    finite = np.logical_and.reduce([np.isfinite(a) for a in (*spread, value)])
    if finite.all() or not finite.any():
        return None
    aval = Aval((int(finite.sum()),), node.dtype)
    return Node(node.id, node.op, node.inputs, node.params, (aval,), node.where), [a[finite] for a in spread]


def _objections(node: Node, operands: Sequence[np.ndarray], seed: int, by_jax: bool) -> Iterator[Objection]:
    op, graph = node.op, alone(node, operands)
    wrt = [k for k, a in enumerate(operands) if is_inexact(a.dtype) and op.arg_of(k) in op.vjp]
    if not wrt:
        return
    if [v.shape for v in results_of(_value_alone(node, operands))] != [aval.shape for aval in node.results]:
        return  # a wrong shape rule: there is no cotangent that fits both
    rng = np.random.default_rng(seed)
    cotangents = {k: cotangent(aval, rng) for k, aval in enumerate(node.results) if is_inexact(aval.dtype)}
    narrow = _Rules(graph, [*operands, *cotangents.values()], wrt)
    for k, g in zip(wrt, _tape_gradients(node, operands, wrt, cotangents), strict=True):
        judgement = narrow.judge(k, g)
        if judgement.verdict is Verdict.BUG:
            yield Objection(op.arg_of(k), f"eager's gradient against the graph's: {judgement.detail}", by_tape=True)
    if op.traits & Trait.SURROGATE:  # not the derivative of its value, on purpose
        return
    wide = widen(graph)
    rules = _Rules(wide, [widen_array(a) for a in (*operands, *cotangents.values())], wrt)
    for k in wrt:
        if (judgement := narrow.judge_wider(k, rules)).verdict is Verdict.BUG:
            yield Objection(op.arg_of(k), f"in {operands[k].dtype} against float64: {judgement.detail}")
    count = len(operands)
    seeds = dict(zip(cotangents, rules.arrays[count:], strict=True))
    problem = Differentiation(wide, rules.arrays[:count], seeds, {n.id for n in wide.operations()})
    for k in wrt:
        yield from _independent(problem, rules, k, op.arg_of(k), by_jax)


def cotangent(aval: Aval, rng: np.random.Generator) -> np.ndarray:
    """Numbers of that shape and dtype, away from 0."""
    numbers = np.asarray(rng.uniform(0.5, 1.5, aval.shape))
    if aval.dtype.kind == "c":  # real cotangents do not see what rules make of imaginary ones
        numbers = numbers + 1j * rng.uniform(0.5, 1.5, aval.shape)
    return np.asarray(numbers, aval.dtype)


def _value_alone(node: Node, operands: Sequence[np.ndarray]) -> Any:
    """The result of the node's kernel, nan where that fails."""
    return evaluate(alone(node, operands), operands, checked=False)[len(operands)]


class _Rules:
    """The gradients of a one-node graph by its op's own rules."""

    def __init__(self, graph: Graph, arrays: list[np.ndarray], wrt: Sequence[int]):
        self._graph, self.arrays = graph, arrays
        differentiated = gradients(graph, [f"x{k}" for k in wrt], cotangents=True)
        self._ids = dict(zip(wrt, differentiated.outputs, strict=True))
        self._yardstick = Yardstick(differentiated, arrays, 0)
        self.values = evaluate(differentiated, arrays)

    def judge(self, k: int, found: np.ndarray, slack: float = 1.0, bar: np.ndarray | float = 0.0) -> Judgement:
        value = self.values[self._ids[k]]
        if aval_of(value) != aval_of(found):
            return Judgement(Verdict.BUG, f"{aval_of(found)}, expected {aval_of(value)}")
        return judge(found, value, *self._yardstick.of(self._ids[k], value), slack=slack, error_bar=bar)

    def is_declared(self, k: int, places: np.ndarray | None) -> bool:
        """Whether the rule gives at all these places what the op declares for points where the derivative jumps."""
        count = len(self._graph.inputs)
        node, operands, cotangent = self._graph.nodes[count], self.arrays[:count], self.arrays[count]
        if places is None or any(a.shape != places.shape for a in operands):
            return False
        declared = np.zeros(places.shape, bool)
        for kink in node.op.kinks:
            here = kink.holds(operands)
            expected = np.where(here, cotangent * kink.grads[k], 0)
            declared |= here & np.isclose(self.values[self._ids[k]], expected, rtol=0, atol=0, equal_nan=True)
        return bool(declared[places].all())

    def judge_wider(self, k: int, wide: _Rules) -> Judgement:
        """Whether the rule gives in the dtypes of the graph what it gives in float64."""
        exact, value = wide.values[wide._ids[k]], self.values[self._ids[k]]
        return judge_in_float64(value, exact, self._yardstick.of(self._ids[k], value)[1])


def _tape_gradients(
    node: Node, operands: Sequence[np.ndarray], wrt: Sequence[int], cotangents: Mapping[int, np.ndarray]
) -> list[np.ndarray]:
    tensors = [Tensor._wrap(a) for a in operands]
    leaves = [tensors[k].requires_grad_() for k in wrt]
    results = results_of(getattr(E, node.op.name)(*tensors, **node.params))
    given = [Tensor._wrap(g) for g in cotangents.values()]
    found = autograd.grad([results[k] for k in cotangents], leaves, given, materialize_grads=True)
    return [g._array() for g in found if g is not None]


def _independent(problem: Differentiation, rules: _Rules, k: int, argument: str, by_jax: bool) -> Iterator[Objection]:
    quotient: np.ma.MaskedArray | None = None
    bar: Any = 0.0
    if is_floating(rules.arrays[k].dtype):
        quotient, bar = problem.by_differences(k)
        bar = 10 * bar + 1e-9
        judgement = rules.judge(k, quotient, INDEPENDENT, bar)
        if judgement.verdict is Verdict.BUG:
            evidence = f"finite differences against the rule: {judgement.detail}"
            yield Objection(argument, evidence, rules.is_declared(k, judgement.bad))
            return
        if not by_jax and quotient.count():
            return
    try:
        (found,) = problem.by_jax([k])
    except Exception:  # JAX has no derivative for everything that it can lower, and then has no objection
        return
    judgement = rules.judge(k, found, INDEPENDENT)
    if judgement.verdict is Verdict.BUG:
        judgement = rules.judge(k, found, INDEPENDENT, problem.spread_by_jax([k])[0])
    if judgement.verdict is Verdict.BUG and judgement.bad is not None:
        places = [tuple(map(int, at)) for at in np.argwhere(judgement.bad)[:16]]
        kink = not any(problem.is_smooth(k, at) for at in places)
        # of a scalar the quotient may be `np.ma.masked`, which is no array of bools
        apart = False if quotient is None else np.asarray(np.ma.filled(abs(found - quotient) > bar, False), bool)
        outvoted = bool((judgement.bad & apart).any())
        lowered = outvoted or _lowered_otherwise(problem)
        yield Objection(argument, f"jax.grad against the rule: {judgement.detail}", kink, lowered)


def _lowered_otherwise(problem: Differentiation) -> bool:
    """Whether XLA's value of a one-node graph is not NumPy's, nearby: on operands that need all digits of float64."""
    node = problem.graph.nodes[len(problem.graph.inputs)]
    operands = [a * (1 + 1e-9) if is_inexact(a.dtype) else a for a in problem.arrays]
    try:
        found = lowered_result(node, operands)
    except Exception:  # JAX has a derivative, so this is no fault that the gradient shows
        return False
    value = _value_alone(node, operands)
    return type_of(found) != type_of(value) or judge_alone(found, value, node, operands).verdict is Verdict.BUG
