"""Certificates: what they hold does not depend on the process, and each way in which they can fail has its reason."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import compare
import eager as torch
from compare.certificates.certificate import _canonical, digest, fingerprint
from compare.command_line import main
from compare.judging import gradient_oracles, tolerance
from compare.judging.tolerance import Verdict

MODES = ["graph", "jax.grad"]
PROGRAM = """
import eager as torch

def loss(w, x):
    h = torch.tanh(x @ w)
    return torch.where(h > 0, h, 2 * h).sum()

def wrong(w, x):
    return x.reshape(7)

def arguments():
    w = torch.arange(6.0).reshape(3, 2).requires_grad_()
    return w / 7, torch.ones(2, 3)
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def loss(w: Any, x: Any) -> Any:
    return torch.tanh(x @ w).sum()


def operands() -> tuple[Any, Any]:
    return torch.arange(6.0).reshape(3, 2).requires_grad_(), torch.ones(2, 3)


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    path = tmp_path / "certificate.json"
    compare.certify(loss, *operands(), path=path, modes=MODES, seed=3)
    return path


def rewritten(path: Path, change: Any) -> Path:
    """The file with its content changed, and a digest that fits."""
    content = json.loads(path.read_text())
    del content["digest"]
    change(content)
    path.write_text(json.dumps({**content, "digest": digest(content)}))
    return path


def test_it_holds_for_what_it_was_made_of(certificate: Path):
    content = json.loads(certificate.read_text())
    assert content["seed"] == 3 and content["modes"] == MODES
    assert content["inputs"]["w"]["aval"] == "f32[3,2]" and content["inputs"]["w"]["requires_grad"] is True
    gradient = next(v for v in content["verdicts"] if v["mode"] == "graph" and v["what"] == "gradient of w")
    assert gradient["verdict"] in ("identical", "within rounding") and 0 <= gradient["difference"] < 1e-5
    found = compare.verify(certificate, loss, *operands())
    assert found.ok and found.report is not None and found.report.seed == 3, str(found)
    assert json.loads(found.to_json())["ok"] is True


def test_spacing_and_order_do_not_matter(certificate: Path):
    content = json.loads(certificate.read_text())
    certificate.write_text(json.dumps(dict(reversed(content.items()))))
    assert compare.verify(certificate, loss, *operands()).ok


@pytest.mark.parametrize("name", ["name", "graph", "inputs", "seed", "modes", "tolerances", "environment", "verdicts"])
def test_every_entry_is_under_the_digest(certificate: Path, name: str):
    content = json.loads(certificate.read_text())
    value = content[name]
    content[name] = value + 1 if name == "seed" else value[1:] if isinstance(value, (str, list)) else {}
    certificate.write_text(json.dumps(content))
    found = compare.verify(certificate, loss, *operands())
    assert not found.ok and found.report is None
    assert "has been changed: its digest is" in found.reasons[0]


def changed_loss(w: Any, x: Any) -> Any:
    return torch.tanh(x @ w).sum() * 1.0000001


def test_another_graph(certificate: Path):
    found = compare.verify(certificate, changed_loss, *operands())
    assert [r.split(":")[0] for r in found.reasons] == ["the function has another graph"]


def test_other_inputs(certificate: Path):
    w, x = operands()
    with torch.no_grad():
        w[0, 0] = 1e-30
    found = compare.verify(certificate, loss, w, x)
    assert len(found.reasons) == 1 and "input 'w' has other values" in found.reasons[0]
    reasons = compare.verify(certificate, loss, operands()[0].detach(), torch.ones(4, 3)).reasons
    for reason in ("input 'w' has other requires_grad: False", "input 'x' has other aval: f32[4,3]"):
        assert any(reason in r for r in reasons)


def test_one_input_more_or_fewer(tmp_path: Path):
    path, (w, x) = tmp_path / "certificate.json", operands()
    bias = torch.ones(2)
    compare.certify(lambda w, x: (x @ w).sum(), w, x, path=path, modes=["graph"])
    reasons = compare.verify(path, lambda w, x: (x @ w + bias).sum(), w, x).reasons
    assert "input 'bias' is new" in reasons
    compare.certify(lambda w, x: (x @ w + bias).sum(), w, x, path=path, modes=["graph"])
    reasons = compare.verify(path, lambda w, x: (x @ w).sum(), w, x).reasons
    assert "input 'bias' is missing" in reasons


def test_another_verdict(certificate: Path, monkeypatch: pytest.MonkeyPatch):
    for module in (tolerance, gradient_oracles):
        monkeypatch.setattr(module, "SAFETY", 0.0)  # nothing is within rounding any more
    monkeypatch.setattr(tolerance, "TWICE", 0.0)
    monkeypatch.setattr("compare.checking.comparison.same_bits", lambda a, b: False)
    found = compare.verify(certificate, loss, *operands())
    assert not found.ok and "certified is" in found.reasons[0]
    assert "the table of rounding errors has changed" in found.notes


