"""PyTorch as a witness, where it is installed (`pip install 'graphc[torch]'`)."""

from __future__ import annotations

from collections.abc import Collection
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest


def torch_or_skip() -> Any:
    """The real torch. Skips the test where it is not installed."""
    torch = pytest.importorskip("torch")
    torch.distributions.Distribution.set_default_validate_args(True)  # which torch.compile turns off when it is loaded
    return torch


def asked_of_torch(names: str | tuple[str, ...], values: Collection[Any], **options: Any) -> pytest.MarkDecorator:
    """Parametrize a test that asks PyTorch. Where it is not installed, pytest skips the test once, and not for each."""
    return (
        pytest.mark.parametrize(names, values, **options) if find_spec("torch") else pytest.mark.parametrize(names, [])
    )


def torch_function(name: str) -> Any:
    """PyTorch's function for the op `name`. Skips the test if there is none."""
    torch = torch_or_skip()
    places = (torch, name), (torch.nn.functional, name), (torch.special, name.removeprefix("special_"))
    found = next((getattr(module, n) for module, n in places if hasattr(module, n)), None)
    return found or pytest.skip(f"PyTorch has no function '{name}'")


def torch_dtype(dtype: np.dtype) -> Any:
    """PyTorch's dtype for a NumPy dtype."""
    return getattr(torch_or_skip(), dtype.name)
