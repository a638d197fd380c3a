"""Whole objects in `.pt` files: modules, optimizers and users' classes, by `pickle`, if the reader is trusted."""

from __future__ import annotations

import argparse
import collections
import datetime
import enum
import functools
import importlib
import io
import pickle
import threading
import zipfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import eager
from graphc.errors import WeightsError
from tests.oracle import torch_or_skip

LAYERS = (
    "Linear(2, 3)", "Bilinear(2, 3, 4)", "Conv1d(2, 4, 3)", "Conv2d(2, 4, 3, padding='same')",
    "Conv2d(2, 4, 3, padding_mode='reflect', padding=1)", "ConvTranspose2d(2, 4, 3)", "AvgPool1d(2)", "MaxPool2d(2)",
    "BatchNorm2d(3)", "BatchNorm1d(3, affine=False)", "InstanceNorm1d(3, affine=True)", "GroupNorm(2, 4)",
    "LSTM(2, 3, num_layers=2, bidirectional=True)", "LSTM(2, 4, proj_size=2)", "GRU(2, 3)", "RNN(2, 3)",
    "LSTMCell(2, 3)", "Embedding(3, 4, padding_idx=0)", "EmbeddingBag(3, 4)", "Transformer(4, 2, 1, 1, 8)",
    "TransformerEncoderLayer(4, 2, 8, activation='gelu')", "MultiheadAttention(4, 2, kdim=3, vdim=5)", "Flatten()",
    "Upsample(scale_factor=2)", "PixelShuffle(2)", "Fold(2, 2)", "CosineSimilarity()", "PairwiseDistance()", "PReLU()",
    "CrossEntropyLoss(torch.ones(3))", "Sequential(Linear(1, 1), ReLU())", "ModuleDict({'a': Linear(1, 1)})",
    "ParameterList([torch.ones(2)])", "ParameterDict({'a': torch.ones(2)})", "Softmax(1)", "LazyLinear(3)",
    "AdaptiveLogSoftmaxWithLoss(4, 10, [3])",
)  # fmt: skip

LIBRARIES = [eager, *([importlib.import_module("torch")] if find_spec("torch") else [])]


def through(value: Any, save: Any = eager.save, load: Any = eager.load, **options: Any) -> Any:
    """`value`, written by one and read by the other."""
    file = io.BytesIO()
    save(value, file, **options)
    file.seek(0)
    return load(file, weights_only=False)


def made(library: Any, expression: str) -> Any:
    names = {name: getattr(library.nn, name) for name in dir(library.nn)}
    return eval(expression, {**names, "torch": library})


def state(module: Any) -> dict[str, Any]:
    found = {
        name: value.tolist() for name, value in module.state_dict().items() if "Uninit" not in type(value).__name__
    }
    return {"repr": repr(module), "training": module.training, **found}


@pytest.mark.parametrize("expression", LAYERS)
def test_modules_cross_over_and_back(expression: str):
    ours = made(eager, expression).eval()
    assert state(through(ours)) == state(ours)
    assert state(through(ours, _use_new_zipfile_serialization=False)) == state(ours)
    library = torch_or_skip()
    theirs = through(ours, load=library.load)
    assert isinstance(theirs, library.nn.Module) and state(theirs) == state(ours)
    again = through(theirs, save=library.save)
    assert type(again) is type(ours) and state(again) == state(ours)
    assert again.__dict__.keys() >= ours.__dict__.keys()


def test_modules_run_after_crossing():
    library = torch_or_skip()
    for expression, shape in (
        ("Sequential(Conv2d(2, 4, 3, padding_mode='reflect', padding=1), BatchNorm2d(4), Flatten())", (2, 2, 5, 5)),
        ("LSTM(2, 3, num_layers=2, bidirectional=True)", (4, 1, 2)),
        ("TransformerEncoderLayer(4, 2, 8, activation='gelu')", (3, 1, 4)),
        ("TransformerEncoder(TransformerEncoderLayer(4, 2, 8, batch_first=True), 1)", (3, 1, 4)),
    ):  # fmt: skip
        theirs = made(library, expression).eval()
        ours = through(theirs, save=library.save)
        back = through(ours, load=library.load)
        x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
        found = [m(lib.from_numpy(x)) for m, lib in ((theirs, library), (ours, eager), (back, library))]
        found = [(y[0] if isinstance(y, tuple) else y).detach().numpy() for y in found]
        np.testing.assert_allclose(found[1], found[0], atol=1e-5)
        np.testing.assert_array_equal(found[2], found[0])
    buffer = "Linear(1, 1)"
    one = made(eager, buffer)
    one.register_buffer("left_out", eager.ones(1), persistent=False)
    there = through(one, load=library.load)
    assert "left_out" not in there.state_dict() and there.left_out.item() == 1


def doubled(module: Any, args: Any, output: Any = None) -> Any:
    """A hook."""
    return output * 2


