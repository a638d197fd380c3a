"""Checkpoints move between PyTorch and eager: each reads what the other writes, and training goes on."""

from __future__ import annotations

import base64
import gzip
import io
import math
import pickle
import subprocess
import sys
import warnings
import zipfile
import zlib
from collections import Counter, OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eager
import graphc
from eager.checkpoints.pickle_globals import ALLOWED
from graphc.errors import CaptureError, FileError
from tests.oracle import asked_of_torch, torch_or_skip
from tests.readers.checkpoints import with_pickle

# {"w": float32 [[0, 1, 2], [3, 4, 5]], "t": its transpose, "b": bfloat16 [1.5]; all in one OrderedDict} as PyTorch 2.13
# wrote it, compressed
ZIP = (
    "eNqllT1v00AYx8926gQX0rS8JC3QDSmIktp5cRqgpFjgxQMhFVLUxXIcU1u4cc+5tAIJKQi1EoIBvgDiWzAh8RXK0ImNAZhYGbmzW9d2lKbQk8"
    "+nxPf7P3/fPc+5oTAJAFIpMNQyYAZorm5aW8ZiR0NaYfOpLUtpsBZpA1rXHds2dGQ53R730O0YrtG5b+mIg+B6E1L5FoXFtiGtIwerFdQ+suwe"
    "p7pGu2/ZHRUZ3Z7jqltFDjL5fCuJJ/fwTG3dgAkf4WTb0dCq/ycHJzxBHrItBo/6Zh8mFRbB1CMFKLTC7MIzCqNQu5B7bRIDkwiebcJzHoRg2s"
    "RBzIQ5YbKmh00RjFHoXZhRKEJP+9gMgueb8IKHteFFHzvwI3mGBDGwdMmbJsAs1qQQzBFNagfOktucr3cZwStNeLVfaCjJ1OcXN/YFjJDeGLkB"
    "WcAFG1B44rgbGlK3DLeHF1qW2IN9EIjep9/fXhEHpI/WmwPVI72DNVY121rvbhhdJEul2NaeqIllYqC+DX/ROAR9rIFpUA8MtJ8hwyHJIku3/y"
    "fuYbMthGyDeNhZ/j7L4ijssR7S4G4kqxd5Wbp1CgO+6qCObyv4wn2A+8cV4ij77sf7HH6QG+NoIepIkKX8iR19qZNIb38+uDN+/afAvSBSkEjL"
    "p1n9tbUSR+LvfVh/PD7+PCgeJaD3qj3DtXAGPtfI6aFaHVkq/KMdviIKAr9UKZZEoSZW+UqxVuartWqZL1WrtXKpssRXBLEoEpdvrq3O5rGPvO"
    "eSImYDn+GSzAw5j5+DcTpcgNkI+ZICo4o4LhIuormIyF5YZKhy4zrhQpiO6DRpMFyAcTyctekIvk+DWO3E2XAeRlmTibFCnA3n0FSE/RpiR6xd"
    "eGvno++cAGOSrqGw7MJhijI3AzIVGydpf/yT8EfMka8VYJL+b//0nWB9JuXN9+f+Bap9lgk="
)


def torch_bytes(torch: Any, value: Any, **options: Any) -> io.BytesIO:
    """A file object with what `torch.save` writes, at its start."""
    file = io.BytesIO()
    torch.save(value, file, **options)
    file.seek(0)
    return file


