"""Tensors in parts on a mesh of processes. Each case checks what can be known without others, and leaves values.

With "torch" among its arguments PyTorch runs the same cases: test_meshes.py holds the values together.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.distributed import cases
from tests.distributed.jobs import keep, sides

STEPS = 3


def _sides(arguments: list[str]) -> SimpleNamespace:
    torch, dist = sides(arguments)
    of = {
        name: importlib.import_module(f"{dist.__name__}.{name}")
        for name in ("checkpoint", "device_mesh", "fsdp", "pipelining", "tensor")
    }
    parallel = importlib.import_module(f"{dist.__name__}.tensor.parallel")
    state_dict = importlib.import_module(f"{dist.__name__}.checkpoint.state_dict")
    functional = importlib.import_module(f"{torch.__name__}.nn.functional")
    return SimpleNamespace(torch=torch, dist=dist, parallel=parallel, state_dict=state_dict, F=functional, **of)


def values(x: Any) -> Any:
    """Tensors as arrays, of what is on a mesh this process's part."""
    if hasattr(x, "to_local"):
        return [values(x.to_local().detach()), str(x.placements)]
    if isinstance(x, (list, tuple)):
        return [*map(values, x)]
    return x.detach().numpy().copy() if hasattr(x, "detach") else x


def same(found: Any, expected: Any, tolerance: float = 1e-5) -> None:
    """Two tensors have the same shape and values."""
    np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), tolerance, tolerance)


def refused(kind: type[Exception], call: Callable[[], Any]) -> str:
    """The message of the error that `call` raises."""
    try:
        call()
    except kind as error:
        return str(error)
    raise AssertionError(f"no {kind.__name__}")


def parts(s: SimpleNamespace, mesh: Any, rank: int) -> Any:
    """The values are those of the first process; each has its part, also of what does not divide."""
    s.torch.manual_seed(rank)
    own = s.torch.randn(4, 6)
    s.torch.manual_seed(0)
    first = s.torch.randn(4, 6)
    found = []
    for placement in (s.tensor.Shard(0), s.tensor.Shard(1), s.tensor.Replicate()):
        x = s.tensor.distribute_tensor(own, mesh, [placement])
        same(x.full_tensor(), first)
        found += [x, x.redistribute(mesh, [s.tensor.Shard(1)]), repr(x)]
    odd = s.tensor.distribute_tensor(s.torch.arange(7.0), mesh, [s.tensor.Shard(0)])
    again = s.tensor.DTensor.from_local(odd.to_local(), mesh, [s.tensor.Shard(0)], shape=odd.shape, stride=(1,))
    same(again.full_tensor(), s.torch.arange(7.0))
    return [*found, odd, again, odd.sum().full_tensor()]


def terms(s: SimpleNamespace, mesh: Any, rank: int) -> Any:
    """Terms are combined, whatever the reduction."""
    own = s.torch.tensor([1.0, -2.0, 3.0]) * (rank + 1)
    every = s.torch.stack([s.torch.tensor([1.0, -2.0, 3.0]) * (k + 1) for k in range(mesh.size())])
    expected = {"sum": every.sum(0), "avg": every.mean(0), "max": every.amax(0), "min": every.amin(0)}
    for op, whole in expected.items():
        same(s.tensor.DTensor.from_local(own, mesh, [s.tensor.Partial(op)]).full_tensor(), whole)
    return [*expected.values()]


