"""Random programs: reproducible, over the whole registry, and a fault anywhere does not get past them."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import compare
import eager as torch
from compare.checking.findings import Finding, Report
from compare.command_line import main
from compare.fuzzing import Program, Statement, batches, fuzz, generate, generator
from compare.fuzzing.batches import checked, together
from compare.fuzzing.coverage import Coverage
from compare.fuzzing.design import chain_of, vocabulary
from compare.fuzzing.forms import FORMS
from compare.fuzzing.generator import Draft
from compare.fuzzing.program import Input, array_literal
from compare.fuzzing.values import fits, fitting
from compare.judging.tolerance import Verdict
from graphc.lowering import stages
from graphc.lowering.overrides import OVERRIDES
from graphc.lowering.quick import OPTIONS
from graphc.ops.dtypes import FLOAT16, FLOAT32, bfloat16
from graphc.ops.samples import Bools, Complexes, Definite, Floats, Ints, Regular


def made(count: int, first: int = 0) -> tuple[list[Program], Coverage]:
    programs, coverage = [generate(first + k) for k in range(count)], Coverage()
    for program in programs:
        coverage.add(program.ops, program.pairs)
    return programs, coverage


def test_a_seed_gives_the_same_program_whatever_was_made_before():
    (once, _), (again, _) = made(6), made(3, first=3)
    for a, b in zip(once[3:], again, strict=True):
        assert a.source == b.source
        assert [i.array.tobytes() for i in a.inputs] == [i.array.tobytes() for i in b.inputs]
    assert len({p.source for p in once}) == 6


@pytest.mark.parametrize("dtype", [FLOAT16, bfloat16()], ids=str)
def test_programs_of_16_bits_can_be_made(dtype, monkeypatch):
    monkeypatch.setattr(generator, "FLOATS", {dtype: 1.0})
    programs, _ = made(6)
    assert any(i.array.dtype == dtype for p in programs for i in p.inputs)
    for program in programs:
        assert compare.check(program.function, *program.arguments(), modes=["graph"]).ok


def test_programs_reach_every_op_and_many_pairs():
    programs, coverage = made(len(vocabulary()))
    missing = {op.name for op in vocabulary()} - coverage.ops.keys()
    assert not missing
    assert len(coverage.pairs) > 5 * len(programs)  # mostly new ones
    assert 0 < coverage.pair_share() < 1


@pytest.mark.parametrize("names", ["ab", "abcdefg", "abcdefghijklm"])
@pytest.mark.parametrize("size", [2, 3, 8])
def test_the_design_has_every_pair_of_ops_once_it_is_through(names, size):
    chains = [chain_of(k, size, list(names)) for k in range(len(names) ** 2 * 4)]
    pairs = {pair for chain in chains for pair in itertools.pairwise(chain)}
    assert {(a, b) for a in names for b in names if a != b} <= pairs
    assert max(map(len, chains)) <= size


def test_they_take_views_write_in_place_branch_loop_and_draw():
    source = "\n".join(p.source for p in made(60)[0])
    for word in ("graphc.cond", "graphc.scan", "graphc.while_loop", "if v", "_(", "torch.no_grad", "rand", ".detach()"):
        assert word in source, word


@pytest.mark.parametrize("form", FORMS)
def test_each_form_adds_a_statement_that_runs(form):
    draft = Draft(np.random.default_rng(0), FLOAT32)
    draft.drawn(Floats((3, 4)), (-2.0, 2.0))
    assert any(form(draft) for _ in range(20))
    program = draft.finished("p")
    assert program is not None and len(program.function(*program.arguments())) == len(program.results)


@pytest.mark.parametrize("spec", [
    Floats((2, 3)), Floats(()), Floats((7,)), Ints((4,), 5, 2), Bools((3,)), Complexes((3, 2)), Definite((3, 3)),
    Regular((2, 2, 2)), Regular((4, 2)), Regular((2, 3)),
])  # fmt: skip
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool", "complex64"])
def test_any_value_can_be_made_fit(spec, dtype):
    array = np.random.default_rng(0).uniform(-900, 900, (2, 3)).astype(dtype)
    text = fitting("x", torch.from_numpy(array), spec, (-1.0, 1.0), FLOAT32)
    assert text is not None
    found = eval(text, {**compare.fuzzing.program.names(), "x": torch.from_numpy(array)})
    if isinstance(spec, (Definite, Regular)):
        assert np.linalg.cond(found.numpy()).max() < 1e7 and tuple(found.shape) == spec.shape
    else:
        assert fits(found, spec, (-1.0, 1.0), FLOAT32)


# what docs/compare.md says that `check` calls a bug though it is none
KNOWN = ("bitcast", "digamma", "eig", "eigh", "lgamma", "pinv", "svd")
FEW = ("expm1", "sin", "matmul", "sum", "exp", "add", "softmax")  # an op of these is in nearly every program
REST = tuple(op.name for op in vocabulary() if op.name not in FEW)


def wrong_expm1(x):
    return 1.0001 * jnp.expm1(x)


@pytest.mark.parametrize("count", [4, pytest.param(40, marks=pytest.mark.deep)])
def test_sound_code_gives_no_alarm_in_three_modes(count: int):
    report = fuzz(count, seed=500, without=KNOWN)
    assert report.ok and not report.failures, str(report)
    assert sum(report.verdicts.values()) == report.count == count
    assert json.loads(report.to_json())["ok"] is True


@pytest.mark.deep
def test_a_fault_of_one_lowering_is_found_named_and_kept_as_a_script(monkeypatch, tmp_path):
    with monkeypatch.context() as planted:
        planted.setitem(OVERRIDES, "expm1", wrong_expm1)
        report = fuzz(8, seed=0, size=4, corpus=tmp_path, without=REST)
    assert not report.ok
    assert all("expm1" in f.program.source for f in report.failures)
    assert report.verdicts[Verdict.BUG] == len(report.failures)
    culprits = [f.culprit for r in report.failures for f in r.report.findings if f.culprit is not None]
    assert culprits and all(c.op == "expm1" and "random program" in c.where for c in culprits)
    scripts = sorted(tmp_path.glob("*.py"))
    assert len(scripts) == len(report.failures)
    done = subprocess.run([sys.executable, scripts[0]], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr  # a process without the fault finds none


@pytest.mark.deep
def test_in_a_batch_only_wrong_programs_are_blamed(monkeypatch):
    monkeypatch.setitem(OVERRIDES, "expm1", wrong_expm1)
    programs = [generate(k, 4, REST if k % 2 else (*REST, "expm1")) for k in range(12)]
    report = compare.check(together(programs), *(p.arguments() for p in programs), modes=["compiled"])
    wrong = {f.what.split(".")[1] for f in report.findings if f.verdict is Verdict.BUG and f.what.startswith("result.")}
    assert wrong and wrong <= {str(k) for k, p in enumerate(programs) if "expm1" in p.source}


def test_a_fault_of_the_harness_is_a_failure_and_the_rest_goes_on(monkeypatch):
    broken = generate(501).name

    def check(fn, *arguments, **options):
        if fn.__name__ in ("batch", broken):
            raise ZeroDivisionError("planted")
        return compare.check(fn, *arguments, **options)

    monkeypatch.setattr("compare.fuzzing.batches.check", check)
    report = fuzz(3, seed=500, modes=["graph"], without=KNOWN)
    assert [f.seed for f in report.failures] == [501] and "planted" in str(report)


@pytest.mark.deep
def test_a_campaign_goes_on_where_it_stopped(monkeypatch, tmp_path):
    settings = {"modes": ["compiled"], "size": 4, "without": REST, "batch": 2, "corpus": tmp_path}
    with monkeypatch.context() as planted:
        planted.setitem(OVERRIDES, "expm1", wrong_expm1)
        first = fuzz(4, seed=8, **settings)
        again = fuzz(2, resume=True, **settings)
    assert (again.first, again.count, again.seconds > first.seconds) == (8, 6, True)
    assert {f.seed for f in first.failures} <= {f.seed for f in again.failures}  # checked again, and still wrong
    whole = Coverage()
    for program in (generate(8 + k, 4, REST) for k in range(6)):
        whole.add(program.ops, program.pairs)
    assert (again.coverage.ops, again.coverage.pairs) == (whole.ops, whole.pairs)
    mended = fuzz(1, resume=True, **settings)
    assert mended.count == mended.verdicts.total() == 7 and mended.ok and not mended.failures
    with pytest.raises(ValueError, match="other settings"):
        fuzz(1, resume=True, **{**settings, "size": 5})
    with pytest.raises(ValueError, match="no campaign"):
        fuzz(1, resume=True, **{**settings, "corpus": tmp_path / "elsewhere"})


@pytest.mark.deep
def test_several_processes_find_what_one_does():
    one, two = (fuzz(6, seed=500, modes=["graph"], batch=2, without=KNOWN, workers=n) for n in (0, 2))
    assert (one.count, one.verdicts, one.coverage.pairs) == (two.count, two.verdicts, two.coverage.pairs)


def dying_of_three(settings: batches.Settings, numbers: Sequence[int]) -> batches.Result:
    if 503 in numbers:
        os._exit(1)
    return checked(settings, numbers)


def dying_of_both(settings: batches.Settings, numbers: Sequence[int]) -> batches.Result:
    if {502, 503} <= set(numbers):
        os._exit(1)
    return checked(settings, numbers)


@pytest.mark.parametrize("dying", [dying_of_three, pytest.param(dying_of_both, marks=pytest.mark.deep)])
def test_a_campaign_outlives_its_processes(
    dying: Callable[..., batches.Result], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr(batches, "checked", dying)
    report = fuzz(8, seed=500, modes=["graph"], batch=2, without=KNOWN, workers=2, corpus=tmp_path)
    assert report.count == report.verdicts.total() == 8
    alone = dying is dying_of_three
    assert report.ok is not alone
    assert [f.seed for f in report.failures] == [503] * alone
    assert report.crashes == (() if alone else ((502, 503),))
    assert ("the process ended" if alone else "seeds 502, 503 together: a process ended") in str(report)
    assert (tmp_path / "503.py").exists() is alone


def test_the_script_has_the_inputs_to_the_bit():
    values = np.array([[np.nan, -0.0], [np.inf, 1e-45]], np.float32)
    for array in (values, np.array(3, np.int64), np.zeros((0, 2), bool), values.astype(np.complex64)):
        found = eval(array_literal(array), {"np": np})
        assert (found.tobytes(), found.shape, found.dtype) == (array.tobytes(), array.shape, array.dtype)
    script = Program("p", [Input("x", values, True)], [Statement("y = x * 2", ("y",), ("x",))], ["y"]).script(["graph"])
    assert "modes=['graph']" in script and "requires_grad_()" in script


def test_bounds_and_wrong_options():
    with pytest.raises(ValueError, match="never end"):
        fuzz()
    with pytest.raises(ValueError, match="at least 1"):
        fuzz(1, batch=0)
    for bound in ({"count": -3}, {"seconds": -1.0}, {"seconds": float("nan")}):
        with pytest.raises(ValueError, match="of at least 0"):
            fuzz(**bound)
    with pytest.raises(ValueError, match="unknown mode"):
        fuzz(1, modes=["nonsense"])
    with pytest.raises(ValueError, match="no op named"):
        fuzz(1, without=["nonsense"])
    with pytest.raises(ValueError, match="needs corpus"):
        fuzz(1, resume=True)
    assert fuzz(seconds=0.0).count == 0
    assert str(fuzz(count=0, seed=7)).startswith("0 programs (from seed 7)")
    seen = []
    fuzz(4, seed=0, modes=["graph"], batch=2, progress=lambda done, failed: seen.append((done, failed)))
    assert seen == [(2, 0), (4, 0)]


def test_command_line(capsys):
    assert main(["fuzz", "--count", "4", "--seed", "0", "--modes", "graph", "--json", "--quiet"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["count"] == 4 and found["verdicts"] and not found["failures"]
    assert main(["fuzz", "--count", "2", "--seed", "0", "--workers", "0", "--modes", "graph", "--quiet"]) == 0
    assert "pairs of ops" in capsys.readouterr().out
    assert Verdict.BUG > Verdict.UNSUPPORTED


def test_batches_are_compiled_quickly_and_a_program_alone_as_users_compile_it(monkeypatch):
    monkeypatch.setattr("graphc.lowering.stages.PLAIN", None)
    options: list[object] = []

    def checked_(fn, *arguments, **rest):
        options.append(stages.PLAIN)
        good = len(options) > 1
        return Report("f", (), () if good else (Finding("graph", "result", Verdict.BUG, ""),), 0)

    monkeypatch.setattr(batches, "check", checked_)
    assert fuzz(2, seed=0, batch=2, modes=["graph"], quick=True).ok
    assert options == [OPTIONS, None, None]
