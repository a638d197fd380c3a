"""Wrong passes: each is what a pass could be that forgets to ask one question."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import eager as torch
import graphc
from compare.selftest.fault import Fault, Trials, of_pass
from compare.selftest.planting import attribute, wrapped
from compare.selftest.trials import numbers, program
from graphc.ir import INPUT, Graph, Node, rename
from graphc.ops import OPS, Literal
from graphc.ops.dtypes import FLOAT64
from graphc.passes import pipeline, quotients
from graphc.passes.pipeline import Pass

# what the pipeline calls its passes, and what the module has them under
_FUNCTIONS = {
    "gradient rules": "without_rules",
    "dead code": "eliminate_dead_code",
    "control flow": "trim_control_flow",
    "loop invariants": "hoist_invariants",
    "products of scans": "batch_products",
    "sums": "shorten_sums",
    "quotients": "cancel_quotients",
    "common subexpressions": "eliminate_common_subexpressions",
    "constant folding": "fold_constants",
}


def _fault(what: str, name: str, wrong: Callable[[Pass], Pass], trials: Trials) -> Fault:
    return of_pass(what, name, wrapped(pipeline, _FUNCTIONS[name], wrong), trials)


def _instead(run: Pass) -> Callable[[Pass], Pass]:
    return lambda sound: run


def _then(change: Pass) -> Callable[[Pass], Pass]:
    """The pass, followed by `change`."""
    return lambda sound: lambda graph: change(sound(graph))


def _numbers(node: Node) -> str:
    """The parameters, with equal numbers for 0.0 and -0.0."""
    return repr({name: (v.array + 0).tolist() if isinstance(v, Literal) else v for name, v in node.params.items()})


def _without_dtype(node: Node) -> str:
    others = {name: value for name, value in node.params.items() if name != "dtype"}
    return repr(others) if node.op is not OPS["constant"] else _numbers(node)


def _merging(key: Callable[[Node], Any]) -> Callable[[Pass], Pass]:
    """A pass that keeps the first of the operations with one `key`."""

    def run(graph: Graph) -> Graph:
        first: dict[Any, int] = {}
        new: dict[int, int] = {}
        kept: dict[int, Node] = {}
        for id, node in graph.nodes.items():
            node = node.on(tuple(new.get(i, i) for i in node.inputs))
            same = id if node.op is INPUT else first.setdefault(key(node), id)
            if same == id:
                kept[id] = node
            else:
                new[id] = same
        return graph.replace(kept, rename(graph.result, {id: new.get(id, id) for id in graph.outputs}))

    return _instead(run)


_of_shape = _merging(lambda node: (node.op, node.inputs, node.aval))
_of_any_dtype = _merging(lambda node: (node.op, node.inputs, _without_dtype(node), node.aval.shape))
_unordered = _merging(lambda node: (node.op, tuple(sorted(node.inputs)), _numbers(node), node.aval))
_of_first = _merging(lambda node: (node.op, node.inputs[:1], _numbers(node), node.aval))


def _each(name: str, change: Callable[[Node, Graph], Node]) -> Pass:
    """Every op of that name goes through `change`."""
    return lambda graph: graph.replace(
        {id: change(node, graph) if node.op is OPS[name] else node for id, node in graph.nodes.items()}, graph.result
    )


def _instead_of(node: Node, op: str, inputs: tuple[int, ...], **params: Any) -> Node:
    return Node(node.id, OPS[op], inputs, params, node.results, node.where, node.scope)


def _with(**changes: Callable[[Any], Any]) -> Callable[[Node, Graph], Node]:
    """The parameters of a node go through `changes`."""
    return lambda node, graph: _instead_of(
        node, node.op.name, node.inputs, **{k: changes[k](v) if k in changes else v for k, v in node.params.items()}
    )


def _of_operand(name: str) -> Pass:
    """Every op of that name is taken for its first operand."""
    return _each(name, lambda node, graph: (
        _instead_of(node, "positive", node.inputs[:1]) if graph.nodes[node.inputs[0]].aval == node.aval else node
    ))  # fmt: skip


def _folded(change: Callable[[np.ndarray], Any]) -> Pass:
    """Constants go through `change`."""
    return _each("constant", _with(value=lambda v: Literal(np.asarray(change(v.array)).astype(v.array.dtype))))


def _as_if_full(node: Node, graph: Graph) -> Node:
    if not node.aval.shape:
        return node
    first = node.params["value"].array.flat[0].item()
    return _instead_of(node, "full", (), shape=node.aval.shape, value=first, dtype=node.aval.dtype)


def _without_last_term(node: Node, graph: Graph) -> Node:
    """Of a sum of three and more, the last term goes."""
    inner = [i for i in node.inputs if graph.nodes[i].op is node.op]
    if not inner or graph.nodes[inner[0]].aval != node.aval:
        return node
    return _instead_of(node, "positive", (inner[0],))


_TURNED = _each("scan", _with(reverse=lambda reverse: not reverse))

_x, _y = numbers(3), numbers(3, seed=6)
_square = numbers(3, 3)
_signed = np.array([1.0, -2.0, 0.5], np.float32)


def _scanned(x: Any) -> Any:
    return graphc.scan(lambda c, a: (c * 0.5 + a, torch.sin(c)), x[0] * 0, x)[1]


def _branching(x: Any) -> Any:
    return graphc.cond(x.sum() > 0, lambda a: torch.cos(a) * 2, lambda a: a * a, x)


def _constant(value: Any, dtype: Any = None) -> Any:
    return torch.tensor(value, dtype=dtype)


FAULTS: tuple[Fault, ...] = (
    _fault("parameters ignored", "common subexpressions", _of_shape,
           program(lambda x: x.sum(0) * x.sum(1) + x.cumsum(0).flip(0).sum(), _square)),
    _fault("the order of operands ignored", "common subexpressions", _unordered,
           program(lambda x, y: (x - y) * torch.exp(y - x), _x, _y)),
    _fault("only the first operand asked for", "common subexpressions", _of_first,
           program(lambda x, y: x * y + x * x.sin(), _x, _y)),
    _fault("dtypes ignored", "common subexpressions", _of_any_dtype,
           program(lambda x: x.to(torch.float32) / 3 + x.to(torch.float64) / 3, np.array([1, 2, 3]))),
    _fault("0.0 for -0.0", "common subexpressions", _merging(
        lambda node: (node.op, node.inputs, _numbers(node), node.aval)),
        program(lambda x: x / torch.tensor([0.0, 0.0, 0.0]) + x / torch.tensor([-0.0, -0.0, -0.0]), _x)),
    _fault("the sign of zero lost", "constant folding", _then(_folded(lambda a: a + 0.0)),
           program(lambda x: x / (_constant(0.0) * -1.0), _x)),
    _fault("in float32", "constant folding",
           _then(_folded(lambda a: a.astype(np.float32) if a.dtype.kind == "f" else a)),
           program(lambda x: x * (_constant(0.1, torch.float64) * 3), numbers(3, dtype=FLOAT64))),
    _fault("the first element for all", "constant folding", _then(_each("constant", _as_if_full)),
           program(lambda x: x * (_constant([1.0, 2.0, 3.0]) * 2), _x)),
    _fault("integers one higher", "constant folding", _then(_folded(lambda a: a + (a.dtype.kind == "i"))),
           program(lambda x: x[_constant([1, 0, 0, 1, 1]) * 1] * 2, _x)),
    _fault("absolute values dropped", "dead code", _then(_of_operand("abs")), program(lambda x: x.abs() * 2, _signed)),
    _fault("negations dropped", "dead code", _then(_of_operand("neg")), program(lambda x: torch.exp(-x), _x)),
    _fault("maxima dropped", "dead code", _then(_of_operand("maximum")),
           program(lambda x, y: torch.maximum(x, y), _y, _x)),
    _fault("the last term of sums dropped", "sums", _then(_each("add", _without_last_term)),
           program(lambda x, y: torch.sin(x) + torch.cos(y) + x * y, _x, _y)),
    _fault("permutations dropped", "sums", _then(_of_operand("permute")), program(lambda x: x @ x.T, _square)),
    _fault("scans turned round", "loop invariants", _then(_TURNED), program(_scanned, _x)),
    _fault("scans turned round", "products of scans", _then(_TURNED), program(_scanned, _x)),
    _fault("signs dropped", "quotients", _then(_of_operand("neg")), program(lambda x: torch.exp(-x), _x)),
    of_pass("operands that are 0 cancelled", "quotients", lambda: attribute(
        quotients, "POSITIVE", frozenset(OPS.values())),
        program(lambda x: x.sin() / (x.sin() * x.sin()), np.array([0.0, 1.0, 2.0]))),
    of_pass("1 - exp taken for 1 + exp", "quotients", lambda: attribute(quotients, "_ADD", OPS["sub"]),
            program(lambda x: torch.exp(x) / (1.0 - torch.exp(x)), _x)),
    _fault("branches exchanged", "control flow", _then(_each("switch", _with(branches=lambda them: them[::-1]))),
           program(_branching, _x)),
    _fault("flips dropped", "gradient rules", _then(_of_operand("flip")), program(lambda x: x.flip(0) * x, _x)),
)  # fmt: skip
