"""The example that a new user starts from: its commands do what it says, and so does its Python."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path
from types import ModuleType

import pytest

from compare.command_line import COMMANDS, main
from eager.engine.language import E
from graphc.ops import OPS
from tests.quick import FLAGS

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "check_model.py"


def commands() -> list[list[str]]:
    """What the example says can be typed."""
    text = EXAMPLE.read_text(encoding="utf-8")
    return [shlex.split(line) for line in re.findall(r"^    python -m (.+)$", text, re.MULTILINE)]


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch):
    """The example as a module, and the project's root as the current folder."""
    monkeypatch.chdir(ROOT)
    spec = importlib.util.spec_from_file_location("check_model", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    if "cubic" in OPS:
        OPS.remove("cubic")
        vars(E).pop("cubic", None)


def test_each_step_is_a_command():
    assert [c[1] for c in commands() if c[0] == "compare"] == ["check", "localize", "bench", "report"]
    assert {c[1] for c in commands() if c[0] == "compare"} <= set(COMMANDS)
    assert commands()[-1] == ["pytest", "examples/check_model.py"]


@pytest.mark.deep
def test_check_and_localize(example: ModuleType, capsys: pytest.CaptureFixture[str]):
    found = {c[1]: (main(c[1:]), capsys.readouterr().out) for c in commands()[:2]}
    assert found["check"][0] == 0 and "loss: within rounding" in found["check"][1]
    code, text = found["localize"]
    assert code == 1
    line = next(k for k, t in enumerate(EXAMPLE.read_text().splitlines(), 1) if "return E.cubic(x)" in t)
    assert "gradient rule for 'x' of op 'cubic'" in text
    assert f"examples/check_model.py:{line}: return E.cubic(x)" in text


@pytest.mark.deep
def test_in_python(
    example: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    example.main()
    printed = capsys.readouterr().out
    assert "loss: within rounding" in printed and "op 'cubic'" in printed and "break-even" in printed
    assert "</html>" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_with_pytest(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("XLA_FLAGS", FLAGS)
    # the plugin as it is here, and not as it may be installed
    result = pytester.runpytest_subprocess("-p", "no:compare", "-p", "compare.plugin", str(EXAMPLE))
    result.assert_outcomes(passed=1)
