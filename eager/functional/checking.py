"""Which argument of a call that failed is of a wrong kind: asked when it has failed, so that good calls cost nothing.

What each argument takes is read from the annotations of the function, and from the names that PyTorch gives to sizes.
Flags are asked before the call, because Python takes anything for a bool.
"""

from __future__ import annotations

import functools
import inspect
import numbers
import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, cast

from eager.core.dtypes import type_name
from eager.core.overriding import AskingFunction, handled, local, overloaded, public_of
from eager.core.tensor import Tensor
from eager.functional.forwarding import forwarding
from eager.functional.parsing import newer_call, parsing_error, signatures

WRONG = "{name}(): argument '{argument}'{position} must be {wanted}, not {kind}"
SAID = re.compile(r"[\w.]+\(\)(:| received| takes| got| missing) ")  # PyTorch's words
# public functions that PyTorch writes in Python, besides those of `torch.nn.functional`
PYTHON = frozenset(
    "atleast_1d atleast_2d atleast_3d backward block_diag broadcast_shapes broadcast_tensors cartesian_prod cdist "
    "chain_matmul dim_order eig einsum from_dlpack istft lobpcg lstsq lu matrix_rank meshgrid norm pca_lowrank "
    "register_hook register_post_accumulate_grad_hook solve split stft storage svd_lowrank symeig tensordot "
    "to_sparse_coo unflatten unique unique_consecutive unravel_index".split()
)
VARIOUS = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
MANY = 1 << 10  # more arguments than any call has
CALL = re.compile(r"([\w.<>]+)\(\) (?:takes|missing|got) ")  # how Python's errors of a call begin
# arguments that are an int or several, in all functions that have them
INTS = frozenset("size stride kernel_size s pad padding dilation split_sizes output_size dims normalized_shape".split())
WORDS = frozenset({"padding"})  # of those, which may be a word as well: "same"


def _number(value: Any) -> bool:
    return isinstance(value, numbers.Number) or (isinstance(value, Tensor) and value.numel() == 1)  # type: ignore[attr-defined]


def _int(value: Any) -> bool:
    if isinstance(value, Tensor):
        return value._dtype().kind in "iu" and _number(value)
    return hasattr(value, "__index__")


def _ints(value: Any) -> bool:
    return _int(value) or (isinstance(value, Sequence) and not isinstance(value, str) and all(map(_ints, value)))


# what an annotation begins with -> (whether a value fits, PyTorch's name of the kind)
KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "Tensor": (lambda value: isinstance(value, Tensor), "Tensor"),
    "int": (_int, "int"),
    "float": (_number, "float"),
    "bool": (lambda value: type(value).__name__.startswith("bool"), "bool"),
    "str": (lambda value: isinstance(value, str), "str"),
    "Sequence[int]": (_ints, "tuple of ints"),
    "Generator": (lambda value: type(value).__name__ == "Generator", "torch.Generator"),
}


# functions that PyTorch writes in Python, by the attribute that each asks of its first argument
OF_PYTHON = {
    name: attribute
    for attribute, names in {
        "abs": "softsign", "layout": "norm", "norm": "normalize", "requires_grad": "lobpcg",
        "shape": "pca_lowrank svd_lowrank", "sigmoid": "sigmoid", "size": "instance_norm", "tanh": "tanh tanhshrink",
        "dim": "dropout1d dropout2d dropout3d glu interpolate softmin upsample upsample_bilinear upsample_nearest",
    }.items()
    for name in names.split()
}  # fmt: skip


# functions of `torch.nn.functional` that PyTorch does not write in Python
OF_CPP = frozenset(
    "avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d bilinear channel_shuffle conv1d conv2d conv3d conv_tbc "
    "conv_transpose1d conv_transpose2d conv_transpose3d cosine_similarity gelu hardshrink linear logsigmoid "
    "native_channel_shuffle one_hot pairwise_distance pdist pixel_shuffle pixel_unshuffle prelu "
    "scaled_dot_product_attention softplus softshrink celu_ elu_ hardtanh_ leaky_relu_ relu_ rrelu_ selu_ threshold_"
    .split()
)  # fmt: skip


