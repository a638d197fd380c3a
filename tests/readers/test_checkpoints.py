"""Hostile checkpoints are refused by name, and do nothing; 1,000 damaged ones, too."""

from __future__ import annotations

import io
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import eager as torch
from eager.checkpoints import pickle_globals as table
from eager.checkpoints import pt_files
from graphc.errors import FileError, WeightsError
from graphc.files.pickled import Function
from tests.readers import checkpoints, sweep
from tests.readers.checkpoints import HOSTILE, refusal, saved, tensor, with_pickle

ROOT = Path(__file__).parents[2]
KINDS = ("checkpoint", "mapped checkpoint", "legacy checkpoint", "arrays")


def test_hostile_files_are_refused_in_a_process_with_little_memory():
    command = [sys.executable, "-m", "tests.readers.checkpoints"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]
    assert done.stdout.count(": the file cannot be loaded: ") + done.stdout.count(": Weights only load") == len(HOSTILE)
    assert len(HOSTILE) > 100 and not (ROOT / "hacked").exists()


@pytest.mark.parametrize("name", KINDS)
def test_damaged_files_are_read_or_refused_by_name(name: str, tmp_path: Path):
    found = sweep.sweep(name, 250, 7, tmp_path)
    assert found[sweep.REFUSED] > 100 and found.total() == 250


def test_every_beginning_of_a_file_is_refused():
    value = {"x": torch.arange(5), "text": "abc", "rest": [1, 2.5, (None,)]}
    for data in (saved(value), saved(value, legacy=True)):
        for length in range(1, len(data)):
            with pytest.raises(FileError):
                torch.load(io.BytesIO(data[:length]))


def test_every_flipped_bit_of_the_pickle_or_a_tensor_is_noticed():
    data = saved({"x": torch.arange(5), "y": "text"})
    for at in range(data.index(b"\x80\x02"), data.index(b"PK\x01\x02")):
        changed = data[:at] + bytes([data[at] ^ 16]) + data[at + 1 :]
        try:
            found = torch.load(io.BytesIO(changed))
        except FileError:
            continue
        # in the date, or in what aligns a member
        assert found["x"].tolist() == [0, 1, 2, 3, 4] and found["y"] == "text"


def test_compressed_files_are_read_as_others():
    members = checkpoints.members_of(saved({"x": torch.arange(1000.0), "y": torch.zeros(3_000_000), "z": "text"}))
    data = checkpoints.zip_of(members, zipfile.ZIP_DEFLATED)
    assert len(data) < 20_000
    found = torch.load(io.BytesIO(data))
    assert found["x"].sum() == 499_500 and found["y"].shape == (3_000_000,) and found["z"] == "text"
    arrays = io.BytesIO()
    np.savez_compressed(arrays, x=np.arange(6.0).reshape(2, 3))
    arrays.seek(0)
    assert torch.load(arrays)["x"].tolist() == [[0, 1, 2], [3, 4, 5]]


def test_compressed_files_are_mapped_where_they_are_stored(tmp_path: Path):
    path = tmp_path / "x.pt"
    path.write_bytes(checkpoints.zip_of(checkpoints.members_of(saved(torch.ones(4))), zipfile.ZIP_DEFLATED))
    assert torch.load(path, mmap=True).tolist() == [1, 1, 1, 1]


def test_one_file_is_of_one_family(tmp_path: Path):
    path = tmp_path / "x.pt"
    path.write_bytes(HOSTILE["eval"]())
    with pytest.raises(WeightsError) as caught:
        torch.load(path, mmap=True)
    error = caught.value
    assert isinstance(error, FileError) and error.file == f"'{path}'" and error.place == "data.pkl, byte 2"


# --- the tests notice what they should


def test_a_table_that_is_open_is_noticed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(table.ALLOWED, "builtins.eval", Function("eval", eval))
    with pytest.raises(AssertionError, match="exec"):
        refusal(HOSTILE["eval"]())


def test_a_tensor_that_leads_out_is_noticed(monkeypatch: pytest.MonkeyPatch):
    data = with_pickle(b"\x80\x02" + tensor(size=(2,)) + b".", {"0": bytes(16)})
    assert torch.load(io.BytesIO(data)).tolist() == [0, 0]
    monkeypatch.setattr(table, "over", lambda memory, dtype, *place: memory.view(dtype))
    with pytest.raises(AssertionError, match="it is read as"):
        refusal(HOSTILE["a size that leads out"]())


def test_a_budget_holds(monkeypatch: pytest.MonkeyPatch):
    data = saved([{}] * 5 + [[k] for k in range(5)])
    assert len(torch.load(io.BytesIO(data))) == 10
    monkeypatch.setattr(pt_files, "VALUES", 30)
    with pytest.raises(WeightsError, match="more values than are read"):
        torch.load(io.BytesIO(data))
