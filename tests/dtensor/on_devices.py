"""DTensors on eight devices of JAX, which this process has. Started by tests/devices/test_jax.py."""

from __future__ import annotations

import functools
import pickle
from copy import deepcopy
from typing import Any

import jax
import numpy as np
import pytest

import compare
import eager as torch
import graphc
from compare.locating.on_meshes import PLACING
from compare.selftest.fault import Fault
from compare.selftest.faults import meshes
from compare.selftest.hunting import hunt
from eager.core.tensor import Tensor
from eager.distributed import checkpoint
from eager.distributed.device_mesh import DeviceMesh, init_device_mesh
from eager.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from eager.distributed.tensor import (
    DTensor,
    Partial,
    Placement,
    Replicate,
    Shard,
    creation,
    distribute_tensor,
)
from eager.distributed.tensor.experimental import implicit_replication, local_map
from eager.distributed.tensor.parallel import RowwiseParallel, loss_parallel, parallelize_module
from graphc.errors import CaptureError
from tests.depth import one_in
from tests.dtensor.training import MODELS, PARTS, STRATEGIES, Trained, both, trained
from tests.ops import elsewhere
from tests.ops.cases import Case, by_op, every_case

RTOL = 1e-9
SQUARE = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "model"))
SOME = set("mul matmul sum index_put cat".split())  # the ops of which the quick suite runs a case


def spread(t: Tensor) -> Tensor:
    """`t` in parts, along the first of its dims that divide."""
    placements: list[Placement] = []
    for n in SQUARE.shape:
        free = [d for d, size in enumerate(t.shape) if size and size % n == 0 and Shard(d) not in placements]
        placements.append(Shard(free[0]) if free else Replicate())
    return distribute_tensor(t, SQUARE, placements)


def check(case: Case, rng: np.random.Generator) -> None:
    elsewhere.check(case, rng, spread, lambda t: isinstance(t, DTensor))


def in_parts(params: list[Any]) -> list[Any]:
    """`params` with ids that say to which of the parts each belongs that `test_dtensor.py` runs."""
    return [pytest.param(*p.values, id=f"part{k % PARTS}-{p.id}", marks=p.marks) for k, p in enumerate(params)]


@pytest.mark.deep
@pytest.mark.parametrize("cases", in_parts(by_op(every_case())))
def test_every_op(cases: list[Case], rng: np.random.Generator):
    for case in cases:
        check(case, rng)


@pytest.mark.parametrize("cases", by_op([c for c in every_case() if c.op.name in SOME]))
def test_some_ops(cases: list[Case], rng: np.random.Generator):
    check(cases[0], rng)


def test_there_are_eight_devices():
    assert len(jax.devices()) == 8


# --- programs


@functools.cache
def alone(name: str, steps: int) -> Trained:
    """A model trained on one device."""
    return trained(name, steps=steps)


def same(name: str, strategy: Any, compiled: bool, steps: int) -> Trained:
    expected, found = alone(name, steps), trained(name, strategy, compiled, steps)
    assert found.losses == pytest.approx(expected.losses, rel=1e-5)
    for key, values in expected.values.items():
        assert np.abs(values - found.values[key]).max() < 1e-5, key
    parameters: list[Any] = [*found.model.parameters()]
    for p in parameters:
        if isinstance(p, DTensor):  # gradients and state lie as the parameter does
            assert p.grad is not None and p.grad.placements == p.placements
            assert found.optimizer.state[p]["exp_avg"].placements == p.placements
            assert p.grad.device_mesh == p.device_mesh
        else:
            assert not isinstance(p.grad, DTensor)
    return found


@pytest.mark.deep
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda s: s.__name__)
@pytest.mark.parametrize("name", MODELS)
def test_training_is_that_of_one_device(name: str, strategy: Any, compiled: bool):
    same(name, strategy, compiled, steps=10)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_an_mlp_in_parts(compiled: bool):
    found = same("mlp", both, compiled, steps=2)
    parameters: list[Any] = [*found.model.parameters()]
    placed = [p.placements for p in parameters]
    assert placed == [(Shard(0), Shard(0))] * 2 + [(Shard(0), Shard(1)), (Shard(0), Replicate())]
    parts = [p._d.array.addressable_shards[0].data.shape for p in parameters]
    assert parts == [(8, 32), (8,), (4, 32), (4,)]  # each device holds no more


# --- tensors


def values(t: Any) -> Any:
    return t.full_tensor().tolist()


def on(t: Tensor, *placements: Placement) -> Any:
    return distribute_tensor(t, SQUARE, placements or None)


X = torch.arange(32.0).reshape(8, 4)


