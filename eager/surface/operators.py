"""Gives Tensor its operators, and a function and a method to every pointwise op, and to each op that a user declares.

The other ops of the registry have their functions in `eager.functional`, with PyTorch's arguments.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from inspect import Parameter
from typing import Any

from eager.core.later import Later
from eager.core.tensor import Tensor
from eager.engine.dispatch import apply
from eager.engine.generated_ops import ABSENT
from eager.engine.inplace import in_place
from eager.engine.language import E, double, single
from graphc.ops import BUILT_IN
from graphc.ops.operators import BINARY, COMPARISON, UNARY
from graphc.ops.spec import OPS, Op
from graphc.ops.special import PREFIX

functions: dict[str, Callable[..., Any]] = {}  # public functions of these ops, by name


def _lazy(name: str, signature: inspect.Signature) -> Callable[..., Any]:
    """A function that generates op `name` at its first call, and puts the real one in its own place."""

    def first_call(*args: Any, **kwargs: Any) -> Any:
        real = functions[name] = public(name) if name in BUILT_IN else getattr(E, name)
        return real(*args, **kwargs)

    first_call.__name__ = first_call.__qualname__ = name
    first_call.__doc__ = OPS[name].doc
    first_call.__signature__ = signature  # type: ignore[attr-defined]  # for what asks for the names of arguments
    return first_call


def public(name: str, method: bool = False) -> Callable[..., Any]:
    """The function of a pointwise op for users, or its method: it says what PyTorch says of a call that it refuses."""
    op = OPS[name]
    real = single.public(op, method)
    real.__doc__ = getattr(E, name).__doc__
    own = [*_signature(("self", *op.args[1:]) if method else op.args).parameters.values()]
    real.__signature__ = inspect.Signature([*own, Parameter("out", Parameter.KEYWORD_ONLY, default=None)])  # type: ignore[attr-defined]
    return real


def _refusing(method: bool) -> Callable[..., Any]:
    """What a public function calls with what its fast path does not take."""

    def refuse(op: Op, operands: tuple[Any, ...], rest: tuple[Any, ...], out: Any, named: dict[str, Any]) -> Any:
        whole = not rest and not named and operands[0] is not ABSENT and operands[-1] is not ABSENT
        values = operands if whole else (*(x for x in operands if x is not ABSENT), *rest)
        if out is not None:
            named["out"] = out
        try:
            if whole and out is None:
                return apply(op, operands, {})
            return getattr(E, op.name)(*values, **named)
        except Exception as error:
            return _failed(error, op.name, single.public(op, method), values, named, method)

    return refuse


def _failed(*about: Any) -> Any:
    from eager.functional.checking import raise_better

    return raise_better(*about)


def _install_op(op: Op) -> None:
    plain = op.pointwise and not op.params
    if op.name.startswith(PREFIX) or (op.name in BUILT_IN and not plain):
        return  # the first ones are in `eager.special`
    name = op.name
    E.__dict__.pop(name, None)

    functions[name] = _lazy(name, _signature(op.args) if plain else _signature_with_params(op))
    as_method = _signature(("self", *op.args[1:]))
    if name not in Tensor.__dict__:
        built_in = plain and name in BUILT_IN
        setattr(Tensor, name, Later(name, lambda: public(name, method=True) if built_in else getattr(E, name)))
    if plain and op.args and f"{name}_" not in Tensor.__dict__:
        method: Any = in_place(name, _failed)
        method.__signature__ = as_method
        setattr(Tensor, method.__name__, method)


@functools.cache
def _signature(names: tuple[str, ...]) -> inspect.Signature:
    return inspect.Signature([Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in names])


def _signature_with_params(op: Op) -> inspect.Signature:
    found = [*_signature(op.args).parameters.values()]
    if op.variadic:
        found[-1] = found[-1].replace(kind=Parameter.VAR_POSITIONAL)
    kind = Parameter.KEYWORD_ONLY if op.variadic else Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Signature([*found, *(Parameter(name, kind, default=value) for name, value in op.params.items())])


def _operator(name: str, dunder: str, reflected: bool = False) -> Later:
    """The operator of an op, `other <op> self` if `reflected`: NotImplemented for operands that it does not know."""

    def resolve() -> Callable[..., Any]:
        real = single.operator(OPS[name], reflected)
        real.__name__ = real.__qualname__ = dunder
        own = ("self", "other")[: len(OPS[name].args)]
        real.__signature__ = inspect.Signature([Parameter(each, Parameter.POSITIONAL_ONLY) for each in own])  # type: ignore[attr-defined]
        return real

    return Later(dunder, resolve)


def _into(*args: Any) -> Any:
    from eager.functional.outputs import into

    return into(*args)


def install() -> None:
    """Install the operators now, and every pointwise op as it is declared."""
    for module in (single, double):
        module.scope["into"] = _into  # generated code with `out=`
    single.scope["refuse"], single.scope["refuse_method"] = _refusing(False), _refusing(True)
    for dunder, name in {**BINARY, **COMPARISON, **UNARY}.items():
        setattr(Tensor, f"__{dunder}__", _operator(name, f"__{dunder}__"))
    for dunder, name in BINARY.items():
        if OPS[name].pointwise:
            setattr(Tensor, f"__r{dunder}__", _operator(name, f"__r{dunder}__", reflected=True))
            setattr(Tensor, f"__i{dunder}__", in_place(name))
    OPS.subscribe(_install_op)
