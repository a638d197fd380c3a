"""Modules without initial values. As `torch.nn.utils.init`."""

from __future__ import annotations

import inspect
from typing import Any

from eager.nn.module import Module


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """`module_cls(*args, **kwargs)` with parameters and buffers that are not set to anything.

    RuntimeError unless `module_cls` is a class of modules that takes a `device`.
    """
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    final = kwargs.pop("device", "cpu")
    return module_cls(*args, **{**kwargs, "device": "meta"}).to_empty(device=final)
