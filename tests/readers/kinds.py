"""Every reader of outside data: valid files for it, changes that reach behind its checksum, and what it promises."""

from __future__ import annotations

import functools
import hashlib
import io
import json
import pickle
import random
import re
import struct
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import compare
import eager as torch
import graphc
from compare.benchmarking.result import BenchReport
from compare.benchmarking.roofline import Roofline
from compare.certificates.certificate import Certificate, certify, digest
from compare.fuzzing.batches import Settings
from compare.fuzzing.corpus import STATE as CAMPAIGN
from compare.fuzzing.corpus import Corpus
from compare.judging.tolerance import Verdict
from eager.core.tensor import Tensor
from eager.rng.generator import STATE
from eager.serialization import _safetensors
from graphc.errors import FileError, ParseError, ProgramFileError, ReportFileError, TensorFileError
from graphc.ir import Graph
from graphc.ir.files import load
from graphc.lowering import machine, programs
from graphc.ops.dtypes import SHORT_NAMES
from tests.ir import graphs
from tests.readers import checkpoints
from tests.readers.mutations import changed_bytes, changed_json, changed_tokens, dumps

Files = dict[str, bytes]


class Kind(NamedTuple):
    """A reader.

    files   valid files, by name
    deeper  a changed file whose checksum, lengths and encoding are right
    read    from bytes, and from a path in a folder that it may use
    error   what it promises to raise
    value   of what was read, to compare: equal if it means the same
    sound   raises AssertionError unless what was read has the types that it should, and can be used
    sealed  whether a file is under a checksum: then no change of bytes can be accepted with another meaning
    """

    files: Callable[[], Files]
    deeper: Callable[[bytes, random.Random], bytes]
    read: Callable[[bytes, Path], Any]
    error: type[Exception]
    value: Callable[[Any], Any]
    sound: Callable[[Any], None]
    sealed: Callable[[bytes], bool] = lambda data: False


# --- graphs


def _graph_files() -> Files:
    made = {
        "network": graphs.network(),
        "gradient": graphs.gradient(),
        "windows": graphs.sampled(("conv2d", "max_pool2d")),
        "structured": graphs.structured(),
    }
    found = {}
    for name, graph in made.items():
        file = io.BytesIO()
        graph.save(file)
        found[name] = file.getvalue()
    return found


def _deeper_graph(data: bytes, rng: random.Random) -> bytes:
    body = data[data.index(b"\n") + 1 :].decode(errors="replace")
    text = changed_tokens(body, rng).encode()
    return b"# graphc graph 1 sha256=%s\n" % hashlib.sha256(text).hexdigest().encode() + text


def _sound_graph(graph: Graph) -> None:
    graph.check()
    assert Graph.parse(str(graph)) == graph


# --- tensors


def _tensor_files() -> Files:
    x = torch.arange(12.0).reshape(3, 4)
    values = {
        "shared": {"all": x, "row": x[1], "turned": x.t(), "again": x, "wide": x[:1].expand(5, 4)},
        "plain": [1, 2.5, "text", None, True, (1, 2), {3}, frozenset({4}), 2**70, 1 - 2j, b"bytes", slice(1, None),
                  range(3), torch.Size([2, 3]), torch.float16, torch.device("cpu"), float("inf"), Counter("aab")],
        "model": torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2)).state_dict(),
        "others": [torch.tensor([True, False]), torch.ones(2, dtype=torch.complex64), np.arange(3), np.float32(1.5),
                   torch.Generator().manual_seed(3), torch.nn.Parameter(torch.ones(2)), torch.zeros(0, 3),
                   torch.tensor(7), torch.ones(2, dtype=torch.bfloat16)],
    }  # fmt: skip
    found = {}
    for name, value in values.items():
        found[name] = _safetensors(value)
    header = json.dumps({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
                         "b": {"dtype": "BOOL", "shape": [3], "data_offsets": [8, 11]},
                         "__metadata__": {"format": "pt"}}).encode()  # fmt: skip
    found["theirs"] = struct.pack("<Q", len(header)) + header + b"\0" * 8 + b"\0\1\1"
    return found


def _checkpoint_files(legacy: bool = False) -> Files:
    return {name: checkpoints.saved(value, legacy) for name, value in checkpoints.checkpoint_values().items()}


def _array_files() -> Files:
    file = io.BytesIO()
    np.savez(
        file, a=np.arange(6.0).reshape(2, 3), b=np.array([True, False]), c=np.asfortranarray(np.ones((2, 3), "c8"))
    )
    return {"arrays": file.getvalue()}


