"""Meshes, placements and specs: what they print, how they convert, what they refuse; PyTorch is asked where it is."""

from __future__ import annotations

import itertools

import pytest

import eager as torch
from eager.distributed.device_mesh import DeviceMesh, init_device_mesh
from eager.distributed.fsdp import fully_shard, zero
from eager.distributed.tensor import Partial, Replicate, Shard, distribute_tensor, marks
from eager.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from graphc.sharding import Mesh, P, Sharding, mesh_of, sharding_of

MESH = Mesh((4, 2), ("data", "model"))
GRID = init_device_mesh("cpu", (4, 2), mesh_dim_names=("data", "model"))
PLACEMENTS = [Replicate(), Shard(0), Shard(1), Partial()]


def test_placements_are_values_and_print_as_in_pytorch():
    # recorded from PyTorch 2.13
    assert [repr(p) for p in PLACEMENTS] == ["Replicate()", "Shard(dim=0)", "Shard(dim=1)", "Partial(sum)"]
    assert [str(p) for p in PLACEMENTS] == ["R", "S(0)", "S(1)", "P(sum)"]
    assert Shard(0) == Shard(0) and hash(Shard(0)) == hash(Shard(0)) and Shard(0) != Shard(1)
    assert Shard(1).is_shard() and Shard(1).is_shard(1) and not Shard(1).is_shard(0) and not Replicate().is_shard()
    assert Partial("avg").is_partial("avg") and not Partial().is_partial("avg") and Replicate().is_replicate()
    with pytest.raises(TypeError):
        Shard("a")


def test_a_mesh_prints_and_is_sliced_as_in_pytorch():
    assert repr(GRID) == "DeviceMesh((data=4, model=2), 'cpu', stride=(2, 1))"
    assert repr(GRID["data"]) == "DeviceMesh((data=4), 'cpu', stride=(2,))"
    assert GRID["data"].mesh.tolist() == [0, 2, 4, 6] and GRID["model"].mesh.tolist() == [0, 1]
    assert GRID["data", "model"] is GRID and GRID.size() == 8 and GRID.size(1) == 2 and GRID.ndim == 2
    assert GRID.get_coordinate() == (0, 0) and GRID.get_local_rank("model") == 0 and GRID["data"].get_local_rank() == 0
    assert init_device_mesh("cpu", (4, 2), mesh_dim_names=("data", "model")) == GRID != init_device_mesh("cpu", (4, 2))
    assert GRID.mesh.dtype == torch.int32
    assert repr(DeviceMesh("cpu", [[0, 1], [2, 3]])) == "DeviceMesh((2, 2), 'cpu', stride=(2, 1))"


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (lambda: GRID["x"], KeyError,
         "Invalid mesh_dim_names ('x',) specified. Valid mesh_dim_names are ['data', 'model']."),
        (lambda: GRID["model", "data"], KeyError, "Mesh dim indices should be in ascending order."),
        (lambda: GRID["data", "data"], RuntimeError, "Slicing overlapping dim_names ('data', 'data') is not allowed."),
        (lambda: GRID["model", "data"], KeyError,
         "Invalid mesh_dim_names ('model', 'data') specified. Mesh dim indices should be in ascending order."),
        (lambda: init_device_mesh("cpu", (4, 2), mesh_dim_names=("a",)), RuntimeError,
         "mesh_shape and mesh_dim_names should have same length! Found len(mesh_dim_names): 1 and len(mesh_shape):2."),
        (lambda: init_device_mesh("cpu", (4, 2), mesh_dim_names=("a", "a")), RuntimeError,
         "Each mesh_dim_name must be unique. Found repeated mesh_dim_name in mesh_dim_names ('a', 'a')"),
        (lambda: init_device_mesh("cpu:0", (4, 2)), RuntimeError, "Device type with index is not supported"),
        (lambda: init_device_mesh("cpu", (4, 2))["a"], RuntimeError,
         "Cannot slice a DeviceMesh without mesh_dim_names!"),
        (lambda: GRID.get_local_rank(), RuntimeError, "Found the DeviceMesh have 2 dimensions"),
        (lambda: parallelize_module(torch.nn.Linear(4, 4), GRID, ColwiseParallel()), ValueError,
         "`placements` must have the same length as `device_mesh.ndim`! Found placements length: 1, and "
         "device_mesh.ndim: 2."),
        (lambda: parallelize_module(torch.nn.ReLU(), GRID["model"], ColwiseParallel()), NotImplementedError,
         "ColwiseParallel currently only support nn.Linear and nn.Embedding!"),
    ],
)  # fmt: skip
def test_errors_are_those_of_pytorch(wrong, error, message):
    with pytest.raises(error) as found:
        wrong()
    assert message in str(found.value)


