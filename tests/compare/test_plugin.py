"""The pytest plugin: what tests that use it look like when they pass and fail, and that it costs nothing unused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import compare
import eager as torch

pytest_plugins = ["pytester"]
ROOT = Path(__file__).resolve().parents[2]
# the plugin as it is here, and not as it may be installed; without others that take their time to start
PLUGINS = ("-p", "no:compare", "-p", "compare.plugin", "-p", "no:hypothesispytest", "-p", "no:xdist")
HEAD = """
import pytest
import eager as torch

def loss(w, x):
    return torch.tanh(x * w).sum()

def wrong(x):
    return torch.expm1(x) * 2

def operands():
    return torch.tensor([0.5, 2.0], requires_grad=True), torch.tensor([1.0, 3.0])
"""


@pytest.fixture(scope="module")
def loaded() -> None:
    """What cannot be loaded twice in one process."""
    compare.localize(torch.sin, torch.ones(2, requires_grad=True))


class Keeping:
    """A plugin of the inner pytest, which drops the modules that it is the first to import: those are noted."""

    def __init__(self) -> None:
        self.modules: dict[str, Any] = {}

    def pytest_unconfigure(self) -> None:
        self.modules.update(sys.modules)

    def put_back(self, but: Path) -> None:
        """A second copy of a module, with classes and state of its own, would break later tests; those in `but` go."""
        for name, module in self.modules.items():
            if not str(getattr(module, "__file__", None) or "").startswith(str(but)):
                sys.modules.setdefault(name, module)


@pytest.fixture
def run(loaded: None, pytester: pytest.Pytester):
    """Runs pytest, with the plugin as it is here, on a test file."""

    def run_tests(tests: str, *options: str) -> pytest.RunResult:
        pytester.makepyfile(HEAD + tests)
        keeping = Keeping()
        result = pytester.runpytest_inprocess(*PLUGINS, "--strict-markers", *options, plugins=[keeping])
        keeping.put_back(pytester.path)
        return result

    return run_tests


def wrong_lowering(monkeypatch: pytest.MonkeyPatch) -> None:
    import jax.numpy as jnp

    from graphc.lowering.overrides import OVERRIDES

    monkeypatch.setitem(OVERRIDES, "expm1", lambda x: 1.01 * jnp.expm1(x))


def test_agreement_passes(run):
    result = run("""
def test_loss(compare_check):
    report = compare_check(loss, *operands())
    assert report.ok and report.seed == 0 and "finite differences" in report.modes

@pytest.mark.compare(modes=["graph"], seed=5)
class TestMarked:
    def test_class(self, compare_check):
        report = compare_check(loss, *operands())
        assert report.modes == ("graph",) and report.seed == 5

    @pytest.mark.compare(seed=7)
    def test_nearest_wins(self, compare_check):
        report = compare_check(loss, *operands())
        assert report.modes == ("graph",) and report.seed == 7
""")
    result.assert_outcomes(passed=3)


def test_with_hypothesis(run, monkeypatch: pytest.MonkeyPatch):
    wrong_lowering(monkeypatch)
    result = run("""
from hypothesis import given, settings, strategies as st

@settings(max_examples=4, derandomize=True, database=None, deadline=None)
@given(st.integers(1, 4))
@pytest.mark.compare(modes=["graph", "compiled"])
def test_wrong(compare_check, n):
    compare_check(wrong if n == 3 else loss, torch.ones(n), *[torch.ones(n)] * (n != 3))
""")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E*lowering of op 'expm1'*", "E*n=3,*"])


def test_options_win_over_markers(run):
    tests = """
@pytest.mark.compare(modes=["compiled"], seed=5)
def test_loss(compare_check):
    report = compare_check(loss, *operands())
    assert report.modes == ("eager", "graph") and report.seed == 0
"""
    run(tests, "--compare-modes=eager,graph", "--compare-seed=0").assert_outcomes(passed=1)


def test_failure_names_the_op_and_shows_the_line_of_the_test_only(run, monkeypatch: pytest.MonkeyPatch):
    wrong_lowering(monkeypatch)
    result = run("""