# functions that take here what PyTorch refuses: asked before the call if that looks like it
STRICT = frozenset(
    "bernoulli cumulative_trapezoid flip frobenius_norm hsplit isin linalg_matrix_rank linalg_pinv linalg_svd "
    "linalg_vander logsumexp max median min nanmedian norm_except_dim normal pinverse prod rand randn range "
    "resize_as_ slice_inverse special_logsumexp squeeze squeeze_copy tile trapezoid trapz vsplit where".split()
)


class Wanted(NamedTuple):
    """What a function wants as one of its arguments."""

    argument: str
    kind: str
    optional: bool
    position: int | None  # None if it is given by name only

    def error(self, name: str, value: Any, by_name: bool, method: bool) -> Exception | None:
        """PyTorch's error if `value` is not of the kind."""
        fits, wanted = KINDS[self.kind]
        if (value is None and self.optional) or fits(value) or (self.argument in WORDS and isinstance(value, str)):
            return None
        if self.position == 0 and name in OF_PYTHON and not method:
            return AttributeError(f"'{type(value).__name__}' object has no attribute '{OF_PYTHON[name]}'")
        position = self.position
        at = "" if position is None or by_name else f" (position {position + (not method)})"
        kind = type_name(value)
        return TypeError(WRONG.format(name=name, argument=self.argument, position=at, wanted=wanted, kind=kind))


@functools.cache
def wanted_of(function: Callable[..., Any]) -> tuple[Wanted, ...]:
    """What `function` wants, as far as its annotations say it."""
    found: list[Wanted] = []
    for at, (argument, p) in enumerate(inspect.signature(function).parameters.items()):
        if p.kind is p.VAR_POSITIONAL:
            break
        if argument == "out" or p.kind is p.VAR_KEYWORD:
            continue
        kind, *others = str(p.annotation).split(" | ")
        if kind == "Any" and argument in INTS:
            kind = "Sequence[int]"
        if kind in KINDS and others in ([], ["None"]):
            position = None if p.kind is p.KEYWORD_ONLY else at
            found.append(Wanted(argument, kind, bool(others) or p.default is None, position))
    return tuple(found)


def wrong_argument(name: str, function: Callable[..., Any], values: Sequence[Any], named: Mapping[str, Any],
                   method: bool = False, python: bool = False, said: bool = False) -> Exception | None:  # fmt: skip
    """PyTorch's error for the arguments of `function`, the public `name`; None if it takes them.

    python: whether PyTorch writes the function in Python; said: whether the call has failed with PyTorch's words.
    """
    if not python and name not in PYTHON:
        return parsing_error(name, values[method:], named, method)
    if said and name not in OF_PYTHON:
        return None
    wanted = wanted_of(function)
    return _first_wrong(wanted[:1] if name in OF_PYTHON else wanted, name, values, named, method)


def is_builtin_there(value: Any) -> bool:
    """Whether a value is a public function that PyTorch writes in C++: as an attribute of a class, it is no method."""
    if not (inspect.isfunction(value) or isinstance(value, AskingFunction)):
        return False
    name, home = value.__name__, value.__module__ or ""
    if home.startswith("eager.nn."):
        return name in OF_CPP
    of_top = home == "eager" or home.startswith("eager.generated")
    return of_top and name not in PYTHON and bool(signatures(name, False))


def _first_wrong(wanted: Sequence[Wanted], name: str, values: Sequence[Any], named: Mapping[str, Any],
                 method: bool) -> Exception | None:  # fmt: skip
    for each in wanted:
        by_name = each.argument in named
        if by_name:
            value = named[each.argument]
        elif each.position is not None and each.position < len(values):
            value = values[each.position]
        else:
            continue
        if (error := each.error(name, value, by_name, method)) is not None:
            return error
    return None


