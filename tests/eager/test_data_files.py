"""Datasets in files, prefetching, the progress bar, and the order of DistributedSampler."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eager as torch
from eager.utils.data import (
    ArrayDataset,
    DataLoader,
    DistributedSampler,
    Prefetcher,
    TableDataset,
    TokenDataset,
    get_worker_info,
    progress,
)
from tests.oracle import asked_of_torch, torch_or_skip

ROOT = Path(__file__).resolve().parents[2]


def tokens(folder: Path, kind: str, count: int = 100) -> Path:
    path = folder / f"tokens{kind}"
    values = (np.arange(count) * 7 % 50_000).astype(np.uint16)
    np.save(path, values) if kind == ".npy" else values.tofile(path)
    return path


@pytest.mark.parametrize("kind", [".bin", ".npy"])
@pytest.mark.parametrize(("length", "stride"), [(8, None), (8, 1), (5, 3), (99, None), (100, None)])
def test_windows_of_tokens(tmp_path: Path, kind: str, length: int, stride: int | None) -> None:
    data = TokenDataset(tokens(tmp_path, kind), length, stride=stride)
    step, every = stride or length, [k * 7 % 50_000 for k in range(100)]
    starts = [s for s in range(0, 100, step) if s + length + 1 <= 100]
    assert len(data) == len(starts)
    for k, start in enumerate(starts):
        x, y = data[k]
        assert x.dtype == y.dtype == torch.int64
        assert x.tolist() == every[start : start + length] and y.tolist() == every[start + 1 : start + length + 1]
    for index in (len(starts), -len(starts) - 1):
        with pytest.raises(IndexError):
            data[index]
    if starts:
        assert data[-1][0].tolist() == data[len(starts) - 1][0].tolist()
        assert pickle.loads(pickle.dumps(data))[0][0].tolist() == data[0][0].tolist()


def test_workers_read_tokens_in_the_same_order(tmp_path: Path) -> None:
    data = TokenDataset(tokens(tmp_path, ".bin", 400), 8)
    for rank in range(2):
        expected: Any = None
        for workers in (0, 2):
            loader = DataLoader(data, 4, sampler=DistributedSampler(data, 2, rank), num_workers=workers)
            found = [x.tolist() for x, _ in loader]
            assert expected in (None, found)
            expected = found


def test_files_that_are_none_are_refused(tmp_path: Path) -> None:
    (tmp_path / "odd.bin").write_bytes(b"abc")
    np.save(tmp_path / "float.npy", np.ones(3))
    np.save(tmp_path / "matrix.npy", np.ones((3, 2), np.int64))
    np.save(tmp_path / "columns.npy", np.asfortranarray(np.ones((3, 2))))
    np.save(tmp_path / "objects.npy", np.array([print, 1], object))
    for call, error, text in [
        (lambda: TokenDataset(tmp_path / "odd.bin", 2), ValueError, "no whole number of elements of uint16"),
        (lambda: TokenDataset(tmp_path / "float.npy", 2), ValueError, "one row of integers"),
        (lambda: TokenDataset(tmp_path / "matrix.npy", 2), ValueError, "one row of integers"),
        (lambda: TokenDataset(tmp_path / "odd.bin", 0), ValueError, "should be positive"),
        (lambda: TokenDataset(tmp_path / "none.bin", 2), FileNotFoundError, "none.bin"),
        (lambda: ArrayDataset(tmp_path / "odd.bin"), ValueError, "no array file"),
        (lambda: ArrayDataset(tmp_path / "columns.npy"), ValueError, "stored in columns"),
        (lambda: ArrayDataset(tmp_path / "objects.npy"), ValueError, "no rows of numbers"),
        (lambda: ArrayDataset([tmp_path / "float.npy", tmp_path / "matrix.npy"]), ValueError, "has rows of"),
    ]:
        with pytest.raises(error, match=text):
            call()
    data = TokenDataset(tokens(tmp_path, ".bin"), 8)
    os.truncate(tmp_path / "tokens.bin", 100)
    with pytest.raises(ValueError, match="ends early"):
        data[-1]


def test_rows_of_arrays(tmp_path: Path) -> None:
    whole = np.random.default_rng(0).standard_normal((7, 2, 3)).astype(np.float32)
    np.save(tmp_path / "a.npy", whole[:4])
    np.save(tmp_path / "b.npy", whole[4:])
    data = ArrayDataset([tmp_path / "a.npy", tmp_path / "b.npy"])
    assert [row.tolist() for row in data] == whole.tolist() and len(data) == 7  # type: ignore[attr-defined]
    assert data[-1].tolist() == whole[-1].tolist()
    one = np.arange(5, dtype=np.int32)
    np.save(tmp_path / "c.npy", one)
    assert next(iter(DataLoader(ArrayDataset(tmp_path / "c.npy"), 5))).tolist() == one.tolist()


LARGE = """
import resource, sys
import eager as torch
from eager.utils.data import DataLoader, RandomSampler, TokenDataset
data = TokenDataset(sys.argv[1], 1024, stride=1)
assert len(data) > 4_000_000_000
loader = DataLoader(data, 8, sampler=RandomSampler(data, replacement=True, num_samples=4000))
next(iter(loader))
pages = int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + 2**26,) * 2)
assert data[len(data) - 1][1][-1] == 7 and data[0][0][0] == 0
print(sum(x.numel() for x, _ in loader))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc, and files with holes")
def test_a_large_file_takes_no_memory(tmp_path: Path) -> None:
    """8 GiB, of which 4,000 windows are read with 64 MiB of addresses to spare."""
    path = tmp_path / "large.bin"
    with open(path, "wb") as file:
        file.seek(2**33 - 2)
        file.write(b"\7\0")
    done = subprocess.run([sys.executable, "-c", LARGE, str(path)], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == 4000 * 1024


@pytest.mark.parametrize("kind", [".parquet", ".arrow"])
def test_rows_of_tables(tmp_path: Path, kind: str) -> None:
    pa = pytest.importorskip("pyarrow")
    rows = [{"n": k, "x": [k / 2, 1.0], "text": f"t{k}"} for k in range(25)]
    paths = [tmp_path / f"{part}{kind}" for part in range(2)]
    for path, part in zip(paths, (rows[:12], rows[12:]), strict=True):
        table = pa.Table.from_pylist(part)
        if kind == ".parquet":
            import pyarrow.parquet

            pyarrow.parquet.write_table(table, path, row_group_size=5)
        else:
            with pa.ipc.new_file(path, table.schema) as file:
                file.write_table(table, max_chunksize=5)
    data = TableDataset(paths, groups=2)
    found = [{**row, "x": row["x"].tolist()} for row in (data[k] for k in (*range(25), 3, -1))]
    assert found == [*rows, rows[3], rows[-1]] and len(data) == 25 and len(data._held) == 2
    assert TableDataset(paths[0], ["n"])[2] == {"n": 2}
    for workers in (0, 2):
        batches = list(DataLoader(data, 10, num_workers=workers))
        assert torch.cat([batch["x"] for batch in batches])[:, 0].tolist() == [k / 2 for k in range(25)]
    with pytest.raises(KeyError, match="no column 'y'"):
        TableDataset(paths, ["y"])


# --- the order of DistributedSampler


@asked_of_torch("count", [0, 1, 2, 5, 12, 31])
@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("shuffle", [False, True])
def test_the_order_is_that_of_pytorch(count: int, drop_last: bool, shuffle: bool) -> None:
    real = torch_or_skip()
    for replicas in (1, 2, 3, 7):
        for rank in range(replicas):
            settings = {"num_replicas": replicas, "rank": rank, "drop_last": drop_last, "shuffle": shuffle, "seed": 3}
            samplers = [library.utils.data.DistributedSampler(range(count), **settings) for library in (torch, real)]
            for epoch in (0, 5):
                results = []
                for sampler in samplers:
                    sampler.set_epoch(epoch)
                    try:
                        results.append((list(sampler), len(sampler)))
                    except ZeroDivisionError:
                        results.append(([], 0))
                assert results[0] == results[1], settings


def test_the_order_as_recorded() -> None:
    sampler = DistributedSampler(range(10), 3, 1)
    sampler.set_epoch(2)
    assert list(sampler) == [7, 6, 4, 8]


# --- prefetching


def test_a_prefetcher_gives_what_the_loader_gives() -> None:
    loader = DataLoader(range(23), 4, shuffle=True)
    seen: list[Any] = []

    def transfer(batch: torch.Tensor) -> torch.Tensor:
        seen.append(threading.current_thread().name)
        return batch * 10

    torch.manual_seed(1)
    expected = [(batch * 10).tolist() for batch in loader]
    torch.manual_seed(1)
    fetched = Prefetcher(loader, transfer, depth=3)
    assert [batch.tolist() for batch in fetched] == expected and len(fetched) == 6
    assert seen == [threading.current_thread().name, *["prefetch"] * 5]
    for batch in fetched:
        assert batch.shape == (4,)
        break
    assert not [t for t in threading.enumerate() if t.name == "prefetch"]


def test_a_prefetcher_goes_on_after_what_it_has_given_out() -> None:
    def new() -> Prefetcher[Any]:
        return Prefetcher(DataLoader(range(40), 4, shuffle=True), depth=4)

    torch.manual_seed(1)
    first = new()
    batches = iter(first)
    head = [next(batches).tolist() for _ in range(3)]
    state = pickle.loads(pickle.dumps(first.state_dict()))
    tail = [batch.tolist() for batch in batches]
    second = new()
    second.load_state_dict(state)
    assert [batch.tolist() for batch in second] == tail and len(head) + len(tail) == 10


def test_errors_come_out_where_the_batch_would() -> None:
    def fail(batch: torch.Tensor) -> torch.Tensor:
        if batch.sum() > 5:
            raise OSError("lost")
        return batch

    found: list[Any] = []
    with pytest.raises(OSError, match="lost"):
        for batch in Prefetcher(DataLoader(range(6), 2), fail):
            found.append(batch.tolist())
    assert found == [[0, 1], [2, 3]]
    with pytest.raises(ValueError, match="depth"):
        Prefetcher([], depth=0)


def test_a_worker_that_is_killed_is_named() -> None:
    class Killed:
        def __len__(self) -> int:
            return 20

        def __getitem__(self, index: int) -> int:
            info: Any = get_worker_info()
            if info.id == 1 and index > 8:
                os.kill(os.getpid(), signal.SIGKILL)
            return index

    with pytest.raises(RuntimeError, match=r"pid\(s\) \d+\) exited unexpectedly: worker 1 was killed by SIGKILL"):
        list(DataLoader(Killed(), 2, num_workers=2))


def test_a_bar_shows_the_throughput(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("rich")
    assert list(progress([1, 2, 3], "epoch 1", samples=64)) == [1, 2, 3]
    error = capsys.readouterr().err
    assert "epoch 1" in error and "3/3" in error
