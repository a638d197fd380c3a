"""No content of a file does harm: mutated files of every kind are read as what they mean, or refused by name.

`make test-deep` has 10,000 of them, in a process with 1 GiB to spare; `python -m tests.readers.sweep COUNT SEED` more.
"""

from __future__ import annotations

import copy
import json
import random
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import compare
import eager as torch
from compare.certificates import certificate
from compare.certificates.certificate import CertificateFileError
from graphc.errors import FileError
from graphc.files import schema
from tests.readers import kinds, sweep
from tests.readers.kinds import KINDS, _certificate, _deeper_certificate, _double
from tests.readers.mutations import places
from tests.readers.watch import TooMuchWork, at_most

ROOT = Path(__file__).parents[2]
# what reads a file, or parses what may come from one: where else may it stand?
READING = re.compile(
    r"(?<![.\w])(?<!def )open\(|os\.open\(|json\.loads?\(|pickle\.|marshal\.|\.read_(text|bytes)\(|literal_eval\(|"
    r"(fromfile|memmap|genfromtxt|loadtxt)\(|(np|numpy|torch|zipfile|tomllib|shelve|yaml)\.(load|open|ZipFile)\("
)
READERS = {
    "compare/environment.py": "/proc/cpuinfo, of the kernel",
    "compare/fuzzing/seeds.py": "the source of the packages",
    "compare/fuzzing/workers.py": "/proc/<process>, of the kernel",
    "compare/minimizing/sources.py": "the repr of a value that is at hand",
    "graphc/audit/vocabulary.py": "a number in a word of the command line",
    "eager/checkpoints/objects.py": "what is about to be written, by the rules of `pickle`",
    "eager/checkpoints/trusted.py": "pickles that the user has said to trust (weights_only=False), as in PyTorch",
    "eager/core/elsewhere.py": "a table of names beside it",
    "eager/core/homes.py": "a table of names beside it",
    "eager/core/missing.py": "tables of names beside it",
    "eager/distributed/checkpoint/filesystem.py": "blocks whose checksums the index has",
    "eager/distributed/checkpoint/index.py": "a folder, to have it written",
    "eager/distributed/checkpoint/manager.py": "the name of the latest, of which only a number is taken",
    "eager/functional/parsing.py": "a table of signatures beside it",
    "eager/library/libraries.py": "a default in the schema of an operation, which the program itself writes",
    "eager/multiprocessing/spawning.py": "the traceback that a process of its own has written",
    "eager/processes/objects.py": "objects of the job's own processes, as in PyTorch",
    "eager/processes/stores.py": "tables and messages of the job's own processes",
    "eager/profiling/events.py": "writes",
    "eager/utils/data/files.py": "numbers of the user's own data, of any value",
    "graphc/display/as_html.py": "the style and the script of its pages, beside it",
    "graphc/ir/graphviz.py": "the output of dot",
    "graphc/lowering/presence.py": "what the job's own processes say of themselves",
    "eager/utils/tensorboard/plugins.py": "writes",
    "eager/utils/tensorboard/writer.py": "writes",
    "eager/serialization.py": "opens files for eager.checkpoints",
    "graphc/__main__.py": "/dev/null",
    "graphc/running/comparing.py": "what a process that it has begun has written, without pickles",
    "graphc/running/placeholders.py": "a table of names beside it",
    "graphc/running/recorded.py": "arguments that its own parent process gives it",
    "graphc/running/script.py": "the program to run",
    "graphc/lowering/bundle.py": "the source of graphc's own kernels",
    "graphc/lowering/keys.py": "graphc's own source",
    "graphc/lowering/programs.py": "opens files for graphc.files",
}


@pytest.mark.parametrize("name", KINDS)
def test_mutated_files_are_read_or_refused_by_name(name: str, tmp_path: Path):
    found = sweep.sweep(name, 60, 0, tmp_path)
    assert found[sweep.REFUSED] > 20, "the mutations are too tame to say anything"


