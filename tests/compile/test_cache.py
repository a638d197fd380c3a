"""What is compiled is kept on disk, and a line tells of a long compilation."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import eager as torch
import graphc
from eager.language import E
from graphc.ir import Graph
from graphc.lowering import cache, keys, timing
from graphc.lowering.executable import Executable
from graphc.lowering.source import jax_kernel
from graphc.ops import OPS, op
from graphc.ops.rules import pointwise_float
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
print(step.explain().count("load"), table.explain().count("load"))
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
    # with other settings of XLA they are other programs
    assert run(tmp_path / "cache", XLA_FLAGS="--xla_cpu_enable_fast_math=false") == (first, COMPILED)


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


def called(program: Executable) -> str:
    """How the program came to be, once it has been called and is right."""
    np.testing.assert_allclose(np.asarray(program(X.copy())), np.tanh(X) * 2, rtol=1e-6)
    return "loaded" if "load" in program.seconds else "compiled"


def test_a_program_is_known_again(kept: Path):
    assert [called(lowered()), called(lowered())] == ["compiled", "loaded"]
    assert lowered().compile().keys() == {"load"}


def test_other_programs_are_told_apart(kept: Path):
    assert called(lowered()) == "compiled"
    assert called(lowered(strict=True)) == "compiled"
    assert np.asarray(lowered(halved)(X)).tolist() == pytest.approx((np.tanh(X) / 2).tolist())
    with jax.default_matmul_precision("highest"):  # of this thread only
        assert called(lowered()) == "compiled"
    constants = [lowered(lambda x, k=k: x + torch.full((3,), k)) for k in (1.0, 2.0)]
    assert [np.asarray(program(X)).tolist() for program in constants] == [(X + 1).tolist(), (X + 2).tolist()]
    assert lowered(donate=(0,))._key(jax.devices()[0]) != lowered()._key(jax.devices()[0])


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


def flipped(data: bytes) -> bytes:
    return data[:200] + bytes([data[200] ^ 1]) + data[201:]


@pytest.mark.parametrize("damage", [flipped, lambda data: data[:100], lambda data: b""])
def test_a_damaged_file_is_compiled_anew(kept: Path, damage):
    assert called(lowered()) == "compiled"
    (path,) = kept.iterdir()
    path.write_bytes(damage(path.read_bytes()))
    assert [called(lowered()), called(lowered())] == ["compiled", "loaded"]


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
    lowered(lambda x: torch.tanh(x) * 3).compile()
    assert len(list(kept.iterdir())) == 2 and called(lowered()) == "loaded"


def test_programs_with_kernels_of_the_users_are_not_kept(kept: Path):
    mine = op("of_a_test", "x", impl=lambda xp, x: xp.tanh(x) * 2, rule=pointwise_float)
    try:
        programs = [lowered(lambda x: E.of_a_test(x)) for _ in range(2)]
        assert [called(program) for program in programs] == ["compiled", "compiled"]
    finally:
        OPS.remove(mine.name)
    assert not list(kept.iterdir())


@pytest.mark.parametrize("name", sorted(OPS))
def test_every_kernel_can_be_kept(name: str):
    call, kernel = jax_kernel(OPS[name])
    if call.startswith("ops."):
        assert list(keys._described(kernel))
    if (check := OPS[name].check) is not None:
        assert list(keys._described(check.ok))


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
