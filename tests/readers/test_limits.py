"""Small files that ask for much, and the limits that they meet; what is saved keeps to the same limits."""

from __future__ import annotations

import io
import json
import threading
from pathlib import Path
from typing import Any

import pytest

import compare
import eager as torch
import graphc
from graphc.errors import FileError, ParseError
from graphc.files import json_text
from tests.readers.kinds import _double
from tests.readers.watch import at_most

DEEP = 200_000
BOMBS = [
    "[" * DEEP, '{"a":' * DEEP, "[" * DEEP + "]" * DEEP, "null", "[]", "{}", "", "{", "9" * 6000, '"' + '\\"' * DEEP,
    "NaN", '{"a": 1, "a": 2}', "[1e999]", "\ufeff{}", "[" + "1," * 100_000 + "1]", "\x00", '"\\ud800"',
]  # fmt: skip


def with_header(table: dict[str, Any]) -> bytes:
    text = json.dumps(table).encode()
    return len(text).to_bytes(8, "little") + text


def tensors_with(description: str) -> bytes:
    return with_header({"__metadata__": {"graphc": description}})


@pytest.mark.parametrize("number", range(len(BOMBS)))
def test_json_bombs(number: int, tmp_path: Path):
    bomb = BOMBS[number]
    data = bomb.encode()
    with at_most(1_000_000), pytest.raises(RuntimeError, match="the file cannot be loaded") as caught:
        torch.load(io.BytesIO(tensors_with(bomb)))
    assert isinstance(caught.value, FileError)
    path = tmp_path / "c.json"
    path.write_bytes(data)
    with at_most(1_000_000), pytest.raises(compare.CertificateError, match=r"c\.json: ") as other:
        compare.verify(path, _double, torch.ones(3))
    assert isinstance(other.value, FileError)
    file = io.BytesIO(len(data).to_bytes(8, "little") + data)
    if bomb == "{}":
        assert torch.load(file) == {}
    else:
        with pytest.raises(FileError):
            torch.load(file)
    (tmp_path / "campaign.json").write_bytes(data)
    with pytest.raises(FileError, match=r"campaign\.json"):
        compare.fuzz(1, corpus=tmp_path, resume=True)


SAME_HASH = {
    "integers": [{"int": str(k * (2**61 - 1))} for k in range(1, 3000)],
    "complex": [{"complex": [float(-1000003 * k).hex(), float(k).hex()]} for k in range(1, 3000)],
}


@pytest.mark.parametrize("keys", SAME_HASH)
def test_keys_with_one_hash_are_refused(keys: str):
    for content in ({"set": SAME_HASH[keys]}, {"dict": [[key, 1] for key in SAME_HASH[keys]]}):
        with pytest.raises(FileError, match="same hash"):
            torch.load(io.BytesIO(tensors_with(json.dumps({"version": 1, "object": content}))))


def test_keys_of_a_graphs_result_with_one_hash_are_refused():
    entries = ", ".join(f"{k * (2**61 - 1)}: x" for k in range(1, 3000))
    with pytest.raises(ParseError, match="same hash"):
        graphc.Graph.parse(f"def f(x: f32):\n    return {{{entries}}}\n")


CLAIMS: dict[str, Any] = {
    "far beyond the file": {"a": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}},
    "overflowing": {"a": {"dtype": "F32", "shape": [2**62, 2**62], "data_offsets": [0, 2**63 - 1]}},
    "overlapping": {"a": {"dtype": "U8", "shape": [8], "data_offsets": [0, 8]},
                    "b": {"dtype": "U8", "shape": [8], "data_offsets": [4, 12]}},
    "with a hole": {"a": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]},
                    "b": {"dtype": "U8", "shape": [4], "data_offsets": [6, 10]}},
    "negative": {"a": {"dtype": "U8", "shape": [4], "data_offsets": [-4, 0]}},
    "negative shape": {"a": {"dtype": "U8", "shape": [-2, -2], "data_offsets": [0, 4]}},
    "true": {"a": {"dtype": "U8", "shape": [True], "data_offsets": [0, 1]}},
    "dtype": {"a": {"dtype": "F8_E4M3", "shape": [4], "data_offsets": [0, 4]}},
    "too few bytes": {"a": {"dtype": "F64", "shape": [4], "data_offsets": [0, 4]}},
    "rank": {"a": {"dtype": "U8", "shape": [1] * 65, "data_offsets": [0, 1]}},
    "empty and huge": {"a": {"dtype": "U8", "shape": [0, 2**62, 2**62], "data_offsets": [0, 0]}},
    "bool": {"a": {"dtype": "BOOL", "shape": [4], "data_offsets": [0, 4]}},
}  # fmt: skip


