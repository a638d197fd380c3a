"""Factories take PyTorch's keywords, and `tensor` infers PyTorch's dtypes."""

from __future__ import annotations

from collections import UserList
from typing import Any, NamedTuple

import numpy as np
import pytest

import eager
from tests.oracle import asked_of_torch, torch_or_skip


class Unknown:
    """No data, with the same name in every process."""

    def __repr__(self) -> str:
        return "Unknown()"


CALLS: dict[str, tuple[Any, ...]] = {
    "zeros": (2, 3), "ones": ((2, 3),), "empty": (0, 2), "full": ((2,), 3), "eye": (2, 3), "arange": (1, 7, 2),
    "linspace": (0, 6, 4), "logspace": (0, 2, 3),
}  # fmt: skip
DTYPES = ("float16", "bfloat16", "float32", "float64", "int8", "uint8", "int32", "int64", "bool", "complex64")


@asked_of_torch("dtype", DTYPES)
@asked_of_torch("name", CALLS)
def test_factories_in_every_dtype(name: str, dtype: str):
    torch = torch_or_skip()
    try:
        expected = getattr(torch, name)(*CALLS[name], dtype=getattr(torch, dtype))
    except (RuntimeError, NotImplementedError):
        return
    found = getattr(eager, name)(*CALLS[name], dtype=getattr(eager, dtype))
    assert found.dtype.name == dtype and found.shape == tuple(expected.shape)
    np.testing.assert_allclose(found.tolist(), expected.tolist(), rtol=0 if name != "logspace" else 1e-6)


@pytest.mark.parametrize("name", CALLS)
def test_keywords(name: str):
    make = getattr(eager, name)
    wanted = {"dtype": eager.float32, "device": "cpu", "layout": eager.strided, "pin_memory": False}
    assert make(*CALLS[name], **wanted, requires_grad=True).requires_grad
    out = eager.empty(0)
    assert make(*CALLS[name], out=out) is out
    assert repr(out) == repr(make(*CALLS[name], dtype=eager.float32))
    with pytest.raises(RuntimeError, match="Only Tensors of floating point"):
        make(*CALLS[name], dtype=eager.int64, requires_grad=True)
    with pytest.raises(RuntimeError, match="pin_memory=True requires"):
        make(*CALLS[name], pin_memory=True)
    several = rf"{name}\(\) received an invalid combination of arguments - got \(.*layout=str\)"  # as PyTorch's
    with pytest.raises(TypeError, match=rf"{name}\(\): argument 'layout' must be torch.layout, not str|{several}"):
        make(*CALLS[name], layout="dense")


DATA: list[Any] = [
    0, 1.5, True, 1j, [], [[]], [[], []], [1, 2.0], [True, 1], [True, 1.0, 1j], [1, 2j], ((1, 2), (3, 4)), range(3),
    np.float64(2), np.int16(2), [np.int8(1), np.float32(2)], [np.float16(1), 2], [1, np.float64(2)], np.arange(4)[::2],
    np.ones((2, 0)), [np.ones(2), np.zeros(2)], [[1, 2], np.array([3, 4])], np.array(3), [2**40, 1], [-(2**63)],
    np.ones(2, np.uint16), [float("nan"), float("inf")], [[True], [False]], (1.0,), [np.bool_(True), False],
]  # fmt: skip
WRONG: list[Any] = [
    "a", ["a"], [["a", "b"]], None, [None], [1, None], {}, Unknown(), [[1], [1, 2]], [[1, 2], 3], [1, [2]],
    [[[1]], [2]], 2**70, [2**64], [2**63], {1, 2}, [1, "a"], [[1, 2], "ab"], np.array(["a"]), [Unknown()],
]  # fmt: skip


@np.errstate(all="ignore")
def outcome(lib: Any, data: Any, **options: Any) -> str:
    try:
        t = lib.tensor(data, **options)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return f"{t!r} {t.dtype}"


@asked_of_torch("data", [*DATA, *WRONG], ids=repr)
@pytest.mark.filterwarnings("ignore")
def test_data_becomes_pytorchs_tensor(data: Any):
    assert outcome(eager, data) == outcome(torch_or_skip(), data)


@asked_of_torch("dtype", ["float32", "float64", "int32", "uint8", "bool", "complex64", "bfloat16"])
@asked_of_torch("data", [[1, 2], [1.7, -2.7], [True], [-1], [300], [1e10], [], 5, [1 + 2j]], ids=repr)
def test_data_in_a_dtype(data: Any, dtype: str):
    torch = torch_or_skip()
    assert outcome(eager, data, dtype=getattr(eager, dtype)) == outcome(torch, data, dtype=getattr(torch, dtype))


@asked_of_torch("offset", [-2, -1, 0, 1, 3])
@asked_of_torch("shape", [(3, 3), (2, 4), (4, 2), (0, 3), (1, 1)])
@asked_of_torch("name", ["tril_indices", "triu_indices"])
def test_indices_of_triangles(name: str, shape: tuple[int, int], offset: int):
    torch = torch_or_skip()
    assert repr(getattr(eager, name)(*shape, offset)) == repr(getattr(torch, name)(*shape, offset))


@asked_of_torch("base", [(2, 3, 4), (4, 1, 3), (2, 2)])
def test_like_keeps_the_order_of_dims(base: tuple[int, ...]):
    torch = torch_or_skip()
    orders = [tuple(range(len(base))), tuple(reversed(range(len(base)))), (1, 0, *range(2, len(base)))]
    for order in orders:
        ours, theirs = (lib.zeros(base).permute(order) for lib in (eager, torch))
        for make in (lambda lib, t: lib.empty_like(t), lambda lib, t: t.clone()):
            found, expected = make(eager, ours), make(torch, theirs)
            for n, own, their in zip(found.shape, found.stride(), expected.stride(), strict=True):
                assert n == 1 or own == their


class Numbers(list[Any]):
    """A user's list."""


class Pair(NamedTuple):
    """A user's tuple."""

    a: Any
    b: Any


SEQUENCES = {
    "t.ones(2, 3).shape": [2, 3], "[t.ones(2, 3).size(), (1, 1)]": [[2, 3], [1, 1]], "(t.Size([]),)": [[]],
    "Pair(1, 2.0)": [1.0, 2.0], "[Pair(1, 2), [3, 4]]": [[1, 2], [3, 4]], "Numbers([1, 2])": [1, 2], "Numbers()": [],
    "[Numbers([True]), Numbers([2])]": [[1], [2]], "range(3)": [0, 1, 2],
    "[range(2), [3, 4.0]]": [[0.0, 1.0], [3.0, 4.0]],
    "[[], Numbers()]": [[], []], "Pair(t.ones(()), 2)": [1.0, 2.0], "UserList([1, 2])": [1, 2],
}  # fmt: skip


@pytest.mark.parametrize("data", SEQUENCES)
def test_sequences_of_any_class_are_data(data: str):
    space = {"Pair": Pair, "Numbers": Numbers, "UserList": UserList}
    assert eval(f"t.tensor({data})", {**space, "t": eager}).tolist() == SEQUENCES[data]
    for made in ("t.tensor({})", "t.as_tensor({}, dtype=t.float64)", "t.ones(1).new_tensor({})"):
        found, expected = (repr(eval(made.format(data), {**space, "t": t})) for t in (eager, torch_or_skip()))
        assert found == expected, made
