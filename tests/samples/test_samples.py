"""Every public function on systematic samples: eager and compiled, against what PyTorch gave (`recorder.py`)."""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any

import pytest

import eager
import graphc
from tests.samples import digest, recorder
from tests.samples.deviations import COMPILED, DEVIATIONS, GRADIENTS
from tests.samples.operands import make
from tests.samples.recorder import Sample

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # as the recorder does


@cache
def groups() -> dict[str, list[Sample]]:
    """The recorded samples by call."""
    found: dict[str, list[Sample]] = {}
    for family in recorder.FAMILIES:
        for (name, call), samples in itertools.groupby(recorder.recorded(family), lambda s: (s.name, s.call)):
            found.setdefault(f"{family}: {name}: {call}", []).extend(samples)
    return found


def listed(sample: Sample, table: tuple[tuple[str, str, str], ...]) -> bool:
    return any(sample.call.startswith(call) and part in sample.told for call, part, _ in table)


def differences(sample: Sample, found: list[Any]) -> str:
    """What of `found` is not what was recorded."""
    if len(found) == len(sample.recorded) and all(map(digest.agree, sample.recorded, found)):
        return ""
    here = "; ".join(map(str, found))
    return f"{sample.call} with {sample.told}:\n  PyTorch {'; '.join(sample.recorded)}\n  here    {here}"


def values_only(sample: Sample, found: list[Any]) -> str:
    """`differences` of the results, where PyTorch gives any."""
    values = [x for x in found[: len(sample.recorded)] if isinstance(x, digest.Digest)]
    refused = sample.recorded[0].startswith("! ")
    return "" if refused else differences(sample._replace(recorded=sample.recorded[: len(values)]), values)


@pytest.mark.parametrize("group", groups())
def test_eager(group: str) -> None:
    failures = []
    for sample in (s for s in groups()[group] if not listed(s, DEVIATIONS)):
        if listed(sample, GRADIENTS):
            with eager.no_grad():
                failures.append(values_only(sample, digest.run(eager, sample.call, sample.operands)))
        else:
            failures.append(differences(sample, digest.run(eager, sample.call, sample.operands)))
    assert not "\n".join(filter(None, failures))


def same_text(sample: Sample, found: list[Any]) -> str:
    """`differences`, where a gradient that is None may also be zeros: one program has them all."""
    pairs = zip(sample.recorded, found, strict=False)
    zeros = {i for i, (a, b) in enumerate(pairs) if a == "None" and isinstance(b, digest.Digest) and not b.scale}
    return differences(sample, ["None" if i in zeros else x for i, x in enumerate(found)])


def compiled_differences(samples: list[Sample]) -> str:
    """All samples of a call in one program, and their gradients in another: what is not as recorded."""
    function = digest.expression(samples[0].call)
    program = graphc.compile(lambda given: [function(eager, **tensors) for tensors in given])
    given = [{o.name: make(eager, o) for o in s.operands} for s in samples]
    eager.manual_seed(0)
    before = eager.get_rng_state()
    results = program(given)
    if len(samples) > 1 and not eager.equal(before, eager.get_rng_state()):  # each was recorded with a fresh generator
        return "\n".join(filter(None, (compiled_differences([sample]) for sample in samples)))
    described = [digest.describe(result, tensors) for result, tensors in zip(results, given, strict=True)]
    chosen = [d for d in described if d[1] and d[2]]
    outs, leaves = [x for _, outs, _ in chosen for x in outs], [x for _, _, leaves in chosen for x in leaves]
    cotangents = [seed for _, outs, _ in chosen for seed in digest.seeds(eager, outs)]
    grads = iter(eager.autograd.grad(outs, leaves, cotangents, allow_unused=True) if outs else ())
    failures = []
    for sample, (found, outs, leaves) in zip(samples, described, strict=True):
        if outs and leaves:
            found = [*found, *(digest.digest_of_gradient(next(grads)) for _ in leaves)]
        failures.append(same_text(sample, found))
    return "\n".join(filter(None, failures))


def first_calls_first() -> list[Any]:
    """The groups; what is not the first call of its function is deep."""
    first = {name.split(": ")[1]: name for name in reversed(groups())}.values()
    return [pytest.param(name, marks=[] if name in first else [pytest.mark.deep]) for name in groups()]


@pytest.mark.on_numpy
@pytest.mark.parametrize("group", first_calls_first())
def test_compiled(group: str) -> None:
    known = (*DEVIATIONS, *GRADIENTS, *COMPILED)
    samples = [s for s in groups()[group] if not listed(s, known) and not any("! " in text for text in s.recorded)]
    if not samples:
        pytest.skip("PyTorch refuses every sample")
    assert not compiled_differences(samples)