def gradients(s: SimpleNamespace, mesh: Any, rank: int) -> Any:
    """Gradients flow between a tensor on the mesh and the parts, as its placements or `grad_placements` say."""
    found = []
    weight = s.torch.arange(12.0).reshape(6, 2)
    for placement in (s.tensor.Shard(0), s.tensor.Replicate()):
        own = s.torch.full((3, 2) if placement.is_shard() else (6, 2), rank + 1.0, requires_grad=True)
        whole = s.tensor.DTensor.from_local(own, mesh, [placement], run_check=False)
        part = whole.redistribute(mesh, [s.tensor.Replicate()]).to_local()
        (part[:6] * weight[: len(part)]).sum().backward()
        found.append(own.grad)
    for kind in (s.tensor.Replicate(), s.tensor.Partial("sum"), s.tensor.Partial("avg")):
        leaf = s.tensor.distribute_tensor(s.torch.ones(4, 2), mesh, [s.tensor.Shard(0)]).requires_grad_()
        (leaf.full_tensor(grad_placements=[kind]) * (rank + 1)).sum().backward()
        if kind.is_partial():
            terms = sum(range(1, mesh.size() + 1))
            scale = terms / mesh.size() if kind.is_partial("avg") else terms
            same(leaf.grad.full_tensor(), s.torch.full((4, 2), float(scale)))
            found.append(leaf.grad)
    x = s.tensor.distribute_tensor(s.torch.arange(12.0).reshape(4, 3), mesh, [s.tensor.Shard(0)]).requires_grad_()
    w = s.tensor.distribute_tensor(s.torch.ones(3, 2), mesh, [s.tensor.Replicate()]).requires_grad_()
    (x @ w).relu().sum().backward()
    same(w.grad.full_tensor(), x.full_tensor().sum(0)[:, None].expand(3, 2))
    return [*found, x.grad, w.grad.full_tensor()]


def errors(s: SimpleNamespace, mesh: Any, rank: int) -> Any:
    """PyTorch's errors."""
    x = s.tensor.distribute_tensor(s.torch.ones(4, 2), mesh, [s.tensor.Shard(0)])
    grid = s.device_mesh.init_device_mesh("cpu", (1, mesh.size()), mesh_dim_names=("a", "b"))
    size = mesh.size() + 1
    return [
        refused(RuntimeError, lambda: x + s.torch.ones(4, 2)).partition("got")[2].partition("!")[0],
        refused(RuntimeError, lambda: s.device_mesh.DeviceMesh("cpu", [*range(size)])),
        refused(RuntimeError, lambda: grid.get_local_rank())[:40],
        refused(RuntimeError, lambda: s.tensor.DTensor.from_local(x, mesh, [s.tensor.Shard(0)])),
    ]


