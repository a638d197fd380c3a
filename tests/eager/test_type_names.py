"""Types print with PyTorch's names, wherever their files are here; `pickle` finds them under their own."""

from __future__ import annotations

import importlib
import pickle
from importlib.util import find_spec
from typing import Any

import pytest

import eager
from eager.core import homes
from tests.oracle import torch_or_skip

PRINTED = {
    "t.ones(1)": "<class 'torch.Tensor'>",
    "t.nn.Parameter(t.ones(1))": "<class 'torch.nn.parameter.Parameter'>",
    "t.Size([1])": "<class 'torch.Size'>",
    "t.float32": "<class 'torch.dtype'>",
    "t.device('cpu')": "<class 'torch.device'>",
}
NAMED = {
    "t.nn.Linear(1, 1)": "torch.nn.modules.linear.Linear",
    "t.nn.LSTMCell(1, 1)": "torch.nn.modules.rnn.LSTMCell",
    "t.optim.lr_scheduler.StepLR": "torch.optim.lr_scheduler.StepLR",
    "t.ones(1, dtype=t.int64)": "torch.LongTensor",
    "t.no_grad": "torch.autograd.grad_mode.no_grad",
    "[]": "list",
}


class Own(eager.Tensor):
    """A user's class."""


def test_types_print_as_pytorchs():
    for value, expected in PRINTED.items():
        kind: Any = type(eval(value, {"t": eager}))
        assert repr(kind) == expected and pickle.loads(pickle.dumps(kind)) is kind
        assert not find_spec("torch") or repr(type(eval(value, {"t": torch_or_skip()}))) == expected
    assert repr(Own) == f"<class '{__name__}.Own'>" and type(eager.Tensor).__module__ == "eager.core.overriding"


def test_messages_name_types_as_pytorchs():
    for value, expected in NAMED.items():
        assert eager.typename(eval(value, {"t": eager})) == expected
    with pytest.raises(TypeError, match=r"torch\.optim\.sgd\.SGD is not a Module subclass"):
        eager.nn.Sequential(eager.optim.SGD([eager.nn.Parameter(eager.ones(1))], 0.1))  # type: ignore[arg-type]


def test_every_home_is_there_and_pytorch_has_it():
    for (module, name), (there, again) in homes.rows():
        assert name == again and homes.found(there, name) is homes.found(module, name)
    torch_or_skip()
    for _, (there, name) in homes.rows():
        assert hasattr(importlib.import_module(there), name), (there, name)
