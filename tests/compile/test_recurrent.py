"""Recurrent layers in programs: their steps are one loop, and do what they do step by step."""

from __future__ import annotations

from typing import Any

import pytest

import compare
import eager as torch
import graphc
from compare import Verdict
from graphc.ir.structure import SCAN, every_node

QUICK = ["graph", "compiled", "jax.grad", "finite differences"]
KINDS = {
    "RNN": {}, "GRU": {"bidirectional": True}, "LSTM": {"proj_size": 3, "batch_first": True},
}  # fmt: skip


def layer(kind: str, **options: Any) -> Any:
    torch.manual_seed(0)
    return getattr(torch.nn, kind)(4, 5, dtype=torch.float64, **options)


def scans(graph: graphc.Graph) -> int:
    return sum(node.op is SCAN for node in every_node(graph))


def input_of(*shape: int) -> Any:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize("kind", KINDS)
def test_steps_are_one_loop_with_the_values_and_gradients_of_steps(kind: str):
    net = layer(kind, **KINDS[kind])

    def run(x: Any) -> Any:
        y, state = net(x)
        return y.square().sum() + sum(s.sum() for s in (state if isinstance(state, tuple) else (state,)))

    x = input_of(6, 7, 4)
    assert scans(graphc.trace(run, x)) == (2 if net.bidirectional else 1)
    report = compare.check(run, x, modes=QUICK)
    assert report.ok, str(report)
    assert report.verdict_of("finite differences") is not Verdict.NO_OPINION


@pytest.mark.parametrize("shape", [pytest.param((6, 4), marks=pytest.mark.deep), (6, 0, 4), (5, 40, 4)])
def test_batches_of_every_size(shape: tuple[int, ...]):
    net = layer("LSTM")
    report = compare.check(lambda x: net(x)[0], input_of(*shape), modes=QUICK)
    assert report.ok, str(report)


@pytest.mark.deep
def test_few_steps_and_rows_of_several_lengths_are_written_out():
    net = layer("GRU")
    assert scans(graphc.trace(lambda x: net(x)[0], input_of(3, 2, 4))) == 0
    lengths = torch.tensor([6, 3])

    def packed(x: Any) -> Any:
        return net(torch.nn.utils.rnn.pack_padded_sequence(x, lengths))[0].data

    assert scans(graphc.trace(packed, input_of(6, 2, 4))) == 0
    assert compare.check(packed, input_of(6, 2, 4), modes=QUICK).ok


@pytest.mark.deep
def test_gradients_of_gradients_go_through_the_loop():
    net = layer("GRU")

    def penalty(x: Any) -> Any:
        (g,) = torch.autograd.grad(net(x)[0].square().sum(), x, create_graph=True)
        return g.square().sum()

    report = compare.check(penalty, input_of(5, 2, 4), modes=QUICK)
    assert report.ok, str(report)


def test_transforms_and_the_static_style_run_the_layer_as_it_is():
    net = layer("GRU")
    x = input_of(3, 5, 2, 4).detach()
    slices = torch.stack([net(part)[0] for part in x])
    torch.testing.assert_close(graphc.compile(torch.func.vmap(lambda part: net(part)[0]))(x), slices)
    given = graphc.placeholder((5, 2, 4), torch.float64)
    with graphc.Session() as session:
        found = session.run(net(given)[0], {given: x[0]})
    torch.testing.assert_close(torch.as_tensor(found), slices[0].detach())


def test_dropout_between_layers_draws_what_eager_draws():
    net = layer("LSTM", num_layers=2, dropout=0.5)
    report = compare.check(lambda x: net(x)[0].sum(), input_of(5, 3, 4), modes=QUICK)
    assert report.ok, str(report)
