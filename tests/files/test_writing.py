"""Nothing is lost: whatever goes wrong while a file is written, the file of before is there, and nothing beside it."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import compare
import eager as torch
import graphc
from compare.certificates.certificate import certify
from compare.fuzzing.corpus import STATE
from graphc.__main__ import main as graphc_main
from graphc.files import writing

ROOT = Path(__file__).parents[2]


def double(x: Any) -> Any:
    return torch.tanh(x) * 2


def graph() -> graphc.Graph:
    return graphc.trace(double, torch.ones(3))


def exported(path: Path) -> None:
    source = path.with_name("source.graph")
    graph().save(source)
    try:
        if graphc_main(["export", str(source), "--to", "dot", "-o", str(path)]):
            raise OSError("refused")
    finally:
        source.unlink()


WRITERS: dict[str, Callable[[Path], object]] = {
    "torch.save": lambda path: torch.save({"w": torch.ones(2)}, path),
    "Graph.save": lambda path: graph().save(path),
    "export": exported,
    "certify": lambda path: certify(double, torch.ones(3), modes=["graph"], path=path),
    "report": lambda path: compare.report(torch.exp, torch.ones(2), modes=["eager"], min_time=0.0).write(path),
    "fuzz": lambda path: compare.fuzz(1, seed=3, modes=["graph"], size=2, corpus=path.parent),
    "write": lambda path: writing.write(path, "text"),
}
STEPS = {"create": "open", "synchronize": "fsync", "replace": "replace", "permissions": "chmod"}


def failing(monkeypatch: pytest.MonkeyPatch, step: str, error: BaseException) -> None:
    """Let a step of writing fail, as on a full disk, or where the user interrupts it."""
    real = getattr(os, STEPS[step])

    def fail(*arguments: Any, **options: Any) -> Any:
        if step == "create" and not str(arguments[0]).endswith(writing.DRAFT):
            return real(*arguments, **options)
        if step != "create" and step != "synchronize" and writing.DRAFT not in str(arguments[0]):
            return real(*arguments, **options)
        raise error

    monkeypatch.setattr(writing.os, STEPS[step], fail)


@pytest.mark.parametrize("writer", WRITERS)
def test_a_write_that_fails_leaves_what_was_there(writer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / (STATE if writer == "fuzz" else "file.pt")
    WRITERS[writer](path)  # what it writes otherwise
    assert path.stat().st_size and os.listdir(folder) == [path.name]
    steps = ["create", "replace", "permissions"] + ["synchronize"] * (writer != "fuzz")  # campaigns go on without
    for step in steps:
        for error in (OSError(28, "No space left on device"), KeyboardInterrupt()):
            path.write_bytes(b"before")
            with monkeypatch.context() as patch:
                failing(patch, step, error)
                with pytest.raises((OSError, KeyboardInterrupt)):
                    WRITERS[writer](path)
            assert path.read_bytes() == b"before" and os.listdir(folder) == [path.name], (step, error)


KILLED = """
import os, sys
from graphc.files import writing
with writing.draft(sys.argv[1]) as name:
    with open(name, "wb") as file:
        file.write(b"half")
        file.flush()
        os._exit(9)
"""


def test_a_process_that_is_killed_leaves_what_was_there(tmp_path: Path):
    path = tmp_path / "file"
    path.write_bytes(b"before")
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)], cwd=ROOT, check=False)
    assert done.returncode == 9 and path.read_bytes() == b"before"
    writing.write(path, "after")
    assert path.read_bytes() == b"after"


def test_threads_that_write_one_file(tmp_path: Path):
    path = tmp_path / "file"
    contents = [bytes([k]) * 300_000 for k in range(8)]
    threads = [threading.Thread(target=writing.write, args=(path, c)) for c in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_bytes() in contents and os.listdir(tmp_path) == ["file"]


@pytest.mark.skipif(os.name != "posix", reason="permissions and links of POSIX")
def test_permissions_links_and_what_is_no_file(tmp_path: Path):
    new, old, link, pipe = (tmp_path / name for name in ("new", "old", "link", "pipe"))
    mask = os.umask(0o027)
    try:
        writing.write(new, "text")
    finally:
        os.umask(mask)
    assert stat.S_IMODE(new.stat().st_mode) == 0o640
    old.write_text("before")
    old.chmod(0o604)
    link.symlink_to(old)
    writing.write(link, "after")
    assert link.is_symlink() and old.read_text() == "after" and stat.S_IMODE(old.stat().st_mode) == 0o604
    os.mkfifo(pipe)
    found: list[bytes] = []
    thread = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    thread.start()
    writing.write(pipe, "through")
    thread.join()
    assert found == [b"through"] and stat.S_ISFIFO(pipe.stat().st_mode)
    with pytest.raises(IsADirectoryError):
        writing.write(tmp_path, "text")
    with pytest.raises(FileNotFoundError):
        writing.write(tmp_path / "absent" / "file", "text")


def test_long_names(tmp_path: Path):
    for name in ("a" * 250, "ü" * 120, "."):
        path = tmp_path / name
        if name != ".":
            writing.write(path, "text")
            assert path.read_text() == "text"