def test_what_it_is_and_shows():
    x: Any = on(X, Shard(0), Replicate())
    assert all(isinstance(x, kind) for kind in (DTensor, Tensor)) and not isinstance(X, DTensor)
    assert not hasattr(X, "placements") and x.device_mesh is SQUARE and x.device.type == "cpu" and x.is_cpu
    assert (
        x.shape == (8, 4)
        and x.to_local().shape == (4, 4)
        and type(x.to_local()) is Tensor
        and not hasattr(x.to_local(), "placements")
    )
    # as PyTorch prints that of rank 0
    assert repr(x[:, :1] + 0) == (
        "DTensor(local_tensor=tensor([[ 0.],\n        [ 4.],\n        [ 8.],\n        [12.]]), "
        "device_mesh=DeviceMesh((data=2, model=2), 'cpu', stride=(2, 1)), placements=(Shard(dim=0), Replicate()))"
    )
    assert [s.data.shape for s in x._d.array.addressable_shards] == [(4, 4)] * 4


def test_results_lie_as_xla_splits_them():
    x, w = on(X, Shard(0), Replicate()), on(torch.ones(4, 6), Replicate(), Shard(1))
    assert (x @ w).placements == (Shard(0), Shard(1)) and (x.T * 2).placements == (Shard(1), Replicate())
    assert x.sum(0).placements == (Replicate(), Replicate())  # reduced at once: JAX has no terms of a sum
    made: Any = [torch.zeros_like(x), torch.randn_like(x)]
    assert made[0].placements == made[1].placements == x.placements
    half = distribute_tensor(torch.ones(4, 6), SQUARE["model"], [Shard(1)])
    assert half.placements == (Shard(1),) and (half + 1).device_mesh == SQUARE["model"]
    row = distribute_tensor(X, SQUARE["data"], [Shard(0)])
    assert (row @ half).placements == (Shard(0), Shard(1)) and (row @ half).device_mesh == SQUARE


def test_redistribute_and_the_way_back():
    x = on(X.clone().requires_grad_(), Shard(0), Replicate())
    moved = x.redistribute(placements=[Replicate(), Shard(-1)])
    assert moved.placements == (Replicate(), Shard(1)) and values(moved) == X.tolist()
    (moved * X.shape[0]).sum().backward()
    assert x.grad.placements == x.placements and values(x.grad) == [[8.0] * 4] * 8
    x.grad = None
    x.to_local().sum().backward()
    assert values(x.grad) == [[1.0] * 4] * 4 + [[0.0] * 4] * 4  # the part of the first device
    x.grad = None
    (x.full_tensor() * 2).sum().backward()
    assert values(x.grad) == [[2.0] * 4] * 8
    assert x.redistribute(SQUARE["model"], [Shard(1)]).placements == (Shard(0), Shard(1))
    with pytest.raises(RuntimeError, match="Partial"):
        x.redistribute(SQUARE["model"], [Partial()])
    x.register_hook(lambda g: g * 3)
    x.grad = None
    (x * 1).sum().backward()
    assert values(x.grad)[0] == [3.0] * 4


def test_how_a_traced_value_lies_is_refused_with_the_line_and_the_remedy():
    x = on(X, Shard(0), Replicate())
    for f in (lambda x: (x * 2).to_local(), lambda x: x.placements):
        with pytest.raises(CaptureError, match=r"on_devices.py:\d+: how a traced value lies .*Remedy: full_tensor"):
            graphc.compile(f)(x)


def test_from_local_makes_the_whole_of_parts():
    parts = [torch.full((1, 2), float(k), requires_grad=True) for k in range(4)]
    assert values(DTensor.from_local(parts, SQUARE, [Shard(0), Shard(1)])) == [[0, 0, 1, 1], [2, 2, 3, 3]]
    for op, expected in {"sum": [1, 5], "avg": [0.5, 2.5], "max": [1, 3], "min": [0, 2], "product": [0, 6]}.items():
        found = DTensor.from_local(parts, SQUARE, [Shard(0), Partial(op)])
        assert values(found) == [[e, e] for e in expected] and found.placements == (Shard(0), Replicate())
    same: Any = torch.ones(2, requires_grad=True)
    found = DTensor.from_local(same, SQUARE, [Shard(0), Partial()])  # the same part on each device
    assert values(found) == [2.0] * 4
    found.sum().backward()
    assert same.grad.tolist() == [4.0, 4.0]


def test_a_dim_that_does_not_divide():
    x = on(torch.arange(5.0), Shard(0), Shard(0))
    assert x.placements == (Shard(0), Shard(0)) and x.to_local().tolist() == [0.0, 1.0]  # PyTorch's first part
    assert values(x * 2) == [0, 2, 4, 6, 8] and values(x.sum()) == 10
    x += 1
    assert x.placements == (Shard(0), Shard(0)) and values(x) == [1, 2, 3, 4, 5]


