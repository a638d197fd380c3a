"""`graphc.torch_names`: what is changed is changed back; installed packages run over eager."""

from __future__ import annotations

import importlib
import pickle
import sys
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType

import pytest

import eager
import graphc
from eager.distributed.checkpoint import FileSystemWriter
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
        from torch import ao
        from torch.ao.nn import quantized
        from torch.distributed.checkpoint import filesystem

        assert ao.nn.quantized is quantized and filesystem.FileSystemWriter is FileSystemWriter  # no placeholder
        assert torch is eager and sys.modules["torch.nn"] is eager.nn
        assert version("torch") == eager.version.__version__
    assert {name: module for name, module in sys.modules.items() if name.startswith("torch")} == modules
    assert sys.modules["torch"] is real
    assert (sys.meta_path, sys.path) == (before, path)
    assert eager.nn.__spec__.name == eager.nn.__name__ == "eager.nn"
    assert not any(name.startswith("eager.ao") for name in sys.modules) and "ao" not in vars(eager)


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
@pytest.mark.usefixtures("einops_loaded_anew")
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


def test_what_torchvision_and_timm_import() -> None:
    """Modules that are files of PyTorch alone, and names that exporters and compilers of theirs would use."""
    with graphc.torch_names():
        import torch
        from torch._C import DisableTorchFunctionSubclass
        from torch._dynamo.utils import is_compile_supported
        from torch.ao.quantization import QuantStub
        from torch.fx.graph_module import _copy_attr
        from torch.jit.annotations import BroadcastingList2, List
        from torch.onnx import symbolic_opset11
        from torch.onnx.symbolic_helper import parse_args
        from torch.types import _device, _dtype, _size
        from torch.utils.data._utils.collate import default_collate

        @parse_args("v", "f")
        def symbolic(g: object, x: object) -> object:
            return x

        torch.onnx.register_custom_op_symbolic("mine::op", symbolic, 11)
        with pytest.raises(NotImplementedError, match=r"torch\.onnx\.export: nothing is written for ONNX"):
            torch.onnx.export(torch.nn.Linear(1, 1), torch.ones(1), "model.onnx")
        _copy_attr(torch.nn.Sequential(torch.nn.ReLU()), model := torch.nn.Module(), "0")
        assert [*model._modules] == ["0"]
        for name in (QuantStub, symbolic_opset11.unsqueeze):
            with pytest.raises(NotImplementedError, match="is a placeholder"):
                name()
        with DisableTorchFunctionSubclass():
            assert symbolic(None, 1) == 1 and not torch.onnx.is_in_onnx_export() and is_compile_supported("cpu")
        assert (List.__origin__, BroadcastingList2, _dtype, _device) == (list, list, torch.dtype, torch.device)
        assert default_collate([1, 2]).tolist() == [1, 2]
        assert _size and torch.nn.modules.instancenorm._InstanceNorm
        assert torch.nn.modules.batchnorm.SyncBatchNorm is torch.nn.SyncBatchNorm


def test_what_a_loader_and_a_sparse_tensor_are_compared_by() -> None:
    loader = eager.utils.data.DataLoader([1, 2])
    assert recording.leaves("loader", loader) == []
    ((name, array),) = recording.leaves("a", eager.eye(2).to_sparse())
    assert (name, array.tolist()) == ("a", [[1.0, 0.0], [0.0, 1.0]])


def test_what_is_missing_says_what_to_use_here_too() -> None:
    with graphc.torch_names():
        with pytest.raises(ModuleNotFoundError, match=r"torch\.optim\.lr_shceduler'\. Did you mean: 'lr_scheduler'"):
            importlib.import_module("torch.optim.lr_shceduler")
        nested = importlib.import_module("torch.nested")
        with pytest.raises(NotImplementedError, match=r"placeholder.*Use instead: pad with"):
            nested.nested_tensor([])
        assert importlib.import_module("torch.distributed.rpc").is_available() is False


def test_tensors_are_of_torch_and_their_pickles_are_not() -> None:
    x = eager.ones(2)
    with graphc.torch_names():
        assert (type(x).__module__, repr(x), repr(type(x))) == ("torch", "tensor([1., 1.])", "<class 'torch.Tensor'>")
        written = pickle.dumps([x, eager.nn.Linear(1, 1)])
    assert b"torch" not in written and pickle.loads(written)[0].tolist() == [1.0, 1.0]
    assert type(x).__module__ != "torch" and eager.__name__ == "eager"
