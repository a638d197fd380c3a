"""Wrong generated code: eager's fast functions, where the plain interpretation of the declaration is right."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from compare.selftest.fault import Expected, Fault, Trials
from compare.selftest.planting import attribute
from compare.selftest.trials import numbers, program
from eager.engine.language import E

LAYER = "generated code"


def _fault(name: str, what: str, wrong: Callable[[Any, Any], Any], trials: Trials) -> Fault:
    """E's function of the op gives `wrong(array, first operand)` for an array; traced tensors miss that code."""

    def plant() -> AbstractContextManager[None]:
        sound = getattr(E, name)

        def fast(*operands: Any, **params: Any) -> Any:
            found = sound(*operands, **params)
            if found._d.__class__ is np.ndarray:
                found._d = np.asarray(wrong(found._d, operands[0]._d), found._d.dtype)
            return found

        return attribute(E, name, fast)

    return Fault(f"generated {name}: {what}", LAYER, plant, Expected(name, "eager form"), trials)


def _off(found: Any, x: Any) -> Any:
    return found * 1.01


def _last_row_forgotten(found: Any, x: Any) -> Any:
    """A block that ends too early."""
    return np.concatenate([found[:-1], np.zeros_like(found[-1:])])


_x, _y = numbers(3, 4), numbers(3, 4, seed=6)

FAULTS: tuple[Fault, ...] = (
    _fault("sinh", "off by a percent", _off, program(lambda x: E.sinh(x) * x, _x)),
    _fault("hypot", "off by a percent", _off, program(lambda x, y: E.hypot(x, y) - y, _x, _y)),
    _fault("fmod", "the last row forgotten", _last_row_forgotten, program(lambda x, y: E.fmod(x, y) * x, _x, _y)),
    _fault("logaddexp", "off by a percent", _off, program(lambda x, y: E.logaddexp(x, y).sum(), _x, _y)),
)
