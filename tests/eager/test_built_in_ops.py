"""`torch.ops.aten`, and other names that libraries for PyTorch take from its inside."""

from __future__ import annotations

import pytest

import eager as torch
from eager.distributions.utils import _standard_normal
from eager.utils.checkpoint import get_device_states, set_device_states

X = torch.tensor([-1.0, 2.0])


def test_functions_methods_and_layers_have_ops():
    aten = torch.ops.aten
    assert aten.add(X, 1).tolist() == aten.add.Tensor(X, 1).tolist() == [0, 3]
    assert aten.clone.default(X).tolist() == [-1, 2]
    assert aten.leaky_relu(X, 0.5).tolist() == [-0.5, 2]
    assert aten.add is torch.ops.aten.add and aten.add.Tensor is aten.add.Tensor is not aten.add.Scalar
    assert repr(aten.add.Tensor) == "<OpOverload(op='aten.add.Tensor')>"
    with pytest.raises(AttributeError, match="'_OpNamespace' 'aten' object has no attribute 'nosuch'"):
        _ = aten.nosuch


def test_a_tensor_on_the_cpu_has_no_state_of_a_device():
    assert get_device_states([X], 3) == ([], [])
    set_device_states(*get_device_states(X))


def test_standard_normal_numbers():
    torch.manual_seed(0)
    found = _standard_normal((2,), dtype=torch.float64, device="cpu")
    torch.manual_seed(0)
    assert torch.equal(found, torch.randn(2, dtype=torch.float64))