@pytest.mark.deep
def test_ten_thousand_mutated_files_in_a_process_of_its_own():
    command = [sys.executable, "-m", "tests.readers.sweep", "10000", "1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]


def test_the_mutations_reach_what_is_behind_a_checksum(tmp_path: Path):
    for name in ("graph", "certificate", "tensors", "checkpoint", "legacy checkpoint", "campaign", "report"):
        assert sweep.sweep(name, 100, 3, tmp_path)[sweep.OTHER], name


def test_every_reader_goes_through_the_layer():
    """A new one is found here: it belongs in `graphc.files`, and in `KINDS`."""
    found = set()
    for package in ("graphc", "eager", "compare"):
        for path in sorted((ROOT / package).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            code = "\n".join(line.partition("#")[0] for line in path.read_text(encoding="utf-8").splitlines())
            if READING.search(code) and not name.startswith("graphc/files/"):
                found.add(name)
    assert found == READERS.keys()


# --- the sweep notices what it should


def test_the_sweep_notices_another_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    careless = KINDS["campaign"]._replace(read=lambda data, folder: json.loads(data)["settings"]["modes"])
    monkeypatch.setitem(KINDS, "careless", careless._replace(value=str, sound=lambda found: None))
    with pytest.raises(AssertionError, match="careless: "):
        sweep.sweep("careless", 100, 0, tmp_path)


def test_the_sweep_notices_a_checksum_that_is_not_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    for module in (certificate, kinds):
        monkeypatch.setattr(module, "digest", lambda content: "0" * 64)
    monkeypatch.setattr(kinds, "_certificate", kinds._certificate.__wrapped__)
    with pytest.raises(AssertionError, match="certificate: "):
        sweep.sweep("certificate", 400, 0, tmp_path)


def test_the_sweep_notices_a_schema_that_is_not_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(schema.Row, "fit", lambda *arguments: None)
    with pytest.raises(AssertionError):
        sweep.sweep("certificate", 400, 0, tmp_path)


def test_the_sweep_notices_work_out_of_proportion():
    with pytest.raises(TooMuchWork), at_most(1000):
        sum(len(str(n)) for n in range(10_000))


# --- wrong types, in every place


TYPES: list[Any] = [None, True, 7, 1.5, "text", [], {}, [7], {"a": 7}]
# where another type is right, too: the last name of a place, and values
ALSO: dict[str, list[Any]] = {
    "difference": [None, 7, 1.5], "modes": [None], "seconds": [7, 1.5], "__metadata__": [{}], "ops": [{}],
    "parts": [{}], "inputs": [{}], "environment": [{}], "units": [{}], "rooflines": [{}],
    "ratio": [None], "break_even": [None],
    "memory": [None, 7], "share_of_peak": [None, 7, 1.5], "first_call": [7, 1.5], "median": [7, 1.5], "low": [7, 1.5],
    "high": [7, 1.5], "operations": [7, 1.5], "operations_per_second": [7, 1.5], "bytes_per_second": [7, 1.5],
    "capture": [7, 1.5], "xla": [7, 1.5],
}  # fmt: skip


def header_of(data: bytes) -> Any:
    return json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])


def with_header(data: bytes, header: Any) -> bytes:
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data[8 + int.from_bytes(data[:8], "little") :]


# kind -> (what of a file is JSON, the file with other JSON)
JSON_IN: dict[str, tuple[Callable[[bytes], Any], Callable[[bytes, Any], bytes]]] = {
    "certificate": (
        lambda data: {name: value for name, value in json.loads(data).items() if name != "digest"},
        lambda data, content: kinds._resealed(content),
    ),
    "campaign": (json.loads, lambda data, content: json.dumps(content).encode()),
    "report": (json.loads, lambda data, content: json.dumps(content).encode()),
    "tensors": (header_of, with_header),
}


@pytest.mark.parametrize("name", JSON_IN)
def test_no_field_has_another_type(name: str, tmp_path: Path):
    """Also under a digest that fits: `seed: []`, `verdicts: {}`, `tolerances: []`, `name: {}` once held."""
    kind, (inner, outer) = KINDS[name], JSON_IN[name]
    data = kind.files()["theirs" if name == "tensors" else name]
    content, tried = inner(data), 0
    for place in filter(None, places(content)):
        present = content
        for key in place:
            present = present[key]
        for value in TYPES:
            allowed = [also for part in place for also in ALSO.get(part, []) if part == place[-1] or part == "parts"]
            if type(value) is type(present) or any(type(value) is type(a) and value == a for a in allowed):
                continue
            changed = copy.deepcopy(content)
            parent = changed
            for key in place[:-1]:
                parent = parent[key]
            parent[place[-1]] = value
            with pytest.raises(kind.error) as caught:
                kind.read(outer(data, changed), tmp_path)
            assert isinstance(caught.value, FileError) and caught.value.place, (place, value)
            tried += 1
    assert tried > 50


# --- certificates that hold, and do not


def test_no_mutated_certificate_holds_that_says_something_else(tmp_path: Path):
    """With a fitting digest. What it may say is less: fewer verdicts, other notes."""
    path, rng = tmp_path / "c.json", random.Random(5)
    sound, held = json.loads(_certificate()), 0
    for _ in range(150):
        path.write_bytes(_deeper_certificate(_certificate(), rng))
        try:
            found = compare.verify(path, _double, torch.ones(3, requires_grad=True))
        except compare.CertificateError as error:
            assert isinstance(error, CertificateFileError) and error.file == str(path) and error.problem
            continue
        if found.ok:
            held += 1
            said = json.loads(path.read_text())
            assert all(said[name] == sound[name] for name in ("graph", "inputs"))
            known = {(v["mode"], v["what"]): v["verdict"] for v in sound["verdicts"]}
            for entry in said["verdicts"]:
                agree = {"identical", "within rounding", "environment", "convention", "no opinion"}
                same = said["environment"] == sound["environment"]
                wanted = {known[entry["mode"], entry["what"]]} if same else agree
                assert entry["verdict"] in wanted
    assert held, "the mutations are too wild"
