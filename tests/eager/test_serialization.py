"""Files: what comes back is what was saved, loading runs no code, and a failure leaves the old file in place."""

from __future__ import annotations

import io
import json
import pickle
import subprocess
import sys
import threading
from collections import Counter, OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eager as torch
from eager import serialization
from graphc.errors import MissingExtraError

numpy_files = pytest.importorskip("safetensors.numpy", reason="the extra 'safetensors' is not installed")


@pytest.fixture(params=["zip", "legacy", "safetensors"])
def again(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """What comes back of a value, in each format that keeps all kinds of values."""
    path = tmp_path / ("x.safetensors" if request.param == "safetensors" else "x.pt")

    def loaded(value: Any) -> Any:
        torch.save(value, path, _use_new_zipfile_serialization=request.param != "legacy")
        return torch.load(path)

    return loaded


def saved(value: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(value, buffer)
    return buffer.getvalue()


PLAIN = [
    None, True, 0, -7, 2**53, -(2**80), 0.1, float("inf"), -0.0, 1e-320, 2 - 3j, "", "ü\n", b"\x00\xff", (),
    (1, (2, 3)), [], [[1], 2.0], {}, {"a": 1, 2: "b", (1, 2): None, None: 3.5, True: 0}, {1, 2}, frozenset({"x"}),
    slice(1, None, 2), range(3, 9, 2), torch.Size([2, 3]), torch.float16, torch.bool, torch.device("cpu"),
    OrderedDict(b=1, a=2), Counter("aab"),
]  # fmt: skip


@pytest.mark.parametrize("value", PLAIN, ids=repr)
def test_plain_values(value: Any, again: Any):
    found = again({"v": value})["v"]
    assert found == value and type(found) is type(value)
    assert repr(found) == repr(value)


def test_nan_and_numpy(again: Any):
    assert np.isnan(again(float("nan")))
    scalar = again(np.float32(1.5))
    assert scalar == 1.5 and type(scalar) is np.float32
    array = np.arange(6, dtype=np.uint16).reshape(2, 3).T
    found = again(array)
    np.testing.assert_array_equal(found, array)
    assert found.dtype == array.dtype and type(found) is np.ndarray


def test_every_dtype_and_the_bits_of_every_number(again: Any):
    for dtype in (torch.float16, torch.float32, torch.float64, torch.complex64, torch.complex128, torch.uint8,
                  torch.int8, torch.int16, torch.int32, torch.int64, torch.bool):  # fmt: skip
        t = torch.tensor([0, 1, 1]).to(dtype)
        assert again(t).dtype is dtype and again(t).tolist() == t.tolist()
    bits = torch.from_numpy(np.array([0x7FC00001, 0x80000000, 0x00000001], np.uint32).view(np.float32))
    assert again(bits).numpy().tobytes() == bits.numpy().tobytes()


def test_a_process_that_has_seen_no_brain_floats_reads_them(tmp_path: Path):
    file = tmp_path / "brain.pt"
    torch.save({"dtype": torch.bfloat16, "tensor": torch.tensor([1.5, -2.0], dtype=torch.bfloat16)}, file)
    code = f"import eager as torch; print(torch.load({str(file)!r}))"
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    expected = "{'dtype': torch.bfloat16, 'tensor': tensor([ 1.5000, -2.0000], dtype=torch.bfloat16)}"
    assert done.stdout.strip() == expected


def test_memory_is_shared_as_before_and_with_nothing_else(again: Any):
    x = torch.zeros(3, 4)
    shared = again({"all": x, "row": x[1], "column": x[:, 2], "again": x, "alone": torch.zeros(2)})
    shared["row"][2] = 5.0
    assert shared["all"][1, 2].item() == 5.0 and shared["column"][1].item() == 5.0
    assert shared["again"] is shared["all"]
    assert x.tolist() == torch.zeros(3, 4).tolist()
    assert shared["column"].stride() == (4,)


def test_a_view_brings_its_base_as_in_pytorch_but_not_into_safetensors(tmp_path: Path):
    x = torch.zeros(10_000)[10:20]
    found = torch.load(io.BytesIO(saved(x)))
    assert found.storage_offset() == 10 and found.untyped_storage().nbytes() == 40_000
    assert len(saved(x.clone())) < 1200
    torch.save(x, tmp_path / "x.safetensors")
    assert (tmp_path / "x.safetensors").stat().st_size < 1000


def test_containers_are_one_object_again_even_inside_themselves(again: Any):
    inner = [1]
    found = again({"a": inner, "b": [inner, inner]})
    assert found["a"] is found["b"][0] is found["b"][1]
    loop: dict[str, Any] = {}
    loop["self"] = [loop]
    assert (found := again(loop))["self"][0] is found


def test_parameters_and_gradient_flags(again: Any):
    p = torch.nn.Parameter(torch.ones(2))
    frozen = torch.nn.Parameter(torch.ones(2), requires_grad=False)
    leaf = torch.ones(2, requires_grad=True)
    found = again([p, frozen, leaf, leaf * 2])
    assert [type(t).__name__ for t in found] == ["Parameter", "Parameter", "Tensor", "Tensor"]
    assert [t.requires_grad for t in found] == [True, False, True, True]
    assert all(t.is_leaf for t in found)
    (found[0] * found[2]).sum().backward()
    assert found[0].grad.tolist() == [1.0, 1.0]


def test_loaded_tensors_can_be_written_with_gradients_recorded(again: Any):
    x = again(torch.zeros(3))
    w = torch.ones(3, requires_grad=True)
    x += w * 2
    x[0] = 0
    x.sum().backward()
    assert w.grad is not None and w.grad.tolist() == [0.0, 2.0, 2.0]


def test_generators_continue(again: Any):
    g = torch.Generator().manual_seed(3)
    torch.rand(5, generator=g)
    assert torch.rand(4, generator=again(g)).tolist() == torch.rand(4, generator=g).tolist()


def test_a_model_and_its_optimizer_continue(tmp_path: Path):
    def make() -> tuple[Any, Any]:
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1))
        return model, torch.optim.Adam(model.parameters(), lr=0.1, amsgrad=True)

    def train(model: Any, optimizer: Any) -> list[float]:
        losses = []
        for k in range(3):
            optimizer.zero_grad()
            loss = model(torch.arange(6.0).reshape(2, 3) + k).square().sum()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    model, optimizer = make()
    train(model, optimizer)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, tmp_path / "c.pt")
    expected = train(model, optimizer)
    model, optimizer = make()
    saved = torch.load(str(tmp_path / "c.pt"))
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    assert train(model, optimizer) == expected


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({"a": [1, object()]}, r"obj\['a'\]\[1\]"),
        ([lambda: 1], r"obj\[0\]"),
        ({"x": {"net": torch.nn.Linear(1, 1)}}, r"(?s)obj\['x'\]\['net'\].*save `obj\['x'\]\['net'\].state_dict\(\)`"),
        ({(1, object): 2}, r"obj\[\(1, <class 'object'>\)\] \(the key\)\[1\]"),
        (np.array(["text"]), r"ndarray of <U4.*at obj"),
        (threading.Lock(), "lock.*at obj"),
    ],
)
def test_what_cannot_be_saved_is_named_before_the_file_is_touched(value: Any, place: str, tmp_path: Path):
    path = tmp_path / "kept.safetensors"
    torch.save(1, path)
    with pytest.raises(TypeError, match=place):
        torch.save({"first": torch.ones(1), "then": value}["then"], path)
    assert torch.load(path) == 1
    assert [p.name for p in tmp_path.iterdir()] == ["kept.safetensors"]