def _deeper_tensors(data: bytes, rng: random.Random) -> bytes:
    length = int.from_bytes(data[:8], "little")
    header, rest = json.loads(data[8 : 8 + length]), data[8 + length :]
    if "graphc" in header.get("__metadata__", {}) and rng.random() < 0.6:
        inner = json.loads(header["__metadata__"]["graphc"])
        header["__metadata__"]["graphc"] = dumps(changed_json(inner, rng))
    else:
        header = changed_json(header, rng)
    text = dumps(header).encode("utf-8", "surrogatepass")
    return struct.pack("<Q", len(text)) + text + (rest if rng.random() < 0.9 else changed_bytes(rest, rng, [rest]))


def _value_of_tensors(value: Any) -> Any:
    return _shown(value, {})


_LEAVES = (
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    bytearray,
    slice,
    range,
    torch.dtype,
    torch.device,
    type(None),
    np.generic,
)


def _shown(value: Any, seen: dict[int, int]) -> Any:
    """What an object is, without ends; AssertionError if it is of a type that no file has."""
    if id(value) in seen and not isinstance(value, _LEAVES):
        return "again", seen[id(value)]
    seen[id(value)] = len(seen)
    if isinstance(value, dict):
        return type(value).__name__, [(_shown(k, seen), _shown(v, seen)) for k, v in value.items()]
    if isinstance(value, (set, frozenset)):
        return type(value).__name__, sorted(repr(_shown(item, seen)) for item in value)
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [_shown(item, seen) for item in value]
    if isinstance(value, torch.Generator):
        return "Generator", value.get_state().tolist(), _drawn(value)
    array = value._array() if isinstance(value, Tensor) else value
    if isinstance(array, np.ndarray):
        assert array.dtype.kind in "biufcV" and array.dtype != object
        held = array[tuple(slice(0, 1 if step == 0 else None) for step in array.strides)]  # expanded dims once
        if held.nbytes < 1e6:
            held.astype(complex).sum()
            assert array.dtype != bool or set(held.ravel().tolist()) <= {True, False}
        return type(value).__name__, array.shape, array.strides, str(array.dtype), held.tobytes()[:10_000]
    assert isinstance(value, _LEAVES), type(value)
    return type(value).__name__, repr(value)


def _drawn(generator: Any) -> list[float]:
    return torch.rand(3, generator=generator).tolist()


def _load_mapped(data: bytes, folder: Path) -> Any:
    (folder / "file.pt").write_bytes(data)
    return torch.load(folder / "file.pt", mmap=True)


# --- reports of compare


def _double(x: Any) -> Any:
    return torch.tanh(x * 2).sum()


@functools.cache
def _certificate() -> bytes:
    return certify(_double, torch.ones(3, requires_grad=True), modes=["graph"], seed=3).to_json().encode()


def _resealed(content: Any) -> bytes:
    """A certificate's text with the digest of what it says, if it says something that has one."""
    text = dumps(content)
    try:
        content = json.loads(text)
        text = json.dumps({**content, "digest": digest(content)})
    except (ValueError, TypeError, RecursionError):
        text = text[:-1] + f', "digest": "{"0" * 64}"}}'
    return text.encode("utf-8", "surrogatepass")


def _deeper_certificate(data: bytes, rng: random.Random) -> bytes:
    content = json.loads(data)
    del content["digest"]
    return _resealed(changed_json(content, rng))


def _sound_machine(found: tuple[str, machine.Machine]) -> None:
    assert type(found[0]) is str and all(type(x) is float and 0 <= x < float("inf") for x in found[1])


def _sound_certificate(found: Certificate) -> None:
    """Written from what a certificate is, without the schema."""
    hashes = [found.graph, found.tolerances, *(entry["values"] for entry in found.inputs.values())]
    assert all(isinstance(h, str) and re.fullmatch("[0-9a-f]{64}", h) for h in hashes)
    assert type(found.name) is str and found.name and type(found.seed) is int and found.seed >= 0
    for entry in found.inputs.values():
        assert entry.keys() == {"aval", "requires_grad", "values"} and type(entry["requires_grad"]) is bool
        assert type(entry["aval"]) is str and re.split(r"\[", entry["aval"])[0] in SHORT_NAMES.values()
    assert found.modes is None or (found.modes and all(type(mode) is str for mode in found.modes))
    assert all(type(k) is type(v) is str for k, v in found.environment.items())
    assert found.verdicts
    for entry in found.verdicts:
        assert entry.keys() == {"mode", "what", "verdict", "difference"}
        assert {type(entry["mode"]), type(entry["what"])} == {str}
        assert entry["verdict"] in {str(v) for v in Verdict if v < Verdict.UNSUPPORTED}
        difference = entry["difference"]
        assert difference is None or (type(difference) in (int, float) and 0 <= difference < float("inf"))
        assert not (entry["verdict"] == "identical" and difference)
    assert Certificate.parse(found.to_json().encode()) == found
    found.name.encode()


