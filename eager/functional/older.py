"""Calls as PyTorch 1 had them: `x.add_(0.1, y)`, `torch.addmm(beta, x, alpha, a, b)`. Asked when a call has failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from eager.core.warned import warn_once
from eager.functional.parsing import Parameter, Refused, Signature, signatures

TEXT = (
    "This overload of {0} is deprecated:\n\t{0}{1}\nConsider using one of the following signatures instead:\n\t{0}{2}"
)
Call = tuple[tuple[Any, ...], dict[str, Any]]


def newer_call(name: str, values: Sequence[Any], named: Mapping[str, Any], method: bool) -> Call | None:
    """The arguments of a deprecated overload as the function takes them: tensors first, numbers by name; warns, once.

    None if no such overload takes them. values: with the tensor whose method it is.
    """
    forms = signatures(name, method)
    own = values[: int(method)]
    for form in forms:
        if form.deprecated and _is_scaled(form) and _takes(form, values[len(own) :], named):
            given = dict(named)
            given.update(zip((parameter.name for parameter in form.parameters), values[len(own) :], strict=False))
            tensors = [given.pop(each.name) for each in form.parameters if each.kind == "Tensor" and not each.by_name]
            now = next(str(other) for other in forms if not other.deprecated)
            warn_once(TEXT.format(name, form, now), "a deprecated overload")
            return (*own, *tensors), given
    return None


def _is_scaled(form: Signature) -> bool:
    """Whether it is one of those with numbers among its tensors."""
    return any(map(_is_number, form.parameters)) and any(parameter.kind == "Tensor" for parameter in form.parameters)


def _is_number(parameter: Parameter) -> bool:
    return parameter.kind == "Scalar" and not parameter.by_name


def _takes(form: Signature, values: Sequence[Any], named: Mapping[str, Any]) -> bool:
    try:
        form.check(values, named)
    except Refused:
        return False
    return True
