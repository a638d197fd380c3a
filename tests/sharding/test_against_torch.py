"""PyTorch's own meshes and placements, side by side with ours."""

from __future__ import annotations

import pytest

from eager.distributed import device_mesh, tensor
from tests.oracle import asked_of_torch

SHOWN = {
    "mesh": lambda mesh, tensor: mesh.init_device_mesh("cpu", (4, 2), mesh_dim_names=("data", "model")),
    "part": lambda mesh, tensor: mesh.init_device_mesh("cpu", (4, 2), mesh_dim_names=("data", "model"))["data"],
    "unnamed": lambda mesh, tensor: mesh.init_device_mesh("cpu", (2, 2, 2)),
    "shard": lambda mesh, tensor: (tensor.Shard(1), str(tensor.Shard(-1))),
    "partial": lambda mesh, tensor: (tensor.Partial("avg"), str(tensor.Partial())),
}


@pytest.fixture(scope="module")
def processes():
    torch = pytest.importorskip("torch")
    from torch.testing._internal.distributed.fake_pg import FakeStore

    torch.distributed.init_process_group("fake", rank=0, world_size=8, store=FakeStore())
    yield
    torch.distributed.destroy_process_group()


@asked_of_torch("name", SHOWN)
def test_it_prints_the_same(name: str, processes: None):
    import torch.distributed.device_mesh
    import torch.distributed.tensor

    theirs = SHOWN[name](torch.distributed.device_mesh, torch.distributed.tensor)
    assert repr(SHOWN[name](device_mesh, tensor)) == repr(theirs)
