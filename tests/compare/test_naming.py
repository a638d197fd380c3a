"""What a report names: control flow as a whole, shape rules, the two parts of a compiled function, rules together,
batching rules. Each is a class of faults that were once found and put down to something else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import compare
import eager as torch
import graphc
from compare.judging.structured import structured_objections
from compare.judging.unrolled import TooLong, unrolled
from compare.locating.batching import BATCHING
from compare.locating.culprit import Culprit
from compare.locating.executed import executed
from compare.locating.partition import PARTITION
from compare.selftest.faults import FAULTS, batching, combinations, control_flow, partitions
from compare.selftest.hunting import hunt
from compare.selftest.planting import attribute, declared, entry, wrapped
from eager.func import batch_rules
from graphc.autodiff import checkpoints
from graphc.autodiff.reverse import STRUCTURED
from graphc.execution import partition
from graphc.ir.structure import SCAN, SWITCH
from graphc.lowering.overrides import OVERRIDES
from graphc.ops import OPS
from graphc.ops.aval import Aval
from graphc.passes import pipeline
from graphc.rewrite import REASSOCIATES, RewriteRule
from tests.depth import one_in

BY_NAME = {fault.name: fault for fault in FAULTS}
# one of each class in every run of the tests, all of them in the deep suite
SAMPLE = (
    "gradient of scan: two kept values exchanged",
    "gradient of switch: always that of the first branch",
    "partition: gradients in reverse order",
    "rule wrong_sine_of_difference",
    "batching of cumsum: the axis is not shifted",
    "generated hypot: off by a percent",
    "aliases: the common memory is not written",
    "shape of flip: flat",
)
OWN = [f.name for table in (control_flow, partitions, combinations, batching) for f in table.FAULTS]


def numbers(*shape: int, grad: bool = True) -> Any:
    values = np.random.default_rng(5).uniform(0.5, 1.5, shape).astype(np.float32)
    return torch.from_numpy(values).requires_grad_(grad)


def named(fn: Callable[..., Any], *args: Any, modes: Any = ("graph", "compiled")) -> Culprit:
    """The first culprit in the report."""
    report = compare.check(fn, *args, modes=modes)
    culprits = [f.culprit for f in report.bugs if f.culprit is not None]
    assert culprits, str(report)
    return culprits[0]


@pytest.mark.parametrize("name", one_in(2, SAMPLE))
def test_a_fault_of_each_class_is_found_and_named(name: str):
    catch = hunt(BY_NAME[name], tries=0)
    assert catch.found and catch.localized, f"{catch.culprit}, not {catch.fault.culprit}:\n{catch.evidence}"


@pytest.mark.deep
@pytest.mark.parametrize("name", sorted(set(OWN) - set(SAMPLE)))
def test_all_faults_of_these_classes_are_found_and_named(name: str):
    catch = hunt(BY_NAME[name], tries=0)
    assert catch.found and catch.localized, f"{catch.culprit}, not {catch.fault.culprit}:\n{catch.evidence}"


# --- control flow


def scanning(w: Any, x: Any) -> Any:
    return graphc.scan(lambda c, a: ((c * w + a).tanh(), c * a), x[0], x)


def choosing(i: Any, x: Any) -> Any:
    return graphc.switch(i, (torch.sin, torch.exp, torch.square), x)


def looping(x: Any) -> Any:
    return graphc.while_loop(lambda c: c.sum() < 20, lambda c: c * 1.5 + c.sin(), x)


def turned(sound: Any) -> Any:
    """The gradient of a scan that goes the other way."""

    def rule(builder: Any, node: Any, cotangents: Any, wanted: Any) -> Any:
        before = set(builder.nodes)
        shares = sound(builder, node, cotangents, wanted)
        for id in set(builder.nodes) - before:
            made = builder.nodes[id]
            if made.op is SCAN:
                params = {**made.params, "reverse": not made.params["reverse"]}
                builder.nodes[id] = type(made)(id, made.op, made.inputs, params, made.results, made.where, made.scope)
        return shares

    return rule


def test_the_gradient_of_a_scan_that_goes_the_wrong_way():
    with entry(STRUCTURED, SCAN, turned(STRUCTURED[SCAN])):
        culprit = named(scanning, numbers(3), numbers(4, 3))
    assert (culprit.op, culprit.part) == ("scan", "gradient rule")
    assert "test_naming.py" in culprit.where and "one by one" in culprit.evidence


def test_the_gradient_of_another_branch():
    def exchanged(builder: Any, node: Any, cotangents: Any, wanted: Any) -> Any:
        params = {"branches": node.params["branches"][::-1]}
        other = type(node)(node.id, node.op, node.inputs, params, node.results, node.where, node.scope)
        return sound(builder, other, cotangents, wanted)

    sound = STRUCTURED[SWITCH]
    with entry(STRUCTURED, SWITCH, exchanged):
        culprit = named(choosing, torch.tensor(0), numbers(3))
    assert (culprit.op, culprit.part) == ("switch", "gradient rule")


def test_the_gradient_of_one_step_too_many():
    extend = checkpoints._extend

    def wrong(builder: Any, node: Any) -> Any:
        steps, *rest = extend(builder, node)
        return (steps + 1, *rest)

    with attribute(checkpoints, "_extend", wrong):
        culprit = named(looping, numbers(3), modes=["graph"])
    assert (culprit.op, culprit.part) == ("while_loop", "gradient rule")


def test_a_wrong_rule_in_a_body_is_blamed_before_the_loop():
    rule = OPS["tanh"].vjp["input"]
    wrong = type(rule)(lambda F, *values: rule.fn(F, *values) * 1.1, rule.names)
    with declared(OPS["tanh"], vjp={**OPS["tanh"].vjp, "input": wrong}):
        culprit = named(scanning, numbers(3), numbers(4, 3), modes=["finite differences"])
    assert (culprit.op, culprit.part) == ("tanh", "gradient rule for 'input'")


@pytest.mark.parametrize(("op", "fn", "args"), [
    ("scan", scanning, (numbers(3), numbers(4, 3))), ("switch", choosing, (torch.tensor(1), numbers(3))),
])  # fmt: skip
def test_control_flow_that_xla_runs_otherwise(op: str, fn: Any, args: Any):
    sound = OVERRIDES[op]

    def wrong(*operands: Any, **params: Any) -> Any:
        if op == "scan":
            return sound(*operands, **{**params, "reverse": not params["reverse"]})
        return sound(operands[0] + 1, *operands[1:], **params)

    with entry(OVERRIDES, op, wrong):
        culprit = named(fn, *args, modes=["compiled"])
    assert (culprit.op, culprit.part) == (op, "lowering")


@pytest.mark.parametrize(("fn", "args"), [
    (scanning, (numbers(3), numbers(4, 3))), (choosing, (torch.tensor(1), numbers(3))), (looping, (numbers(3),)),
    (lambda x: graphc.scan(lambda c, a: (graphc.cond(c.sum() > 3, lambda c: c * 0.5, lambda c: c + a, c), c), x[0], x),
     (numbers(4, 3),)),
    pytest.param(lambda x: graphc.scan(lambda c, a: (c * a, c), x[0], x, length=300)[0], (numbers(300, 2),),
                 marks=pytest.mark.deep),
    (lambda x: graphc.while_loop(lambda c: c[1] < 500, lambda c: (c[0] * 0.999 + 0.01, c[1] + 1), (x, 0))[0],
     (numbers(2),)),
])  # fmt: skip
def test_sound_control_flow_has_no_objection(fn: Any, args: Any):
    graph = graphc.trace(fn, *args)
    arrays = [a.detach().numpy() for a in args]
    wholes = [s for s in executed(graph, arrays, wholes=True) if s.node.op.structured]
    assert wholes
    for step in wholes:
        assert not list(structured_objections(step.node, step.operands, 0))


def test_what_control_flow_has_run_as_a_graph():
    x = numbers(4, 3, grad=False)
    graph = graphc.trace(lambda x: (scanning(x[1], x), looping(x[0])), x)
    plain = unrolled(graph, [x.numpy()])
    assert not any(node.op.structured for node in plain.nodes.values())
    for a, b in zip(plain(x.numpy()), (*scanning(x[1], x), looping(x[0])), strict=True):
        assert np.allclose(a, b.numpy(), rtol=1e-6)
    with pytest.raises(TooLong):
        unrolled(graph, [x.numpy()], most=20)


# --- shapes


@pytest.mark.parametrize("change", [
    lambda shape: (*shape[:-1], shape[-1] + 1), lambda shape: shape[::-1], lambda shape: (1, *shape),
    lambda shape: 1 // 0,
])  # fmt: skip
def test_the_shape_rule_of_a_slice(change: Any):
    rule = OPS["slice"].rule

    def infer(op: Any, avals: Any, params: Any) -> Aval:
        found = rule.infer(op, avals, params)
        return Aval(change(found.shape), found.dtype)

    with declared(OPS["slice"], rule=rule._replace(infer=infer)):
        culprit = named(lambda x: x[1:3].exp() * 2, numbers(4, 3))
    assert (culprit.op, culprit.part) == ("slice", "shape rule")


# --- two parts


@pytest.mark.parametrize("shapes", [pytest.param(((3, 3), (3, 3)), marks=pytest.mark.deep), ((3, 3), (3,))])
def test_residuals_in_another_order(shapes: Any):
    def reordered(sound: Any) -> Any:
        def split(*args: Any, **options: Any) -> Any:
            parts = sound(*args, **options)
            *results, residuals = parts.forward.result
            return parts._replace(forward=parts.forward.replace(parts.forward.nodes, (*results, residuals[::-1])))

        return split

    x, y = (numbers(*s) for s in shapes)

    def product(x: Any, y: Any) -> Any:
        a = torch.matrix_exp(x)
        return (a @ y.exp().sin()).sum() * torch.linalg.inv(x + 3 * torch.eye(3)).sum() + (a * a).sum()

    with wrapped(partition, "partition", reordered)():
        culprit = named(product, x, y, modes=["compiled"])
    assert culprit.part == PARTITION


# --- rules together


def test_a_rule_that_needs_another_is_the_one_that_is_named():
    two = numbers(2, 3, grad=False), numbers(3, grad=False)
    planted = RewriteRule("planted", REASSOCIATES, lambda F, x, y: F.sinh(x - y), lambda F, x, y: F.sinh(x + y))
    with attribute(pipeline, "ALL", (planted, *pipeline.ALL)):
        culprit = named(lambda x, y: (x + (-y)).sinh(), *two, modes=["compiled"])
    assert (culprit.rule, culprit.part) == ("planted", "rewrite rule")


def test_a_rule_that_raises():
    def right(F: Any, x: Any) -> Any:
        raise KeyError("planted")

    planted = RewriteRule("planted_error", REASSOCIATES, lambda F, x: F.sinh(x), right)
    with attribute(pipeline, "ALL", (*pipeline.ALL, planted)):
        culprit = named(lambda x: x.sinh() * 2, numbers(3))
    assert (culprit.rule, culprit.part) == ("planted_error", "rewrite rule")


# --- batching


def test_a_batching_rule_that_all_modes_have_in_common():
    fn = torch.vmap(lambda x: x.cumsum(0).sin())
    assert compare.check(fn, numbers(3, 3), modes=["graph"]).ok
    with entry(batch_rules.RULES, "cumsum", batch_rules.unchanged):
        culprit = named(fn, numbers(3, 3), modes=["eager", "graph"])
    assert (culprit.op, culprit.part) == ("cumsum", BATCHING)


@pytest.mark.parametrize("fn", [
    lambda x: torch.vmap(lambda a: a.clone().t()[0].add_(1) * 2)(x),
    lambda x: torch.vmap(torch.func.grad(lambda a: (a.softmax(0) @ a).sum()))(x),
    lambda x: torch.vmap(lambda a: torch.linalg.solve(a @ a.mT + torch.eye(3), a))(x),
    lambda x: torch.vmap(lambda a: a.sort(0).values.diagonal().cumsum(0))(x),
])  # fmt: skip
def test_sound_batching_rules(fn: Any):
    report = compare.check(fn, numbers(4, 3, 3), modes=["eager"])
    assert report.ok, str(report)
