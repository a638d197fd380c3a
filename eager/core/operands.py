"""What is said of an argument that should be a tensor: found when it fails, so that tensors are not asked."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

from eager.core.dtypes import type_name

NOT_TENSOR = "{name}(): argument '{argument}' (position {position}) must be Tensor, not {kind}"
NOT_ELEMENT = "expected Tensor as element {at} in argument {position}, but got {kind}"


def not_a_tensor(x: Any) -> TypeError:
    """PyTorch's error for `x`, which is no Tensor: with the name that the outermost function in progress has for it."""
    text = f"expected Tensor as element 0 in argument 0, but got {type_name(x)}"
    for frame in _frames():
        text = _described(frame, x) or text
    return TypeError(text)


def not_of_kind(x: Any, wanted: str, argument: str = "") -> TypeError:
    """PyTorch's error for `x`, which is no "int", "tuple of ints", "bool": the outermost function is named."""
    name = ""
    for frame in _frames():
        name, code = _name(frame), frame.f_code
        given = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        argument = argument or next((n for n in given if frame.f_locals.get(n) is x), "")
    return TypeError(f"{name}(): argument '{argument or 'dim'}' must be {wanted}, not {type_name(x)}")


def _frames() -> Iterator[FrameType]:
    """Those of this package without a break, from the inner ones outwards."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and (module := str(frame.f_globals.get("__name__"))).startswith("eager."):
        # those that pass on what they are given are written out, or in a module of their own
        if not module.endswith((".overriding", ".forwarding")) and frame.f_code.co_filename[:10] != "<generated":
            yield frame
        frame = frame.f_back


def _name(frame: FrameType) -> str:
    code = frame.f_code
    # a function that is made for several names has its own as a variable
    return str(frame.f_locals.get("name", code.co_name)) if "<locals>" in code.co_qualname else code.co_name


def _described(frame: FrameType, x: Any) -> str:
    code, kind = frame.f_code, type_name(x)
    given = code.co_varnames[: code.co_argcount]
    method = given[:1] == ("self",)
    for k, argument in enumerate(given):
        if frame.f_locals.get(argument) is x:
            return NOT_TENSOR.format(name=_name(frame), argument=argument, position=k + (not method), kind=kind)
    if "function" in frame.f_locals:  # it passes on what it is given
        return ""
    several = frame.f_locals.get(code.co_varnames[len(given) + code.co_kwonlyargcount]) if code.co_flags & 4 else None
    for at, value in enumerate(several if isinstance(several, tuple) else ()):
        if value is x:
            return NOT_ELEMENT.format(at=at, position=0, kind=kind)
    return ""


def shape(x: Any) -> Any:
    """The shape of `x`. Raises PyTorch's TypeError if it is no Tensor."""
    try:
        return x._d.shape
    except AttributeError:
        raise not_a_tensor(x) from None


def kind_of(x: Any) -> Any:
    """NumPy's dtype of `x`. Raises PyTorch's TypeError if it is no Tensor."""
    try:
        return x._dtype()
    except AttributeError:
        raise not_a_tensor(x) from None


def size(x: Any) -> Any:
    """The shape of `x`, of which PyTorch's Python code asks the size: AttributeError if it is no Tensor."""
    try:
        return x._d.shape
    except AttributeError:
        return x.size()
