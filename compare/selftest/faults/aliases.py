"""Wrong views and overlapping tensors: which elements a view shows, and who sees a write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import eager as torch
from compare.locating.surroundings import STATE
from compare.selftest.fault import Fault, Trials, of_part
from compare.selftest.faults.functionalization import effects, inverse
from compare.selftest.planting import attribute
from compare.selftest.trials import numbers, program
from graphc.capture import MemoryOf
from graphc.capture.storage.mutation import Mutation

_fault = of_part("aliases", STATE)


def _windows(fn: Callable[..., Any]) -> Trials:
    """`program` of a function of two windows of one memory."""
    memory = torch.arange(12.0)
    return program(fn, memory[:8].view(2, 4), memory[4:].view(2, 4))


def _imaginary(z: Any) -> Any:
    y = z * 1
    y.imag.mul_(2)
    return y * 2


def _strided(x: Any) -> Any:
    y = x * 1
    y.diagonal().mul_(2)
    y.as_strided((2, 2), (1, 3), 1).add_(1)
    return y.sin()


def _of_views(x: Any) -> Any:
    y = x * 1
    y.t()[1:].mul_(3)
    return y.sin()


_square = numbers(3, 3)

FAULTS: tuple[Fault, ...] = (
    _fault("the real part is lost in a write to the imaginary one", inverse(
        "imag", lambda F, whole, value: F.complex(value, value)), program(_imaginary, numbers(3) + 1j * numbers(3))),
    _fault("a write by strides goes to the beginning", inverse(
        "as_strided", lambda F, whole, value, offset, **geometry: F.as_strided_scatter(
            whole, value, offset=0, **geometry)), program(_strided, _square)),
    _fault("a write through two views stops at the first", inverse(
        "permute", lambda F, whole, value, dims: whole), program(_of_views, _square)),
    _fault("the common memory is not written", effects(
        lambda effects: [e for e in effects if not isinstance(e.target, MemoryOf)]),
        _windows(lambda a, b: (a.add_(1), b.sum(1))[1])),
    _fault("overlaps are not seen", lambda: attribute(Mutation, "_overlapping", lambda self, owner: []),
           _windows(lambda a, b: (a.mul_(2), b.sum(1))[1])),
)  # fmt: skip
