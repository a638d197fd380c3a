"""What is compiled is kept on disk, and a line tells of a long compilation."""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import eager as torch
import graphc
from eager.core.dtypes import of_numpy
from eager.engine.language import E
from graphc.errors import ProgramFileError
from graphc.ir import Graph
from graphc.lowering import cache, keys, programs, timing
from graphc.lowering.executable import Executable
from graphc.lowering.source import jax_kernel
from graphc.ops import OPS, op
from graphc.ops.aval import Literal
from graphc.ops.dtypes import SHORT_NAMES, bfloat16
from graphc.ops.rules import pointwise_float
from tests.depth import one_in
from tests.quick import FLAGS

ROOT = Path(graphc.__file__).parents[1]

PROGRAM = """
import sys
import eager as torch, graphc
from graphc.lowering import cache
cache.WORTHWHILE = 0.0

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(16, 16) for _ in range(3))

    def forward(self, x):
        for layer in self.layers:
            x = torch.log1p(torch.tanh(layer(x)))  # a kernel of jax.lax, and one of ours
        return x.sum()

torch.manual_seed(0)
model = Model()
step = graphc.compile(lambda x: model(x))
loss = step(torch.ones(4, 16))
loss.backward()
table = graphc.compile(lambda x, i: x.double()[i].sum())  # with a check, in 64 bits
try:
    table(torch.ones(3), torch.tensor([1, 5]))
except IndexError:
    print(float(loss), float(model.layers[0].weight.grad.sum()), table(torch.ones(3), torch.tensor([1, 2])).item())
print(str(step.explain()).count("load"), str(table.explain()).count("load"))
"""


def printed(program: str, directory: Path, **more: str) -> list[str]:
    """The lines that `program` prints in a new process."""
    environment = {**os.environ, "GRAPHC_CACHE_DIR": str(directory), "GRAPHC_CACHE": "", **more}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def run(directory: Path, **more: str) -> tuple[str, str]:
    """The results of `PROGRAM`, and which of its functions were loaded."""
    results, loaded = printed(PROGRAM, directory, **more)
    return results, loaded


COMPILED, LOADED = "0 0", "2 1"  # forward and backward


def test_a_second_process_takes_programs_from_the_cache(tmp_path: Path):
    first, how = run(tmp_path / "cache")
    assert how == COMPILED and len(list((tmp_path / "cache").iterdir())) == 3
    assert run(tmp_path / "cache") == (first, LOADED)


def test_the_cache_can_be_turned_off_and_yields_to_jaxs_own(tmp_path: Path):
    assert run(tmp_path / "none", GRAPHC_CACHE="0")[1] == COMPILED and not (tmp_path / "none").exists()
    run(tmp_path / "ours", JAX_COMPILATION_CACHE_DIR=str(tmp_path / "jax"))
    assert not (tmp_path / "ours").exists()