def test_writes_keep_the_placements():
    x = on(X, Shard(0), Shard(1))
    y = x.clone()
    y[0] += 1
    y.t().mul_(2)
    y.view(-1)[3] = 5
    assert y.placements == x.placements and values(y)[0] == [2.0, 4.0, 6.0, 5.0]
    for write in (lambda t: t.copy_(X), lambda t: t.zero_(), lambda t: t.fill_(2), lambda t: t.normal_()):
        assert write(y).placements == x.placements
    with torch.no_grad():
        p: Any = torch.nn.Parameter(x.detach())
        p.sub_(torch.ones_like(p))
    assert isinstance(p, DTensor) and p.placements == x.placements


NO_PLAN: Any = "columns"


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (lambda: on(X, Shard(0), Replicate()) + X, RuntimeError,
         "got mixed torch.Tensor and DTensor, need to convert all torch.Tensor to DTensor before calling distributed "
         "operators!"),
        (lambda: on(X, Shard(2), Replicate()), IndexError, "to be in range of [-2, 1], but got 2"),
        (lambda: on(X.sum(), Shard(0), Replicate()), AssertionError, "Expected tensor.dim() > 0, got 0"),
        (lambda: on(X, Shard(1), Replicate()).redistribute(placements=[Partial(), Shard(0)]), RuntimeError,
         "Can not redistribute from S(1) to P(sum), redistributing to Partial is for internal use only!"),
        (lambda: parallelize_module(torch.nn.Linear(2, 2), init_device_mesh("cpu", (8,)), NO_PLAN), TypeError,
         "Expect Union[ParallelStyle, Dict[str, ParallelStyle]] for parallelize_plan, <class 'str'> found!"),
        (lambda: on(X, Shard(0)), ValueError, "`placements` must have the same length as `device_mesh.ndim`!"),
        (lambda: on(X.clone().requires_grad_() * 2, Shard(0), Replicate()), RuntimeError, "but found non-leaf tensor!"),
        (lambda: distribute_tensor(on(X, Shard(0), Replicate()), SQUARE), ValueError,
         "do you want to call `redistribute` instead?"),
        (lambda: on(X).redistribute(placements=[Partial(), Shard(0)]), RuntimeError,
         "redistributing to Partial is for internal use only!"),
        (lambda: on(X).redistribute(), RuntimeError, "placements is needed for redistribute!"),
        (lambda: distribute_tensor(X, init_device_mesh("cpu", (64,))), RuntimeError, "needs 64 devices"),
        (lambda: on(X) + distribute_tensor(X, init_device_mesh("cpu", (8,))), RuntimeError,
         "on different meshes"),
        (lambda: on(X).numpy(), TypeError, "can't convert a DTensor to numpy"),
        (lambda: distribute_tensor(X, DeviceMesh("cpu", [1, 0])), NotImplementedError, "ranks 0, 1, ..."),
    ],
)  # fmt: skip
def test_errors_are_those_of_pytorch(wrong: Any, error: type[Exception], message: str):
    with pytest.raises(error) as found:
        wrong()
    assert message in str(found.value)


def test_numbers_mix_and_plain_tensors_may():
    x = on(X, Shard(0), Replicate())
    assert values(x * torch.tensor(2.0)) == values(x + x)
    assert values(torch.arange(4, device=x.device)) == [0, 1, 2, 3]  # made on the mesh
    with implicit_replication():
        assert values(x + X) == values(x * 2)


def test_parameters_are_gathered_in_the_dtype_of_the_policy():
    model = fully_shard(torch.nn.Linear(4, 8), mesh=SQUARE["data"], mp_policy=MixedPrecisionPolicy(torch.bfloat16))
    made = model(torch.ones(2, 4))
    made.sum().backward()
    assert (made.dtype, model.weight.grad.dtype) == (torch.bfloat16, torch.float32)
    with pytest.raises(NotImplementedError, match="mp_policy is of eager mode"):
        graphc.compile(model)(torch.ones(2, 4))


def test_a_function_of_parts_is_called_for_each_device():
    x, y = (torch.randn(n, m, dtype=torch.float64) for n, m in ((3, 6), (6, 4)))
    a = on(x, Replicate(), Shard(1)).requires_grad_()
    b = on(y, Shard(1), Shard(0))
    seen: list[tuple[int, ...]] = []

    def product(k: int, a: Tensor, b: Tensor) -> tuple[Tensor, int]:
        seen.append((*a.shape, *b.shape))
        return k * (a @ b), k

    wishes = (None, [Replicate(), Shard(1)], [Shard(1), Shard(0)])
    made, number = local_map(product, ([Shard(1), Partial()], None), wishes)(2, a, b)
    assert (seen, number) == ([(3, 3, 3, 2)] * 4, 2)
    torch.testing.assert_close(made.full_tensor(), 2 * (x @ y))
    made.full_tensor().sum().backward()
    torch.testing.assert_close(a.grad.full_tensor(), (2 * y.sum(1)).expand(3, 6))
    with pytest.raises(ValueError, match="in local_map has a mismatched placements"):
        local_map(product, None, wishes)(2, b, b)
    with pytest.raises(AssertionError, match="one PlacementType be provided for each output"):
        local_map(product, [Replicate()] * 2, wishes)(2, a, b)
    assert local_map(lambda x: x + 1, None)(1) == 2


