"""Gradients of gradients: the gradient of a case as a case of its own."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

from compare.cases.case import Case
from compare.cases.outcome import Outcome, flatten
from compare.checking.findings import Finding
from eager import autograd
from eager.core.tensor import Tensor
from graphc.capture.tree import tensors_of


def gradient_case(case: Case, reference: Outcome) -> Case | None:
    """The call that returns the gradients of `case` under its random cotangents, by the names of the inputs.

    None if there is nothing to differentiate. reference: eager's outcome.
    """
    live = [label for label, flag in reference.requires_grad.items() if flag]
    if not live or not case.wrt:
        return None
    cotangents = {
        label: Tensor._wrap(case.cotangent(k, reference.declared[label]))
        for k, label in enumerate(reference.requires_grad)
        if label in live
    }
    wrap = functools.partial(_differentiated, case, cotangents)
    return Case(case.fn, case.args, case.kwargs, case.seed, wrap, case.locates, constant=True, limit=case.limit)


def _differentiated(case: Case, cotangents: Mapping[str, Tensor], call: Callable[..., Any]) -> Callable[..., Any]:
    positions = {id(t): k for k, t in enumerate(case.tensors)}
    wrt = [(i.name, i.tensor, positions.get(id(i.tensor))) for i in case.wrt]

    @functools.wraps(getattr(call, "forward", call), updated=())
    def gradients(*args: Any, **kwargs: Any) -> dict[str, Tensor]:
        _, leaves = flatten(call(*args, **kwargs), lambda x: isinstance(x, Tensor))
        given = list(tensors_of((args, kwargs)))
        inputs = [tensor if k is None else given[k] for _, tensor, k in wrt]
        found = autograd.grad(
            [leaves[label] for label in cotangents], inputs, list(cotangents.values()), create_graph=True,
            allow_unused=True,
        )  # fmt: skip
        return {name: g for (name, _, _), g in zip(wrt, found, strict=True) if g is not None}

    return gradients


def of_second_order(finding: Finding) -> Finding:
    """A finding on a gradient case, in the terms of the case that it is of."""
    if "gradient of " in finding.what:
        return dataclasses.replace(finding, what=finding.what.replace("gradient of ", "second gradient of "))
    return dataclasses.replace(finding, what=f"{finding.what.replace('result.', 'gradient of ')} (create_graph)")