@pytest.mark.parametrize("given", [*itertools.product(PLACEMENTS, PLACEMENTS)], ids=str)
def test_placements_convert_both_ways(given):
    sharding = sharding_of(given, 2, MESH)
    assert sharding.placements(MESH) == given
    if not sharding.partial:
        assert sharding_of(sharding.spec, 2, MESH) == sharding


def test_specs_convert_both_ways():
    for spec in (
        P(),
        P("data"),
        P(None, "model"),
        P(("data", "model")),
        P(("model", "data"), None),
        P("model", "data"),
    ):
        sharding = sharding_of(spec, 2, MESH)
        assert tuple(sharding_of(sharding.spec, 2, MESH)) == tuple(sharding)
    assert sharding_of(P("data"), 3, MESH).spec == P("data", None, None)
    assert sharding_of([Shard(-1), Replicate()], 3, MESH) == Sharding(((), (), ("data",)))
    assert sharding_of(None, 2, MESH).is_whole
    assert Sharding((("data", "model"), ())).local((16, 3), MESH) == (2, 3)
    with pytest.raises(ValueError, match="another order"):
        Sharding((("model", "data"),)).placements(MESH)  # which placements cannot say
    with pytest.raises(ValueError, match="sum over data"):
        _ = Sharding(((),), ("data",)).spec


def test_the_same_parts_whatever_the_order_of_the_axes():
    first, other = Sharding((("data", "model"), ())), Sharding((("model", "data"), ()))
    assert first.has_parts_of(other) and first != other
    for apart in (Sharding(((), ("data", "model"))), Sharding((("data",), ("model",))), Sharding.whole(2)):
        assert not first.has_parts_of(apart) and not apart.has_parts_of(first)


def test_specs_are_those_of_jax():
    jax = pytest.importorskip("jax")
    spec = jax.sharding.PartitionSpec(("data", "model"), None)
    assert sharding_of(spec, 2, MESH) == Sharding((("data", "model"), ()))
    assert jax.sharding.PartitionSpec(*sharding_of(spec, 2, MESH).spec) == spec


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (P("data", "data"), "twice"),
        (P("rows"), "no axis 'rows'"),
        (P(None, None, "data"), "3 dims, the value 2"),
        ([Shard(0)], "same length as `device_mesh.ndim`"),
        ([Shard(2), Replicate()], "2 dims"),
        ([Partial("max"), Replicate()], "not by 'max'"),
    ],
)
def test_what_cannot_be_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        sharding_of(given, 2, MESH)


def test_what_a_mesh_shows_of_its_ranks_is_a_copy():
    GRID.mesh.add_(1)
    assert GRID.mesh.flatten().tolist() == [*range(8)]


def test_meshes_are_what_users_have():
    assert mesh_of(GRID) == mesh_of({"data": 4, "model": 2}) == MESH == mesh_of(GRID["data"])
    assert mesh_of(init_device_mesh("cpu", (2, 2))).names == ("dim0", "dim1")
    for wrong, error in ((3, TypeError), ({"a": 0}, ValueError), (Mesh((2,), ("a", "b")), ValueError)):
        with pytest.raises(error):
            mesh_of(wrong)


def test_plans_mark_parameters():
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 4))
    parallelize_module(model, GRID["model"], {"0": ColwiseParallel(), "1": RowwiseParallel()})
    placed = [marks.of(p)[0].placements for p in model.parameters()]
    assert placed == [(Shard(0),), (Shard(0),), (Shard(1),), (Replicate(),)]
    fully_shard(model, mesh=GRID["data"])
    assert [m.placements for m in marks.of(model[0].weight)] == [(Shard(0),), (Shard(0),)]
    with pytest.warns(UserWarning, match="could not be resolved"):
        parallelize_module(model, GRID["model"], {"missing": ColwiseParallel()})
    zero(model, GRID["data"], 2)
    assert [m.state for m in marks.of(model[1].bias)] == [False, False, True]
    with pytest.raises(ValueError, match="stages"):
        zero(model, GRID["data"], 4)


def test_marks_go_with_their_tensor():
    t = torch.zeros(4)
    marks.add(t, marks.Mark(GRID, (Shard(0), Replicate())))
    assert marks.marked([t])
    number = id(t)
    del t
    assert number not in marks._marks
    for wrong, error in (([Shard(1), Replicate()], IndexError), ([Shard(0)], ValueError)):
        with pytest.raises(error):
            distribute_tensor(torch.zeros(4), GRID, wrong)
