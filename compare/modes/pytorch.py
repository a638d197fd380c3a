"""The mode that asks PyTorch: the captured forward graph by its functions, and gradients by its autograd."""

# pyright: reportMissingImports=false
# PyTorch is optional.
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, final

import numpy as np

from compare.cases.case import Case
from compare.cases.joint import gradient_label
from compare.cases.outcome import Outcome
from compare.judging.isolate import judge_alone
from compare.judging.numeric import evaluate
from compare.judging.tolerance import Verdict
from compare.locating.culprit import Culprit
from compare.locating.gradient_rules import in_gradient_rules
from compare.modes.graphs import outcome_of
from compare.modes.protocol import NOT_CAPTURED
from graphc.errors import require
from graphc.ir.structure import ITEM, ancestors

if TYPE_CHECKING:
    from torch import Tensor


@final
class PyTorch:
    """An independent implementation of most ops and gradient rules. No opinion on programs with other ops."""

    name, wide, repeats = "pytorch", False, False

    def run(self, case: Case) -> Outcome:
        require("torch", "the mode 'pytorch'", "torch")
        if case.program is None or case.keeps_containers:
            return Outcome(silent=NOT_CAPTURED)
        from compare.modes.torch_functions import Lacking, to_numpy

        try:
            outputs = {label: to_numpy(t) for label, t in _outputs(case).items()}
        except Lacking as error:
            return Outcome(silent=f"PyTorch has no function for op '{error}'")
        except Exception as error:  # of a program that raises, or of a function that is not for this dtype
            return Outcome(silent=f"PyTorch raises {type(error).__name__}: {str(error).partition(chr(10))[0]}")
        return outcome_of(case, outputs)

    def locate(self, case: Case, label: str, outcome: Outcome) -> Culprit | None:
        from compare.modes.torch_functions import run, to_numpy, to_torch

        graph = case.captured_program.graph
        values = evaluate(graph, case.operands[: len(graph.inputs)])
        needed = ancestors(graph.nodes, graph.outputs)  # not the values on which Python has decided
        for node in filter(lambda node: node.id in needed, graph.operations()):
            operands = [values[i] for i in node.inputs]
            if node.op is ITEM:
                continue
            found = run(node.op, [to_torch(a) for a in operands], node.params)
            found = tuple(map(to_numpy, found)) if node.op.several else to_numpy(found)
            judgement = judge_alone(found, values[node.id], node, operands)
            if judgement.verdict is Verdict.BUG:
                return Culprit("PyTorch's form", node.op.name, node.id, node.where, evidence=judgement.detail)
        return in_gradient_rules(case) if label.startswith("gradient of ") else None


def _outputs(case: Case) -> dict[str, Tensor]:
    """A tensor for each of `case.joint.labels`."""
    from compare.modes.torch_functions import run, to_torch

    program, joint = case.captured_program, case.joint
    graph = program.graph
    given = [to_torch(a) for a in case.operands]
    values: dict[int, Tensor] = dict(zip(graph.inputs, given, strict=False))
    leaves = {id for i in case.wrt for id in case.gradient_ids(i)}
    for id in leaves & values.keys():
        values[id].requires_grad_()
    needed = ancestors(graph.nodes, graph.outputs)
    for node in filter(lambda node: node.id in needed, graph.operations()):
        result = run(node.op, [values[k] for k in node.inputs], node.params)
        if not (node.op.several or node.id in program.recorded.nodes):
            result = result.detach().requires_grad_(node.id in leaves)
        values[node.id] = result
    cotangents = given[len(graph.inputs) : len(graph.inputs) + len(joint.seeded)]
    gradients = _gradients(case, [values[graph.outputs[k]] for k in joint.seeded], cotangents, values)
    return {label: gradients[label] if label in gradients else values[id] for label, id in joint.ids.items()}


def _gradients(
    case: Case, outputs: Sequence[Tensor], cotangents: Sequence[Any], values: Mapping[int, Tensor]
) -> dict[str, Tensor]:
    import torch

    if not outputs:
        return {}
    wrt = [(gradient_label(i), values[id]) for i in case.wrt for id in case.gradient_ids(i)]
    seeded = [(t, ct) for t, ct in zip(outputs, cotangents, strict=True) if t.requires_grad]
    found: Sequence[Any] = [None] * len(wrt)
    if seeded:
        tensors, seeds = zip(*seeded, strict=True)
        found = torch.autograd.grad(tensors, [x for _, x in wrt], seeds, allow_unused=True)
    totals = {gradient_label(i): torch.from_numpy(np.zeros(i.tensor._d.shape, i.tensor._dtype())) for i in case.wrt}
    for (label, _), g in zip(wrt, found, strict=True):
        totals[label] = totals[label] if g is None else totals[label] + g
    return totals
