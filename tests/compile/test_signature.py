"""What tells calls apart: arguments that need programs of their own, and those that share one."""

from __future__ import annotations

import copy
import dataclasses
import itertools
from enum import Enum
from typing import Any

import numpy as np
import pytest

import eager as torch
from graphc.compiling.signature import Signatures


class Mode(Enum):
    FAST = 1
    SLOW = 2


@dataclasses.dataclass
class Box:
    a: Any
    b: Any = 0


@dataclasses.dataclass
class Crate(Box):
    pass


F32, F64, ONE = torch.float32, torch.float64, torch.ones(2)
# in a row, no two arguments may run one program; a class of its own, for numbers may vary at their places (see
# tests/compile/test_changing_values.py) and equal numbers of different types are one for a dict
APART: dict[str, list[Any]] = {
    "types of numbers": [0, 0.0, False, 0j, "0", b"0", None],
    "numbers of NumPy": [np.float32(1), np.float64(1), np.int64(1), np.float32(2), np.bool_(True)],
    "zeros": [np.float32(0.0), np.float32(-0.0)],
    "complex zeros": [0j, complex(-0.0, 0.0), complex(0.0, -0.0)],
    "arrays of NumPy": [np.zeros(s, d) for s, d in ((2, "f8"), (2, "i8"), (2, "f4"), ((2, 1), "f8"), (1, "f8"))],
    "values of arrays": [np.zeros(2), np.ones(2), np.array([0.0, -0.0])],
    "texts": ["sum", "mean", "", b"sum"],
    "dtypes": [F32, F64, torch.int64, "torch.float32"],
    "members of an Enum": [Mode.FAST, Mode.SLOW, "FAST"],
    "slices": [slice(1), slice(0, 1), slice(None), slice(None, None, 2), (None, 1, None)],
    "shapes": [torch.zeros(2), torch.zeros(3), torch.zeros(2, 1), torch.zeros(())],
    "dtypes of tensors": [torch.zeros(2, dtype=d) for d in (F32, F64, torch.int64, torch.bool, torch.complex64)],
    "gradients": [torch.zeros(2), torch.zeros(2, requires_grad=True)],
    "containers": [[ONE], (ONE,), {"a": ONE}, [ONE, ONE.clone()], [[ONE]], {"b": ONE}, Box(ONE), Crate(ONE)],
    "the same tensor twice": [[ONE, ONE], [ONE, ONE.clone()]],
    "the same list twice": [[inner := [1], inner], [[1], [1]]],
    "orders of entries": [{"a": ONE, "b": ONE.clone()}, {"b": ONE.clone(), "a": ONE}],
    "functions": [len, abs, lambda x: x],
}  # fmt: skip


def signature(known: Signatures, *args: Any, **kwargs: Any) -> Any:
    return known.of(args, kwargs).signature


@pytest.mark.parametrize("name", APART)
@pytest.mark.parametrize("place", ["argument", "keyword", "in a list", "in a dict"])
def test_arguments_that_need_programs_of_their_own(name: str, place: str):
    known, x = Signatures(), torch.ones(3)
    found = [
        {
            "argument": lambda v: signature(known, x, v),
            "keyword": lambda v: signature(known, x, v=v),
            "in a list": lambda v: signature(known, [x, v]),
            "in a dict": lambda v: signature(known, {"x": x, "v": v}),
        }[place](value)
        for value in APART[name]
    ]
    for (i, a), (k, b) in itertools.combinations(enumerate(found), 2):
        assert a != b, f"{APART[name][i]!r} and {APART[name][k]!r} share a program"
    assert len({*found}) == len(found)


@pytest.mark.parametrize("name", [name for name in APART if name != "functions"])
def test_equal_arguments_share_a_program(name: str):
    known, x = Signatures(), torch.ones(3)
    for value in APART[name]:
        assert signature(known, x, value) == signature(known, torch.zeros(3), copy.deepcopy(value))


def test_tensors_that_are_one_tell_calls_apart():
    known, tensors = Signatures(), [torch.ones(2) for _ in range(3)]
    which = [(0, 1, 2), (0, 0, 1), (0, 1, 0), (0, 1, 1), (0, 0, 0)]  # all ways in which three may be fewer
    found = [signature(known, *(tensors[k] for k in places)) for places in which]
    assert len({*found}) == len(which)
    assert found[0] == signature(known, *(torch.ones(2) for _ in range(3)))
