"""`graphc.torch_names`: what is changed is changed back; installed packages run over eager."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType

import pytest

import eager
import graphc
from graphc.running import recording


def test_the_block_ends_without_a_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    real = ModuleType("torch")
    monkeypatch.setitem(sys.modules, "torch", real)
    before, path = [*sys.meta_path], [*sys.path]
    modules = {name: module for name, module in sys.modules.items() if name.startswith("torch")}
    with graphc.torch_names():
        import torch

        with graphc.torch_names():
            import torch.nn
        assert torch is eager and sys.modules["torch.nn"] is eager.nn
        assert version("torch") == eager.version.__version__
    assert {name: module for name, module in sys.modules.items() if name.startswith("torch")} == modules
    assert sys.modules["torch"] is real
    assert (sys.meta_path, sys.path) == (before, path)
    assert eager.nn.__spec__.name == eager.nn.__name__ == "eager.nn"


def test_modules_of_pytorch_have_the_names_of_their_owners() -> None:
    with graphc.torch_names():
        from torch.autograd.grad_mode import no_grad
        from torch.nn.modules.batchnorm import BatchNorm2d

        with pytest.raises(ImportError, match="cannot import name 'Nothing'"):
            from torch.nn.modules.linear import Nothing  # noqa: F401
        with pytest.raises(ModuleNotFoundError):
            import torch.nn.modules.nothing  # noqa: F401
    assert (BatchNorm2d, no_grad) == (eager.nn.BatchNorm2d, eager.no_grad)


def test_values_of_all_kinds_are_recorded_by_name() -> None:
    net = eager.nn.Linear(2, 1)
    loop: list[object] = [1.0]
    loop.append(loop)
    found = dict(recording.leaves("x", {"net": net, "losses": [1.0, 2.0], "deep": (eager.ones(2).bfloat16(), loop)}))
    assert {*found} == {"x.net.weight", "x.net.bias", "x.losses", "x.deep[0]", "x.deep[1][0]"}
    recording.record("nobody asks", 1.0)
    started = recording.start()
    graphc.record("loss", 1.0)
    graphc.record("loss", eager.tensor(2.0))
    recording._recording = None
    assert {name: array.item() for name, array in started.arrays.items()} == {"loss #0": 1.0, "loss #1": 2.0}
    assert "only its first 10,000" in recording.leaves("x", [[k, "a"] for k in range(6000)])[-1][0]


def _installed(name: str) -> bool:
    try:
        return bool(version(name))
    except PackageNotFoundError:
        return False


@pytest.mark.skipif(not _installed("einops"), reason="einops is not installed")
def test_einops_runs_over_eager() -> None:
    with graphc.torch_names():
        import torch
        from einops import rearrange, reduce

        x = torch.arange(24.0).reshape(2, 3, 4)
        assert rearrange(x, "a b c -> a (b c)").shape == (2, 12)
        compiled = graphc.compile(lambda x: reduce(rearrange(x, "a b c -> b (a c)"), "b n -> b", "mean"))
        assert compiled(x).tolist() == x.mean((0, 2)).tolist()


def test_names_that_libraries_import_and_use_later_if_at_all() -> None:
    with graphc.torch_names():
        from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader
        from torch.distributed.tensor.placement_types import Shard

        assert Shard is eager.distributed.tensor.Shard
        assert not isinstance(1, HuggingFaceStorageReader)
        with pytest.raises(NotImplementedError, match=r"hf_storage\.HuggingFaceStorageReader is a placeholder"):
            HuggingFaceStorageReader("folder")


def test_a_function_keeps_its_name_from_the_module_that_has_it() -> None:
    with graphc.torch_names():
        import torch
        from torch._higher_order_ops.scan import scan

        assert torch._higher_order_ops.scan is scan is eager._higher_order_ops.scan
