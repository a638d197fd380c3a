"""Pipelines in one process: a model in stages is the model, by each schedule. PyTorch is asked where it is."""

from __future__ import annotations

import numpy as np
import pytest

import eager as torch
import eager.distributed.pipelining
import graphc
from eager import nn
from eager.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe, SplitPoint, pipeline
from eager.distributed.pipelining.interleaved import played
from graphc.sharding import Mesh, P, propagated, total
from graphc.sharding.layout import layout_of
from tests.sharding import pipelines


def same(found, expected, path=""):
    if isinstance(expected, dict):
        assert set(found) == set(expected), path
        for key in expected:
            same(found[key], expected[key], f"{path} {key}")
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5, err_msg=path)


@pytest.mark.parametrize("schedule", pipelines.SCHEDULES)
@pytest.mark.parametrize("mesh", [None, pipelines.MESH["pipe"]], ids=["stages", "stacked"])
def test_training_is_that_of_the_whole_model(schedule, mesh):
    same(pipelines.piped(mesh, schedule)[0], pipelines.whole())


@pytest.mark.on_numpy
def test_a_compiled_pipeline_trains_alike():
    same(pipelines.piped(pipelines.MESH["pipe"], compiled=graphc.compile)[0], pipelines.whole())


def test_the_model_that_was_split_is_as_it_was():
    module = pipelines.model()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    pipe = pipeline(module, (), split_spec=pipelines.SPLITS, mesh=pipelines.MESH["pipe"])
    found = pipe.unstacked()
    assert set(found) == set(before) == set(module.state_dict())
    assert all(torch.equal(found[name], before[name]) for name in before)
    x = pipelines.batch()[0]
    assert torch.equal(pipe(x), module(x))
    assert pipe.stages.template[0].inside[0].weight.shape == (4, 16, 16)


class _Tower(nn.Module):
    """What comes first is needed by all: tensors, a number, and an argument; and a parameter is no layer's."""

    def __init__(self):
        super().__init__()
        self.embedding, self.scale = nn.Embedding(9, 6), nn.Parameter(torch.ones(6))
        self.blocks = nn.ModuleList(_Branching() for _ in range(3))
        self.out = nn.Linear(6, 2)

    def forward(self, x, weights, mask=None):
        first = h = self.embedding(x)
        count = h.size(1)
        for block in self.blocks:
            h = block(h) * self.scale
        if mask is not None:
            h = h * mask
        return self.out((h + first).mean(1) * weights / count)


