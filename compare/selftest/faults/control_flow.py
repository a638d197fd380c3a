"""Wrong gradients and lowerings of the ops that run graphs: what each of them does besides running its bodies."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import eager as torch
import graphc
from compare.selftest.fault import Expected, Fault, Trials, of_lowering
from compare.selftest.planting import Plant, attribute, edited, entry
from compare.selftest.trials import in_turn, numbers, program
from graphc.autodiff import checkpoints, control
from graphc.autodiff.reverse import STRUCTURED
from graphc.ir.structure import CUSTOM, SCAN, SWITCH, WHILE
from graphc.lowering.control import FINE
from graphc.lowering.loading import jax
from graphc.lowering.overrides import OVERRIDES
from graphc.ops import Op

LAYER = "control flow"
Share = tuple[int, Any]


def _recurrent(w: Any, u: Any, x: Any) -> Any:
    """Constants, a carry and rows that all have gradients; both results are used."""

    def step(h: Any, row: Any) -> Any:
        h = torch.tanh(h @ w + row * u)
        return h, h.sin() * row

    h, ys = graphc.scan(step, x[0] * 0.5, x)
    return h, ys


def _two_carries(x: Any) -> Any:
    def step(c: Any, row: Any) -> Any:
        a, b = c
        return (b * row, a + row.sin()), a * b

    (a, b), ys = graphc.scan(step, (x[0], x[1] * 2), x, reverse=True)
    return a - b, ys


def _branching(i: Any, x: Any, y: Any) -> Any:
    return graphc.switch(i, (lambda a, b: (a * b, a.sin()), lambda a, b: (a.exp() - b, b * 3),
                             lambda a, b: (b.cos(), a * a * b)), x, y)  # fmt: skip


def _looping(x: Any, w: Any) -> Any:
    """A loop whose number of steps depends on the values: two carries and a constant with gradients."""
    return graphc.while_loop(
        lambda c: c[0].sum() < 20, lambda c: (c[0] * 1.3 + w, c[1].sin() + c[0] * w, c[2] + 1), (x, x * 0.5, 0)
    )[:2]  # fmt: skip


def _long(x: Any) -> Any:
    """More steps than there are rows for checkpoints."""
    return graphc.while_loop(lambda c: c[1] < 150, lambda c: (c[0] * 1.01 + c[0].sin() * 0.01, c[1] + 1), (x, 0))[0]


class _Scaled(torch.autograd.Function):
    """Two results, whose gradients are not those of their values."""

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.save_for_backward(x, y)
        return x * y, x + y

    @staticmethod
    def backward(ctx: Any, g: Any, h: Any) -> Any:
        x, y = ctx.saved_tensors
        return g * y + h, g * x + h


def _with_rules(x: Any, y: Any) -> Any:
    def step(c: Any, row: Any) -> Any:
        a, b = _Scaled.apply(c, row)
        return a.sin(), b * a

    return graphc.scan(step, y, x)


_MODES = ("graph", "compiled")  # of all modes, these take the rules and the lowerings
_TWO = program(_two_carries, numbers(4, 3), modes=_MODES)
_SCAN = in_turn(program(_recurrent, numbers(3, 3), numbers(3, seed=6), numbers(5, 3, seed=7), modes=_MODES), _TWO)
_SWITCH = in_turn(*(program(_branching, np.array(i), numbers(3), numbers(3, seed=6), modes=_MODES) for i in (1, 2, 7)))
_LOOP = program(_looping, numbers(3), numbers(3, seed=6), modes=_MODES)
_WHILE = in_turn(_LOOP, program(_long, numbers(3), modes=_MODES))
_CUSTOM = program(_with_rules, numbers(4, 3), numbers(3, seed=6), modes=_MODES)


def _gradient(what: str, op: Op, plant: Plant, trials: Trials) -> Fault:
    return Fault(f"gradient of {op.name}: {what}", LAYER, plant, Expected(op.name, "gradient rule"), trials)


def _shares(op: Op, change: Callable[[Any, list[Share], Any], list[Share]]) -> Plant:
    """`change(F, shares, node)` for what the rule of `op` gives."""
    rule = STRUCTURED[op]

    def wrong(builder: Any, node: Any, cotangents: Any, wanted: Any) -> list[Share]:
        return change(builder.language, rule(builder, node, cotangents, wanted), node)

    return lambda: entry(STRUCTURED, op, wrong)


def _cotangents(op: Op, change: Callable[[Any, dict[int, Any], Any], Mapping[int, Any]]) -> Plant:
    """The rule of `op` is given `change(F, cotangents, node)`."""
    rule = STRUCTURED[op]

    def wrong(builder: Any, node: Any, cotangents: Any, wanted: Any) -> list[Share]:
        return rule(builder, node, change(builder.language, dict(cotangents), node), wanted)

    return lambda: entry(STRUCTURED, op, wrong)


def _each(wrong: Callable[[Any, int, Any, Any], Any]) -> Callable[[Any, list[Share], Any], list[Share]]:
    return lambda F, shares, node: [(k, wrong(F, k, d, node)) for k, d in shares]


def _is_row(k: int, node: Any) -> bool:
    return k >= node.params["consts"] + node.params["carries"]


def _exchanged(F: Any, cotangents: dict[int, Any], node: Any) -> Mapping[int, Any]:
    """The first two of one shape."""
    keys = sorted(cotangents)
    for a, b in itertools.pairwise(keys):
        if cotangents[a].aval == cotangents[b].aval:
            return {**cotangents, a: cotangents[b], b: cotangents[a]}
    return cotangents


def _without_end(F: Any, cotangents: dict[int, Any], node: Any) -> Mapping[int, Any]:
    carries = node.params["carries"]
    return {k: ct * 0 if k < carries and len(cotangents) > 1 else ct for k, ct in cotangents.items()}


def _residuals(change: Callable[[Any, Sequence[Any]], Sequence[Any]]) -> Plant:
    """What a scan has kept of its steps goes through `change`."""
    extend = control.stack_more

    def wrong(builder: Any, node: Any, body: Any, kept: Any) -> Any:
        return change(builder.language, extend(builder, node, body, kept))

    return lambda: attribute(control, "stack_more", wrong)


def _rolled(F: Any, s: Any) -> Any:
    """`s` with its first row at the end."""
    whole, ones, none = tuple(s.shape), (1,) * len(s.shape), (0,) * len(s.shape)
    after = F.slice(s, start=(1, *none[1:]), stop=whole, step=ones)
    return F.cat(after, F.slice(s, start=none, stop=(1, *whole[1:]), step=ones), axis=0)


def _exchanged_residuals(F: Any, kept: Sequence[Any]) -> Sequence[Any]:
    for k in range(len(kept) - 1):
        if kept[k].aval == kept[k + 1].aval:
            return [*kept[:k], kept[k + 1], kept[k], *kept[k + 2 :]]
    return kept


def _without_last_carry(sound: Any) -> Any:
    return lambda *args: found[:-1] if len(found := sound(*args)) > 1 else found


_pulled = control.pulled


def _of_first_branch(sound: Any) -> Any:
    """The gradient of the first branch, whatever the index."""

    def wrong(builder: Any, node: Any, cotangents: Any, wanted: Any) -> list[Share]:
        index = builder.symbol(node.inputs[0]) * 0
        turned = type(node)(node.id, node.op, (index.id, *node.inputs[1:]), node.params, node.results, node.where)
        return sound(builder, turned, cotangents, wanted)

    return wrong


_GRADIENTS = (
    _gradient("that of rows scaled", SCAN, _shares(SCAN, _each(
        lambda F, k, d, node: d * 1.1 if _is_row(k, node) else d)), _SCAN),
    _gradient("rows in reverse order", SCAN, _shares(SCAN, _each(
        lambda F, k, d, node: F.flip(d, axis=(0,)) if _is_row(k, node) else d)), _SCAN),
    _gradient("constants negated", SCAN, _shares(SCAN, _each(
        lambda F, k, d, node: F.neg(d) if k < node.params["consts"] else d)), _SCAN),
    _gradient("the first carry gets none", SCAN, _shares(SCAN, _each(
        lambda F, k, d, node: d * 0 if k == node.params["consts"] else d)), _SCAN),
    _gradient("the cotangent of the last carry is lost", SCAN, _cotangents(SCAN, _without_end), _SCAN),
    _gradient("the cotangents of two carries exchanged", SCAN, _cotangents(SCAN, _exchanged), _SCAN),
    _gradient("what was kept of the next step", SCAN, _residuals(lambda F, kept: [_rolled(F, s) for s in kept]), _SCAN),
    _gradient("two kept values exchanged", SCAN, _residuals(_exchanged_residuals), _SCAN),
    _gradient("one carry is thought to have none", SCAN,
              lambda: attribute(control, "active_carries", _without_last_carry(control.active_carries)), _SCAN),
    _gradient("of several results only the last", SCAN, lambda: attribute(control, "pulled",
        lambda body, outputs, wrt: _pulled(body, outputs[-1:] if len(outputs) > 1 else outputs, wrt)),
              _TWO),
    _gradient("the cotangents of two results exchanged", SWITCH, _cotangents(SWITCH, _exchanged), _SWITCH),
    _gradient("the last operand gets none", SWITCH, _shares(SWITCH, lambda F, shares, node: shares[:-1]), _SWITCH),
    _gradient("scaled", SWITCH, _shares(SWITCH, _each(lambda F, k, d, node: d * 0.9)), _SWITCH),
    _gradient("always that of the first branch", SWITCH,
              lambda: entry(STRUCTURED, SWITCH, _of_first_branch(STRUCTURED[SWITCH])), _SWITCH),
    _gradient("one step too few", WHILE, edited(checkpoints, "_extend", (
        "return steps,", "return builder.language.sub(steps, _int(builder, 1)),")), _WHILE),
    _gradient("constants get that of one operand more", WHILE, _shares(WHILE, _each(
        lambda F, k, d, node: d + d if k < node.params["consts"] else d)), _WHILE),
    _gradient("the cotangents of two carries exchanged", WHILE, _cotangents(WHILE, _exchanged), _WHILE),
    _gradient("carries are kept a step too late", WHILE, edited(checkpoints, "_counting", (
        "zip(kept, carry,", "zip(kept, inline(b, body, [*outer, *carry]),")),
              _WHILE),
    _gradient("one carry is thought to have none", WHILE,
              lambda: attribute(checkpoints, "active_carries", _without_last_carry(checkpoints.active_carries)),
              _WHILE),
    _gradient("the cotangents of two results exchanged", CUSTOM, _cotangents(CUSTOM, _exchanged), _CUSTOM),
    _gradient("that of the first operand scaled", CUSTOM, _shares(CUSTOM, lambda F, shares, node: [
        (k, d * 1.1 if n == 0 else d) for n, (k, d) in enumerate(shares)]), _CUSTOM),
)  # fmt: skip


def _lowering(what: str, op: Op, wrong: Callable[..., Any], trials: Trials) -> Fault:
    return of_lowering(what, op.name, lambda: entry(OVERRIDES, op.name, wrong), trials, LAYER)


def _scan_with(change: Callable[..., Any]) -> Callable[..., Any]:
    """`change(results, start, carries)` for what a scan returns."""
    sound = OVERRIDES["scan"]

    def wrong(*operands: Any, **params: Any) -> Any:
        consts, carries = params["consts"], params["carries"]
        found = sound(*operands, **params)
        return tuple(change(list(found), operands[consts : consts + carries], carries))

    return wrong


def _forgetful(*operands: Any, body: Any, consts: int, carries: int, checked: bool = False, **params: Any) -> Any:
    """Each step begins with the first carry."""
    start = operands[consts : consts + carries]

    def step(*given: Any) -> Any:
        return body(*given[:consts], *start, *given[consts + carries :])

    return OVERRIDES_SCAN(*operands, body=step, consts=consts, carries=carries, checked=checked, **params)


OVERRIDES_SCAN, OVERRIDES_WHILE = OVERRIDES["scan"], OVERRIDES["while_loop"]


def _exchanged_results(index: Any, *operands: Any, branches: Any, checked: bool = False) -> Any:
    a, b, *rest = jax.lax.switch(index, branches, *operands)
    return (b, a, *rest)


def _without_last_branch(index: Any, *operands: Any, branches: Any, checked: bool = False) -> Any:
    return jax.lax.switch(jax.numpy.minimum(index, len(branches) - 2), branches, *operands)


def _asked_too_late(*operands: Any, condition: Any, body: Any, consts: int, checked: bool = False) -> Any:
    first = body(*operands) if not checked else body(*operands)[:-1]
    return OVERRIDES_WHILE(*operands[:consts], *first, condition=condition, body=body, consts=consts, checked=checked)


def _bounded(*operands: Any, condition: Any, body: Any, consts: int, checked: bool = False) -> Any:
    """No loop runs for more than four steps."""
    fixed, carry = operands[:consts], operands[consts:]

    def going(state: Any) -> Any:
        return (state[0] < 4) & condition(*fixed, *state[1])[0]

    found = jax.lax.while_loop(going, lambda s: (s[0] + 1, tuple(body(*fixed, *s[1])[: len(carry)])), (0, carry))[1]
    return (*found, FINE) if checked else found


def _crossed(*operands: Any, condition: Any, body: Any, consts: int, checked: bool = False) -> Any:
    """The first two carries change places after the loop."""
    a, b, *rest = OVERRIDES_WHILE(*operands, condition=condition, body=body, consts=consts, checked=checked)
    return (b, a, *rest)


_LOWERINGS = (
    _lowering("each step begins with the first carry", SCAN, _forgetful, _SCAN),
    _lowering("stacked results in reverse order", SCAN, _scan_with(lambda found, start, carries: [
        *found[:carries], *(y[::-1] if y.ndim else y for y in found[carries:])]), _SCAN),
    _lowering("the last carry is the first", SCAN, _scan_with(lambda found, start, carries: [
        *start, *found[carries:]]), _SCAN),
    _lowering("the last row of results is lost", SCAN, _scan_with(lambda found, start, carries: [
        *found[:carries], *(y.at[-1].set(0) if y.ndim else y for y in found[carries:])]), _SCAN),
    _lowering("two results exchanged", SWITCH, _exchanged_results, _SWITCH),
    _lowering("the last branch is never taken", SWITCH, _without_last_branch, _SWITCH),
    _lowering("operands in reverse order", SWITCH,
        lambda index, *operands, branches, checked=False: jax.lax.switch(index, branches, *operands[::-1]), _SWITCH),
    _lowering("asks after the step", WHILE, _asked_too_late, program(
        lambda x: graphc.while_loop(lambda a: a.sum() > 0, lambda a: a - 1, x), -numbers(3), modes=_MODES)),
    _lowering("at most four steps", WHILE, _bounded, _WHILE),
    _lowering("two carries exchanged", WHILE, _crossed, _LOOP),
)  # fmt: skip

FAULTS: tuple[Fault, ...] = (*_GRADIENTS, *_LOWERINGS)
