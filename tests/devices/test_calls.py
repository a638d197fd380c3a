"""Public functions on device tensors: what the CPU gives, on the device, and nothing computed on the host.

Derived from the tables of sample calls. The devices are NumPy's (`far`): what is asked here is what Python does; that
ops are the same under JAX is asked in `on_jax.py`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import eager as torch
from eager.core.tensor import Tensor
from tests.devices.far import FarRuntime, far
from tests.samples.digest import array, cotangent, expression, tensors_in
from tests.samples.operands import make
from tests.samples.recorder import FAMILIES, Sample, calls

# what asks for values, as Python code that decides on them
ASKS = set(
    "item allclose equal masked_select nonzero argwhere unique unique_consecutive one_hot bincount __setitem__ "
    "__getitem__ index_fill cross_entropy nll_loss linear_cross_entropy ctc_loss rrelu multinomial bernoulli "
    "masked_scatter repeat_interleave poisson binomial histogramdd histc gather scatter scatter_add".split()
)
# numbers of the device's generator
RANDOM = set(
    "dropout dropout1d dropout2d dropout3d dropout_ alpha_dropout alpha_dropout_ feature_dropout feature_dropout_ "
    "feature_alpha_dropout feature_alpha_dropout_ rrelu rrelu_ bernoulli multinomial normal rand_like randn_like "
    "randint_like exponential_ log_normal_ normal_ uniform_ geometric_ cauchy_ random_ bernoulli_ poisson".split()
)
# the results are constants on the CPU, as in PyTorch: no tensor is given, or only lengths are
ON_CPU = set(
    "tril_indices triu_indices eye arange linspace logspace full scalar_tensor ones zeros randn rand randint randperm "
    "median nanmedian histogramdd".split()
)  # of the medians, that of no numbers
MARKS = "tsevn"


def plain(sample: Sample) -> bool:
    """Whether the quick suite looks at a sample: wide numbers that lie plainly."""
    notations = [o.notation for o in sample.operands]
    return all(n.startswith(("f32", "i64", "bool", "c64")) for n in notations)


def chosen(family: str) -> list[Sample]:
    first: dict[Any, Sample] = {}
    for sample in filter(plain, calls(family)):
        kinds = tuple(o.notation[:3] + "".join(m for m in MARKS if o.notation.endswith(m)) for o in sample.operands)
        first.setdefault((sample.name, sample.call, kinds), sample)
    return list(first.values())


def outcome(sample: Sample, move: Callable[[Tensor], Tensor]) -> Any:
    """The error of a call; or its results, then the gradients and the operands afterwards."""
    given = {o.name: move(make(torch, o)) for o in sample.operands}
    torch.manual_seed(0)
    try:
        results = tensors_in(expression(sample.call)(torch, **given))
        live = [t for t in results if t.requires_grad]
        leaves = [t for t in given.values() if t.requires_grad]
        found: list[Any] = []
        if live and leaves:
            seeds = [move(cotangent(torch, t, k)) for k, t in enumerate(live)]
            found = list(torch.autograd.grad(live, leaves, seeds, allow_unused=True))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return results, [*found, *given.values()]


def moved(t: Tensor) -> Tensor:
    return t.detach().to("cuda:1").requires_grad_(t.requires_grad)


def difference(sample: Sample, runtime: FarRuntime) -> str:
    """What is wrong with a call on a device; "" if nothing is."""
    here = outcome(sample, lambda t: t)
    before = runtime.fetched
    there = outcome(sample, moved)
    fetched = runtime.fetched - before
    if isinstance(here, str) or isinstance(there, str):
        same = isinstance(here, str) and isinstance(there, str) and here == there
        return "" if same else f"{there}, on the CPU {here}"
    if fetched and sample.name not in ASKS:
        return f"{fetched} arrays were fetched"
    for a, b in zip([*here[0], *here[1]], [*there[0], *there[1]], strict=True):
        if (a is None) is not (b is None):
            return f"{b}, on the CPU {a}"
        if a is None:
            continue
        if str(b.device) != "cuda:1" and sample.name not in ON_CPU and "windows" not in sample.name:
            return f"a result is on {b.device}"
        if (a.dtype, a.shape) != (b.dtype, b.shape):
            return f"{b.dtype} {b.shape}, on the CPU {a.dtype} {a.shape}"
        apart = 1e-5 if a.dtype != torch.float16 else 4 * torch.finfo(a.dtype).eps  # sums are rounded on the way
        if sample.name not in RANDOM and not np.allclose(array(a), array(b.cpu()), apart, apart, equal_nan=True):
            return f"{b}, on the CPU {a}"
    return ""


@pytest.mark.parametrize("family", FAMILIES)
def test_calls_on_a_device(family: str):
    check(chosen(family))


@pytest.mark.deep
@pytest.mark.parametrize("family", FAMILIES)
def test_all_calls_on_a_device(family: str):
    check([s for s in calls(family) if "bf16" not in str(s.operands)])  # sums of which are rounded on the way


def check(samples: list[Sample]) -> None:
    with far() as runtime, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [f"{s.call} of {s.told}: {problem}" for s in samples if (problem := difference(s, runtime))]
    assert not found, "\n".join(found)


def test_what_computes_on_the_host_is_found(monkeypatch: pytest.MonkeyPatch):
    sample = next(s for s in calls("unary") if s.name == "exp")
    with far() as runtime:
        monkeypatch.setattr(torch, "exp", lambda x: torch.from_numpy(np.exp(x.detach().cpu().numpy())))
        assert "fetched" in difference(sample, runtime)
        monkeypatch.setattr(torch, "exp", lambda x: x + float(x.device.type == "cuda"))
        assert "on the CPU" in difference(sample, runtime)
