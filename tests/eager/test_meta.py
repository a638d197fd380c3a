"""Meta tensors: sample calls give the shapes and dtypes that they give with values; devices; models without memory."""

from __future__ import annotations

import copy
import io
import math
import pickle

import numpy as np
import pytest

import eager as torch
from eager import nn
from eager.core import pytree
from eager.core.tensor import Tensor
from tests.oracle import asked_of_torch, torch_or_skip
from tests.samples import digest, recorder
from tests.samples.operands import make

# calls that need values, and those that make tensors without looking at their operands
NEED_VALUES = (
    "t.nonzero(", "t.argwhere(", "t.unique", "t.bincount(", "t.masked_select(", "F.one_hot(i)", "x[m", "x[:, m", "x[i]",
    "(lambda z: (z.__setitem__(m", "x.reshape(-1)[0].item()", "t.allclose(", "t.equal(", "F.ctc_loss(", "F.rrelu(",
    "t.repeat_interleave(", "t.linalg.vander(", "t.histogramdd(", "t.histc(x, 1)",
)  # fmt: skip
NEED_MEMORY = ("t.as_strided", "t.slice_inverse(", "x.view(t.")
ELSEWHERE = (
    "t.isreal(", "t.histogram(", "t.linalg.cholesky_ex(", "t.signal.windows.", "t.broadcast_shapes(", "t.tril_indices(",
    "t.triu_indices(", "t.eye(", "t.arange(", "t.linspace(", "t.logspace(", "t.full(", "t.scalar_tensor(", "t.ones(",
    "t.zeros(", "t.randn(", "t.rand(", "t.randint(", "t.randperm(",
)  # fmt: skip


def avals(value):
    """(shape, dtype) of the tensors in a nest, and the other leaves by type."""
    leaves = pytree.flatten(value)[0]
    return [(tuple(t.shape), t.dtype) if isinstance(t, Tensor) else type(t) for t in leaves]


def on_meta(t):
    return torch.empty_like(t, device="meta").requires_grad_(t.requires_grad) if isinstance(t, Tensor) else t


def differences(sample):
    """What a call of meta tensors gives otherwise than one with values."""
    function = digest.expression(sample.call)
    given = {o.name: make(torch, o) for o in sample.operands}
    metas = {name: on_meta(t) for name, t in given.items()}
    try:
        expected = avals(function(torch, **given))
    except Exception:
        return ""
    found = function(torch, **metas)
    tensors = [t for t in pytree.flatten(found)[0] if isinstance(t, Tensor)]
    if avals(found) != expected:
        return f"{sample.call} with {sample.told}: {avals(found)}, not {expected}"
    if not sample.call.startswith(ELSEWHERE) and not all(t.is_meta for t in tensors):
        return f"{sample.call} with {sample.told} has values"
    outputs = [t for t in tensors if t.requires_grad and not t.is_complex()]
    leaves = [t for t in metas.values() if isinstance(t, Tensor) and t.requires_grad]
    try:
        grads = torch.autograd.grad([t.sum() for t in outputs], leaves, allow_unused=True) if outputs else ()
    except (RuntimeError, NotImplementedError) as error:
        return "" if "derivative" in str(error) else f"{sample.call} with {sample.told}: {error}"
    wrong = [g for g, t in zip(grads, leaves, strict=False) if g is not None and avals(g) != avals(t)]
    return f"{sample.call} with {sample.told}: gradients {avals(wrong)}" if wrong else ""


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("family", recorder.FAMILIES)
def test_samples_have_the_same_shapes_and_dtypes(family):
    seen, failures = set(), []
    for sample in recorder.recorded(family):
        if sample.call in seen or sample.recorded[0].startswith("! "):
            continue
        seen.add(sample.call)
        if not sample.call.startswith(NEED_VALUES + NEED_MEMORY):
            failures.append(differences(sample))
    assert not "\n".join(filter(None, failures))


CALLS = """
x; x + 1; x.sum().item(); x.item(); x.numpy(); x.cpu(); x.to('cpu'); x + torch.ones(2, 3); torch.ones(2, 3) + x
x + torch.tensor(1.); x @ torch.ones(3); bool(x.sum()); float(x.sum()); x.device; x.is_meta; x.is_cpu; x.get_device()
torch.randn(2, device='meta'); torch.tensor([1, 2], device='meta'); torch.arange(3, device='meta'); x.to(torch.float64)
torch.ones(2, 3).copy_(x); x.copy_(torch.ones(2, 3)); nn.Linear(2, 3, device='meta').weight; x.T.requires_grad_() * 2
nn.Linear(2, 3, device='meta').to('cpu'); nn.Linear(2, 3).to('meta').bias; torch.ones(2).to('meta'); x.nbytes; len(x)
torch.ones_like(x); torch.zeros_like(torch.ones(2), device='meta'); x.new_ones(2); x.max(0); x.detach(); x.clone()
torch.cat([x, torch.ones(2, 3)])
torch.where(x > 0, x, torch.ones(2, 3)); copy.deepcopy(x); nn.init.kaiming_uniform_(x); x.fill_(3); x.uniform_()
nn.Linear(2, 3).load_state_dict(nn.Linear(2, 3, device='meta').state_dict()); x.add_(x); format(x.sum()); x[0, 1:]
nn.Embedding(5, 2, device='meta')(torch.tensor([1])); nn.BatchNorm1d(3, device='meta').running_var; x.softmax(1)
torch.get_default_device(); nn.utils.skip_init(nn.Linear, 2, 3).weight.device; x.rand if False else torch.rand_like(x)
""".replace("\n", ";").split(";")