def meshes(s: SimpleNamespace, mesh: Any, rank: int) -> Any:
    """Where this process is on a mesh, and with whom."""
    grid = s.device_mesh.init_device_mesh("cpu", (mesh.size() // 2, 2), mesh_dim_names=("dp", "tp"))
    found = [grid.get_rank(), grid.get_coordinate(), repr(grid).partition("stride")[0], repr(grid["tp"])]
    found += [grid.get_local_rank("dp"), grid["tp"].get_local_rank(), grid["tp"].mesh]
    return [*found, [s.dist.get_process_group_ranks(grid.get_group(name)) for name in ("dp", "tp")]]


class _Mlp:
    """Made late, by the torch at hand."""

    def __new__(cls, s: SimpleNamespace) -> Any:
        nn = s.torch.nn
        s.torch.manual_seed(0)
        return nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.GELU(), nn.Dropout(0.25), nn.Linear(8, 4))


def _trained(s: SimpleNamespace, model: Any, batches: list[Any]) -> tuple[list[Any], list[Any], Any]:
    optimizer = s.torch.optim.AdamW(model.parameters(), lr=0.01)
    losses, found = [], []
    for x, seed in batches:
        optimizer.zero_grad()
        s.torch.manual_seed(seed)
        loss = model(x).square().mean()
        loss.backward()
        losses.append(loss.detach())
        found.append([p.grad for p in model.parameters()])
        optimizer.step()
    return losses, found, optimizer


def sharded_data(s: SimpleNamespace, mesh: Any, rank: int) -> Any:
    """`fully_shard` comes to what DistributedDataParallel does, dropout and Adam's state included."""
    batches = [(s.torch.randn(5, 6, generator=s.torch.Generator().manual_seed(9 * k + rank)), k + 50 * rank)
               for k in range(STEPS)]  # fmt: skip
    alike = s.torch.nn.parallel.DistributedDataParallel(_Mlp(s))
    expected, grads, other = _trained(s, alike, batches)
    model = _Mlp(s)
    for layer in (model[0], model[4]):
        s.fsdp.fully_shard(layer, mesh=mesh)
    s.fsdp.fully_shard(model)
    assert isinstance(model, s.fsdp.FSDPModule) and isinstance(model, s.torch.nn.Sequential)
    losses, found, optimizer = _trained(s, model, batches)
    for a, b in zip(losses, expected, strict=True):
        same(a, b)
    for a, b in zip(found[-1], grads[-1], strict=True):
        same(a.full_tensor(), b)
    for p, q in zip(model.parameters(), alike.parameters(), strict=True):
        same(p.full_tensor(), q)
        same(optimizer.state[p]["exp_avg_sq"].full_tensor(), other.state[q]["exp_avg_sq"])
    return [*losses, *model.parameters(), *found[-1]]


def older_wrapper(s: SimpleNamespace, mesh: Any, rank: int) -> Any:
    """FullyShardedDataParallel comes to what DistributedDataParallel does, recomputed or not; its state dicts, and its
    optimizer's, are those of the model that it is around, and load into another."""
    older = importlib.import_module(f"{s.fsdp.__name__}.wrap")
    again = importlib.import_module(f"{s.dist.__name__}.algorithms._checkpoint.checkpoint_wrapper")
    nn = s.torch.nn
    batches = [(s.torch.randn(5, 6, generator=s.torch.Generator().manual_seed(9 * k + rank)), k + 50 * rank)
               for k in range(STEPS)]  # fmt: skip
    alike = nn.parallel.DistributedDataParallel(_Mlp(s))
    expected, _, other = _trained(s, alike, batches)
    policies = [older.ModuleWrapPolicy({nn.Linear}),
                functools.partial(older.size_based_auto_wrap_policy, min_num_params=40)]  # fmt: skip
    found, whole = [], {name.removeprefix("module."): p for name, p in alike.named_parameters()}
    for policy in policies:
        model = s.fsdp.FullyShardedDataParallel(
            _Mlp(s), auto_wrap_policy=policy, device_id=s.torch.device("cpu"), use_orig_params=True
        )
        again.apply_activation_checkpointing(model, check_fn=lambda m: isinstance(m, nn.GELU))
        names = [name.replace("_checkpoint_wrapped_module.", "") for name, _ in model.named_parameters()]
        assert sorted(name.replace("_fsdp_wrapped_module.", "") for name in names) == sorted(whole), names
        losses, _, optimizer = _trained(s, model, batches)
        for a, b in zip(losses, expected, strict=True):
            same(a, b)
        state = model.state_dict()
        for name, p in whole.items():
            same(state[name], p)
        with s.fsdp.FullyShardedDataParallel.summon_full_params(model), s.torch.no_grad():
            assert {name: tuple(p.shape) for name, p in model.named_parameters()} == {
                name: tuple(p.shape) for name, p in whole.items()
            }
            for p in model.parameters():
                p.add_(1)
        for name, p in model.state_dict().items():
            same(p, whole[name] + 1)
        model.load_state_dict(state)
        found += [*losses, len(s.fsdp.FullyShardedDataParallel.fsdp_modules(model))]
        if s.torch.__name__ == "torch":  # which needs a GPU for the rest
            continue
        kept = s.fsdp.FullyShardedDataParallel.optim_state_dict(model, optimizer)
        for name, p in whole.items():
            same(kept["state"][name]["exp_avg"], other.state[p]["exp_avg"])
        for x, _ in batches:
            model(x).sum().backward()
            optimizer.step()
        optimizer.load_state_dict(s.fsdp.FullyShardedDataParallel.optim_state_dict_to_load(model, optimizer, kept))
        again_kept = s.fsdp.FullyShardedDataParallel.optim_state_dict(model, optimizer)
        for name, p in whole.items():
            same(again_kept["state"][name]["exp_avg"], other.state[p]["exp_avg"])
        only = s.fsdp.FullStateDictConfig(offload_to_cpu=True, rank0_only=True)
        with s.fsdp.FullyShardedDataParallel.state_dict_type(model, s.fsdp.StateDictType.FULL_STATE_DICT, only):
            assert len(model.state_dict()) == (0 if rank else len(whole))
    return found


def tensor_parallel(s: SimpleNamespace, mesh: Any, rank: int) -> Any:
    """A split MLP given the whole, or a part of the sequence, is the MLP."""
    styles, shard, found = s.parallel, s.tensor.Shard, []
    for split in (False, True):
        whole, model = (_Mlp(s).eval() for _ in range(2))
        plan = {
            "0": styles.ColwiseParallel(input_layouts=shard(0) if split else None, output_layouts=s.tensor.Replicate()),
            "4": styles.RowwiseParallel(input_layouts=s.tensor.Replicate(), output_layouts=shard(0) if split else None),
        }
        styles.parallelize_module(model, mesh, plan)
        x = s.torch.randn(4, 6, generator=s.torch.Generator().manual_seed(3))
        own = (lambda t: t.chunk(mesh.size())[rank]) if split else lambda t: t
        made, expected = model(own(x)), whole(x)
        same(made, own(expected))
        made.square().sum().backward()
        expected.square().sum().backward()
        for k in (0, 4):
            same(model[k].weight.grad.full_tensor(), whole[k].weight.grad)
        found += [made, model[0].weight.grad, model[4].weight.grad]
    return found


def two_dims(s: SimpleNamespace, mesh: Any, rank: int) -> Any:
    """Tensor parallel x sharded data parallel on a grid of processes is one process with the whole batch."""
    found = []
    for shape in sorted({(mesh.size() // 2, 2), (1, mesh.size()), (mesh.size(), 1)}):
        grid = s.device_mesh.init_device_mesh("cpu", shape, mesh_dim_names=("dp", "tp"))
        whole, model = (_Mlp(s).eval() for _ in range(2))
        plan = {"0": s.parallel.ColwiseParallel(output_layouts=s.tensor.Replicate()),
                "4": s.parallel.RowwiseParallel(input_layouts=s.tensor.Replicate())}  # fmt: skip
        s.parallel.parallelize_module(model, grid["tp"], plan)
        s.fsdp.fully_shard(model, mesh=grid["dp"])
        batches = [(s.torch.randn(8, 6, generator=s.torch.Generator().manual_seed(k)), k) for k in range(STEPS)]
        mine = [(x.chunk(shape[0])[grid.get_local_rank("dp")], seed) for x, seed in batches]
        *_, expected, other = _trained(s, whole, batches)
        *_, held, optimizer = _trained(s, model, mine)
        for k, (p, q) in enumerate(zip(model.parameters(), whole.parameters(), strict=True)):
            same(held[-1][k].full_tensor(), expected[-1][k])
            same(p.full_tensor(), q)
            same(optimizer.state[p]["exp_avg"].full_tensor(), other.state[q]["exp_avg"])
        found += [p.full_tensor() for p in model.parameters()]
    return found


def local_maps(s: SimpleNamespace, mesh: Any, rank: int) -> Any:
    """A function of parts, of which the results are terms of a sum."""
    experimental = importlib.import_module(f"{s.tensor.__name__}.experimental")
    shard, whole = s.tensor.Shard, [s.tensor.Partial()]
    a, b = s.torch.arange(12.0).reshape(2, 6), s.torch.arange(24.0).reshape(6, 4) / 10
    if mesh.size() == 4:
        a, b = s.torch.cat([a, a[:, :2]], 1), s.torch.cat([b, b[:2]])
    x = s.tensor.distribute_tensor(a, mesh, [shard(1)]).requires_grad_()
    y = s.tensor.distribute_tensor(b, mesh, [shard(0)])
    product = experimental.local_map(lambda k, x, y: k * (x @ y), whole, (None, [shard(1)], [shard(0)]))
    made = product(2, x, y).full_tensor()
    same(made, 2 * (a @ b))
    made.sum().backward()
    same(x.grad.full_tensor(), (2 * b.sum(1)).expand(a.shape))
    return [made, x.grad, refused(ValueError, lambda: product(2, y, y)).partition("If")[0][-60:]]


def pipelines(s: SimpleNamespace, mesh: Any, rank: int) -> Any:
    """A stage in each process is the whole model, by each schedule."""
    nn, found = s.torch.nn, []
    x, y = (s.torch.randn(7 * mesh.size(), 5, generator=s.torch.Generator().manual_seed(k)) for k in range(2))
    for schedule in (s.pipelining.ScheduleGPipe, s.pipelining.Schedule1F1B):
        s.torch.manual_seed(0)
        layers = [nn.Sequential(nn.Linear(5, 5), nn.Tanh()) for _ in range(mesh.size())]
        expected = nn.Sequential(*layers)(x)
        s.F.mse_loss(expected, y).backward()
        own = layers[rank]
        grads = [p.grad.clone() for p in own.parameters()]
        own.zero_grad()
        stage = s.pipelining.PipelineStage(own, rank, mesh.size(), s.torch.device("cpu"))
        steps, losses = schedule(stage, n_microbatches=mesh.size(), loss_fn=nn.MSELoss()), []
        last = rank == mesh.size() - 1
        made = steps.step(*([x] if rank == 0 else []), **({"target": y, "losses": losses} if last else {}))
        if last:
            same(made, expected)
        for p, g in zip(own.parameters(), grads, strict=True):
            same(p.grad, g)
        found += [grads, losses if last else []]
    return found


def traced(s: SimpleNamespace, mesh: Any, rank: int) -> Any:
    """A model that is no sequence, with a connection past the stages between, in stages of its calls."""
    nn = s.torch.nn

    class Skipping(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(9, 6)
            self.layers = nn.ModuleList(nn.Linear(6, 6) for _ in range(mesh.size()))

        def forward(self, x: Any) -> Any:
            first = h = self.embedding(x)
            for layer in self.layers:
                h = h + layer(h).tanh()
            return h * first

    x, y = s.torch.arange(8 * 5).reshape(8, 5) % 9, s.torch.arange(8.0 * 5 * 6).reshape(8, 5, 6).sin()
    s.F.mse_loss((whole := Skipping())(x), y).backward()
    spec = {f"layers.{k}": s.pipelining.SplitPoint.BEGINNING for k in range(1, mesh.size())}
    pipe = s.pipelining.pipeline(whole, (x[:2],), split_spec=spec)
    stage = pipe.build_stage(rank, s.torch.device("cpu"))
    grads = {name: p.grad.clone() for name, p in whole.named_parameters()}
    for p in stage.submod.parameters():
        p.grad = None
    schedule, last = s.pipelining.ScheduleGPipe(stage, 4, nn.MSELoss()), rank == mesh.size() - 1
    made = schedule.step(*([x] if rank == 0 else []), **({"target": y} if last else {}))
    if last:
        same(made, whole(x))
    for name, p in stage.submod.named_parameters():
        same(p.grad, grads[name])
    return sorted(name for name, _ in stage.submod.named_parameters())


def interleaved(s: SimpleNamespace, mesh: Any, rank: int) -> Any:
    """Several stages in each process are the whole model, by each schedule and also if microbatches are few."""
    nn, found, size = s.torch.nn, [], mesh.size()
    x, y = (s.torch.randn(24, 5, generator=s.torch.Generator().manual_seed(k)) for k in range(2))
    for name in ("Interleaved1F1B", "LoopedBFS", "InterleavedZeroBubble", "ZBVZeroBubble", "DualPipeV"):
        s.torch.manual_seed(0)
        layers = [nn.Sequential(nn.Linear(5, 5), nn.Tanh()) for _ in range(2 * size)]
        s.F.mse_loss(expected := nn.Sequential(*layers)(x), y).backward()
        other = 2 * size - 1 - rank if "V" in name else rank + size
        own = nn.ModuleList([layers[rank], layers[other]])
        grads = [p.grad.clone() for p in own.parameters()]
        own.zero_grad()
        stages = [s.pipelining.PipelineStage(layers[k], k, 2 * size, s.torch.device("cpu")) for k in (rank, other)]
        schedule = importlib.import_module(f"{s.pipelining.__name__}.schedules").get_schedule_class(name)
        steps, losses = schedule(stages, n_microbatches=2 * size, loss_fn=nn.MSELoss()), []
        last = rank == (0 if "V" in name else size - 1)
        made = steps.step(*([x] if rank == 0 else []), **({"target": y, "losses": losses} if last else {}))
        if last:
            same(made, expected)
        for p, g in zip(own.parameters(), grads, strict=True):
            same(p.grad, g)
        found += [grads, losses if last else []]
    if s.torch.__name__ == "eager":
        refused(ValueError, lambda: schedule(stages[:1], 2))
    return found


def checkpoints(s: SimpleNamespace, mesh: Any, rank: int) -> Any:
    """What `fully_shard` holds in parts is saved in parts, and loaded into other parts, and into whole tensors."""
    folder = os.path.join(sys.argv[1], "torch" if "torch" in sys.argv else "ours")
    model = s.fsdp.fully_shard(_Mlp(s))
    *_, optimizer = _trained(s, model, [(s.torch.ones(2, 6), 0)])
    kept = s.state_dict.get_state_dict(model, optimizer)
    s.checkpoint.save({"model": kept[0], "optimizer": kept[1]}, checkpoint_id=folder)
    other = s.fsdp.fully_shard(_Mlp(s))
    *_, its = _trained(s, other, [(s.torch.zeros(2, 6), 1)])
    into = dict(zip(("model", "optimizer"), s.state_dict.get_state_dict(other, its), strict=True))
    s.checkpoint.load(into, checkpoint_id=folder)
    s.state_dict.set_state_dict(other, its, model_state_dict=into["model"], optim_state_dict=into["optimizer"])
    plain = {"model": _Mlp(s).state_dict()}
    s.checkpoint.load(plain, checkpoint_id=folder)
    for (name, p), q in zip(model.named_parameters(), other.parameters(), strict=True):
        same(q.full_tensor(), p.full_tensor(), 0)
        same(plain["model"][name], p.full_tensor(), 0)
        same(its.state[q]["exp_avg"].full_tensor(), optimizer.state[p]["exp_avg"].full_tensor(), 0)
    return [*other.parameters()]


def without_values(s: SimpleNamespace, mesh: Any, rank: int) -> Any:
    """A model made on "meta" is split first, and gets its memory then, each process for its parts."""
    with s.torch.device("meta"):
        model = s.fsdp.fully_shard(_Mlp(s))
    found = [[str(p.placements), str(p.device), tuple(p.to_local().shape)] for p in model.parameters()]
    model.to_empty(device="cpu")
    for k, p in enumerate(model.parameters()):
        with s.torch.no_grad():
            p.fill_(k / 10)
        same(p.full_tensor(), s.torch.full(tuple(p.shape), k / 10))
    _, grads, _ = _trained(s, model.eval(), [(s.torch.full((2, 6), rank + 1.0), 0)])
    with s.torch.device("meta"):
        x = s.tensor.distribute_tensor(s.torch.empty(4, 2), mesh, [s.tensor.Shard(1 if mesh.size() == 2 else 0)])
    return [*found, *grads[0], str(x.placements), str(x.device), tuple(x.to_local().shape)]


def compiled(s: SimpleNamespace, mesh: Any, rank: int) -> Any:
    """A program across the mesh computes what its steps do, and refuses plain tensors that meet those on the mesh."""
    if s.torch.__name__ == "torch":
        return None
    import graphc

    x = s.tensor.distribute_tensor(s.torch.arange(12.0).reshape(4, 3) / 10, mesh, [s.tensor.Shard(0)])
    w = s.tensor.distribute_tensor(s.torch.ones(3, 2), mesh, [s.tensor.Shard(1)]).requires_grad_()
    f = lambda x, w: (x @ w).tanh().sum()
    f(x, w).backward()
    expected, w.grad = w.grad.full_tensor(), None
    loss = graphc.compile(f)(x, w)
    loss.backward()
    same(loss.full_tensor(), f(x, w).full_tensor())
    same(w.grad.full_tensor(), expected)
    plain = s.torch.full((4, 3), float(rank))
    assert refused(RuntimeError, lambda: graphc.compile(f)(plain, w)) == refused(RuntimeError, lambda: f(plain, w))
    x.requires_grad_()

    def g(x: Any, w: Any) -> Any:
        own = x.to_local() + plain[: 4 // mesh.size()]
        return own.sin().sum() * w.full_tensor(grad_placements=[s.tensor.Partial("avg")]).sum()

    found = []
    for h in (g, graphc.compile(g)):
        x.grad = w.grad = None
        own = h(x, w)
        own.backward()
        found.append([own, x.grad.full_tensor(), w.grad.full_tensor()])
    for a, b in zip(*found, strict=True):
        same(a, b)
    told = graphc.compile(f, mesh=mesh, in_shardings=([s.tensor.Shard(0)], [s.tensor.Replicate()]))
    message = refused(RuntimeError, lambda: told(plain, s.torch.ones(3, 2)))
    assert "not the same in all of them" in message, message
    same(told(s.torch.ones(4, 3), s.torch.ones(3, 2)), f(s.torch.ones(4, 3), s.torch.ones(3, 2)))
    return None


def sequences(s: SimpleNamespace, mesh: Any, rank: int) -> Any:
    """Attention to a sequence in parts is that to the whole, and so are its gradients; PyTorch's needs a GPU for it."""
    if s.torch.__name__ == "torch":
        return None
    import graphc
    from eager.distributed.tensor.experimental import _attention as cp

    def attended(x: Any, w: Any, causal: bool) -> Any:
        q, k, v = (x @ w).chunk(3, -1)
        return s.torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

    x, w = s.torch.randn(1, 2, 4 * mesh.size(), 3), s.torch.randn(3, 9, requires_grad=True)
    for causal in (True, False):
        whole = attended(x, w, causal)
        (expected,) = s.torch.autograd.grad(whole.tanh().sum(), w)
        for run in (attended, graphc.compile(attended)):
            part = x.clone()
            with cp.context_parallel(mesh, buffers=[part], buffer_seq_dims=[2]):
                out = run(part, w, causal)
                (found,) = s.torch.autograd.grad(out.tanh().sum(), w)
            s.dist.all_reduce(found)
            same(cp.context_parallel_unshard(mesh, [out.detach()], [2])[0], whole)
            same(found, expected)
            same(part, x, 0)
    message = refused(ValueError, lambda: cp.context_parallel(mesh, buffers=[w], buffer_seq_dims=[0]).__enter__())
    assert "must be divisible by twice the processes" in message, message
    return None


def compiled_training(s: SimpleNamespace, mesh: Any, rank: int) -> Any:
    """A case of `compiled_job`, which has more; here as processes take longer to start than it does."""
    if s.torch.__name__ == "eager":
        from tests.distributed import compiled_job

        s.torch.set_default_dtype(s.torch.float64)
        compiled_job.agrees("cnn:fsdp")
        s.torch.set_default_dtype(s.torch.float32)
    return None


def collectives(s: SimpleNamespace, mesh: Any, rank: int) -> Any:
    """All of `cases`, here for the same reason."""
    if s.torch.__name__ == "eager":
        for name, case in cases.CASES.items():
            print(name)
            cases.assert_same(case.program(s.torch, s.dist, rank, mesh.size()), case.expected(rank, mesh.size()))
            s.dist.barrier()
    return None


_CASES = (
    parts, terms, gradients, errors, meshes, sharded_data, older_wrapper, tensor_parallel, two_dims, local_maps,
    pipelines, traced, interleaved, checkpoints, without_values, compiled, sequences, compiled_training, collectives,
)  # fmt: skip
CASES = {case.__name__: case for case in _CASES}


def main(folder: str, names: str, *arguments: str) -> None:
    """Run the cases `names`, or all if "every" is asked for."""
    s = _sides([*arguments])
    mesh = s.device_mesh.init_device_mesh("cpu", (int(os.environ["WORLD_SIZE"]),))
    rank = s.dist.get_rank()
    found = {}
    for name in CASES if names == "every" else names.split(","):
        s.torch.manual_seed(0)
        found[name] = values(CASES[name](s, mesh, rank))
    keep(folder, rank, found)
    s.dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
