"""What ops declare of their dims, held against their kernels: parts of operands make the parts of results."""

from __future__ import annotations

import numpy as np
import pytest

import compare
import eager as torch
import graphc
from compare.declared.operations import check_sample, samples_of
from compare.selftest.faults.shardings import FAULTS
from compare.selftest.hunting import hunt
from eager.nn import functional as F
from graphc.ir import Builder, Graph, Ref
from graphc.ops import OPS
from graphc.ops.aval import Aval
from graphc.ops.labels import indexed, words
from graphc.sharding import Mesh, P, by_parts, compiled, propagated, total
from graphc.sharding.correspondence import correspondence
from graphc.sharding.layout import layout_of
from graphc.sharding.one_device import on_one_device
from graphc.sharding.sharding import Sharding
from tests.depth import one_in

MOST = 4  # samples of each op
MESH = Mesh((2, 2), ("data", "model"))


@pytest.mark.parametrize("first", one_in(3, "abcdefghijklmnopqrstuvwxyz"))
def test_every_op_is_computed_part_by_part(first: str):
    for name, op in OPS.items():
        if name[0] == first:
            for sample in list(samples_of(op))[:MOST]:
                report = check_sample(op, sample, modes=["parts"])
                assert report.ok, f"{name} {sample}: {report}"


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_planted_faults_are_found_by_name(fault):
    catch = hunt(fault, seconds=0, tries=0)
    assert catch.found and catch.localized, f"{catch.culprit}, not {fault.culprit}"


@pytest.mark.on_numpy
def test_a_step_is_checked_with_its_state():
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Dropout(0.5), torch.nn.BatchNorm1d(8))
    optimizer = torch.optim.Adam(model.parameters())

    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    report = compare.check(step, torch.randn(4, 6), modes=["parts"])
    assert report.ok, report
    report = compare.check(step, torch.randn(4, 6), modes=["sharded"])
    assert "a mesh of 4 devices" in str(report)  # this process has one


def _labels(fn, *shapes):
    graph = graphc.trace(fn, *[torch.zeros(s) for s in shapes])
    return correspondence(next(graph.operations()), graph.nodes)


def test_dims_that_run_together():
    c = _labels(lambda x, w: x @ w, (4, 6), (6, 8))
    (m, k), (k2, n) = c.operands
    assert k == k2 and c.results == ((m, n),) and c.reduced == {k: "sum"}
    c = _labels(lambda x: x.reshape(2, 3, 4), (6, 4))
    assert c.operands[0][0] == c.results[0][0] and c.results[0][1] is None and c.sizes[c.results[0][0]] == 2
    c = _labels(lambda x: x.amax(1), (4, 6))
    assert c.operands[0][0] == c.results[0][0] and c.reduced == {c.operands[0][1]: "other"}
    c = _labels(lambda x: torch.softmax(x, 1), (4, 6))
    assert c.results[0][1] is None and c.operands[0][1] is None
    c = _labels(lambda x: x[1:, :2], (4, 6))
    assert c.results == ((None, None),)
    c = _labels(lambda b, x, w: torch.addmm(b, x, w), (8,), (4, 6), (6, 8))
    assert c.added == {0} and len(c.reduced) == 1


def test_words_of_a_declaration():
    found = words("+ a ., ... b -> ... b", [(2, 3), (4, 5, 6)], [(4, 5, 6)], {})
    assert found.operands == (("a", None), ("batch 2", "batch 1", "b"))
    assert found.results == (("batch 2", "batch 1", "b"),) and found.added == {0}
    assert words("x -> x", [(2,), (3,), (4,)], [(2,)], {}).operands == (("x",), ("x",), ("x",))


@pytest.mark.parametrize(
    ("shapes", "spec", "text"),
    [
        ([(5, 6), (2, 3)], (0, None), "@v r1, p2 p1 -> p2 p1 r1"),
        ([(5, 6), (4,)], (None, 0), "r0 @v, p1 -> r0 p1"),
        # dims of the arrays of places are counted from the last one on, as they broadcast
        ([(5, 6, 7), (2, 3), (3,)], (None, 0, 1), "r0 . ., p2 p1 , p1 -> r0 p2 p1"),
        ([(5, 6, 7), (3,), (2, 3)], (0, None, 1), ". r1 ., p1 , p2 p1 -> p2 p1 r1"),  # apart: in front
    ],
)
def test_dims_of_what_is_picked(shapes, spec, text):
    assert indexed(shapes, {"spec": spec}).split() == text.split()


def _propagated(fn, shapes, inputs, outputs=None):
    graph = graphc.trace(fn, *[torch.zeros(s) for s in shapes])
    return propagated(graph, layout_of(graph, MESH, inputs, outputs))


def test_what_is_waited_for_is_not_gathered():
    """`held` reads no element of its last operand; it may lie as it likes."""
    builder = Builder()
    x, y = (builder.input(name, Aval(shape, np.dtype("f4"))) for name, shape in (("x", (4, 6)), ("y", (8, 4))))
    result = builder.language.held(x, y)
    graph = Graph("waits", builder.nodes, (x.id, y.id), Ref(result.id))
    found = propagated(graph, layout_of(graph, MESH, [P("data"), P("model")]))
    assert found.collectives == []
    np.testing.assert_array_equal(
        by_parts.evaluate(found, [np.ones((4, 6), "f4"), np.ones((8, 4), "f4")])[result.id], np.ones((4, 6))
    )