class _Branching(nn.Module):
    """No tracer sees through it."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 6)

    def forward(self, h):
        return h + (self.layer(h) if h.sum() > -1e9 else h)


def test_any_model_is_split_between_what_it_calls():
    torch.manual_seed(0)
    module = _Tower()
    x, weights, y = torch.randint(0, 9, (6, 5)), torch.rand(6, 1), torch.randn(6, 2)
    nn.functional.mse_loss(expected := module(x, weights), y).backward()
    grads = {name: p.grad for name, p in module.named_parameters()}
    module.zero_grad()
    ends = {"blocks.0": SplitPoint.END, "blocks.2": SplitPoint.BEGINNING, "out": SplitPoint.BEGINNING}
    pipe = pipeline(module, (x[:2], weights[:2]), split_spec=ends)
    assert pipe.num_stages == 4 and torch.equal(pipe(x, weights), expected)
    assert {*pipe.get_stage_module(1).state_dict()} == {"blocks.1.layer.weight", "blocks.1.layer.bias", "scale"}
    assert {name: p.data_ptr() for name, p in pipe.unstacked().items()} == {
        name: p.data_ptr() for name, p in module.state_dict().items()
    }
    schedule = ScheduleGPipe(pipe.build_stage(0, "cpu"), 3, nn.MSELoss())
    assert torch.allclose(schedule.step(x, weights, target=y), expected, atol=1e-6)
    same({name: p.grad for name, p in module.named_parameters()}, grads)


def test_what_is_in_flight():
    def order(schedule, stages, count):
        made = schedule(PipelineStage(nn.Linear(1, 1), 0, 1, "cpu"), count)
        return "".join(f"{'F' if forward else 'B'}{k}" for forward, k in made._order(stages))

    assert order(ScheduleGPipe, 2, 3) == "F0F1F2B0B1B2"
    assert order(Schedule1F1B, 2, 4) == "F0F1B0F2B1F3B2B3"
    assert order(Schedule1F1B, 4, 2) == "F0F1B0B1"


def test_batches_are_split_and_losses_scaled():
    layers = [nn.Linear(3, 3), nn.Linear(3, 2)]
    stages = [PipelineStage(layer, k, 2, "cpu") for k, layer in enumerate(layers)]
    x, y = torch.randn(5, 3), torch.randn(5, 2)
    losses: list = ["what was there"]
    out = ScheduleGPipe(stages, 2, nn.MSELoss(reduction="sum"), scale_grads=False).step(x, target=y, losses=losses)
    whole = nn.functional.mse_loss(layers[1](layers[0](x)), y, reduction="sum")
    found: list = [layer.weight.grad for layer in layers]
    expected = torch.autograd.grad(whole, [layer.weight for layer in layers])
    assert torch.allclose(losses[0] + losses[1], whole) and len(losses) == 2 and out.shape == (5, 2)
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(found, expected, strict=True))
    assert torch.allclose(ScheduleGPipe(stages, 2).eval(x), out)


def _theirs():
    torch = pytest.importorskip("torch")
    from torch.distributed import pipelining

    store = torch.distributed.HashStore()
    torch.distributed.init_process_group("gloo", rank=0, world_size=1, store=store)
    return torch, pipelining


@pytest.mark.parametrize("schedule", ["ScheduleGPipe", "Schedule1F1B"])
@pytest.mark.parametrize("scale", [True, False])
def test_one_stage_is_that_of_pytorch(schedule, scale):
    theirs, pipelining = _theirs()
    try:
        found = []
        rng = np.random.default_rng(0)
        arrays = [rng.standard_normal(s).astype(np.float32) for s in ((2, 3), (2,), (6, 3), (6, 2))]
        for lib, where in ((torch, eager.distributed.pipelining), (theirs, pipelining)):
            layer = lib.nn.Linear(3, 2)
            with lib.no_grad():
                layer.weight.copy_(lib.from_numpy(arrays[0]))
                layer.bias.copy_(lib.from_numpy(arrays[1]))
            stage = where.PipelineStage(layer, 0, 1, lib.device("cpu"))
            losses = []
            runs = getattr(where, schedule)(stage, 3, lib.nn.MSELoss(), scale_grads=scale)
            out = runs.step(lib.from_numpy(arrays[2]), target=lib.from_numpy(arrays[3]), losses=losses)
            found.append([out.detach().numpy(), layer.weight.grad.numpy(), *[x.detach().numpy() for x in losses]])
        for ours, other in zip(*found, strict=True):
            np.testing.assert_allclose(ours, other, rtol=1e-5, atol=1e-6)
    finally:
        theirs.distributed.destroy_process_group()


PIPE = pipelines.MESH["pipe"]


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (lambda m: pipeline(nn.Linear(2, 2), (), mesh=PIPE), NotImplementedError, "Linear is none"),
        (lambda m: pipeline(m, (), {"x": 1}), NotImplementedError, "mb_kwargs"),
        (lambda m: pipeline(m, (), split_spec={"9": SplitPoint.END}), ValueError, "no layer '9'"),
        (lambda m: pipeline(m, (), split_spec={"2": SplitPoint.END}), ValueError, "a stage without layers"),
        (lambda m: pipeline(m, (), split_spec={"0": SplitPoint.END}, mesh=PIPE), ValueError, "2 stages on a mesh of 4"),
        (lambda m: pipeline(m, (), mesh=pipelines.MESH), ValueError, "mesh of one axis"),
        (lambda m: pipeline(m, (), split_spec={"0": SplitPoint.END, "1.1": SplitPoint.END, "1.2": SplitPoint.END},
                            mesh=PIPE), ValueError, "stages must be alike"),
        (lambda m: pipeline(nn.Sequential(m, nn.BatchNorm1d(2)), (), mesh=PIPE), ValueError, "computes statistics"),
        (lambda m: pipeline(m, ()).get_stage_module(1), ValueError, "Invalid stage index 1!"),
        (lambda m: PipelineStage(m, 2, 2, "cpu"), ValueError, "Stage index 2 is out of range of 2"),
        (lambda m: ScheduleGPipe(PipelineStage(m, 1, 2, "cpu"), 2), ValueError, "all 2 stages are in this process"),
        (lambda m: ScheduleGPipe(PipelineStage(m, 0, 1, "cpu"), 0), ValueError, "positive integer"),
        (lambda m: ScheduleGPipe(PipelineStage(m, 0, 1, "cpu"), 4).step(torch.zeros(3, 2, dtype=torch.long)),
         ValueError, "3 samples cannot be split into 4"),
        (lambda m: ScheduleGPipe(PipelineStage(m, 0, 1, "cpu"), 2, nn.MSELoss()).step(torch.zeros(4)), ValueError,
         "needs a target"),
        (lambda m: torch.no_grad()(ScheduleGPipe(PipelineStage(m, 0, 1, "cpu"), 2, nn.MSELoss()).step)(torch.zeros(4)),
         RuntimeError, "step() requires gradients to be enabled for backward computation"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(wrong, error, message):
    with pytest.raises(error) as found:
        wrong(pipelines.model())
    assert message in str(found.value)


@pytest.mark.parametrize(
    ("shift", "rows"), [(1, [1]), (2, [2]), (3, [1, 1]), (4, [2]), (-1, [1]), (8, []), (7, [1, 1][:1])]
)
def test_a_rotation_is_a_permute_of_rows(shift, rows):
    """8 rows on 4 devices, 2 each."""
    graph = graphc.trace(lambda x: torch.roll(x, shift, 0) * 2, torch.zeros(8, 3))
    found = propagated(graph, layout_of(graph, Mesh((4,), ("pipe",)), [P("pipe")]))
    assert [c.bytes // 12 for c in found.collectives] == rows
    assert set(total(found.collectives)) <= {"collective-permute"}


@pytest.mark.parametrize(("processes", "own", "count"), [(2, 2, 4), (3, 2, 1), (4, 3, 6), (2, 1, 5)])
@pytest.mark.parametrize("folded", [False, True])
def test_several_stages_in_a_process_never_wait_in_a_circle(processes: int, own: int, count: int, folded: bool):
    ranks = [k % processes if k // processes % 2 == 0 or not folded else processes - 1 - k % processes
             for k in range(processes * own)]  # fmt: skip
    for ahead in (None, lambda rank: 0, lambda rank: processes - rank):
        done = set()
        for forward, stage, k in played(ranks, count, lambda step: (step[0], step[2], step[1]), ahead):
            before = [(True, stage - 1, k)] if forward else [(True, stage, k), (False, stage + 1, k)]
            assert all(step in done or step[1] in (-1, len(ranks)) for step in before)
            done.add((forward, stage, k))
        assert len(done) == 2 * len(ranks) * count