def test_where_the_cache_lies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("GRAPHC_CACHE", "1")
    monkeypatch.delenv("GRAPHC_CACHE_DIR", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.cache_directory() == tmp_path / "graphc" / "programs"
    monkeypatch.setenv("GRAPHC_CACHE_DIR", str(tmp_path / "here"))
    assert cache.cache_directory() == tmp_path / "here"
    monkeypatch.setenv("GRAPHC_CACHE", "0")
    assert cache.cache_directory() is None


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty directory in which every program is kept."""
    monkeypatch.setenv("GRAPHC_CACHE", "1")
    monkeypatch.setenv("GRAPHC_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(cache, "WORTHWHILE", 0.0)
    return tmp_path


def doubled(x: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x) * 2


def halved(x: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x) / 2


X = np.array([0.25, -1.0, 3.0], np.float32)


def lowered(fn: Any = doubled, **options: Any) -> Executable:
    return graphc.lower(graphc.trace(fn, torch.zeros(3)), **options)


def called(program: Executable, factor: float = 2) -> str:
    """How the program came to be, once it has been called and is right."""
    np.testing.assert_allclose(np.asarray(program(X.copy())), np.tanh(X) * factor, rtol=1e-6)
    return "loaded" if "load" in program.seconds else "compiled"


def test_a_program_is_known_again(kept: Path):
    assert [called(lowered()), called(lowered())] == ["compiled", "loaded"]
    assert lowered().compile().keys() == {"load"}


@pytest.mark.parametrize("dtype", [*SHORT_NAMES, bfloat16()], ids=str)
def test_programs_of_every_dtype_are_known_again(kept: Path, dtype: np.dtype):
    graph = graphc.trace(lambda x: (torch.flip(x, (0,)), x[1:]), torch.zeros(3, dtype=of_numpy(dtype)))
    given = np.array([1, 0, 1]).astype(dtype)
    for how in ("compiled", "loaded"):
        program = graphc.lower(graph)
        flipped, rest = map(np.asarray, program(given))
        assert (flipped.dtype, flipped.tolist(), rest.tolist()) == (dtype, [1, 0, 1], [0, 1])
        assert ("load" in program.seconds) == (how == "loaded")


def test_other_programs_are_told_apart(kept: Path, monkeypatch: pytest.MonkeyPatch):
    assert called(lowered()) == "compiled"
    assert called(lowered(strict=True)) == "compiled"
    with monkeypatch.context() as patch:  # with other settings of XLA they are other programs
        patch.setenv("XLA_FLAGS", f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_enable_fast_math=false")
        assert called(lowered()) == "compiled"
    assert called(lowered()) == "loaded"
    assert np.asarray(lowered(halved)(X)).tolist() == pytest.approx((np.tanh(X) / 2).tolist())
    with jax.default_matmul_precision("highest"):  # of this thread only
        assert called(lowered()) == "compiled"
    constants = [lowered(lambda x, k=k: x + torch.full((3,), k)) for k in (1.0, 2.0)]
    assert [np.asarray(program(X)).tolist() for program in constants] == [(X + 1).tolist(), (X + 2).tolist()]
    assert lowered(donate=(0,))._key(jax.devices()[0]) != lowered()._key(jax.devices()[0])


def test_programs_of_other_dtypes_are_told_apart(kept: Path):
    for dtype in (torch.float32, torch.int32):
        program = graphc.lower(graphc.trace(lambda x: torch.flip(x, (0,)), torch.zeros(3, dtype=dtype)))
        assert np.asarray(program(np.arange(3, dtype=dtype.numpy))).tolist() == [2, 1, 0]
        assert "load" not in program.seconds


def test_the_lines_of_the_program_do_not_matter(kept: Path):
    """Moved down in its file, a function is still the same program."""
    graphs: list[Graph] = []
    for lines in (0, 7):
        scope: dict[str, object] = {"torch": torch}
        exec(compile("\n" * lines + "def f(x):\n    return torch.tanh(x) * 2\n", "file.py", "exec"), scope)
        graphs.append(graphc.trace(scope["f"], torch.zeros(3)))
    first, second = map(graphc.lower, graphs)
    assert first.source != second.source
    assert [called(first), called(second)] == ["compiled", "loaded"]


def tripled(x: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x) * 3


def as_in_a_later_version(data: bytes) -> bytes:
    content = data.replace(b"program 2", b"program 3", 1)[:-32]
    return content + hashlib.sha256(content).digest()


# (content of a file, of another one) -> what the first is then
DAMAGE: dict[str, Callable[[bytes, bytes], bytes]] = {
    "of the other": lambda data, other: other,
    "head of the other": lambda data, other: other[:120] + data[120:],
    "tail of the other": lambda data, other: data[:120] + other[120:],
    "both": lambda data, other: data + other,
    "twice": lambda data, other: data + data,
    "empty": lambda data, other: b"",
    "cut": lambda data, other: data[:100],
    "without its end": lambda data, other: data[:-1],
    "longer": lambda data, other: data + b"\0",
    "of a later version": lambda data, other: as_in_a_later_version(data),
    "of the version before": lambda data, other: hashlib.sha256(data[120:-32]).digest() + data[120:-32],
    **{f"bit in byte {k}": lambda data, other, k=k: data[:k] + bytes([data[k] ^ 1]) + data[k + 1 :]
       for k in (0, 14, 20, 79, 81, 90, 99, 200, -40, -2)},  # the last one in the checksum
}  # fmt: skip


@pytest.mark.parametrize("damage", one_in(4, DAMAGE))
def test_a_damaged_file_is_compiled_anew(kept: Path, damage: str, logged: list[logging.LogRecord]):
    assert called(lowered()) == "compiled"
    (path,) = kept.iterdir()
    lowered(tripled).compile()
    (other,) = set(kept.iterdir()) - {path}
    path.write_bytes(DAMAGE[damage](path.read_bytes(), other.read_bytes()))
    assert [called(lowered()), called(lowered())] == ["compiled", "loaded"]
    (record,) = logged
    assert str(path) in record.getMessage() and "compiled anew" in record.getMessage()


@pytest.mark.parametrize("how", ["exchanged", "renamed", "linked", "linked symbolically"])
def test_a_program_of_another_is_never_run(kept: Path, how: str):
    first, second = lowered(), lowered(tripled)
    first.compile()
    (path,) = kept.iterdir()
    second.compile()
    (other,) = set(kept.iterdir()) - {path}
    if how == "exchanged":
        path.rename(kept / "between")
        other.rename(path)
        (kept / "between").rename(other)
    else:
        path.unlink()
        {"renamed": other.rename, "linked": path.hardlink_to, "linked symbolically": path.symlink_to}[how](
            path if how == "renamed" else other
        )
    for fn, factor in ((doubled, 2), (tripled, 3)):
        np.testing.assert_allclose(np.asarray(lowered(fn)(X.copy())), np.tanh(X) * factor, rtol=1e-6)
    assert called(lowered()) == "loaded"  # each has its own again


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_what_is_no_file_is_compiled_anew(kept: Path):
    assert called(lowered()) == "compiled"
    (path,) = kept.iterdir()
    path.unlink()
    os.mkfifo(path)  # to which nobody writes
    assert [called(lowered()), called(lowered())] == ["compiled", "loaded"]
    path.unlink()
    path.mkdir()
    assert called(lowered()) == "compiled"


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="the system has no such permissions")
@pytest.mark.parametrize("mode", [0o602, 0o620, 0o666])
def test_a_file_that_others_may_write_is_not_loaded(kept: Path, mode: int):
    assert called(lowered()) == "compiled"
    (path,) = kept.iterdir()
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(mode)
    assert [called(lowered()), called(lowered())] == ["compiled", "loaded"]


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="the system has no such permissions")
def test_a_folder_that_others_may_write_to_is_not_used(kept: Path, logged: list[logging.LogRecord]):
    kept.chmod(0o777)
    assert [called(lowered()), called(lowered())] == ["compiled", "compiled"] and not list(kept.iterdir())
    (record,) = logged
    assert "chmod go-w" in record.getMessage()


def test_files_of_another_user_are_not_loaded(kept: Path, monkeypatch: pytest.MonkeyPatch):
    assert called(lowered()) == "compiled"
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)  # root's may be
    assert called(lowered()) == ("loaded" if user == 0 else "compiled")
    (path,) = kept.iterdir()
    status = os.stat_result((0o100600, 0, 0, 1, user + 2, 0, 0, 0, 0, 0))
    assert not programs.trusted(status) and programs.trusted(path.stat()) == (user == 0)


def test_a_description_that_names_anything_else_is_refused():
    class Bomb:
        def __reduce__(self) -> Any:
            return print, ("went off",)

    for value in (Bomb(), [os.system], {"a": (Path("x"), 1)}, np.zeros(3), functools.partial(print)):
        with pytest.raises(ProgramFileError, match="which no program consists of"):
            programs.check_parts(pickle.dumps(value), ProgramFileError.of("f"))


@pytest.mark.parametrize("kept", [b"r\xff\xff\xff\x7f", b"p2147483647\n"])
def test_a_part_is_not_kept_where_memory_ends(kept: bytes):
    with pytest.raises(ProgramFileError, match="keeps a part at place 2,147,483,647"):
        programs.check_parts(b"N" + kept + b".", ProgramFileError.of("f"))


def test_a_full_disk_is_no_error_and_leaves_nothing(kept: Path, monkeypatch: pytest.MonkeyPatch):
    def full(path: Path, data: bytes) -> int:
        with open(path, "wb") as file:
            file.write(data[:100])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        assert called(lowered()) == "compiled"
    assert not list(kept.iterdir()) and called(lowered()) == "compiled"


def test_other_files_in_the_folder_are_left_alone(kept: Path, monkeypatch: pytest.MonkeyPatch):
    """GRAPHC_CACHE_DIR may name a folder with files of the user's: making room must not take them."""
    for name in ("letter.txt", "5e" * 31, "5E" * 32):
        (kept / name).write_bytes(b"mine" * 1000)
        os.utime(kept / name, (0, 0))
    (kept / f".{'5e' * 20}.{'ab' * 8}.part").write_bytes(b"left by a process that was killed")
    monkeypatch.setattr(cache, "LARGEST", 0)
    lowered().compile()
    assert sorted(path.name for path in kept.iterdir()) == sorted(["letter.txt", "5e" * 31, "5E" * 32])


AT_ONCE = """
from concurrent.futures import ThreadPoolExecutor
import numpy as np
import eager as torch, graphc
from graphc.lowering import cache
cache.WORTHWHILE = 0.0
def run(k):
    for _ in range(4):
        found = graphc.lower(graphc.trace(lambda x: torch.tanh(x) * k, torch.zeros(3)))(np.ones(3, np.float32))
        np.testing.assert_allclose(np.asarray(found), np.tanh(1) * k, rtol=1e-6)
with ThreadPoolExecutor(4) as threads:
    list(threads.map(run, (2.0, 3.0, 2.0, 3.0)))
print("done")
"""


def test_threads_that_write_at_once(kept: Path, logged: list[logging.LogRecord]):
    exec(AT_ONCE, {})
    assert not logged and len(list(kept.iterdir())) == 2


@pytest.mark.deep
def test_processes_that_write_at_once(tmp_path: Path):
    environment = {**os.environ, "GRAPHC_CACHE_DIR": str(tmp_path / "cache"), "GRAPHC_CACHE": ""}
    running = [subprocess.Popen([sys.executable, "-c", AT_ONCE], env=environment, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True) for _ in range(3)]  # fmt: skip
    for process in running:
        out, told = process.communicate()
        assert out == "done\n" and "anew" not in told and "Traceback" not in told, told
    assert len(list((tmp_path / "cache").iterdir())) == 2


def test_functions_in_one_line_are_told_apart():
    first, second, third = (lambda x: x + 1), (lambda x: x + 2), (lambda x: x - 1)
    assert len({keys._digest(f.__code__) for f in (first, second, third)}) == 3
    assert keys._digest(first.__code__) == keys._digest(eval("lambda x: x + 1").__code__)


def test_a_file_of_another_build_is_compiled_anew(kept: Path, monkeypatch: pytest.MonkeyPatch):
    assert called(lowered()) == "compiled"
    from jax.experimental import serialize_executable

    def refuse(*args: object, **kwargs: object) -> None:
        raise RuntimeError("made by another version")

    with monkeypatch.context() as patch:
        patch.setattr(serialize_executable, "deserialize_and_load", refuse)
        assert called(lowered()) == "compiled"


def test_a_directory_that_cannot_be_written_is_no_error(kept: Path, monkeypatch: pytest.MonkeyPatch):
    (kept / "file").write_text("")
    monkeypatch.setenv("GRAPHC_CACHE_DIR", str(kept / "file" / "below"))
    assert [called(lowered()), called(lowered())] == ["compiled", "compiled"]


def test_the_programs_used_last_stay(kept: Path, monkeypatch: pytest.MonkeyPatch):
    for age, fn in ((300, doubled), (200, halved)):
        before = set(kept.iterdir())
        lowered(fn).compile()
        (new,) = set(kept.iterdir()) - before
        now = os.stat(new).st_mtime
        os.utime(new, (now - age, now - age))
    assert called(lowered()) == "loaded"  # which is used now
    size = max(path.stat().st_size for path in kept.iterdir())
    monkeypatch.setattr(cache, "LARGEST", int(2.5 * size))
    lowered(tripled).compile()
    assert len(list(kept.iterdir())) == 2 and [called(lowered()), called(lowered(tripled), 3)] == ["loaded"] * 2


def test_constants_with_the_same_bits_are_told_apart_by_their_dtypes():
    alike = [np.zeros(2, dtype) for dtype in (np.float32, np.int32, np.uint32)] + [np.zeros((2, 1), np.float32)]
    assert len({tuple(keys._described(Literal(array))) for array in alike}) == len(alike)


def test_programs_with_kernels_of_the_users_are_not_kept(kept: Path):
    mine = op("of_a_test", "x", impl=lambda xp, x: xp.tanh(x) * 2, rule=pointwise_float)
    try:
        programs = [lowered(lambda x: E.of_a_test(x)) for _ in range(2)]
        assert [called(program) for program in programs] == ["compiled", "compiled"]
    finally:
        OPS.remove(mine.name)
    assert not list(kept.iterdir())


def test_every_kernel_can_be_kept():
    for name, each in OPS.items():
        for operands in ((), (np.zeros((), np.complex64),)):
            call, kernel = jax_kernel(each, operands)
            if call.startswith("ops."):
                assert list(keys._described(kernel)), name
        if each.check is not None:
            assert list(keys._described(each.check.ok)), name


@pytest.mark.deep
def test_every_op_in_a_new_process(tmp_path: Path):
    environment = {**os.environ, "GRAPHC_CACHE_DIR": str(tmp_path / "cache"), "GRAPHC_CACHE": "", "XLA_FLAGS": FLAGS}
    found: list[dict[str, np.ndarray]] = []
    counts: list[tuple[int, ...]] = []
    for k in range(2):
        command = [sys.executable, "-m", "tests.lowering.every_op", str(tmp_path / f"{k}.npz")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, cwd=ROOT)
        counts.append(tuple(map(int, done.stdout.split())))
        found.append(dict(np.load(tmp_path / f"{k}.npz")))
    (compiled, none), (again, loaded) = counts
    assert compiled == loaded > 5 and none == again == 0
    assert found[0].keys() == found[1].keys()
    for name, expected in found[0].items():
        assert found[1][name].tobytes() == expected.tobytes(), name


def test_uncached_programs_are_compiled(kept: Path):
    assert called(lowered()) == "compiled"
    with cache.uncached():
        assert called(lowered()) == "compiled"
    assert called(lowered()) == "loaded"


ELSEWHERE = """
import jax, numpy as np
import eager as torch, graphc
from graphc.lowering import cache
cache.WORTHWHILE = 0.0
for _ in range(2):
    f = graphc.compile(lambda x: torch.tanh(x) * 2)
    x = torch.ones(3)
    assert f(x).tolist() == f(x).tolist() == (torch.tanh(x) * 2).tolist()
    run = graphc.lower(graphc.trace(lambda x: torch.tanh(x) * 2, x))
    for device in (*jax.devices(), jax.devices()[0]):
        found = run(jax.device_put(np.ones(3, np.float32), device))
        assert found.devices() == {device} and found.tolist() == (torch.tanh(x) * 2).tolist()
    mesh = jax.sharding.NamedSharding(jax.make_mesh((3,), ("x",)), jax.sharding.PartitionSpec("x"))
    assert run(jax.device_put(np.ones(3, np.float32), mesh)).tolist() == (torch.tanh(x) * 2).tolist()
    gradient = jax.grad(lambda a: run(a).sum())(np.ones(3, np.float32))
    np.testing.assert_allclose(gradient, 2 / np.cosh(1) ** 2 * np.ones(3), rtol=1e-5)
print(run.seconds.keys())
"""


def test_programs_follow_arrays_to_other_devices(tmp_path: Path):
    flags = "--xla_force_host_platform_device_count=3"
    assert printed(ELSEWHERE, tmp_path, XLA_FLAGS=flags) == ["dict_keys(['load'])"]


def test_a_long_compilation_shows_a_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(timing, "PATIENCE", 0.0)
    fast = graphc.compile(lambda x: torch.linalg.svd(x @ x).S.sum())
    fast(torch.ones(3, 3))
    shown = capsys.readouterr().err
    assert shown.startswith("graphc: compiling lambda_ (") and shown.rstrip().endswith("s")
    monkeypatch.setattr(timing, "PATIENCE", 100.0)
    fast(torch.ones(4, 4))
    assert capsys.readouterr().err == ""
    assert "xla" in fast.explain()
