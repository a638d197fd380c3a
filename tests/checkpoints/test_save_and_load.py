"""What is saved comes back: any value, in any sharding, or an error that names what is wrong."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import zlib
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eager as torch
import eager.distributed.checkpoint as dcp
from eager.distributed.checkpoint import filesystem, format_utils, state_dict_saver
from eager.distributed.checkpoint.blocks import Region
from eager.distributed.checkpoint.index import INDEX
from eager.distributed.checkpoint.state_dict_loader import read_tree
from eager.distributed.checkpoint.state_dict_saver import shared
from tests.checkpoints.sharded import Sharded

ROOT = Path(__file__).resolve().parents[2]
DTYPES = [
    torch.float16, torch.float32, torch.float64, torch.bfloat16, torch.complex64, torch.complex128, torch.bool,
    torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
]  # fmt: skip


def read(folder: Path) -> Any:
    return read_tree(dcp.FileSystemReader(folder))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (5,), (3, 4), (2, 0, 3)], ids=str)
def test_tensors_come_back(tmp_path: Path, dtype: Any, shape: tuple[int, ...]) -> None:
    x = (torch.rand(shape) * 100).to(dtype)
    dcp.save({"x": x, "t": x.movedim(0, -1) if shape else x}, checkpoint_id=tmp_path)
    found = read(tmp_path)
    assert found["x"].dtype == dtype and found["x"].shape == x.shape
    assert torch.equal(found["x"], x) and torch.equal(found["t"], x.movedim(0, -1) if shape else x)
    target = {"x": torch.zeros(shape, dtype=dtype)}
    inside = target["x"]
    dcp.load(target, checkpoint_id=tmp_path)
    assert target["x"] is inside and torch.equal(inside, x)


VALUES: dict[str, Any] = {
    "int": 3, "large": 10**30, "float": 0.1, "inf": -math.inf, "none": None, "bool": True, "text": "äöü\n", "empty": {},
    "list": [1, "a", (2.5, None)], "tuple": (1, 2), "bytes": b"\0\xff", "complex": 1 - 2j, "dtype": torch.float16,
    "size": torch.Size([1, 2]), "set": {1, 2}, "scalar": np.float32(2.5), "deep": {"a": {"b": [{"c": 1}]}},
    "keys": {0: 1, (1, "x"): 2, None: 3}, "ordered": OrderedDict(b=1, a=2), "array": np.arange(6).reshape(2, 3),
    "mixed": [torch.ones(2), 5, {"x": (torch.zeros(1), "y")}], "empty list": [], "slice": slice(1, None),
}  # fmt: skip


def plain(value: Any) -> Any:
    """Types and values, for comparison."""
    if isinstance(value, (torch.Tensor, np.ndarray)):
        return (type(value), str(value.dtype), value.tolist())
    if isinstance(value, dict):
        return (type(value), [(plain(k), plain(v)) for k, v in value.items()])
    if isinstance(value, (list, tuple)):
        return (type(value), [*map(plain, value)])
    return (type(value), value)


def test_other_values_come_back(tmp_path: Path) -> None:
    dcp.save(VALUES, checkpoint_id=tmp_path)
    assert plain(read(tmp_path)) == plain(VALUES)
    generator = torch.Generator().manual_seed(4)
    dcp.save({"g": generator}, checkpoint_id=tmp_path)
    assert torch.equal(torch.rand(3, generator=read(tmp_path)["g"]), torch.rand(3, generator=generator))


def test_a_load_writes_into_what_is_there(tmp_path: Path) -> None:
    dcp.save(VALUES, checkpoint_id=tmp_path)
    array, inner, tensor = np.zeros((2, 3), np.float32), {"a": {"b": [{"c": 0}]}}, torch.zeros(2)
    state = {"array": array, "deep": inner, "mixed": [tensor, 0, {"x": (torch.ones(1), "")}], "text": ""}
    dcp.load(state, checkpoint_id=tmp_path)
    assert state["array"] is array and array.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert state["deep"] is inner and inner["a"]["b"][0]["c"] == 1
    assert state["mixed"][0] is tensor and tensor.tolist() == [1, 1]
    assert plain(state["mixed"]) == plain(VALUES["mixed"]) and state["text"] == VALUES["text"]


def test_modules_and_optimizers_are_asked_for_their_state(tmp_path: Path) -> None:
    def new() -> Any:
        model = torch.nn.Linear(3, 2)
        optimizer = torch.optim.Adam(model.parameters())
        model(torch.ones(3)).sum().backward()
        optimizer.step()
        return model, optimizer

    (model, optimizer), (other, other_optimizer) = new(), new()
    optimizer.step()
    dcp.save({"model": model, "optimizer": optimizer}, checkpoint_id=tmp_path)
    weight = other.weight
    dcp.load({"model": other, "optimizer": other_optimizer}, checkpoint_id=tmp_path)
    assert other.weight is weight and torch.equal(weight, model.weight)
    assert plain(optimizer.state_dict()) == plain(other_optimizer.state_dict())


def test_files_are_safetensors(tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors.numpy")
    dcp.save({"a": torch.arange(3.0), "b": {"c": torch.ones(2, dtype=torch.int8)}}, checkpoint_id=tmp_path)
    [file] = tmp_path.glob("*.safetensors")
    found = safetensors.load_file(file)
    assert {name: x.tolist() for name, x in found.items()} == {"a": [0, 1, 2], "b.c": [1, 1]}
    assert torch.load(file)["a"].tolist() == [0, 1, 2]


def test_a_file_of_torch_save_and_back(tmp_path: Path) -> None:
    state = {"model": {"w": torch.rand(3)}, "step": 3}
    torch.save(state, tmp_path / "a.pt")
    format_utils.torch_save_to_dcp(tmp_path / "a.pt", tmp_path / "folder")
    format_utils.dcp_to_torch_save(tmp_path / "folder", tmp_path / "b.pt")
    assert plain(torch.load(tmp_path / "b.pt")) == plain(state)


# --- ranks


def save_as(folder: Path, size: int, tree: Any, save_id: str = "a") -> list[Any]:
    """Save with `size` ranks, one after the other; `tree(rank)` is the state of each."""
    return [
        dcp.save(tree(rank), storage_writer=dcp.FileSystemWriter(folder, sync_files=False, **ranks, save_id=save_id))
        for rank in range(size) for ranks in [{"rank": rank, "world_size": size}]
    ]  # fmt: skip


@pytest.mark.parametrize("saved", [1, 2, 3, 5])
@pytest.mark.parametrize("loaded", [1, 2, 4, 7])
@pytest.mark.parametrize("rows", [1, 7, 12])
def test_another_number_of_ranks_loads_it(tmp_path: Path, saved: int, loaded: int, rows: int) -> None:
    x, y = torch.rand(rows, 3), torch.rand(4)
    save_as(tmp_path, saved, lambda rank: {"x": Sharded.part(x, rank, saved), "y": y, f"own{rank}": rank})
    found = read(tmp_path)
    assert torch.equal(found["x"], x) and torch.equal(found["y"], y)
    assert [found[f"own{rank}"] for rank in range(saved)] == list(range(saved))
    new = torch.zeros(rows, 3)
    for rank in range(loaded):
        state = {"x": Sharded.part(new, rank, loaded), "y": torch.zeros(4)}
        dcp.load(state, checkpoint_id=tmp_path)
        assert torch.equal(state["y"], y)
    assert torch.equal(new, x)


def test_a_checkpoint_is_none_before_the_last_rank(tmp_path: Path) -> None:
    x = torch.rand(4, 2)
    save_as(tmp_path, 1, lambda rank: {"x": torch.zeros(4, 2)}, "old")
    for rank in (1, 0, 2):
        assert torch.equal(read(tmp_path)["x"], torch.zeros(4, 2))
        writer = dcp.FileSystemWriter(tmp_path, rank=rank, world_size=3, save_id="new")
        dcp.save({"x": Sharded.part(x, rank, 3)}, storage_writer=writer)
    assert torch.equal(read(tmp_path)["x"], x)
    assert not list(tmp_path.glob("old*")) and not list(tmp_path.glob("new*.json"))


def test_a_second_save_of_the_same_run_leaves_the_first_until_it_is_whole(tmp_path: Path) -> None:
    save_as(tmp_path, 2, lambda rank: {f"x{rank}": torch.zeros(3)})
    writer = dcp.FileSystemWriter(tmp_path, rank=0, world_size=2, save_id="a")
    dcp.save({"x0": torch.ones(3)}, storage_writer=writer)
    dcp.FileSystemReader(tmp_path).verify()
    assert read(tmp_path)["x0"].tolist() == [0, 0, 0]


def test_ranks_that_disagree_or_lack_a_part_make_no_checkpoint(tmp_path: Path) -> None:
    x = torch.rand(4, 2)
    with pytest.raises(dcp.CheckpointException, match=r"disagree about x"):
        save_as(tmp_path / "a", 2, lambda rank: {"x": torch.zeros(3 + rank)})
    with pytest.raises(dcp.CheckpointException, match=r"the blocks of x hold 4 of its 8 elements"):
        save_as(tmp_path / "b", 2, lambda rank: {"x": Sharded.part(x, 0, 2)})
    with pytest.raises(dcp.CheckpointException, match=r"blocks of x overlap"):
        save_as(tmp_path / "c", 2, lambda rank: {"x": Sharded(x[:2], rank, x.shape)})
    assert not list(tmp_path.rglob(INDEX))


def test_copies_are_shared_among_the_ranks() -> None:
    a, b, c, d = ((name, Region((0,), (4,))) for name in "abcd")
    held = [{a: 10, b: 4, c: 4}, {a: 10, b: 4, c: 4, d: 5}]
    owners = shared(held)
    assert owners[d] == 1 and sorted(owners) == [a, b, c, d]
    load = [sum(size for key, size in held[rank].items() if owners[key] == rank) for rank in (0, 1)]
    assert load == [10, 13]


JAX = """
import sys, numpy as np, jax, jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
import eager.distributed.checkpoint as dcp
devices = np.array(jax.devices())
mesh = lambda *shape: Mesh(devices[:np.prod(shape)].reshape(shape), ("a", "b")[:len(shape)])
x = np.arange(16 * 24, dtype=np.float32).reshape(16, 24)
for k, (m, spec) in enumerate([(mesh(8), P("a")), (mesh(4, 2), P("b", "a")), (mesh(2, 2), P(None, "a")), (mesh(4), P()),
                               (mesh(2, 4), P(("b", "a")))]):
    saved = jax.device_put(jnp.asarray(x), NamedSharding(m, spec))
    sizes = dcp.save({"x": saved, "bf": saved.astype(jnp.bfloat16)}, checkpoint_id=sys.argv[1])
    chunks = sizes.state_dict_metadata["x"].chunks
    assert sum(int(np.prod(c.sizes)) for c in chunks) == x.size, chunks
    for m2, spec2 in [(mesh(8), P(None, "a")), (mesh(2, 4), P("a", "b")), (mesh(2), P()), (mesh(8), P("a"))]:
        like = jax.device_put(jnp.zeros((16, 24)), NamedSharding(m2, spec2))
        state = {"x": like, "bf": like.astype(jnp.bfloat16)}
        dcp.load(state, checkpoint_id=sys.argv[1])
        assert state["x"].sharding == like.sharding and (np.asarray(state["x"]) == x).all()
        assert state["bf"].dtype == jnp.bfloat16
        assert (np.asarray(state["bf"]) == np.asarray(saved.astype(jnp.bfloat16))).all()