@pytest.mark.parametrize("claim", CLAIMS)
@pytest.mark.parametrize("mmap", [False, True])
def test_headers_that_claim_too_much(claim: str, mmap: bool, tmp_path: Path):
    path = tmp_path / "t.safetensors"
    path.write_bytes(with_header(CLAIMS[claim]) + b"\2" * 12)
    with pytest.raises(RuntimeError, match=r"t\.safetensors' cannot be loaded") as caught:
        torch.load(path, mmap=mmap)
    assert isinstance(caught.value, FileError) and "t.safetensors" in caught.value.file


def test_a_limit_holds_before_the_parser_is_asked(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(json_text.json, "loads", lambda *a, **k: pytest.fail("parsed"))
    limits = json_text.Limits(100, 3, 20)
    for text in ("[[[[1]]]]", "1" * 41, "[" + "1," * 20 + "1]", '"' + "a" * 100 + '"'):
        with pytest.raises(FileError):
            json_text.parsed(text, limits, FileError.of("f"))


# --- what is saved can be loaded; what could not be is not saved


STRANGE: dict[str, Any] = {
    "a large integer": 10**5000,
    "a larger one": -(2**90_000),
    "a long range": [range(10**50)],
    "half a character": ["\ud800"],
    "tuples of sets": {(1, (2, "x")): {frozenset({1})}},
}


@pytest.mark.parametrize("name", STRANGE)
def test_strange_values_are_kept(name: str):
    file = io.BytesIO()
    torch.save(STRANGE[name], file)
    file.seek(0)
    assert torch.load(file) == STRANGE[name]


@pytest.mark.parametrize("name", ["__metadata__", "\ud800", "", "a.b"])
def test_tensors_under_strange_names_are_kept(name: str):
    file = io.BytesIO()
    torch.save({name: torch.ones(2), f"{name}_": torch.zeros(3)}, file)
    file.seek(0)
    found = torch.load(file)
    assert {key: value.tolist() for key, value in found.items()} == {name: [1.0, 1.0], f"{name}_": [0.0] * 3}


def test_what_is_too_deep_is_refused_before_the_file_is_touched(tmp_path: Path):
    path = tmp_path / "kept.pt"
    torch.save(1, path)
    for depth in (100, 130, 200, 100_000):
        value: Any = 1
        for _ in range(depth):
            value = [value]
        if depth == 100:
            torch.save(value, tmp_path / "deep.pt")
            assert torch.load(tmp_path / "deep.pt") == value
            continue
        with pytest.raises(TypeError, match="cannot save"):
            torch.save(value, path)
        while isinstance(value, list):  # an end that recursion could not take
            value = value[0]
    assert torch.load(path) == 1


def test_a_state_that_lacks_something_changes_nothing():
    """Optimizers take over all of a loaded state, or nothing."""
    weight = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.Adam([weight], lr=0.1)
    weight.sum().backward()
    optimizer.step()
    before, sound = str(optimizer.state_dict()), optimizer.state_dict()
    (group,) = sound["param_groups"]
    for broken in (
        {"param_groups": [group]},
        {"state": sound["state"]},
        {"state": {0: sound["state"][0], 1: object}, "param_groups": [{"lr": 5.0}]},
        {"state": [1], "param_groups": [group]},
        {"state": {}, "param_groups": [{**group, "lr": threading.Lock()}]},
    ):
        with pytest.raises((KeyError, TypeError, ValueError, AttributeError)):
            optimizer.load_state_dict(broken)
        assert str(optimizer.state_dict()) == before