def raise_better(error: Exception, name: str, function: Callable[..., Any], values: Sequence[Any],
                 named: Mapping[str, Any], method: bool = False, python: bool = False) -> Any:  # fmt: skip
    """Raise PyTorch's error for arguments that it does not take, or else `error`, which the call raised.

    If there is an object with `__torch_function__` among the arguments, what that makes of the call is returned.
    """
    wrong: Exception | None = None
    try:
        if local.classes and (found := overloaded((*values, *named.values()))):
            return handled(public_of[0](name, function, method), found, values, named)
        if isinstance(error, TypeError) and (call := newer_call(name, values, named, method)) is not None:
            return function(*call[0], **call[1])
        said = isinstance(error, TypeError) and SAID.match(str(error)) is not None
        if (wrong := wrong_argument(name, function, values, named, method, python, said)) is not None:
            raise wrong from None
        text = str(error)
        found = CALL.match(text) if isinstance(error, TypeError) else None
        if found is not None and ("<locals>" in found[1] or found[1] == function.__name__):
            raise TypeError(_said_as(name, function, method, python) + text[found.end(1) :]) from None
        raise error
    finally:
        # an error has this frame: one that it had as well would keep the arguments of the call until it is collected
        del error, wrong


def _said_as(name: str, function: Callable[..., Any], method: bool, python: bool) -> str:
    """What Python calls the function of PyTorch in an error: those that it writes in Python have a name there."""
    if method and name in PYTHON:
        return f"Tensor.{name}"
    # a function that may return indices chooses between two, and the one without has this name
    return f"_{name}" if python and "return_indices" in inspect.signature(function).parameters else name


def checking(name: str, function: Callable[..., Any], method: bool = False, python: bool = False,
             others: Mapping[str, str] = MappingProxyType({}), home: str = "", written: bool = True,
             ) -> Callable[..., Any]:  # fmt: skip
    """`function`, asked what was wrong, and its arguments' classes, when a call has failed; for flags before the call.

    name: what PyTorch calls it in errors; python: whether PyTorch writes it in Python; others: other names of its
    parameters -> their names, "*" for what is given by position; home: the module in which it is public, by the end of
    that name or all of it; written: whether it is to cost little at each call, and not when it is made.
    """
    if not (inspect.isfunction(function) or isinstance(cast(Any, function), AskingFunction)):
        return function
    if method and _takes_nothing(function):
        return function  # to pass it on would take as long as what it does
    flags = () if python else tuple(each for each in wanted_of(function) if each.kind == "bool" and not each.optional)

    python = python or name in PYTHON
    # of a function that takes more than PyTorch's, the parser is asked before the call, if that looks like it
    least = None
    if name in STRICT and not python:
        least = min((form.required for form in signatures(name, method)), default=0) + method

    def failed(error: Exception | None, values: tuple[Any, ...], named: dict[str, Any]) -> Any:
        wrong: Exception | None = None
        try:
            if error is None:
                if (wrong := _first_wrong(flags, name, values, named, method)) is not None:
                    raise wrong
                if least is not None and (wrong := parsing_error(name, values[method:], named, method)) is not None:
                    raise wrong
                return function(*(_renamed(name, others, values, named) if others else values), **named)
        except Exception as raised:
            error = raised
        try:
            assert error is not None
            return raise_better(error, name, function, values, named, method, python)
        finally:
            del error, wrong

    positions = [(each.argument, MANY if each.position is None else each.position) for each in flags]
    checked = forwarding(function, failed, positions, frozenset(others), least, written)
    if others:
        vars(checked)["other_names"] = others
    if home:  # for pickle
        checked.__module__, checked.__qualname__ = home, name.removeprefix(f"{home.rpartition('.')[2]}_")
    return checked


def _takes_nothing(function: Callable[..., Any]) -> bool:
    """Whether a method has no arguments."""
    code = getattr(function, "__code__", None)
    return code is not None and code.co_argcount == 1 and not code.co_kwonlyargcount and not code.co_flags & VARIOUS


def _renamed(name: str, others: Mapping[str, str], values: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    """The arguments by their own names: `values`, and what is put into `named`."""
    for other in others.keys() & named.keys():
        own = others[other]
        if own == "*":
            values += (named.pop(other),)
        elif own in named:
            raise TypeError(f"{name}() got multiple values for argument '{own}'")
        else:
            named[own] = named.pop(other)
    return values