@pytest.mark.parametrize("name", ["kept.pt", "kept.safetensors", "kept.npz"])
def test_a_failure_while_writing_leaves_the_old_file(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / name
    torch.save({"x": torch.ones(1)}, path)
    monkeypatch.setattr(serialization, "open", FullDisk, raising=False)
    with pytest.raises(OSError, match="disk full"):
        torch.save({"x": torch.zeros(1000)}, path)
    monkeypatch.undo()
    assert torch.load(path)["x"].tolist() == [1.0]
    assert [p.name for p in tmp_path.iterdir()] == [name]


class FullDisk:
    """A file that takes 20 bytes."""

    def __init__(self, name: str, mode: str):
        self._file = open(name, mode)  # noqa: SIM115
        self._left = 20

    def __enter__(self) -> FullDisk:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def write(self, data: bytes) -> int:
        self._left -= len(data)
        if self._left < 0:
            raise OSError("disk full")
        return self._file.write(data)


def test_files_of_others_are_dicts_of_tensors(tmp_path: Path):
    arrays = {"w.0": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.array([1, 2], np.int64)}
    numpy_files.save_file(arrays, tmp_path / "theirs.safetensors", {"format": "np"})
    for mmap in (False, True):
        found = torch.load(tmp_path / "theirs.safetensors", mmap=mmap)
        assert {k: v.tolist() for k, v in found.items()} == {k: v.tolist() for k, v in arrays.items()}


def test_others_find_the_tensors_under_their_paths(tmp_path: Path):
    torch.save({"model": torch.nn.Linear(2, 1).state_dict(), "steps": [torch.ones(2), 3]}, tmp_path / "x.safetensors")
    found = numpy_files.load_file(tmp_path / "x.safetensors")
    assert {name: array.shape for name, array in found.items()} == {
        "model.weight": (1, 2), "model.bias": (1,), "steps.0": (2,)
    }  # fmt: skip


def test_arrays_of_numpy_are_written_and_read(tmp_path: Path):
    path = tmp_path / "x.npz"
    arrays = {"a": torch.arange(6.0).reshape(2, 3), "b": np.array([True, False]), "c": torch.ones(2, dtype=torch.int8)}
    torch.save(arrays, path)
    with np.load(path) as found:
        assert {name: found[name].tolist() for name in found} == {name: a.tolist() for name, a in arrays.items()}
    np.savez(
        path, f=np.asfortranarray(np.arange(6).reshape(2, 3)), big=np.arange(3, dtype=">i4"), none=np.zeros((0, 2))
    )
    found = torch.load(path)
    assert found["f"].tolist() == [[0, 1, 2], [3, 4, 5]] and found["f"].stride() == (1, 2)
    assert found["big"].tolist() == [0, 1, 2] and found["big"].dtype is torch.int32 and found["none"].shape == (0, 2)
    for value in ([1], {"a": 1}, {1: torch.ones(1)}, {"a": np.array([object()])}):
        with pytest.raises(TypeError, match=r"a \.npz file holds a dict of tensors"):
            torch.save(value, path)
    np.savez(path, o=np.array([Bomb()], dtype=object))
    with pytest.raises(RuntimeError, match=r"x\.npz' cannot be loaded: o.npy: it is no array"):
        torch.load(path)
    assert not Bomb.went_off


def test_mapped_tensors_are_written_in_memory_only(tmp_path: Path):
    path = tmp_path / "x.pt"
    torch.save(torch.zeros(1000), path)
    mapped = torch.load(path, mmap=True)
    mapped[0] = 1.0
    assert mapped[0].item() == 1.0 and torch.load(path)[0].item() == 0.0


class Bomb:
    """Sets a flag when it is unpickled."""

    went_off = False

    def __reduce__(self):
        return setattr, (Bomb, "went_off", True)


def test_pickles_are_refused_and_not_run():
    for weights_only in (None, True):
        with pytest.raises(pickle.UnpicklingError, match=r"Weights only load failed.*GLOBAL setattr was not an"):
            torch.load(io.BytesIO(pickle.dumps(Bomb())), weights_only=weights_only)
    with pytest.raises(RuntimeError, match="failed finding central directory"):
        torch.load(io.BytesIO(b"PK\x03\x04 a zip"))
    assert not Bomb.went_off


def file_with(description: Any) -> io.BytesIO:
    metadata = {"graphc": json.dumps({"version": 1, "object": description})}
    return io.BytesIO(numpy_files.save({"t": np.zeros(4, np.float32)}, metadata))


@pytest.mark.parametrize(
    "description",
    [
        {}, {"magic": 1}, {"again": 0}, {"again": 3}, {"tensor": {"dtype": "float32", "in": "u"}, "grad": False},
        {"tensor": {"dtype": "float99", "in": "t"}, "grad": False}, {"tensor": {"in": "t"}, "grad": False},
        {"tensor": {"dtype": "float32", "in": "t", "shape": [9], "strides": [4], "offset": 0}, "grad": False},
        {"tensor": {"dtype": "float32", "in": "t", "shape": [2], "strides": [4], "offset": -8}, "grad": False},
        {"tensor": {"dtype": "float32", "in": "t", "shape": [2], "strides": [-4], "offset": 4}, "grad": False},
        {"tuple": 3}, {"dict": [1]}, {"complex": ["x"]}, {"dtype": "os.system"}, {"set": [{"list": []}]},
    ],
)  # fmt: skip
def test_damaged_descriptions_are_errors(description: Any):
    with pytest.raises(RuntimeError, match="damaged"):
        torch.load(file_with(description))


@pytest.mark.parametrize("cut", [5, 40, -1])
def test_damaged_files_are_errors(cut: int, tmp_path: Path):
    buffer = io.BytesIO()
    torch.save({"x": torch.ones(100)}, buffer)
    (tmp_path / "x.pt").write_bytes(buffer.getvalue()[:cut])
    for mmap in (False, True):
        with pytest.raises(RuntimeError, match=r"x\.pt' cannot be loaded"):
            torch.load(tmp_path / "x.pt", mmap=mmap)


def test_a_newer_version_is_an_error():
    metadata = {"graphc": json.dumps({"version": 99, "object": 1})}
    with pytest.raises(RuntimeError, match="version 99"):
        torch.load(io.BytesIO(numpy_files.save({"t": np.zeros(1)}, metadata)))


def test_an_absent_library_is_named_with_its_extra_and_not_needed_for_loading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "x.safetensors"
    torch.save(7, path)
    monkeypatch.setitem(sys.modules, "safetensors", None)
    monkeypatch.setitem(sys.modules, "safetensors.numpy", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'graphc\[safetensors\]'"):
        torch.save(1, path)
    assert torch.load(path) == 7