def test_what_one_device_runs_has_values_of_its_size():
    """A product whose rows lie in parts, and weights that are gathered for it: both are there at once."""
    graph = graphc.trace(lambda x, w: x @ w, torch.zeros(8, 6), torch.zeros(6, 4))
    part = on_one_device(graph, layout_of(graph, MESH, [P("data"), P(None, "model")], [P("data")]))
    x, w = (part.nodes[i].shape for i in part.inputs)
    assert (x, w) == ((4, 6), (6, 2))
    assert part.output_avals()[0].shape == (4, 4)
    assert [n.shape for n in part.operations() if n.op.name == "matmul"] == [(4, 2)]
    assert on_one_device(graph, None) is graph


def test_what_follows_from_a_split_batch():
    found = _propagated(lambda x, w: ((x @ w).relu() ** 2).mean(), [(4, 6), (6, 8)], [P("data"), None])
    assert total(found.collectives) == {"all-reduce": (1, 4)}
    assert found.collectives[0].axes == ("data",)
    assert "all-reduce over data, 4 bytes" in str(found) and "in all: 1 all-reduce (4 bytes)" in str(found)


@pytest.mark.parametrize(
    ("inputs", "outputs", "kinds"),
    [
        ([P(None, "model"), P("model")], None, {"all-reduce": (1, 4 * 8 * 4)}),  # terms on each device
        ([P("data"), P(None, "model")], None, {}),
        ([P("data"), P(None, "model")], [P("data")], {"all-gather": (1, 2 * 8 * 4)}),
        ([P("data"), None], [P(None, "data")], {"all-gather": (1, 4 * 6 * 4)}),
        ([P("data"), P("data")], None, {"all-gather": (1, 6 * 8 * 4)}),  # weights come to the batch
    ],
)
def test_collectives_of_a_product(inputs, outputs, kinds):
    found = _propagated(lambda x, w: x @ w, [(4, 6), (6, 8)], inputs, outputs)
    assert total(found.collectives) == kinds


def test_a_wish_inside_is_kept_and_so_is_that_of_its_gradient():
    def f(x, w):
        return (graphc.shard(x @ w, P("data", "model")) ** 2).sum()

    x, w = torch.zeros(4, 6), torch.zeros(6, 8, requires_grad=True)
    graph = graphc.gradients(graphc.trace(f, x, w), wrt=("w",))
    found = propagated(graph, layout_of(graph, MESH))
    wishes = [n.id for n in graph.operations() if n.op is OPS["shard"]]
    assert len(wishes) == 2
    assert all(found.shardings[i] == Sharding((("data",), ("model",))) for i in wishes)


@pytest.mark.on_numpy
def test_a_loop_exchanges_in_each_step():
    def f(x, w):
        return graphc.scan(lambda c, row: (torch.tanh(c + row @ w), c), torch.zeros(2, 8), x)[0]

    found = _propagated(f, [(5, 2, 4), (4, 8)], [P(None, None, "model"), P("model")])
    assert total(found.collectives) == {"all-reduce": (5, 5 * 2 * 8 * 4)}


def test_parts_are_put_together():
    graph = graphc.trace(lambda x, w: F.softmax(x @ w, 1).mean(0), torch.zeros(4, 6), torch.zeros(6, 8))
    x, w = (np.random.default_rng(0).normal(size=s).astype(np.float32) for s in ((4, 6), (6, 8)))
    found = propagated(graph, layout_of(graph, MESH, [P("data", "model"), P("model")]))
    values = by_parts.evaluate(found, [x, w])
    assert np.allclose(values[graph.outputs[0]], graph(x, w), rtol=1e-5)


HLO = """HloModule jit_f, is_scheduled=true

%add (a: f32[], b: f32[]) -> f32[] {
  ROOT %s = f32[] add(%a, %b)
}

%body (p: (s32[], f32[4,8])) -> (s32[], f32[4,8]) {
  %ag = f32[4,8]{1,0} all-gather(%x), channel_id=1, dimensions={0}
}

ENTRY %main (x: f32[2,8]) -> f32[4,8] {
  %ar = (f32[2,8]{1,0}, bf16[3]{0}) all-reduce(%a, %b), to_apply=%add
  %x2 = f32[16,8]{1,0} parameter(0)
  %rs = f32[2,8]{1,0} reduce-scatter(%x2), dimensions={0}, to_apply=%add
  %st = (f32[2,8]{1,0}, f32[4,8]{1,0}) all-gather-start(%x), dimensions={0}
  %dn = f32[4,8]{1,0} all-gather-done(%st)
  %w = (s32[], f32[4,8]) while(%t), condition=%c, body=%body, backend_config={"known_trip_count":{"n":"5"}}
  ROOT %cp = pred[4]{0} collective-permute(%z), source_target_pairs={{0,1}}
}
"""


def test_collectives_are_read_off_a_program():
    assert total(compiled(HLO)) == {
        "all-reduce": (1, 64 + 6), "all-gather": (6, 128 + 5 * 128), "reduce-scatter": (1, 512),
        "collective-permute": (1, 4),
    }  # fmt: skip