def test_random_numbers_are_those_of_one_device():
    x = on(torch.ones(8, 4), Shard(0), Replicate())
    for draw in (torch.nn.functional.dropout, torch.rand_like, lambda t: torch.empty_like(t).normal_()):
        torch.manual_seed(1)
        expected = draw(torch.ones(8, 4))
        torch.manual_seed(1)
        assert values(draw(x)) == expected.tolist()
    torch.manual_seed(2)
    expected = torch.randn(8, 4)
    torch.manual_seed(2)
    made = creation.randn(8, 4, device_mesh=SQUARE, placements=[Shard(0), Shard(1)])
    assert values(made) == expected.tolist() and made.placements == (Shard(0), Shard(1))
    assert values(creation.full((2, 2), 3.0, device_mesh=SQUARE)) == [[3.0, 3.0]] * 2


def test_checkpoints_are_laid_anew(tmp_path: Any):
    x, y = (
        on(X, Shard(0), Replicate()),
        creation.zeros(8, 4, device_mesh=SQUARE, placements=[Shard(1), Shard(0)]),
    )
    checkpoint.save({"x": x}, checkpoint_id=str(tmp_path / "x"))
    plain = {"x": torch.zeros(8, 4)}
    checkpoint.load({"x": y}, checkpoint_id=str(tmp_path / "x"))
    checkpoint.load(plain, checkpoint_id=str(tmp_path / "x"))
    assert y.placements == (Shard(1), Shard(0)) and values(y) == plain["x"].tolist() == X.tolist()
    for copy in (pickle.loads(pickle.dumps(x)), deepcopy(x)):
        assert copy.placements == x.placements and values(copy) == X.tolist()


def test_modules_and_optimizers_take_over_state():
    plain: Any = torch.nn.Linear(4, 8)
    model: Any = torch.nn.Linear(4, 8)
    fully_shard(model, mesh=SQUARE["data"])
    model.load_state_dict(plain.state_dict())
    assert model.weight.placements == (Shard(0),) and values(model.weight) == plain.weight.tolist()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    assert not isinstance(model(torch.ones(2, 4)), DTensor)  # what comes plain goes plain
    model(torch.ones(2, 4)).sum().backward()
    assert type(model.weight) is torch.nn.Parameter and isinstance(model.weight, DTensor)
    optimizer.step()
    other = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    other.load_state_dict(optimizer.state_dict())
    assert other.state[model.weight]["momentum_buffer"].placements == (Shard(0),)
    with pytest.raises(RuntimeError):
        model(torch.ones(2, 5))
    assert isinstance(model.weight, DTensor)  # put back after an error, too


def test_a_loss_of_classes_in_parts():
    logits, target = torch.randn(4, 16), torch.randint(16, (4,))
    mine: Any = logits.clone().requires_grad_()
    torch.nn.functional.cross_entropy(mine, target).backward()
    split = on(logits.requires_grad_(), Replicate(), Shard(1))
    with loss_parallel():
        torch.nn.functional.cross_entropy(split, target).backward()
    assert split.grad.placements == split.placements
    assert np.allclose(split.grad._read(), mine.grad._array(), atol=1e-6)


# --- the harness


def test_check_holds_them():
    model = parallelize_module(torch.nn.Linear(4, 2), SQUARE["model"], RowwiseParallel())
    report = compare.check(lambda x: model(x).square().mean(), torch.randn(8, 4))
    assert report.ok and report.modes[-2:] == ("on the mesh", "compiled on the mesh")
    assert isinstance(model.weight, DTensor)  # put back


@pytest.mark.parametrize("fault", one_in(4, meshes.FAULTS, lambda fault: fault.name))
def test_planted_faults_are_found_and_named(fault: Fault):
    (how, report), *_ = fault.trials()
    assert report.ok, (how, str(report))
    catch = hunt(fault, tries=0)
    assert catch.found and catch.localized, (catch.culprit, catch.evidence)
    assert catch.culprit is not None and (catch.culprit.where or fault.culprit.part == PLACING)


def of_the_first(x: Any) -> Any:
    """The loss of the rows of one device: nothing adds up those of the others."""
    return x.to_local().square().sum()


def test_a_loss_of_one_device_is_found():
    report = compare.check(of_the_first, on(X, Shard(0), Replicate()), modes=["eager", "on the mesh"])
    assert not report.ok and "result: bug" in str(report), str(report)
