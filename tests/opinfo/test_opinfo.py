"""PyTorch's own op tests as a witness: where PyTorch is installed, each op of its list on some of its samples."""

from __future__ import annotations

import warnings

import pytest

pytest.importorskip("torch")
pytest.importorskip("expecttest")  # which PyTorch's samples need

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from tests.opinfo import survey
    from tests.opinfo.accepted import accepted

SAMPLES = 6  # of each op and dtype: the whole survey takes an hour
OPS = {f"{op.name} {op.variant_test_name}".strip(): op for op in survey.op_db if survey.is_wanted(op)}


def is_failure(finding: survey.Finding) -> bool:
    """Whether there is no result, or one of another kind: which no reason excuses, but a dtype that is missing here."""
    text = finding.difference
    return text.startswith(("raises", "no ", "dtype", "shape")) and "complex32" not in text


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("aspect", ["value", "gradient", "view"])
@pytest.mark.parametrize("name", OPS)
def test_agrees_with_pytorch(name: str, aspect: str) -> None:
    _, found = survey.survey(OPS[name], aspect, SAMPLES)
    if found and accepted(name, aspect) and not any(map(is_failure, found)):
        pytest.xfail(accepted(name, aspect))
    assert not "\n".join(f"{f.dtype} ({f.sample}): {f.difference}" for f in found)
