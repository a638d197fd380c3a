"""Planted faults of every layer are found and named, leave nothing behind, and survivors are not kept quiet."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import compare
import eager as torch
import graphc
from compare.command_line import main
from compare.judging.tolerance import Verdict
from compare.locating.culprit import Culprit
from compare.locating.surroundings import STALE
from compare.selftest import hunting
from compare.selftest.campaign import SelftestReport, chosen, selftest
from compare.selftest.fault import Expected, Fault
from compare.selftest.faults import FAULTS
from compare.selftest.hunting import hunt
from compare.selftest.planting import attribute, declared
from compare.selftest.replay import replay
from compare.selftest.trials import samples
from graphc.lowering import cache
from graphc.lowering.overrides import OVERRIDES
from graphc.ops import OPS
from graphc.passes import pipeline
from tests.compare.test_naming import SAMPLE as CLASSES
from tests.depth import one_in

SAMPLE = (
    "gradient of sin.input: a wrong constant",
    "gradient of div.input: the rules of two operands swapped",
    "gradient of mul: not conjugated",
    "gradients of broadcast operands: a mean for the sum",
    "kernel of tanh: off by 1e-3",
    "kernel of relu: writes its operand",
    "kernel of argmax: of equals the last",
    "lowering of cos: off by 1e-3",
    "lowering of tan: through float32",
    "lowering of sum: `keepdims` ignored",
    "lowering: indices clamped, no error",
    "shape of mul: that of the first operand",
    "shape of argmax: int32",
    "pass 'common subexpressions': parameters ignored",
    "pass 'common subexpressions': dtypes ignored",
    "pass 'constant folding': the sign of zero lost",
    "pass 'control flow': branches exchanged",
    "rule planted_exp_log",
    "rule add_neg",
    "functionalization: views are not read anew",
    "functionalization: written back to the wrong tensor",
    "functionalization: results share no memory",
    "random numbers: a dropout mask used again",
    "random numbers: drawn in the reverse order",
    "guards: attributes are not watched",
    "guards: decisions are not looked at",
    "kernel of cumsum: wrong for integers with gaps",
    "writes: negated in place at a step",
    "gradient of matmul: wrong where the operand has gaps",
    "kernels of cumsum: exclusive",
    "kernels of logsumexp: not shifted",
    "pass 'assumptions': both sides are one",
    "rule quotient_of_itself",
    "sharding of mean: a mean of means that are added",
    "promotion: 0-d tensors count",
    "sums of bytes are bytes",
    "kernels of floor_divide: the rounded quotient rounded down",
    "machinery: what was overwritten has a gradient",
    "host: buffers freed once they are read",
    "guards: keys of programs without constants",
    "functionalization: what called functions change is not lifted",
)
BY_NAME = {fault.name: fault for fault in FAULTS}


def test_there_are_enough_faults_of_all_layers():
    assert len(FAULTS) == len(BY_NAME) >= 120
    assert {fault.layer for fault in FAULTS} == {BY_NAME[name].layer for name in (*SAMPLE, *CLASSES)}


def test_what_faults_change_is_still_there():
    gone: dict[str, AssertionError] = {}
    for fault in FAULTS:
        try:
            with fault.plant():
                pass
        except AssertionError as error:
            gone[fault.name] = error
    assert not gone


@pytest.mark.parametrize("name", one_in(8, SAMPLE))
def test_fault_is_found_and_named(name: str):
    catch = hunt(BY_NAME[name], seconds=0)
    assert catch.found
    assert catch.localized, f"{catch.culprit}, not {catch.fault.culprit}:\n{catch.evidence}"


def _library() -> dict[str, Any]:
    """Everything that faults change, by name, to be compared by identity."""
    found: dict[str, Any] = {f"{name}.{slot}": getattr(op, slot) for name, op in OPS.items() for slot in op.__slots__}
    found |= {f"lowering of {name}": kernel for name, kernel in OVERRIDES.items()}
    return found | {f"pass or rules {name}": value for name, value in vars(pipeline).items()}


@pytest.mark.deep
def test_nothing_is_left_of_any_fault():
    sample = torch.tensor([0.5, 1.5], requires_grad=True)
    compare.check(lambda x: (torch.sin(x) * x).sum(), sample)  # eager's code for these ops is there already
    before = _library()
    for fault in FAULTS:
        with pytest.raises(KeyboardInterrupt), fault.plant():
            raise KeyboardInterrupt  # whatever happens meanwhile
    after = _library()
    assert list(before) == list(after)
    assert [name for name in before if before[name] is not after[name]] == []
    assert compare.check(lambda x: (torch.sin(x) * x).sum(), sample).ok


@pytest.mark.parametrize("layer", ["functionalization", "random numbers", "guards"])
def test_sessions_are_clean_without_faults(layer: str):
    for fault in [f for f in FAULTS if f.layer == layer][::4]:
        for how, report in fault.trials():
            assert report.ok, f"{fault.name}, {how}:\n{report}"


def test_planted_kernels_reach_eager_generated_code():
    x = torch.tensor([0.5])
    with declared(OPS["sin"], kernel=lambda x: x + 7):
        assert torch.sin(x).item() == 7.5
        assert compare.check(torch.sin, x, modes=["graph"]).verdict < compare.check(torch.sin, x).verdict
    assert torch.sin(x).item() == np.sin(np.float32(0.5))


def test_a_random_program_that_fails_without_the_fault_finds_nothing(monkeypatch: pytest.MonkeyPatch):
    asked: list[bool] = []
    planted: list[bool] = []

    @contextmanager
    def plant() -> Iterator[None]:
        planted.append(True)
        yield
        planted.pop()

    def fuzz(count: int, seed: int, **options: Any) -> Any:
        asked.append(bool(planted))
        failure = SimpleNamespace(seed=seed, report=SimpleNamespace(verdict=Verdict.BUG))
        return SimpleNamespace(failures=[failure], ok=False)

    monkeypatch.setattr(hunting, "fuzz", fuzz)
    assert not hunt(Fault("nothing", "kernels", plant, Expected("sin"), lambda: iter(())), tries=16).found
    assert asked == [True, False] * 2


def test_survivor_is_reported():
    def no_fault() -> AbstractContextManager[None]:
        return nullcontext()

    survivor = hunt(Fault("nothing at all", "kernels", no_fault, Expected("sin"), samples("sin")), seconds=0)
    report = SelftestReport((survivor,), None)
    assert not survivor.found
    assert not report.ok
    assert "survived: nothing at all" in str(report)


def test_mistaken_culprit_is_reported():
    wrong = BY_NAME["kernel of tanh: off by 1e-3"]
    catch = hunt(Fault(wrong.name, wrong.layer, wrong.plant, Expected("sin"), wrong.trials), seconds=0)
    assert catch.found
    assert not catch.localized
    assert "mistaken: kernel of tanh: off by 1e-3: the report names kernel of op 'tanh'" in str(
        SelftestReport((catch,), None)
    )


def test_expected_names_what_is_given():
    rule = Culprit("rewrite rule", "sub", rule="add_neg", pass_name="pass 10: simplify")
    assert Expected(rule="add_neg").is_named_by(rule)
    assert Expected(pass_name="simplify").is_named_by(rule)
    assert not Expected(op="add").is_named_by(rule)


def test_session_that_differs_only_in_stale_programs_blames_the_guards():
    def session(compile: Any) -> Any:
        scale = [1.0]
        f = compile(lambda x: x * scale[0])
        for scale[0] in (1.0, 2.0):
            yield f(torch.ones(2))

    from graphc.capture.state.environment import Environment

    assert replay(session).ok
    with attribute(Environment, "lines", lambda self, names, miss: []):
        report = replay(session)
    assert [f.culprit.part for f in report.bugs if f.culprit is not None] == [STALE]


def test_command(capsys: pytest.CaptureFixture[str]):
    arguments = ["selftest", "--programs", "1", "--seconds", "0", "--quiet"]
    assert main([*arguments, "--faults", "rule add_neg,kernel of tanh: off by 1e-3", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["found"] for row in found["layers"]] == [1, 1]
    assert found["clean"]["count"] == 1
    assert main([*arguments, "--faults", "nobody"]) == 2


def test_unknown_fault():
    with pytest.raises(ValueError, match="no fault is called 'nobody'"):
        chosen(["nobody"])
    assert selftest(0, 0, ["rule add_neg"]).ok


def test_programs_of_planted_faults_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GRAPHC_CACHE", "1")
    monkeypatch.setenv("GRAPHC_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(cache, "WORTHWHILE", 0.0)
    (fault,) = chosen(["lowering of sum: `keepdims` ignored"])
    assert hunt(fault, 0.0).localized and not list(tmp_path.iterdir())
    graphc.compile(torch.sin)(torch.ones(3))
    assert list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("gradient of standardize.input: a wrong constant", marks=pytest.mark.deep),
        "gradient of diagonal.input: elements in reverse order",
        "kernel of dot_along: a wrong sign",
    ],
)
def test_ops_that_no_graph_shows_are_named(name: str):
    (fault,) = chosen([name])
    assert hunt(fault, 0.0).localized


@pytest.mark.deep
def test_a_reference_that_knows_no_nan_does_not_side_with_a_lowering():
    (fault,) = chosen(["lowering of minimum: nan lost"])
    assert hunt(fault, 0.0).localized