def passed(module: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """A hook that takes keywords."""
    return (args[0] + 1,), kwargs


def noted(module: Any, state_dict: dict[str, Any], *rest: Any) -> None:
    """A hook of loading, which takes the module."""
    module.noted = len(state_dict)


def test_hooks_stay():
    for save, first, load, second in (
        (eager.save, eager, eager.load, eager),
        *((a.save, a, b.load, b) for lib in LIBRARIES[1:] for a, b in ((eager, lib), (lib, eager))),
    ):
        model = first.nn.Identity()
        model.register_forward_hook(doubled)
        model.register_forward_pre_hook(passed, with_kwargs=True)
        if first is eager:
            model.register_load_state_dict_pre_hook(noted)
        other = through(model, save=save, load=load)
        assert other(second.ones(2)).tolist() == [4, 4]
        other.load_state_dict({})
        assert first is not eager or other.noted == 0
        other.register_forward_hook(doubled)
        assert other(second.ones(2)).tolist() == [8, 8]


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "NAdam", "LBFGS", "Adafactor"])
def test_optimizers_and_schedules_go_on(name: str):
    def step(library: Any, model: Any, optimizer: Any, schedule: Any) -> None:
        def closure() -> Any:
            optimizer.zero_grad()
            loss = (model(library.ones(1, 2)) ** 2).sum()
            loss.backward()
            return loss

        optimizer.step(closure)
        schedule.step()

    def pair(library: Any) -> list[Any]:
        model = library.nn.Linear(2, 1)
        optimizer = getattr(library.optim, name)(model.parameters(), lr=0.1)
        return [model, optimizer, library.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)]

    for first in LIBRARIES:
        for second in LIBRARIES if first is eager else [eager]:
            parts = pair(first)
            step(first, *parts)
            others = through(parts, save=first.save, load=second.load)
            assert others[1].param_groups[0]["params"][0] is others[0].weight and others[2].optimizer is others[1]
            step(first, *parts)
            step(second, *others)
            np.testing.assert_allclose(
                others[0].weight.detach().numpy(), parts[0].weight.detach().numpy(), rtol=1e-4, atol=1e-6
            )
            assert others[2].get_last_lr() == parts[2].get_last_lr() == [0.025]


class Colour(enum.Enum):
    """A user's enumeration."""

    RED = 1


class Point(NamedTuple):
    """A user's tuple."""

    x: Any
    y: int


class Settings:
    """A user's class, with slots besides its attributes."""

    __slots__ = ("__dict__", "slot")
    me: Any
    pair: Any

    def __init__(self, **keywords: Any):
        self.__dict__.update(keywords)
        self.slot = 7

    def method(self) -> int:
        """A method that is kept."""
        return self.slot

    class Inner:
        """A class in a class."""


class Words(dict[str, Any]):
    """A dict with attributes."""

    note: Any


class Marked(eager.Tensor):
    """A tensor of a user's class."""

    note: str


class Picky:
    """Made anew with keywords."""

    size: int

    def __new__(cls, *, size: int):
        made = super().__new__(cls)
        made.size = size
        return made

    def __getnewargs_ex__(self) -> Any:
        return (), {"size": self.size}


class Net(eager.nn.Module):
    """A user's module, which keeps a class and a function."""

    def __init__(self):
        super().__init__()
        self.norm_layer, self.act, self.raw = eager.nn.BatchNorm1d, eager.nn.functional.gelu, eager.tanh
        self.block = eager.nn.Linear(2, 2)
        self.tied = self.block.weight
        self.config = argparse.Namespace(lr=0.1, sizes=[1, 2])