def test_another_verdict_that_agrees_counts_where_the_environment_is_the_same(certificate: Path):
    def set_identical(content: dict[str, Any]) -> None:
        for entry in content["verdicts"]:
            entry["verdict"] = "convention"
        content["environment"] |= {"load average": "99.0", "time": "long ago"}  # on which no result depends

    found = compare.verify(rewritten(certificate, set_identical), loss, *operands())
    assert not found.ok and "certified is convention" in found.reasons[0]

    def set_environment(content: dict[str, Any]) -> None:
        content["environment"]["numpy"] = "1.0"

    found = compare.verify(rewritten(certificate, set_environment), loss, *operands())
    assert found.ok and any("certified in 1.0" in note for note in found.notes)


def test_what_is_not_compared_any_more(certificate: Path):
    def more(content: dict[str, Any]) -> None:
        content["verdicts"].append({**content["verdicts"][0], "what": "gradient of z"})

    found = compare.verify(rewritten(certificate, more), loss, *operands())
    assert found.reasons == ("graph: gradient of z was not compared",)


def test_random_numbers_are_inputs(tmp_path: Path):
    def noisy(x: Any) -> Any:
        return x + torch.rand(3)

    torch.manual_seed(1)
    compare.certify(noisy, torch.ones(3), path=tmp_path / "c.json", modes=["graph"])
    assert compare.verify(tmp_path / "c.json", noisy, torch.ones(3)).ok
    torch.manual_seed(2)
    assert "has other values" in compare.verify(tmp_path / "c.json", noisy, torch.ones(3)).reasons[0]


def test_no_certificate_without_agreement(tmp_path: Path):
    def masked(x: Any) -> Any:
        return x * bool(x.data_ptr())

    def raises(x: Any) -> Any:
        return x.reshape(7)

    with pytest.raises(compare.DisagreementError, match="there is nothing to certify") as error:
        compare.certify(masked, torch.ones(3), path=tmp_path / "c.json", modes=["graph"])
    assert error.value.report.verdict is Verdict.UNSUPPORTED
    with pytest.raises(compare.CertificateError, match="raises in every mode"):
        compare.certify(raises, torch.ones(3), path=tmp_path / "c.json", modes=["graph"])
    assert not (tmp_path / "c.json").exists()


def test_files_that_are_no_certificates(tmp_path: Path):
    for text in ("", "[]", "{}", '{"format": "another"}'):
        (tmp_path / "c.json").write_text(text)
        with pytest.raises(compare.CertificateError, match=r"c\.json"):
            compare.verify(tmp_path / "c.json", loss, *operands())


def test_the_graph_and_not_where_it_comes_from_is_hashed():
    import graphc

    def one(x: Any) -> Any:
        return graphc.cond(x.sum() > 0, lambda a: a * 2, lambda a: a * a, x)

    def other(x: Any) -> Any:

        return graphc.cond(x.sum() > 0, lambda b: b * 2, lambda b: b * b, x)

    def another(x: Any) -> Any:
        return graphc.cond(x.sum() > 0, lambda a: a * 2, lambda a: a + a, x)

    prints = [fingerprint(graphc.trace(f, torch.ones(3))) for f in (one, other, another)]
    assert prints[0] == prints[1] != prints[2]


def test_tables_have_one_text():
    assert _canonical({"b": frozenset(("x", "y")), "a": (1, 2.0)}) == _canonical({"a": (1, 2.0), "b": {"y", "x"}})
    assert len({_canonical(v) for v in ({"a": 1}, {"a": 1.0}, {"a": (1,)}, ("a", 1))}) == 4


def test_command_line_in_processes_of_their_own(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = str(tmp_path / "c.json")
    target = [f"{program}:loss", "--args", f"{program}:arguments"]
    assert main(["certify", *target, "--out", path, "--modes", "graph,passes"]) == 0
    # another process, another folder, another order of everything that is hashed by address
    command = [sys.executable, "-m", "compare", "verify", path, "program.py:loss", "--args", "program.py:arguments"]
    environment = {"PYTHONPATH": str(Path(compare.__file__).parents[1]), "PYTHONHASHSEED": "7", "GRAPHC_CACHE": "0"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "the certificate holds" in done.stdout, done.stdout + done.stderr
    program.write_text(PROGRAM.replace("2 * h", "3 * h"))
    assert main(["verify", path, *target]) == 1
    assert "another graph" in capsys.readouterr().out
    assert main(["verify", str(tmp_path / "absent.json"), *target]) == 2
    assert main(["certify", f"{program}:wrong", *target[1:], "--out", path, "--modes", "graph"]) == 2
