"""`torch.compile`, `torch.compiler`, `torch.jit`, `torch.hub`: PyTorch's spelling of `graphc.compile`."""

from __future__ import annotations

import copy
import pickle
import warnings

import pytest

import eager as torch
from eager import nn
from eager.compiling.compiled import InvalidBackend
from graphc.errors import CaptureError
from tests.oracle import asked_of_torch

pytestmark = pytest.mark.on_numpy


def double(x):
    """A function that can be pickled."""
    return x * 2


@torch.compiler.disable(reason="it prints")
def log(x):
    return float(x.sum())


def logging(x):
    y = torch.rand(2)
    log(x)
    return x + y


ERRORS = {
    "mode": "torch.compile(f, mode='fast')",
    "mode and options": "torch.compile(f, mode='default', options={})",
    "backend": "torch.compile(f, backend='foo')",
    "a number": "torch.compile(3)",
    "allow_in_graph": "torch.compiler.allow_in_graph(3)",
}


@asked_of_torch("case", ERRORS)
def test_errors_as_in_pytorch(case):
    import torch as theirs

    def message(torch):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch's, at the first compile
            try:
                return eval(ERRORS[case], {"torch": torch, "f": double})
            except Exception as error:
                return f"{type(error).__name__}: {error}"

    assert message(torch) == message(theirs)


def test_options_that_mean_nothing_are_refused():
    with pytest.raises(RuntimeError, match="Unexpected optimization option triton, known options are"):
        torch.compile(double, options={"triton": True})
    with pytest.raises(TypeError, match="no FX graph"):
        torch.compile(double, backend=lambda graph, inputs: graph)
    with pytest.raises(InvalidBackend):
        torch.compile(double, backend="tensorrt")


@pytest.mark.parametrize("backend", ["inductor", "aot_eager", "numpy", "auto", "eager"])
def test_backends(backend):
    f = torch.compile(lambda x: (x * 2).sum(), backend=backend)
    x = torch.ones(3, requires_grad=True)
    f(x).backward()
    assert x.grad.tolist() == [2, 2, 2]


def test_decorators():
    seen = []

    @torch.compile(mode="max-autotune", dynamic=False)
    def f(x):
        seen.append(torch.compiler.is_compiling())
        return x + 1

    class Model:
        @torch.compile
        def method(self, x):
            return x + 2

    assert f(torch.zeros(2)).tolist() == f(torch.zeros(2)).tolist() == [1, 1]
    assert seen == [True]
    assert not torch.compiler.is_compiling()
    assert f.__name__ == "f"
    assert Model().method(torch.zeros(1)).tolist() == [2]
    assert torch.func.vmap(lambda x: x * torch.compiler.is_compiling())(torch.ones(2)).tolist() == [0, 0]


def test_options_reach_the_compiler():
    f = torch.compile(lambda x: torch.neg(torch.neg(x)), options={"level": 0})
    f(torch.ones(2))
    assert f.source.count("neg") == 2


def test_a_module_has_pytorchs_names():
    module = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    compiled = torch.compile(module)
    assert compiled._orig_mod is module
    assert list(compiled.state_dict()) == ["_orig_mod.0.weight", "_orig_mod.0.bias"]
    x = torch.ones(1, 2)
    compiled(x).sum().backward()
    assert module[0].weight.grad is not None
    assert torch.equal(copy.deepcopy(compiled)(x), module(x))
    assert torch.equal(pickle.loads(pickle.dumps(compiled))(x), module(x))
    compiled.eval()
    assert not module[0].training


def test_module_compile_is_in_place():
    module = nn.Linear(2, 3)
    x = torch.ones(1, 2)
    expected = module(x)
    assert module.compile(backend="numpy") is None
    assert list(module.state_dict()) == ["weight", "bias"]
    assert torch.equal(module(x), expected)
    assert "matmul" in module.forward.source


def test_what_cannot_be_captured_runs_eagerly_and_says_so():
    f = torch.compile(logging)
    torch.manual_seed(0)
    with pytest.warns(UserWarning, match=r"runs logging eagerly from now on.*log is under.*: it prints"):
        first = f(torch.zeros(2))
    second = f(torch.zeros(2))
    torch.manual_seed(0)
    assert torch.equal(first, torch.rand(2))
    assert torch.equal(second, torch.rand(2))


def test_fullgraph_raises():
    with pytest.raises(CaptureError, match=r"is under torch\.compiler\.disable"):
        torch.compile(logging, fullgraph=True)(torch.zeros(2))
    assert log(torch.ones(2)) == 2


def test_reset_forgets():
    runs = []
    f = torch.compile(lambda x: runs.append(1) or x + 1)
    for _ in range(2):
        f(torch.zeros(1))
        f(torch.zeros(1))
        torch._dynamo.reset()
    assert len(runs) == 2


def test_recompile_limit_falls_back():
    f = torch.compile(lambda x, n: x * n, recompile_limit=1, dynamic=False)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        assert [f(torch.ones(n), n).sum().item() for n in (1, 2, 3, 4)] == [1, 4, 9, 16]
    assert sum("runs <lambda> eagerly" in str(w.message) for w in found) == 1


def test_jit():
    with pytest.deprecated_call(match=r"`torch\.jit\.script` is deprecated"):
        scripted = torch.jit.script(double)
    with pytest.deprecated_call(match=r"`torch\.jit\.trace` is deprecated"):
        traced = torch.jit.trace(nn.Linear(2, 2), (torch.ones(1, 2),))
    assert scripted(torch.ones(1)).tolist() == [2]
    assert traced(torch.ones(3, 2)).shape == (3, 2)
    assert isinstance(traced, torch.jit.ScriptModule) and list(traced.state_dict()) == ["weight", "bias"]
    assert traced.eval() is traced and traced.in_features == 2 and repr(traced) == "Linear(original_name=Linear)"
    assert not torch.jit.is_scripting()
    assert torch.jit.ignore(double) is torch.jit.unused(double) is torch.jit.ignore(drop=True)(double) is double
    assert torch.jit.annotate(list[int], [1]) == [1]
    for refused in (lambda: torch.jit.save(traced, "f"), lambda: torch.jit.load("f")):
        with pytest.raises(NotImplementedError, match="no TorchScript"):
            refused()


def test_hub_refuses(monkeypatch):
    monkeypatch.setenv("TORCH_HOME", "/somewhere")
    assert torch.hub.get_dir() == "/somewhere/hub"
    for name in ("load", "load_state_dict_from_url", "download_url_to_file"):
        with pytest.raises(NotImplementedError, match=f"torch.hub.{name} downloads"):
            getattr(torch.hub, name)("owner/name", "model")