@pytest.mark.compare(modes=["graph", "compiled"])
def test_wrong(compare_check):
    compare_check(wrong, operands()[0])
""")
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    result.stdout.fnmatch_lines(["*def test_wrong(compare_check):", ">*compare_check(wrong, operands()[[]0])"])
    result.stdout.fnmatch_lines(
        ["E*Failed: wrong: bug (seed 0)", "E*lowering of op 'expm1'*", "E*given v0: f32*0.5, 2.*"]
    )
    assert "return torch.expm1(x) * 2" in text
    assert "equivalence.py" not in text and "plugin.py" not in text


def test_what_raises_in_every_mode_is_no_agreement(run):
    result = run("""
def raises(x):
    return x.reshape(7)

def test_forgotten(compare_check):
    compare_check(raises, operands()[0])

@pytest.mark.compare(raises=RuntimeError)
def test_meant(compare_check):
    compare_check(raises, operands()[0])

@pytest.mark.compare(raises=IndexError)
def test_another(compare_check):
    compare_check(raises, operands()[0])

@pytest.mark.compare(raises=IndexError)
def test_returns(compare_check):
    compare_check(loss, *operands())
""", "--compare-modes=eager,graph")  # fmt: skip
    result.assert_outcomes(passed=1, failed=3)
    result.stdout.fnmatch_lines(["*every mode raises RuntimeError*@pytest.mark.compare(raises=RuntimeError)"])
    result.stdout.fnmatch_lines(["*every mode raises RuntimeError, expected IndexError"])
    result.stdout.fnmatch_lines(["*every mode returns, expected IndexError"])


def test_one_test_for_each_mode(run, monkeypatch: pytest.MonkeyPatch):
    wrong_lowering(monkeypatch)
    result = run("""
def test_value(in_mode):
    found = in_mode(lambda x: {"a": [torch.expm1(x)], "n": 3}, operands()[0])
    assert found["n"] == 3 and type(found["a"][0]) is torch.Tensor
    assert torch.allclose(found["a"][0], torch.expm1(operands()[0]))

def test_exception(in_mode):
    with pytest.raises(RuntimeError, match="shape"):
        in_mode(lambda x: x.reshape(7), operands()[0])
""", "-v")  # fmt: skip
    result.assert_outcomes(passed=5, failed=1)
    result.stdout.fnmatch_lines(["*test_value[[]eager] PASSED*", "*test_value[[]graph] PASSED*",
                                 "*test_value[[]compiled] FAILED*"])  # fmt: skip


def test_modes_for_the_parametrization(run):
    tests = """
@pytest.mark.compare(modes=["graph", "passes", "jax.grad"])
def test_value(in_mode):
    assert in_mode.name == "graph" or in_mode.name.startswith("pass ")
    in_mode(loss, *operands())
"""
    assert run(tests).parseoutcomes()["passed"] > 5
    run(tests, "--compare-modes=graph").assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("tests", "options", "message"),
    [
        (
            "@pytest.mark.compare(mode='graph')\ndef test(compare_check): compare_check(wrong, operands()[0])",
            (),
            "takes modes=, seed=, raises=",
        ),
        (
            "def test(compare_check): compare_check(wrong, operands()[0])",
            ("--compare-modes=gpu",),
            "unknown mode 'gpu'",
        ),
        ("def test(in_mode): pass", ("--compare-modes=gpu",), "unknown mode 'gpu'"),
    ],
)
def test_wrong_use(run, tests: str, options: tuple[str, ...], message: str):
    result = run(tests, *options)
    assert result.ret and "passed" not in result.parseoutcomes()
    assert message in result.stdout.str()


def test_unused_it_loads_nothing(tmp_path: Path):
    test = tmp_path / "test_nothing.py"
    test.write_text("import sys\ndef test(): assert not {'jax', 'numpy', 'eager', 'graphc.ops'} & sys.modules.keys()\n")
    command = [sys.executable, "-m", "pytest", "-q", *PLUGINS]
    done = subprocess.run(
        [*command, "--rootdir", tmp_path, test], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
