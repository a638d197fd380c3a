"""Sparse tensors in programs: compiled ones, tables with sparse gradients, models; in both modes, against PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

import compare
import eager
import graphc
from graphc.errors import CaptureError
from tests.oracle import asked_of_torch, torch_or_skip
from tests.sparse.operands import FUNCTIONS, N, dense, numbers, plain, sparse, tensor

pytestmark = [pytest.mark.on_numpy, pytest.mark.filterwarnings("ignore:Sparse")]

# what asks for the places of elements: those have to be known when the function is traced
NEED_PLACES = {
    "s @ s.t()", "s + other", "s - other", "add alpha", "s * other", "sum 0", "sum 1", "sum 0 keepdim", "s[1]",
    "s[:, 2]", "s[1, 2]", "s[-1]", "s[1:3, ::2]", "select", "narrow", "index_select 0", "index_select 1",
    "to_sparse_csc", "to_sparse_bsr", "mask", "norm",
}  # fmt: skip
COMPUTE_PLACES = {"s @ s.t()", "mask"}  # of a tensor that the program has computed


@pytest.mark.parametrize("name", FUNCTIONS)
def test_compiled_functions_of_a_coo_tensor(name: str):
    f, _ = FUNCTIONS[name]
    s = sparse(eager, "coo")
    wanted = f(eager, s)
    if name not in COMPUTE_PLACES:
        captured = graphc.compile(lambda x: f(eager, s) * x)
        np.testing.assert_allclose(plain(captured(eager.tensor(2.0))), plain(wanted) * 2)
    compiled = graphc.compile(lambda s: f(eager, s))
    try:
        found = compiled(s)
    except CaptureError as error:
        assert name in NEED_PLACES and "places of the elements" in str(error)
    else:
        assert found.layout is wanted.layout
        np.testing.assert_allclose(plain(found), plain(wanted))


@pytest.mark.parametrize("layout", ("unsorted", "csr", "csc", "bsr"))
def test_programs_take_any_layout_with_gradients(layout: str):
    d = dense(eager, np.float64, N, 3).requires_grad_()
    f = lambda s, d: (s @ d).pow(2) + (s * 2).to_dense().sum()
    compiled = graphc.compile(f)
    for seed in (1, 2, 3):
        s = (sparse(eager, layout) * seed).detach().requires_grad_()
        found = []
        for run in (f, compiled):
            s.grad = d.grad = None
            run(s, d).sum().backward()
            found.append((s.grad, d.grad))
        assert found[0][0].layout is found[1][0].layout is s.layout
        for a, b in zip(*found, strict=True):
            np.testing.assert_allclose(plain(a), plain(b))


def test_the_pattern_is_an_input_and_its_size_part_of_the_signature():
    traced = []

    @graphc.compile
    def f(s, d):
        traced.append(1)
        return s @ d

    d = dense(eager, np.float64, 3, 2)
    make = lambda where, shape=(2, 3): eager.sparse_coo_tensor(where, numbers(np.float64, len(where[0])), shape)
    for s in (make([[0, 1], [2, 1]]), make([[1, 1], [0, 2]]), make([[0, 0], [1, 1]])):
        np.testing.assert_allclose(f(s, d).numpy(), (s @ d).numpy())
    assert len(traced) == 1
    for s in (make([[0, 1, 1], [2, 1, 0]]), make([[0, 1], [2, 1]], (4, 3)), make([[0, 1], [2, 1]]).to_dense(),
              make([[0, 1], [2, 1]]).to_sparse_csr(), make([[0, 1], [2, 1]])):  # fmt: skip
        np.testing.assert_allclose(f(s, d).numpy(), (s @ d).numpy())
    assert len(traced) == 5


def test_dense_calls_are_told_from_sparse_ones_on_the_short_way():
    f = graphc.compile(lambda x: x * 2)
    d = dense(eager, np.float32, 2, 2)
    for _ in range(3):
        f(d)
    assert f(d.to_sparse()).layout is eager.sparse_coo
    assert f(d).layout is eager.strided


def test_compare_checks_sparse_arguments_and_results():
    s = sparse(eager, "csr").requires_grad_()
    d = dense(eager, np.float64, N, 2).requires_grad_()
    report = compare.check(lambda s, d: eager.tanh(s @ d), s, d)
    assert report.ok, report
    assert compare.check(lambda s: eager.sin(s) * 2, s).ok


def test_vmap_and_function_transforms_reach_the_dense_operand():
    s, d = sparse(eager, "coo"), dense(eager, np.float64, 5, N)
    np.testing.assert_allclose(eager.func.vmap(lambda v: s @ v)(d).numpy(), (s @ d.T).T.numpy())
    np.testing.assert_allclose(eager.func.grad(lambda v: (s @ v).sum())(d[0]).numpy(), plain(s).sum(0))


WRITES = ("s.mul_(x)", "s.add_(s)", "s.copy_(s * x)", "s.neg_()", "s.values().mul_(x)")
OTHER_PLACES = ("s.zero_()", "s.add_(s.t())", "s.sparse_resize_((3, 3), 2, 0)")


@pytest.mark.parametrize("captured", [False, True])
@pytest.mark.parametrize("text", WRITES)
def test_a_write_of_values_is_kept(text: str, captured: bool):
    found = []
    for wrap in (graphc.compile, lambda f: f):
        s = eager.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], (2, 2)).coalesce()
        write, x = eval(f"lambda s, x: {text}"), eager.tensor(3.0)
        step = wrap((lambda x, s=s, write=write: write(s, x)) if captured else write)
        for _ in range(3):
            step(*([x] if captured else [s, x]))
        found.append(plain(s))
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("text", OTHER_PLACES)
def test_a_write_of_other_places_is_refused_under_a_trace(text: str):
    s = eager.sparse_coo_tensor([[0, 1], [1, 1]], [1.0, 2.0], (2, 2)).coalesce()
    with pytest.raises(CaptureError, match="other elements in place"):
        graphc.compile(eval(f"lambda s: {text}"))(s)
    np.testing.assert_array_equal(plain(s), [[0, 1], [0, 2]])


# --- models


def graph_model(t):
    """A graph convolutional network of two layers: (model, adjacency, features, labels)."""
    rng = np.random.default_rng(0)
    edges = rng.integers(0, 12, (2, 30))
    a = scipy.sparse.coo_array((np.ones(30, np.float32), tuple(edges)), shape=(12, 12))
    a = (a + a.T + scipy.sparse.eye_array(12)).tocsr()
    scale = scipy.sparse.diags_array(1 / np.sqrt(a.sum(1)))
    a = (scale @ a @ scale).tocsr().astype(np.float32)
    parts = (a.indptr.astype(np.int64), a.indices.astype(np.int64), a.data)
    adjacency = t.sparse_csr_tensor(*(tensor(t, part) for part in parts), (12, 12))

    class GCN(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = t.nn.Linear(5, 8), t.nn.Linear(8, 3)
            self.register_buffer("adjacency", adjacency)

        def forward(self, x):
            x = t.relu(self.adjacency @ self.one(x))
            return t.nn.functional.log_softmax(self.adjacency @ self.two(x), 1)

    model = GCN()
    with t.no_grad():
        for k, p in enumerate(model.parameters()):
            p.copy_(tensor(t, np.random.default_rng(k).normal(0, 0.5, tuple(p.shape)).astype(np.float32)))
    x, y = rng.normal(size=(12, 5)).astype(np.float32), rng.integers(0, 3, 12)
    loss = lambda: t.nn.functional.nll_loss(model(tensor(t, x)), tensor(t, y))
    return loss, t.optim.Adam(model.parameters(), lr=0.05)


def regression(t):
    """Logistic regression on a sparse matrix of SciPy."""
    matrix = scipy.sparse.random(40, 25, 0.2, format="csr", random_state=1, dtype=np.float64)
    if t is eager:
        x = eager.sparse.from_scipy(matrix)
    else:
        x = t.sparse_csr_tensor(*(t.from_numpy(p) for p in (matrix.indptr, matrix.indices, matrix.data)), (40, 25))
    y = tensor(t, (np.asarray(matrix.sum(1)).ravel() > 2.5).astype(np.float64))
    w, b = t.zeros(25, 1, dtype=t.float64, requires_grad=True), t.zeros(1, dtype=t.float64, requires_grad=True)
    loss = lambda: t.nn.functional.binary_cross_entropy_with_logits((x @ w + b).squeeze(1), y)
    return loss, t.optim.SGD([w, b], lr=1.0)


def words(t):
    """Skip-grams with negative samples."""
    rng = np.random.default_rng(3)
    inner, outer = t.nn.Embedding(20, 4, sparse=True), t.nn.Embedding(20, 4, sparse=True)
    with t.no_grad():
        for k, e in enumerate((inner, outer)):
            e.weight.copy_(tensor(t, np.random.default_rng(k).normal(0, 0.3, (20, 4)).astype(np.float32)))
    center, context, others = (tensor(t, rng.integers(0, 20, shape)) for shape in ((16,), (16,), (16, 3)))

    def loss():
        c = inner(center)
        near = (c * outer(context)).sum(1)
        far = (outer(others) * c.unsqueeze(1)).sum(2)
        return -(t.nn.functional.logsigmoid(near).mean() + t.nn.functional.logsigmoid(-far).mean())

    return loss, t.optim.SparseAdam([*inner.parameters(), *outer.parameters()], lr=0.05)


def attention(t):
    """Attention over the edges of a graph: a softmax of learned scores, whose places the function finds."""
    rng = np.random.default_rng(4)
    pairs = rng.permutation(100)[:30]
    where = tensor(t, np.stack([pairs // 10, pairs % 10]))
    x, w = (tensor(t, rng.normal(size=shape).astype(np.float32)).requires_grad_() for shape in ((10, 4), (4, 2)))

    def loss():
        h = t.tanh(x @ w)
        scores = (h[where[0]] * h[where[1]]).sum(1)
        share = t.sparse.softmax(t.sparse_coo_tensor(where, scores, (10, 10)).coalesce(), 1)
        kept = t.nn.functional.dropout(t.sparse.mm(share, h), 0.3)
        return (kept - 1).pow(2).mean()

    t.manual_seed(0)
    return loss, t.optim.AdamW([x, w], lr=0.1)


MODELS = {"attention": attention, "graph": graph_model, "regression": regression, "words": words}


def losses(t, name, compiled=False):
    loss, optimizer = MODELS[name](t)

    def step():
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
        return value

    run = graphc.compile(step) if compiled else step
    return [run().item() for _ in range(8)]


@pytest.mark.parametrize("name", MODELS)
def test_models_learn_alike_in_both_modes(name: str):
    found = losses(eager, name)
    assert found[-1] < found[0]
    np.testing.assert_allclose(losses(eager, name, compiled=True), found, 1e-4)


@asked_of_torch("name", MODELS)
def test_models_learn_as_in_pytorch(name: str):
    np.testing.assert_allclose(losses(eager, name), losses(torch_or_skip(), name), 1e-4)