SETTINGS = Settings(("eager", "graph"), 6, ("dot",))


def _campaign(folder: Path, data: bytes) -> Corpus:
    (folder / CAMPAIGN).write_bytes(data)
    return Corpus(folder, SETTINGS, 0, True)


def _campaign_files() -> Files:
    state = {
        "settings": {"modes": ["eager", "graph"], "size": 6, "without": ["dot"], "quick": False},
        "first": 100, "done": 24, "seconds": 3.25, "failed": {"103": "BUG", "110": "UNSUPPORTED"},
        "crashes": [[104, 105]], "verdicts": {"IDENTICAL": 20, "WITHIN_ROUNDING": 2, "BUG": 1, "UNSUPPORTED": 1},
        "ops": {"tanh": 3, "add": 4}, "pairs": [["tanh", "add", 2]],
    }  # fmt: skip
    return {"campaign": json.dumps(state).encode()}


def _deeper_json(data: bytes, rng: random.Random) -> bytes:
    return dumps(changed_json(json.loads(data), rng)).encode("utf-8", "surrogatepass")


def _sound_campaign(found: Corpus) -> None:
    assert all(type(n) is int and n >= 0 for n in (found.done, *found.verdicts.values(), *found.coverage.ops.values()))
    assert all(type(n) is int and isinstance(v, Verdict) for n, v in found.failed.items())
    assert all(type(n) is int for numbers in found.crashes for n in numbers)
    assert all(isinstance(v, Verdict) for v in found.verdicts) and found.verdicts.total() == found.done
    assert 0 <= found.seconds < float("inf")
    found.coverage.op_share(), found.coverage.pair_share()


def _campaign_state(found: Corpus) -> Any:
    return (found.first, found.done, found.seconds, found.failed, found.crashes, found.verdicts, found.coverage.ops,
            found.coverage.pairs)  # fmt: skip


def _report_files() -> Files:
    from compare.benchmarking.result import BOTH, FORWARD, Timing
    from compare.benchmarking.statistics import Interval

    interval = Interval(1e-3, 0.9e-3, 1.2e-3)
    rows = (
        Timing("eager", FORWARD, 0.1, {}, interval, 100),
        Timing("compiled", BOTH, 0.5, {"capture": 0.2, "xla": 0.3}, interval, 50, Interval(2.0, 1.9, 2.1),
               Interval(float("inf"), 3.0, float("inf")), 4096, 0.25),
    )  # fmt: skip
    report = BenchReport("loss", True, rows, {FORWARD: Roofline(100.0, 800, 1e9, 1e10)}, {"numpy": np.__version__}, 3)
    return {"report": report.to_json().encode()}


def _sound_report(found: BenchReport) -> None:
    str(found), found.text(), found._repr_html_()
    assert BenchReport.from_json(found.to_json()) == found


# --- compiled programs

KEY = "5e" * 32


@functools.cache
def _program() -> bytes:
    executable = graphc.lower(graphc.trace(lambda x: torch.tanh(x) * 2, torch.ones(3)))
    import jax

    compiled = executable._jitted.lower(
        *(jax.ShapeDtypeStruct(a.shape, a.dtype) for a in executable.graph.input_avals())
    )
    return programs.packed(KEY, compiled.compile(), jax.devices()[0])


def _deeper_program(data: bytes, rng: random.Random) -> bytes:
    size = programs._HEAD.size
    head = changed_bytes(data[:size], rng, [data[:size]]) if rng.random() < 0.5 else data[:size]
    rest = data[size:-32] if head != data[:size] else changed_bytes(data[size:-32], rng, [data])
    content = head + rest
    return content + hashlib.sha256(content).digest()


def _unpacked(data: bytes, folder: Path) -> Any:
    return programs.unpacked(KEY, data, ProgramFileError.of("program"))


def _part_files() -> Files:
    data = programs.unpacked(KEY, _program(), ProgramFileError.of("program"))[0]
    return {"program": data, "classes": pickle.dumps((np.dtype("f4"), (1, "a"), {"b": [2.0]}))}


def _check_parts(data: bytes, folder: Path) -> Any:
    programs.check_parts(data, ProgramFileError.of("program"))