@asked_of_torch("call", [call.strip() for call in CALLS if call.strip()])
def test_calls_as_in_pytorch(call):
    def told(torch):
        try:
            x = torch.ones(2, 3, device="meta")
            return str(eval(call, {"torch": torch, "nn": torch.nn, "copy": copy, "x": x}))
        except Exception as error:
            kinds = [kind for kind in type(error).__mro__ if kind.__module__ == "builtins"]
            return f"{kinds[0].__name__}: {error}"

    assert told(torch) == told(torch_or_skip())


class Block(nn.Module):
    """What models make besides parameters."""

    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Dropout(0.1), nn.Linear(4 * width, width))
        self.register_buffer("mask", torch.tril(torch.ones(16, 16)).view(1, 1, 16, 16))
        self.scale = nn.Parameter(torch.full((width,), 1e-6))
        frequencies = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
        self.register_buffer("positions", torch.zeros(16, width))
        self.positions[:, 0::2] = torch.sin(torch.arange(16).unsqueeze(1) * frequencies)
        nn.init.trunc_normal_(self.mlp[0].weight, std=0.02)

    def forward(self, x):
        y = self.norm(x + self.positions[: x.size(1)])
        y = self.attention(y, y, y, need_weights=False)[0]
        return x + self.scale * self.mlp(y).masked_fill(self.mask[0, 0, : x.size(1), :1] == 0, 0.0)


def test_a_model_in_a_context_takes_no_memory():
    state = torch.get_rng_state()
    with torch.device("meta"):
        model = Block(1 << 18)
        assert torch.get_default_device() == torch.device("meta")
        with torch.device("cpu"):
            assert torch.ones(1).is_cpu
    assert torch.ones(1).is_cpu
    assert torch.equal(torch.get_rng_state(), state)
    assert all(t.is_meta for t in (*model.parameters(), *model.buffers()))
    assert sum(p.numel() for p in model.parameters()) > 12 * 2**36
    y = model(torch.empty(2, 16, 1 << 18, device="meta"))
    assert y.shape == (2, 16, 1 << 18)
    y.sum().backward()
    assert all(p.grad.shape == p.shape for p in model.parameters())
    torch.optim.AdamW(model.parameters()).step()


def test_from_meta_to_values():
    torch.manual_seed(0)
    source = Block(8)
    with torch.device("meta"):
        assigned, copied = Block(8), Block(8)
    assigned.load_state_dict(source.state_dict(), assign=True)
    assert copied.to_empty(device="cpu") is copied
    copied.load_state_dict(source.state_dict())
    x = torch.randn(2, 5, 8)
    source.eval(), assigned.eval(), copied.eval()
    assert torch.equal(assigned(x), source(x))
    assert torch.equal(copied(x), source(x))
    assert assigned.scale.requires_grad
    with pytest.warns(UserWarning, match="which is a no-op"):
        nn.Linear(2, 2, device="meta").load_state_dict(nn.Linear(2, 2).state_dict())


def test_default_device():
    torch.set_default_device("meta")
    try:
        assert torch.zeros(2).is_meta
        assert nn.Linear(2, 2).weight.is_meta
        assert torch.from_numpy(np.ones(2)).is_cpu
        assert torch.ones(2, device="cpu").is_cpu
    finally:
        torch.set_default_device(None)
    assert torch.zeros(2).is_cpu


def test_copies_keep_them():
    x = torch.ones(2, 3, device="meta", dtype=torch.int16)
    for found in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
        assert (found.is_meta, found.shape, found.dtype) == (True, (2, 3), torch.int16)
    with pytest.raises(NotImplementedError, match="no data"):
        torch.save({"x": x}, io.BytesIO())


def test_values_of_the_caller_are_told_from_constants_of_the_library():
    class Mixed(nn.Module):
        def forward(self, x):
            return nn.functional.linear(x, torch.ones(2, 3))

    x = torch.ones(2, 3, device="meta")
    for module, given in ((Mixed(), x), (nn.Linear(3, 2), x), (nn.Linear(3, 2, device="meta"), torch.ones(2, 3))):
        with pytest.raises(RuntimeError, match="not on the expected device"):
            module(given)
    assert nn.functional.interpolate(x[None], 5, mode="linear").shape == (1, 2, 5)  # multiplies by a matrix of weights


def test_compiled_functions_run_eagerly_on_them():
    x = torch.ones(2, 3, device="meta")
    assert torch.compile(lambda x: (x @ x.T).relu(), backend="numpy")(x).shape == (2, 2)
    with pytest.raises(NotImplementedError, match="no data"):
        torch.compile(lambda y: y + x, backend="numpy", fullgraph=True)(torch.ones(2, 3))
