"""`plain`: the values of a report as JSON has them."""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Iterable, Mapping
from typing import Any


def plain(value: Any) -> Any:
    """`value` of None, numbers, text, lists and dicts: records by the names of their fields, enums as they print,
    numbers that are not finite as "inf", "-inf" and "nan", and anything else as it prints.

    >>> import numpy as np
    >>> plain({"a": (1, np.float32(0.5), float("inf")), 2: {3}})
    {'a': [1, 0.5, 'inf'], '2': [3]}
    """
    if isinstance(value, type):
        return value.__qualname__
    if dataclasses.is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return str(value)
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if hasattr(value, "tolist"):  # an array, or a number, of NumPy
        return plain(value.tolist())
    if hasattr(value, "_asdict"):
        return {name: plain(item) for name, item in value._asdict().items()}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, Iterable):
        return [plain(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    return str(value)