try:
    dcp.load({"x": jnp.zeros((3, 3))}, checkpoint_id=sys.argv[1])
except dcp.CheckpointException as error:
    print(error)
"""


def test_arrays_of_jax_of_any_sharding(tmp_path: Path) -> None:
    settings = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-c", JAX, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, env=settings, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    expected = "Size mismatch between saved torch.Size([16, 24]) and current: torch.Size([3, 3]) for x"
    assert done.stdout.strip() == expected


# --- what is wrong


def test_what_does_not_fit_is_said_before_anything_is_changed(tmp_path: Path) -> None:
    dcp.save({"a": torch.ones(2), "b": torch.ones(3), "n": 1}, checkpoint_id=tmp_path)
    a = torch.zeros(2)
    for state, text in [
        ({"a": a, "c": 1}, "Missing key in checkpoint state_dict: c."),
        (
            {"a": a, "b": torch.zeros(4)},
            r"Size mismatch between saved torch.Size\(\[3\]\) and current: torch.Size\(\[4",
        ),
    ]:
        with pytest.raises(dcp.CheckpointException, match=text):
            dcp.load(state, checkpoint_id=tmp_path)
        assert a.tolist() == [0, 0]
    partial = {"a": a, "c": 5}
    dcp.load(partial, checkpoint_id=tmp_path, planner=dcp.DefaultLoadPlanner(allow_partial_load=True))
    assert a.tolist() == [1, 1] and partial["c"] == 5
    with pytest.raises(dcp.DamagedCheckpointError, match="no whole one has been saved"):
        dcp.load({}, checkpoint_id=tmp_path / "nowhere")
    with pytest.raises(RuntimeError, match="`checkpoint_id` must be specified if storage_reader is None"):
        dcp.load({})


def test_what_cannot_be_saved_is_said_before_anything_is_written(tmp_path: Path) -> None:
    dcp.save({"a": 1}, checkpoint_id=tmp_path)
    for state, error, text in [
        ({"a": {"f": print}}, TypeError, r"at a\.f"),
        ({"a.b": 1, "a": {"b": 2}}, ValueError, r"duplicated flatten key a\.b"),
        ({"a": np.array(["x"])}, TypeError, "cannot save a: arrays of <U1"),
        ({"a": {"x": {1, 2}, "y": frozenset([(np.float32(1),)])}}, TypeError, r"cannot save a\.y"),
    ]:
        with pytest.raises(error, match=text):
            dcp.save(state, checkpoint_id=tmp_path)
    assert read(tmp_path) == {"a": 1}
    with pytest.raises(RuntimeError, match="already exists"):
        dcp.save({"a": 2}, storage_writer=dcp.FileSystemWriter(tmp_path, overwrite=False))
    with pytest.raises(TypeError, match="planners of one's own"):
        dcp.save({}, checkpoint_id=tmp_path, planner=3)


def test_each_damaged_byte_is_found(tmp_path: Path) -> None:
    """All bits of the data and of the index; what a checksum covers is changed one bit at a time."""
    dcp.save({"a": torch.arange(3.0), "b": {"c": torch.ones(2, dtype=torch.int8)}, "n": 7}, checkpoint_id=tmp_path)
    [shard] = tmp_path.glob("*.safetensors")
    for file, start in ((shard, len(shard.read_bytes()) - 14), (tmp_path / INDEX, 0)):
        data = file.read_bytes()
        for at in range(start, len(data)):
            wrong = bytearray(data)
            wrong[at] ^= 1 << at % 8
            file.write_bytes(wrong)
            with pytest.raises(dcp.DamagedCheckpointError, match=file.name):
                dcp.FileSystemReader(tmp_path).verify()
        file.write_bytes(data[:-1])
        with pytest.raises(dcp.DamagedCheckpointError, match=file.name):
            read(tmp_path)
        file.unlink()
        with pytest.raises(dcp.DamagedCheckpointError, match="missing" if file == shard else "no whole one"):
            read(tmp_path)
        file.write_bytes(data)
    dcp.FileSystemReader(tmp_path).verify()


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c["entries"]["a"].update(shape=[2**40]), lambda c: c["entries"]["a"]["blocks"][0].update(at=10**9),
        lambda c: c["entries"]["a"]["blocks"][0].update(file="../../etc/passwd"), lambda c: c.update(save="../x"),
        lambda c: c["entries"]["a"]["blocks"][0].update(offsets=[5]),
        lambda c: c["entries"]["a"].update(dtype="object"),
        lambda c: c["entries"]["a"].update(path=[["list", {"again": 3}]]), lambda c: c["files"].clear(),
        lambda c: c["entries"].update(b=c["entries"]["a"]), lambda c: c["entries"]["a"].update(path=[]),
        lambda c: c["entries"]["a"].update(shape=[6], blocks=c["entries"]["a"]["blocks"] * 2),
        lambda c: c["entries"]["n"].update(value={"tensor": {"dtype": "float32", "in": "x"}, "grad": False}),
    ],
)  # fmt: skip
def test_an_index_made_to_harm_is_refused(tmp_path: Path, change: Any) -> None:
    """Also with a checksum that is right."""
    dcp.save({"a": torch.arange(3.0), "n": 1}, checkpoint_id=tmp_path)
    index = json.loads((tmp_path / INDEX).read_text())
    change(index["content"])
    index["crc32"] = zlib.crc32(json.dumps(index["content"], sort_keys=True).encode())
    (tmp_path / INDEX).write_text(json.dumps(index))
    with pytest.raises(RuntimeError):
        read(tmp_path)


# --- in the background


def test_values_may_change_as_soon_as_async_save_returns(tmp_path: Path) -> None:
    x = torch.arange(100_000.0)
    future = dcp.async_save({"x": x}, checkpoint_id=tmp_path)
    x.zero_()
    assert future.result().state_dict_metadata["x"].size == torch.Size([100_000])
    assert torch.equal(read(tmp_path)["x"], torch.arange(100_000.0))


def test_an_error_in_the_background_comes_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any) -> int:
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(filesystem, "_written", fail)
        future = dcp.async_save({"x": torch.ones(1)}, checkpoint_id=tmp_path)
        with pytest.raises(OSError, match="no space left"):
            future.result()
        dcp.async_save({"x": torch.ones(1)}, checkpoint_id=tmp_path)
        state_dict_saver._saves[-1].thread.join()
    with pytest.raises(dcp.CheckpointException, match="in the background"):
        dcp.save({"x": torch.ones(1)}, checkpoint_id=tmp_path)
    dcp.save({"x": torch.ones(1)}, checkpoint_id=tmp_path)
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".json", ".safetensors"]


def test_a_program_ends_when_its_last_checkpoint_is_written(tmp_path: Path) -> None:
    code = (
        "import sys, eager as torch, eager.distributed.checkpoint as dcp\n"
        "dcp.async_save({'x': torch.ones(2_000_000)}, checkpoint_id=sys.argv[1])\n"
        "if len(sys.argv) > 2:\n"
        "    from eager.distributed.checkpoint import state_dict_saver\n"
        "    def fail(): raise OSError('no space left')\n"
        "    state_dict_saver.wait(); state_dict_saver.started(fail)\n"
    )
    for more, text in (((), ""), (("fail",), "OSError: no space left")):
        command = [sys.executable, "-c", code, str(tmp_path), *more]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert text in done.stderr and bool(text) == bool(done.stderr)
        assert torch.equal(read(tmp_path)["x"], torch.ones(2_000_000))
