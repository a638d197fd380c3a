"""What PyTorch's parser says of a call whose arguments do not fit the parameters: asked when a call has failed.

PyTorch parses the arguments of what it writes in C++ in order, with the kind of each (`FunctionSignature::parse`): an
argument of a wrong kind is named before one that is missing. What it writes in Python says what Python says.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter
from typing import Any

MISSING = "{name}() missing {count} required positional argument{s}: {names}"
TOO_MANY = "{name}() takes {most} positional argument{s} but {given} {were} given"
UNKNOWN = "{name}() got an unexpected keyword argument '{argument}'"
# public functions that PyTorch writes in Python, besides those of `torch.nn.functional`
PYTHON = frozenset(
    "atleast_1d atleast_2d atleast_3d backward block_diag broadcast_shapes broadcast_tensors cartesian_prod cdist "
    "chain_matmul dim_order eig einsum from_dlpack istft lobpcg lstsq lu matrix_rank meshgrid norm pca_lowrank "
    "register_hook register_post_accumulate_grad_hook solve split stft storage svd_lowrank symeig tensordot "
    "to_sparse_coo unflatten unique unique_consecutive unravel_index".split()
)
Wrong = Callable[[str, Any, bool], Exception | None]  # the error for an argument of that name, if it is given by name


@functools.cache
def _parameters(function: Callable[..., Any], method: bool) -> tuple[Parameter, ...] | None:
    """What a function takes, without `self` and `out`; None if it takes any number of arguments."""
    found = list(inspect.signature(function).parameters.values())[method:]
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in found):
        return None
    return tuple(p for p in found if p.name != "out")


def binding_error(name: str, function: Callable[..., Any], values: Sequence[Any], named: Mapping[str, Any],
                  method: bool, wrong: Wrong) -> Exception | None:  # fmt: skip
    """PyTorch's error if the arguments do not fit the parameters of `function`, the public `name`; None if they do."""
    parameters = _parameters(function, method)
    if parameters is None or _fits(function, values, named):
        return None
    values = values[method:]
    positional = [p for p in parameters if p.kind is not p.KEYWORD_ONLY]
    least, most = sum(p.default is p.empty for p in parameters), len(positional)
    if len(values) > most:
        upto = most if least == most else f"from {least} to {most}"
        s, were = "" if most == 1 and least == most else "s", "was" if len(values) == 1 else "were"
        return TypeError(TOO_MANY.format(name=name, most=upto, s=s, given=len(values), were=were))
    for k, p in enumerate(parameters):
        by_name = k >= len(values)
        if by_name and p.name not in named:
            if p.default is p.empty:
                absent = [f'"{q.name}"' for q in parameters[k:] if q.default is q.empty]
                s = "s" if len(absent) == 1 else ""  # PyTorch has it so
                return TypeError(MISSING.format(name=name, count=len(absent), s=s, names=", ".join(absent)))
        elif (error := wrong(p.name, named[p.name] if by_name else values[k], by_name)) is not None:
            return error
    unknown = next((n for n in named if n != "out" and all(n != p.name for p in parameters)), None)
    return None if unknown is None else TypeError(UNKNOWN.format(name=name, argument=unknown))


def _fits(function: Callable[..., Any], values: Sequence[Any], named: Mapping[str, Any]) -> bool:
    try:
        inspect.signature(function).bind(*values, **named)
    except TypeError:
        return False
    return True
