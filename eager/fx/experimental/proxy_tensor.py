"""`make_fx`, and questions of `torch.fx.experimental.proxy_tensor`: ops below functions are traced by graphc here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from eager.functional.symbolic import get_proxy_mode

__all__ = ["get_proxy_mode", "make_fx"]

NO_ATEN = (
    "make_fx: there is no `__torch_dispatch__` here, which writes down the ops of ATen. Remedy: graphc.trace(fn, "
    "*args) gives the ops of a function for these arguments; torch.fx.symbolic_trace(fn) its functions and methods."
)


def make_fx(f: Callable[..., Any], *settings: Any, **named_settings: Any) -> NoReturn:
    """Raises NotImplementedError: `graphc.trace` captures ops."""
    raise NotImplementedError(NO_ATEN)