# --- states of generators


class StateError(FileError, RuntimeError):
    """Only here: `set_state` has PyTorch's errors, which are about an argument and no file."""


def _set_state(data: bytes, folder: Path) -> Any:
    state = torch.from_numpy(np.frombuffer(data, np.uint8).copy())
    try:
        return torch.Generator().set_state(state)
    except (RuntimeError, TypeError) as error:
        raise StateError(str(error)) from error


def _state_files() -> Files:
    fresh, used = torch.Generator().manual_seed(1), torch.Generator().manual_seed(2)
    torch.randn(3, generator=used)
    return {name: g.get_state().numpy().tobytes() for name, g in (("fresh", fresh), ("used", used))}


def _deeper_state(data: bytes, rng: random.Random) -> bytes:
    """With another value in a field that says how to go on."""
    state = np.frombuffer(data, STATE).copy()
    name = rng.choice(["left", "seeded", "next", "seed", "has_normal", "left", "next"])
    bounds = np.iinfo(STATE[name])
    state[name] = rng.choice(
        [0, 1, 2, 7, 300, 623, 624, 625, 626, int(bounds.max), int(bounds.min), rng.randrange(700)]
    )
    return state.tobytes()


def _sound_state(generator: Any) -> None:
    again = torch.Generator().set_state(generator.get_state())
    assert again.get_state().tolist() == generator.get_state().tolist()
    first, second = (torch.randn(700, generator=g).numpy().tobytes() for g in (generator, again))
    assert first == second


def _sealed_graph(data: bytes) -> bool:
    return b" sha256=" in data[:60]


KINDS: dict[str, Kind] = {
    "graph": Kind(
        _graph_files, _deeper_graph, lambda data, _: load(io.BytesIO(data)), ParseError, lambda graph: graph,
        _sound_graph, _sealed_graph,
    ),
    "tensors": Kind(
        _tensor_files, _deeper_tensors, lambda data, _: torch.load(io.BytesIO(data)), TensorFileError,
        _value_of_tensors, lambda found: None,
    ),
    "mapped tensors": Kind(
        _tensor_files, _deeper_tensors, _load_mapped, TensorFileError, _value_of_tensors, lambda found: None
    ),
    "checkpoint": Kind(
        _checkpoint_files, checkpoints.deeper_zip, lambda data, _: torch.load(io.BytesIO(data)), TensorFileError,
        _value_of_tensors, lambda found: None,
    ),
    "mapped checkpoint": Kind(
        _checkpoint_files, checkpoints.deeper_zip, _load_mapped, TensorFileError, _value_of_tensors, lambda found: None
    ),
    "legacy checkpoint": Kind(
        lambda: _checkpoint_files(True), checkpoints.deeper_legacy, lambda data, _: torch.load(io.BytesIO(data)),
        TensorFileError, _value_of_tensors, lambda found: None,
    ),
    "arrays": Kind(
        _array_files, checkpoints.deeper_zip, lambda data, _: torch.load(io.BytesIO(data)), TensorFileError,
        _value_of_tensors, lambda found: None,
    ),
    "certificate": Kind(
        lambda: {"certificate": _certificate()}, _deeper_certificate, lambda data, _: Certificate.parse(data, "c.json"),
        compare.CertificateError, lambda found: found, _sound_certificate, lambda data: True,
    ),
    "campaign": Kind(
        _campaign_files, _deeper_json, lambda data, folder: _campaign(folder, data), ValueError, _campaign_state,
        _sound_campaign,
    ),
    "report": Kind(
        _report_files, _deeper_json, lambda data, _: BenchReport.from_json(data.decode("utf-8", "surrogateescape")),
        ReportFileError, lambda found: found, _sound_report,
    ),
    "machine": Kind(
        lambda: {"machine": json.dumps({"machine": "a, b", **dict.fromkeys(machine.Machine._fields, 1e-6)}).encode()},
        _deeper_json, lambda data, _: machine.read(data), ProgramFileError, lambda found: found,
        _sound_machine,
    ),
    "program": Kind(
        lambda: {"program": _program()}, _deeper_program, _unpacked, ProgramFileError, lambda found: found,
        lambda found: None, lambda data: True,
    ),
    "parts of a program": Kind(
        _part_files, lambda data, rng: changed_bytes(data, rng, [data]), _check_parts, ProgramFileError,
        lambda found: None, lambda found: None,
    ),
    "generator": Kind(
        _state_files, _deeper_state, _set_state, StateError,
        lambda found: found.get_state().tolist(), _sound_state,
    ),
}  # fmt: skip