def test_users_objects():
    loop = Settings(a=1)
    loop.me, loop.pair = loop, (loop, [loop])
    words = Words(a=1)
    words.note = loop
    tensor, marked = eager.arange(4.0), Marked([0.0, 1.0, 2.0, 3.0])
    marked.note = "x"
    value = {
        "args": argparse.Namespace(lr=0.1, path=Path("x"), when=datetime.date(2020, 1, 2)), "loop": loop,
        "kinds": [Colour.RED, Point(tensor, 2), Settings.Inner, len, Path, type(None), ..., NotImplemented],
        "words": words, "objects": np.array([{"a": 1}, None], dtype=object), "time": np.datetime64("2020-01-01"),
        "rows": np.zeros(2, [("a", "i4"), ("b", "f8")]), "default": collections.defaultdict(list, a=[1]),
        "queue": collections.deque([1, 2], 5), "method": loop.method, "partial": functools.partial(int, base=2),
        "picky": Picky(size=3), "net": Net(), "marked": marked, "view": tensor[1:3],
        "all": tensor, "error": ValueError("x"), "generator": eager.Generator().manual_seed(3), "kind": eager.Tensor,
        "storage dtype": eager.float16, "many": [Settings(k=k) for k in range(300)],
    }  # fmt: skip
    found = through(value)
    assert found["args"] == value["args"] and found["loop"].me is found["loop"] and found["loop"].slot == 7
    assert found["loop"].pair[1][0] is found["loop"] is found["words"].note and found["words"] == {"a": 1}
    assert found["kinds"][0] is Colour.RED and found["kinds"][2:] == value["kinds"][2:]
    assert found["objects"].tolist() == [{"a": 1}, None] and found["time"] == value["time"]
    assert found["rows"].dtype == value["rows"].dtype and found["default"]["b"] == []
    assert found["queue"] == value["queue"] and found["queue"].maxlen == 5 and found["method"]() == 7
    assert found["partial"]("101") == 5 and found["picky"].size == 3 and found["error"].args == ("x",)
    assert (
        type(found["marked"]) is Marked and found["marked"].note == "x" and found["marked"].tolist() == tensor.tolist()
    )
    found["all"][1] = 50.0
    assert found["view"].tolist() == [50, 2] and found["kinds"][1].x is found["all"]
    net = found["net"]
    assert net.norm_layer is eager.nn.BatchNorm1d and net.act is eager.nn.functional.gelu and net.raw is eager.tanh
    assert net.tied is net.block.weight and found["kind"] is eager.Tensor and len(found["many"]) == 300
    assert eager.equal(
        eager.rand(2, generator=found["generator"]), eager.rand(2, generator=eager.Generator().manual_seed(3))
    )


def test_a_trained_run_continues_from_a_file(tmp_path: Path):
    net = Net()
    optimizer = eager.optim.Adam(net.parameters())
    eager.save({"net": net, "optimizer": optimizer, "epoch": 3}, tmp_path / "run.pt")
    with pytest.raises(
        WeightsError, match=r"Unsupported global: GLOBAL tests\.checkpoints\.test_objects\.Net was not an"
    ):
        eager.load(tmp_path / "run.pt")
    found = eager.load(tmp_path / "run.pt", weights_only=False, mmap=True, map_location="cpu")
    assert found["optimizer"].param_groups[0]["params"][0] is found["net"].block.weight and found["epoch"] == 3


class Bomb:
    """Notes that it has been unpickled."""

    went_off = 0

    def __reduce__(self) -> Any:
        return setattr, (Bomb, "went_off", Bomb.went_off + 1)


def test_code_runs_for_those_who_ask_only():
    file = io.BytesIO()
    eager.save([Bomb()], file)
    for weights_only in (None, True):
        file.seek(0)
        with pytest.raises(pickle.UnpicklingError, match="GLOBAL setattr was not an allowed global by default"):
            eager.load(file, weights_only=weights_only)
    assert Bomb.went_off == 0
    file.seek(0)
    eager.load(file, weights_only=False)
    assert Bomb.went_off == 1


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (lambda: 1, (pickle.PicklingError, AttributeError), "Can't pickle"),
        (threading.Lock(), TypeError, "cannot pickle '_thread.lock' object"),
        ((k for k in range(3)), TypeError, "cannot pickle 'generator' object"),
    ],
)
def test_what_pickle_refuses_is_refused_with_its_place(value: Any, error: Any, message: str, tmp_path: Path):
    path = tmp_path / "x.pt"
    path.write_bytes(b"before")
    with pytest.raises(error, match=message) as caught:
        eager.save({"a": [0, argparse.Namespace(x=value)]}, path)
    assert caught.value.__notes__[0] == "It is at obj['a'][1]['x'], the object that is to be saved."
    assert path.read_bytes() == b"before"


def test_other_picklers_read_too():
    seen: list[Any] = []

    class Module:
        class Unpickler(pickle.Unpickler):
            def __init__(self, file: Any, **keywords: Any):
                seen.append(keywords)
                super().__init__(file, **keywords)

    file = io.BytesIO()
    eager.save(Settings(a=1), file)
    file.seek(0)
    assert eager.load(file, pickle_module=Module, weights_only=False, encoding="latin1").a == 1
    assert seen == [{"encoding": "latin1"}]


def test_a_class_that_is_not_here_is_named():
    data = b"\x80\x02ctorch.nn.modules.linear\nLinearest\n)\x81."
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a/data.pkl", data)
    file.seek(0)
    with pytest.raises(
        AttributeError, match=r"Can't get attribute 'Linearest' on the module 'torch.nn.modules.linear'"
    ):
        eager.load(file, weights_only=False)


FORMS: dict[str, Callable[[Any], Any]] = {"pickle": lambda x: pickle.loads(pickle.dumps(x)), "torch.save": through}


@pytest.mark.parametrize("form", FORMS)
def test_modules_are_what_they_were_by_either_way(form: str):
    net = Net()
    net.register_forward_hook(doubled)
    net.forward = functools.partial(eager.add, eager.ones(1))
    del net.raw, net.act
    found = FORMS[form](net)
    assert found(eager.ones(1)).tolist() == [4] and found.__dict__.keys() == net.__dict__.keys()
