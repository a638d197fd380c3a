"""Graphs for the tests of documents, made with a Builder: they need neither the tracer nor eager."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

from graphc.autodiff import gradients
from graphc.ir import Builder, Graph, Ref
from graphc.ops import OPS
from graphc.ops.aval import Aval, results_of
from graphc.ops.dtypes import FLOAT32, INT64
from graphc.ops.samples import Sample
from tests.ops.cases import Case, cases_of

Pair = namedtuple("Pair", "first second")


def network() -> Graph:
    """A small network with scopes, lines, constants of several kinds, and every kind of static result."""
    b = Builder()
    x = b.input("x", Aval((3, 4), FLOAT32))
    b.where = "a model.py:12"
    w, c = b.input("net.0.weight", Aval((4, 5), FLOAT32)), b.input("net.0.bias", Aval((5,), FLOAT32))
    b.scope = "net.0"
    F = b.language
    h = F.addmm(c, x, w)
    b.where, b.scope = "model.py:13", "net.1"
    h = F.tanh(h) * 1.5 + b.constant(np.array([0.1, -0.0, np.inf, np.nan, 1e-8], FLOAT32))
    b.where, b.scope = "loss.py:3", ""
    big = b.constant(np.linspace(0, 1, 15).reshape(3, 5).astype(FLOAT32) ** 2 + np.float32(1e-3))
    loss = F.sum(F.square(h - big), axis=(0, 1), keepdims=False)
    static = (None, 2.5, float("nan"), -0.0, 1 + 2j, 'it\'s "text"\n', True, {1: "a", "b": ()})
    return b.graph("network", {"loss": Ref(loss.id), "rest": [Pair(Ref(h.id), static)]}).check()


def scatterings() -> Graph:
    """Every kind of parameter: shapes, axes, dtypes, texts, optional geometry, index specs."""
    b = Builder()
    F = b.language
    x, i = b.input("x", Aval((4, 6), FLOAT32)), b.input("i", Aval((3,), INT64))
    y = F.index(x, i, spec=(None, 0))
    y = F.index_put(y, F.full(shape=(), value=-0.0, dtype=FLOAT32), i, spec=(0,), accumulate=False)
    z = F.as_strided(y, size=(2, 2), stride=(1, 2), offset=1, layout=None)
    z = F.as_strided_add(z, shape=(4, 3), size=(2, 2), stride=(1, 2), offset=1, layout=((1, 4), 0))
    z = F.pad_zeros(z, low=(1, 0), high=(0, 2), interior=(0, 1))
    z = F.slice(z, start=(0, 1), stop=(5, 7), step=(2, 1))
    z = F.required(z, F.amax(z, axis=(0, 1), keepdims=False) > 0, message="must  # be [positive]")
    e = F.einsum(z, F.permute(z, dims=(1, 0)), equation="ij,jk->ik")
    w = F.where(F.isnan(e), F.cast(F.argmax(e, axis=1, keepdims=True), dtype=FLOAT32), e)
    return b.graph("scatterings", (Ref(w.id), Ref(b.constant(np.arange(3)).id))).check()


def loss() -> Graph:
    b = Builder()
    x, w = b.input("x", Aval((8, 3), FLOAT32)), b.input("w", Aval((3, 2), FLOAT32))
    b.where = "train.py:7"
    p = b.language.log_softmax(x @ w, axis=1)
    return b.graph("loss", Ref(b.language.mean(p * p, axis=(0, 1), keepdims=False).id)).check()


def gradient() -> Graph:
    return gradients(loss(), ("w",)).check()


STRUCTURED = """\
def total(xs: f32[8], i: i64):
    v2: f32 = constant(value=0.0)
    def body_v3(c: f32, x: f32):
        v2: f32 = add(c, x)
        v3: f32 = required(v2, v2, message='no')  # m.py:3
        return (v3,)
    v3: (f32,) = scan(v2, xs, body=body_v3, consts=0, carries=1, length=8, reverse=False, unroll=1)  # m.py:1 [a.b]
    v4: f32 = item(v3, index=0)
    def b_v5(x: f32):
        v1: f32 = tanh(x)
        return (v1,)
    def c_v5(x: f32):
        return (x,)
    v5: (f32,) = switch(i, v4, branches=(b_v5, c_v5))
    v6: f32 = item(v5, index=0)
    return v6
"""


def structured() -> Graph:
    """A loop and a choice, with a run-time check inside."""
    return Graph.parse(STRUCTURED)


def sampled(names: tuple[str, ...], constant: bool = False) -> Graph:
    """The first sample of each of these ops, in one graph; on inputs, or on constants."""
    b = Builder()
    rng = np.random.default_rng(0)
    results: list[Any] = []
    for name in names:
        case: Case = next(cases_of(OPS[name]))
        sample: Sample = case.sample
        arrays = enumerate(case.arrays(rng))
        inputs = [b.constant(a) if constant else b.input(f"{name}_{k}", Aval(a.shape, a.dtype)) for k, a in arrays]
        results += [Ref(s.id) for s in results_of(b.apply(case.op, inputs, sample.params))]
    return b.graph("sampled", results).check()


def deep(depth: int, width: int) -> Graph:
    """`depth` encoder layers of `width` operations each, in scopes such as "encoder.3.linear1"."""
    b = Builder()
    F = b.language
    x = b.input("x", Aval((4, 8), FLOAT32))
    y = x
    for layer in range(depth):
        skip = y
        for k in range(width):
            b.where, b.scope = (
                f"model.py:{10 + k % 7}",
                f"encoder.{layer}.{('linear1', 'linear2', 'norm')[k * 3 // width]}",
            )
            y = F.tanh(y) + skip if k % 2 else y * 0.5
    b.where, b.scope = "model.py:40", ""
    return b.graph("deep", Ref(F.sum(y, axis=(0, 1), keepdims=False).id)).check()
