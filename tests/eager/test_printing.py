"""Tensors print as PyTorch's do, to the character."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from eager import random
from eager.engine.language import E
from eager.surface import printing
from graphc.ops.stand_in import StandIn
from tests.depth import one_in
from tests.eager.tensors import leaf, tensor
from tests.oracle import asked_of_torch, torch_or_skip

SHAPES = ((), (1,), (30,), (200,), (1001,), (2, 3), (3, 0), (0,), (40, 40), (2, 3, 4), (2, 2, 2, 300), (1001, 1))
OPTIONS: dict[str, dict[str, Any]] = {
    "default": {"profile": "default"},
    "short": {"profile": "short"},
    "full": {"profile": "full"},
    "narrow": {"precision": 2, "linewidth": 40},
    "scientific": {"sci_mode": True},
    "fixed": {"sci_mode": False},
    "edges": {"edgeitems": 1, "threshold": 5},
    "no edges": {"edgeitems": 0, "threshold": 3},
}


@pytest.fixture(autouse=True)
def default_options() -> Iterator[None]:
    yield
    printing.set_printoptions(profile="default")


def arrays(rng: np.random.Generator, shape: tuple[int, ...]) -> Iterator[np.ndarray]:
    normal = rng.standard_normal(shape)
    floats = [
        normal, normal * 1e6, normal * 1e-6, normal * 10.0 ** rng.uniform(-8, 8, shape), np.round(normal * 10),
        np.round(normal * 1e9), np.where(rng.random(shape) < 0.3, np.nan, normal),
        np.where(rng.random(shape) < 0.3, np.inf, np.round(normal * 5)), np.full(shape, np.nan), -np.zeros(shape),
    ]  # fmt: skip
    for values in floats:
        for dtype in (np.float32, np.float64, np.float16):
            yield np.asarray(values).astype(dtype)
    for dtype in (np.int64, np.int32, np.uint8, np.bool_):
        yield np.asarray(normal * 100).astype(dtype)
    for dtype in (np.complex64, np.complex128):
        yield np.asarray(normal + 1j * rng.standard_normal(shape)).astype(dtype)


@asked_of_torch("options", OPTIONS.values(), ids=list(OPTIONS))
@asked_of_torch("shape", one_in(3, SHAPES))
def test_text_is_pytorchs(shape: tuple[int, ...], options: dict[str, Any], rng: np.random.Generator):
    torch = torch_or_skip()
    printing.set_printoptions(profile="default")
    printing.set_printoptions(**options)
    torch.set_printoptions(profile="default")
    torch.set_printoptions(**options)
    try:
        for array in arrays(rng, shape):
            assert repr(tensor(array)) == repr(torch.from_numpy(array))
            if array.dtype.kind == "f":
                assert repr(leaf(array)) == repr(torch.from_numpy(array).requires_grad_())
    finally:
        torch.set_printoptions(profile="default")


def test_text_without_a_witness():
    assert repr(tensor([1.5, -2.25], np.float32)) == "tensor([ 1.5000, -2.2500])"
    assert repr(tensor([[1, 2], [3, 4]], np.int64)) == "tensor([[1, 2],\n        [3, 4]])"
    assert repr(tensor([1.0], np.float64)) == "tensor([1.], dtype=torch.float64)"
    assert repr(tensor(np.zeros((0, 3), np.float32))) == "tensor([], size=(0, 3))"
    assert repr(leaf([1.0], np.float32)) == "tensor([1.], requires_grad=True)"


def test_the_node_is_named():
    x = leaf([1.0, 2.0], np.float32)
    assert repr(E.mul(x, x)) == "tensor([1., 4.], grad_fn=<MulBackward0>)"


def test_options_are_restored():
    with printing.printoptions(precision=1):
        assert repr(tensor([0.25], np.float32)) == "tensor([0.2])"
    assert printing.get_printoptions() == {
        "precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80, "sci_mode": None
    }  # fmt: skip


def test_a_traced_tensor_shows_its_type_without_its_values():
    class Symbol(StandIn):
        shape, dtype, captured = (3, 4), np.dtype(np.float32), True

    t = tensor([0.0])
    t._d = Symbol()
    assert printing.tensor_text(t) == "tensor(<f32[3,4] traced>)"


def test_a_generator_state_prints():
    random.manual_seed(0)
    assert repr(random.get_rng_state()).endswith("dtype=torch.uint8)")