def shown(value: Any) -> Any:
    """What a value is, the same for both libraries: types, dtypes, shapes, strides, offsets, numbers."""
    if hasattr(value, "untyped_storage"):
        raw = value.detach()
        numbers = raw.tolist() if raw.numel() < 10_000 else raw.sum().item()
        return (type(value).__name__, str(value.dtype), tuple(value.shape), value.stride(), value.storage_offset(),
                value.untyped_storage().nbytes(), value.requires_grad, numbers)  # fmt: skip
    if isinstance(value, dict):
        attributes = sorted(vars(value)) if isinstance(value, OrderedDict) else []
        return type(value).__name__, [(shown(k), shown(v)) for k, v in value.items()], attributes
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [shown(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return type(value).__name__, sorted(map(repr, value))
    return type(value).__name__, str(value)


def _trained(t: Any, model: Any, *shape: int) -> Any:
    optimizer = t.optim.Adam(model.parameters(), lr=0.01)
    out = model(t.rand(*shape))
    (out[0] if isinstance(out, tuple) else out).square().sum().backward()
    optimizer.step()
    return {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3, "best": 0.5}


def _seeded(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def made(t: Any) -> Any:
        t.manual_seed(0)
        return make(t)

    return made


def _bilinear(t: Any) -> Any:
    class Model(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = t.nn.Bilinear(3, 3, 2)

        def forward(self, x: Any) -> Any:
            return self.inner(x, x)

    return Model()


def _tied(t: Any) -> Any:
    model = t.nn.ModuleDict({"embedding": t.nn.Embedding(5, 3), "head": t.nn.Linear(3, 5, bias=False)})
    model["head"].weight = model["embedding"].weight
    return model.state_dict()


def _views(t: Any) -> Any:
    x = t.arange(24.0).reshape(2, 3, 4)
    return {"all": x, "part": x[1, :, 2], "turned": x.permute(2, 0, 1), "wide": x[0, 0, :1].expand(3), "again": x}


def _dtypes(t: Any) -> Any:
    names = "float64 float32 float16 bfloat16 int64 int32 int16 int8 uint8 bool complex64 complex128"
    return {name: t.tensor([0, 1, 1]).to(getattr(t, name)) for name in names.split()}


def _swa(t: Any) -> Any:
    average = t.optim.swa_utils.AveragedModel(t.nn.Linear(2, 2))
    average.update_parameters(t.nn.Linear(2, 2))
    return average.state_dict()


def _scheduled(t: Any) -> Any:
    model = t.nn.Linear(2, 2)
    optimizer = t.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    schedule = t.optim.lr_scheduler.OneCycleLR(optimizer, 0.2, 10)
    model(t.ones(1, 2)).sum().backward()
    optimizer.step()
    schedule.step()
    return [model.state_dict(), optimizer.state_dict(), schedule.state_dict()]


# what both libraries can save: state dicts of models of many kinds, and nests around them
CHECKPOINTS: dict[str, Callable[[Any], Any]] = {
    "linear": lambda t: t.nn.Linear(3, 2).state_dict(),
    "convolutions": lambda t: _trained(t, t.nn.Sequential(t.nn.Conv2d(1, 4, 3), t.nn.BatchNorm2d(4)), 2, 1, 8, 8),
    "transposed convolution": lambda t: t.nn.ConvTranspose3d(2, 4, 3, groups=2).state_dict(),
    "lstm": lambda t: _trained(t, t.nn.LSTM(3, 4, 2, bidirectional=True, proj_size=2), 5, 1, 3),
    "gru cell": lambda t: t.nn.GRUCell(3, 4).state_dict(),
    "transformer": lambda t: _trained(t, t.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), 1, 3, 4),
    "attention": lambda t: t.nn.MultiheadAttention(4, 2, add_bias_kv=True, kdim=3, vdim=5).state_dict(),
    "embedding bag": lambda t: t.nn.EmbeddingBag(10, 3).state_dict(),
    "norms": lambda t: t.nn.ModuleList([t.nn.LayerNorm(3), t.nn.GroupNorm(2, 4), t.nn.RMSNorm(3)]).state_dict(),
    "running": lambda t: t.nn.ModuleList([t.nn.InstanceNorm1d(3, track_running_stats=True)]).state_dict(),
    "bilinear": lambda t: _trained(t, _bilinear(t), 2, 3),
    "encoder and decoder": lambda t: t.nn.Transformer(4, 2, 1, 1, 8).state_dict(),
    "parameters": lambda t: [t.nn.Parameter(t.ones(2)), t.nn.Parameter(t.arange(2), requires_grad=False)],
    "parameter list": lambda t: t.nn.ParameterList([t.ones(2), t.zeros(3)]).state_dict(),
    "tied": _tied,
    "views": _views,
    "dtypes": _dtypes,
    "unsigned": lambda t: {name: t.tensor([0, 1]).to(getattr(t, name)) for name in ("uint16", "uint32", "uint64")},
    "empty and scalar": lambda t: {"none": t.zeros(0, 3), "one": t.tensor(7), "flag": t.tensor(True), 3: t.ones(())},
    "average": _swa,
    "schedule": _scheduled,
    "double": lambda t: t.nn.Linear(2, 2, dtype=t.float64).state_dict(),
    "half": lambda t: t.nn.Sequential(t.nn.Linear(2, 2), t.nn.PReLU()).to(t.bfloat16).state_dict(),
    "channels last": lambda t: t.rand(2, 3, 4, 5).to(memory_format=t.channels_last),
    "leaf": lambda t: [t.ones(2, requires_grad=True), t.ones(2, requires_grad=True) * 2],
    "random": lambda t: {"rng": t.get_rng_state(), "seed": t.initial_seed()},
    "plain": lambda t: {
        "none": None, "yes": True, "real": math.inf,
        "whole": [0, -1, 255, 256, 65536, -(2**31), 2**31, 2**63, -(2**200)],
        "complex": 1 - 2j, "text": ["", "é\n\0", "\ud800", "a" * 300], "bytes": [b"\x00\xff", bytearray(b"x")],
        "tuples": [(), (1,), (1, 2), (1, 2, 3), (1, 2, 3, (4,))], "set": {1, 2}, "size": t.Size([2, 3]),
        "dtype": t.bfloat16, "device": [t.device("cpu"), t.device("cuda", 1)], "ordered": OrderedDict(b=1, a=2),
    },
}  # fmt: skip
UNREAD = {("unsigned", "legacy")}  # files of PyTorch that it does not read itself
FORMATS: dict[str, dict[str, Any]] = {"zip": {}, "legacy": {"_use_new_zipfile_serialization": False}}


@pytest.mark.parametrize("form", FORMATS)
@asked_of_torch("name", CHECKPOINTS)
def test_a_checkpoint_is_the_same_in_the_other_library(name: str, form: str):
    torch, make = torch_or_skip(), _seeded(CHECKPOINTS[name])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs, ours = make(torch), make(eager)
    theirs_file, ours_file = torch_bytes(torch, theirs, **FORMATS[form]), torch_bytes(eager, ours, **FORMATS[form])
    found = [shown(eager.load(theirs_file)), shown(eager.load(ours_file))]
    assert found == [shown(theirs), shown(ours)]
    if (name, form) not in UNREAD:
        theirs_file.seek(0), ours_file.seek(0)
        assert found == [shown(torch.load(file, weights_only=True)) for file in (theirs_file, ours_file)]


def test_a_file_that_pytorch_wrote_is_read():
    """Recorded, so that it holds where PyTorch is not installed."""
    found = eager.load(io.BytesIO(zlib.decompress(base64.b64decode(ZIP))))
    assert list(found) == ["w", "t", "b"] and found["b"].dtype is eager.bfloat16
    assert found["w"].tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]] and found["b"].tolist() == [1.5]
    found["w"][0, 1] = 9
    assert found["t"][1, 0].item() == 9 and found["t"].stride() == (1, 3)


@asked_of_torch("name", ["views", "tied"])
def test_what_shares_memory_shares_it_in_the_other_library(name: str):
    torch = torch_or_skip()
    for source, target in ((torch, eager), (eager, torch)):
        found = target.load(torch_bytes(source, CHECKPOINTS[name](source)), weights_only=True)
        tensors = list(found.values())
        assert len({t.untyped_storage().data_ptr() for t in tensors}) == 1
        tensors[0].fill_(3)
        assert all((t == 3).all().item() for t in tensors)
        assert name == "tied" or found["all"] is found["again"]


# --- state dicts have PyTorch's keys

ARGUMENTS: list[Callable[[Any], tuple[Any, ...]]] = [
    lambda t: (), lambda t: (4,), lambda t: (6, 3), lambda t: (2, 4), lambda t: (4, 2, 3), lambda t: (4, 2, 3, 2),
    lambda t: (4, 2, 2, 2, 2), lambda t: (4, [2, 3, 4]), lambda t: (4, 6, [2, 4]),
    lambda t: (t.nn.TransformerEncoderLayer(4, 2, 8), 2),
]  # fmt: skip


def _layers(t: Any) -> set[str]:
    return {n for n in dir(t.nn) if isinstance(c := getattr(t.nn, n), type) and issubclass(c, t.nn.Module)}


def _state(t: Any, name: str) -> Any:
    """Keys, dtypes and shapes of a layer's state, and what else goes with it; for the first arguments that it takes."""
    for k, arguments in enumerate(ARGUMENTS):
        try:
            layer = getattr(t.nn, name)(*arguments(t))
        except (TypeError, ValueError, AttributeError, RuntimeError, AssertionError, NotImplementedError):
            continue
        state = layer.state_dict()
        lazy = {key for key, v in state.items() if "Uninitialized" in type(v).__name__}
        entries = [(k, None if k in lazy else (str(v.dtype), tuple(v.shape))) for k, v in state.items()]
        return k, entries, dict(state._metadata)
    return None


def test_every_layer_has_the_state_that_it_has_in_pytorch():
    torch = torch_or_skip()
    found: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in sorted(_layers(torch) & _layers(eager)):
            found[name] = _state(eager, name), _state(torch, name)
    assert {name: pair for name, pair in found.items() if pair[0] != pair[1]} == {}
    assert len(found) > 150 and sum(bool(pair[0] and pair[0][1]) for pair in found.values()) > 40


# --- training goes on in the other library

OPTIMIZERS: dict[str, dict[str, Any]] = {
    "SGD": {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}, "Adam": {"amsgrad": True}, "AdamW": {},
    "RMSprop": {"centered": True, "momentum": 0.5}, "Adagrad": {"lr_decay": 0.1}, "Adadelta": {}, "NAdam": {},
    "RAdam": {}, "Adamax": {}, "ASGD": {}, "Rprop": {}, "Adafactor": {}, "LBFGS": {"max_iter": 3},
}  # fmt: skip


def _training(t: Any, name: str) -> tuple[Any, Any, Any, Callable[[], list[float]]]:
    t.manual_seed(1)
    model = t.nn.Sequential(t.nn.Linear(3, 4), t.nn.Tanh(), t.nn.Linear(4, 1)).to(t.float64)
    optimizer = getattr(t.optim, name)(model.parameters(), lr=0.05, **OPTIMIZERS[name])
    schedule = t.optim.lr_scheduler.CosineAnnealingLR(optimizer, 8)
    x = t.linspace(-1, 1, 12, dtype=t.float64).reshape(4, 3)

    def loss() -> Any:
        optimizer.zero_grad()
        value = (model(x) - x.sum(1, keepdim=True).sin()).square().mean()
        value.backward()
        return value

    def train() -> list[float]:
        found = [float(optimizer.step(loss)) for _ in range(3) if schedule.step() is None]
        return [*found, *optimizer.param_groups[0]["params"][0].detach().ravel().tolist()]

    return model, optimizer, schedule, train


@pytest.mark.parametrize("direction", ["to eager", "to torch"])
@asked_of_torch("name", OPTIMIZERS)
def test_training_goes_on_in_the_other_library(name: str, direction: str, tmp_path: Path):
    torch = torch_or_skip()
    first, second = (torch, eager) if direction == "to eager" else (eager, torch)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of schedules that step first
        *parts, train = _training(first, name)
        train()
        first.save([part.state_dict() for part in parts], tmp_path / "c.pt")
        expected = train()
        *parts, train = _training(second, name)
        for part, state in zip(parts, second.load(tmp_path / "c.pt", weights_only=True), strict=True):
            part.load_state_dict(state)
        np.testing.assert_allclose(train(), expected, rtol=1e-9, atol=1e-12)


# --- options and errors


def test_a_location_is_mapped_as_in_pytorch(tmp_path: Path):
    torch, path = torch_or_skip(), tmp_path / "c.pt"
    torch.save([torch.ones(2), torch.zeros(3)], path)
    for t in (torch, eager):
        seen: list[Any] = []

        def where(storage: Any, location: str, seen: list[Any] = seen) -> Any:
            seen.append((type(storage).__name__, len(storage), location))
            return storage if len(seen) == 1 else None

        for location in (where, "cpu", t.device("cpu"), {"cpu": "cpu"}, {"cuda:0": "cpu"}, {}):
            assert [x.tolist() for x in t.load(path, map_location=location)] == [[1, 1], [0, 0, 0]]
        assert seen == [("UntypedStorage", 8, "cpu"), ("UntypedStorage", 12, "cpu")]

        def raises(storage: Any, location: str) -> Any:
            raise KeyError("mine")

        with pytest.raises(KeyError, match="mine"):
            t.load(path, map_location=raises)
        for location, error in (("nowhere", RuntimeError), ({"cpu": "nowhere"}, RuntimeError), (3, TypeError)):
            with pytest.raises(error):
                t.load(path, map_location=location)


def test_what_was_on_a_gpu_comes_to_the_cpu_if_it_is_asked_to(tmp_path: Path):
    with zipfile.ZipFile(torch_bytes(eager, eager.ones(2))) as old, zipfile.ZipFile(tmp_path / "c.pt", "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name).replace(b"\x03\0\0\0cpu", b"\x06\0\0\0cuda:0"))
    with pytest.raises(RuntimeError, match="Attempting to deserialize object on a CUDA device"):
        eager.load(tmp_path / "c.pt")
    for location in ("cpu", {"cuda:0": "cpu"}, lambda storage, location: storage):
        assert eager.load(tmp_path / "c.pt", map_location=location).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("form", ["x.pt", "x.safetensors"])
def test_mapped_tensors_have_memory_of_their_own_to_be_saved_again(form: str, tmp_path: Path):
    value = {
        "a": eager.ones(5),
        "b": eager.zeros(3, dtype=eager.int64),
        "flag": eager.tensor([True]),
        "0": eager.zeros(0),
    }
    eager.save(value, tmp_path / form)
    found = eager.load(tmp_path / form, mmap=True)
    found["a"][0] = 5
    eager.save(found, tmp_path / "again.pt")
    assert eager.load(tmp_path / "again.pt")["a"].tolist() == [5, 1, 1, 1, 1]
    assert eager.load(tmp_path / form)["a"].tolist() == [1] * 5
    assert (tmp_path / "again.pt").stat().st_size < 2000


def test_files_follow_each_other_in_the_format_of_before(tmp_path: Path):
    with open(tmp_path / "c.pt", "wb") as file:
        for k in range(3):
            eager.save({"k": k, "x": eager.full((k,), k)}, file, _use_new_zipfile_serialization=False)
    with open(tmp_path / "c.pt", "rb") as file:
        assert [eager.load(file)["x"].tolist() for _ in range(3)] == [[], [1], [2, 2]]
    with pytest.raises(RuntimeError, match="mmap can only be used with files saved"):
        eager.load(tmp_path / "c.pt", mmap=True)


def test_conjugates_and_attributes():
    torch = torch_or_skip()
    z = torch.tensor([1 + 2j, 3 - 1j])
    tagged = torch.nn.Parameter(torch.ones(2))
    tagged.note = 1
    for options in FORMATS.values():
        assert eager.load(torch_bytes(torch, z.conj(), **options)).tolist() == z.conj().tolist()
        found = eager.load(torch_bytes(torch, tagged, **options))
        assert found.tolist() == [1, 1] and found.note == 1


@pytest.mark.parametrize("library", ["eager", "torch"])
def test_memory_of_two_dtypes_is_refused_as_in_pytorch(library: str):
    t = eager if library == "eager" else torch_or_skip()
    x = t.ones(4)
    with pytest.raises(RuntimeError, match="Cannot save multiple tensors or storages that view the same data as diff"):
        t.save([x, x.view(t.int32)], io.BytesIO())


def test_the_order_of_bytes_is_that_of_the_file():
    file, value = io.BytesIO(), [eager.arange(3), eager.tensor([1 + 2j])]
    with zipfile.ZipFile(torch_bytes(eager, value)) as old, zipfile.ZipFile(file, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name.endswith("byteorder"):
                data = b"big"
            elif "/data/" in name:
                data = np.frombuffer(data, "i8" if name.endswith("0") else "f4").byteswap().tobytes()
            new.writestr(name, data)
    file.seek(0)
    whole, complex_ = eager.load(file)
    assert whole.tolist() == [0, 1, 2] and complex_.tolist() == [1 + 2j]


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_every_protocol_of_pickle_is_read(protocol: int):
    value = [{"a": (1, 2.5, None)}, {3}, frozenset({4}), b"x" * 300, bytearray(b"y"), "t" * 70_000, 2**3000, True]
    head = [pickle.dumps(n, protocol) for n in (0x1950A86A20F9469CFC6C, 1001, {})]
    assert eager.load(io.BytesIO(b"".join([*head, pickle.dumps(value, protocol), pickle.dumps([], protocol)]))) == value


@pytest.mark.parametrize("name", ["run:3.pt", "...", ".pt", "a\\b.pt", "ü 1.pt", "none", "line\n.pt"])
def test_files_of_strange_names(name: str, tmp_path: Path):
    torch = torch_or_skip()
    torch.save(torch.ones(2), tmp_path / f"theirs{name}")
    eager.save(eager.ones(2), tmp_path / name)
    for path in (tmp_path / name, tmp_path / f"theirs{name}"):
        assert eager.load(path).tolist() == torch.load(path).tolist() == [1.0, 1.0]


def test_files_that_can_only_be_written_to(tmp_path: Path):
    pieces: list[bytes] = []

    class Sink:
        def write(self, data: Any) -> int:
            pieces.append(bytes(data))
            return len(pieces[-1])

    eager.save({"x": eager.ones(2)}, Sink())
    with gzip.open(tmp_path / "x.pt.gz", "wb") as file:
        eager.save({"x": eager.ones(2)}, file)
    with gzip.open(tmp_path / "x.pt.gz") as file:
        data = file.read()
    assert data == b"".join(pieces)
    for prefix in (b"", b"before"):
        file = io.BytesIO(prefix + data)
        file.seek(len(prefix))
        assert eager.load(file)["x"].tolist() == [1.0, 1.0]


def test_what_is_saved_can_be_loaded_however_much_it_repeats_itself():
    for length in (1, 30, 33, 1000):
        value = [b"%c" % (k % 7) * length for k in range(20_000)]
        assert eager.load(torch_bytes(eager, value)) == value


def test_a_counter_is_set_and_not_counted():
    found = eager.load(io.BytesIO(with_pickle(b"\x80\x02ccollections\nCounter\n}\x85R" + b"K\1K\5s(K\2K\7u.")))
    assert found == Counter({1: 5, 2: 7})


KILLED = """
import os, sys
import eager
import graphc
from eager import serialization
left = int(sys.argv[2])
class File:
    def __init__(self, name, mode): self.file = open(name, mode, buffering=0)
    def __enter__(self): return self
    def __exit__(self, *error): self.file.close()
    def write(self, data):
        global left
        left -= 1
        if left < 0:
            self.file.write(bytes(data)[:5])
            os._exit(9)
        return self.file.write(data)
serialization.open = File
eager.save({"x": eager.zeros(1000)}, sys.argv[1])
"""


@pytest.mark.parametrize("writes", [0, 3, 8])
def test_a_process_that_is_killed_while_it_saves_leaves_the_old_file(writes: int, tmp_path: Path):
    path = tmp_path / "x.pt"
    eager.save({"x": eager.ones(1)}, path)
    command = [sys.executable, "-c", KILLED, str(path), str(writes)]
    assert subprocess.run(command, cwd=Path(__file__).parents[2], check=False).returncode == 9
    assert eager.load(path)["x"].tolist() == [1.0]


def test_what_a_compiled_function_saves_is_what_it_has_computed():
    written: list[io.BytesIO] = []

    def program(x: Any) -> Any:
        written.append(torch_bytes(eager, x * 2))
        return x + 1

    with pytest.raises(CaptureError, match="values of a traced tensor"):
        graphc.trace(program, eager.ones(2))
    compiled = graphc.compile(program)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is compiled for each value that is saved
        assert [compiled(eager.full((2,), k)).tolist() for k in (1.0, 3.0)] == [[2.0, 2.0], [4.0, 4.0]]
    assert [eager.load(file).tolist() for file in written] == [[2.0, 2.0], [6.0, 6.0]]


def test_every_name_in_the_table_is_one_of_pytorch_or_python():
    torch = torch_or_skip()
    for name in ALLOWED:
        module, _, attribute = name.replace("torch.tensor._", "torch._tensor._").rpartition(".")
        module = {"builtins": "builtins", "torch.cuda": "torch"}.get(module, module)
        if attribute != "xrange":
            __import__(module)
            assert hasattr(sys.modules[module], attribute), name
    assert torch


@pytest.mark.parametrize(
    ("action", "error", "message"),
    [
        (lambda p: eager.load(p / "none.pt"), FileNotFoundError, "No such file or directory"),
        (lambda p: eager.load(p), IsADirectoryError, "Is a directory"),
        (lambda p: eager.save(1, p / "none" / "x.pt"), RuntimeError, "Parent directory .* does not exist"),
        (lambda p: eager.save(1, p), OSError, "Is a directory"),
        (lambda p: eager.load(io.BytesIO(b"no tensors")), RuntimeError, "Invalid magic number; corrupt file"),
        (lambda p: eager.load(io.BytesIO(b"PK\3\4")), RuntimeError, "failed finding central directory"),
        (lambda p: eager.load(io.BytesIO(b"")), EOFError, "empty"),
        (lambda p: eager.load(p / "x.pt", pickle_module=pickle), RuntimeError, "Can not safely load weights when expl"),
        (lambda p: eager.load(io.BytesIO(pickle.dumps(print))), pickle.UnpicklingError,
         "Weights only load failed.*Unsupported global: GLOBAL print was not an allowed global by default"),
        (lambda p: eager.load(io.BytesIO(pickle.dumps(print)), weights_only=False), RuntimeError,
         "Invalid magic number; corrupt file"),
    ],
)  # fmt: skip
def test_errors(action: Callable[[Path], Any], error: type[Exception], message: str, tmp_path: Path):
    with pytest.raises(error, match=message) as caught:
        action(tmp_path)
    assert not isinstance(caught.value, pickle.UnpicklingError) or isinstance(caught.value, FileError)
