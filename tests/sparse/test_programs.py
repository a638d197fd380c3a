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


# --- tables

TABLES = {
    "embedding": lambda t, w, i: t.nn.functional.embedding(i, w, sparse=True),
    "padding": lambda t, w, i: t.nn.functional.embedding(i, w, padding_idx=2, sparse=True),
    "bag sum": lambda t, w, i: t.nn.functional.embedding_bag(i, w, mode="sum", sparse=True),
    "bag mean": lambda t, w, i: t.nn.functional.embedding_bag(i, w, mode="mean", sparse=True),
    "bag padding": lambda t, w, i: t.nn.functional.embedding_bag(i, w, mode="mean", padding_idx=2, sparse=True),
    "bag offsets": lambda t, w, i: t.nn.functional.embedding_bag(
        i.reshape(-1), w, t.tensor([0, 4, 4]), mode="sum", sparse=True),
    "bag weights": lambda t, w, i: t.nn.functional.embedding_bag(
        i, w, mode="sum", sparse=True, per_sample_weights=t.arange(6, dtype=w.dtype).reshape(2, 3)),
    "twice": lambda t, w, i: TABLES["embedding"](t, w, i).sum() + TABLES["embedding"](t, w, i[0]).sum(),
    "mixed": lambda t, w, i: TABLES["embedding"](t, w, i).sum() + (w**2).sum(),
    "scaled": lambda t, w, i: TABLES["embedding"](t, w, i) * 3 + 1,
}  # fmt: skip
INDICES = [[1, 2, 1], [0, 2, 4]]


def table_gradient(t, name, runs=1):
    w = tensor(t, numbers(np.float32, 5, 2)).requires_grad_()
    for _ in range(runs):
        TABLES[name](t, w, t.tensor(INDICES)).pow(2).sum().backward()
    return w.grad


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("runs", (1, 2))
def test_gradients_of_tables_are_those_of_dense_gradients(name: str, runs: int):
    found = table_gradient(eager, name, runs)
    assert found.is_sparse is (name != "mixed")
    w = tensor(eager, numbers(np.float32, 5, 2)).requires_grad_()
    functional = eager.nn.functional
    with pytest.MonkeyPatch.context() as patch:
        for f in ("embedding", "embedding_bag"):
            original = getattr(functional, f)
            patch.setattr(functional, f, lambda *a, sparse, f=original, **k: f(*a, **k))
        for _ in range(runs):
            TABLES[name](eager, w, eager.tensor(INDICES)).pow(2).sum().backward()
    assert not w.grad.is_sparse
    np.testing.assert_allclose(plain(found), w.grad.numpy(), 1e-6)


@asked_of_torch("name", TABLES)
def test_gradients_of_tables_are_pytorchs(name: str):
    found, wanted = table_gradient(eager, name), table_gradient(torch_or_skip(), name)
    assert (str(found.layout), tuple(found.shape)) == (str(wanted.layout), tuple(wanted.shape))
    if wanted.is_sparse:
        np.testing.assert_array_equal(found._indices().numpy(), wanted._indices().numpy())
        np.testing.assert_allclose(found._values().numpy(), wanted._values().numpy(), 1e-6)
    np.testing.assert_allclose(plain(found), plain(wanted), 1e-6)


def test_hooks_and_autograd_grad_see_sparse_gradients():
    w = eager.ones(4, 2, requires_grad=True)
    seen = []
    w.register_hook(lambda g: seen.append(g.is_sparse) or g * 2)
    rows = eager.nn.functional.embedding(eager.tensor([1, 1]), w, sparse=True)
    rows.sum().backward(retain_graph=True)
    assert seen == [True]
    np.testing.assert_array_equal(plain(w.grad)[1], [4.0, 4.0])
    (g,) = eager.autograd.grad(rows.sum(), w)
    assert g.is_sparse and g._nnz() == 2


def test_a_written_table_index_does_not_change_the_gradient():
    w, i = eager.ones(4, 2, requires_grad=True), eager.tensor([1, 3])
    eager.nn.functional.embedding(i, w, sparse=True).sum().backward()
    i.zero_()
    assert w.grad._indices().tolist() == [[1, 3]]


# --- optimizers

OPTIMIZERS = {
    "SGD": {"lr": 0.1}, "SGD momentum": {"lr": 0.1, "momentum": 0.9},
    "SGD nesterov": {"lr": 0.1, "momentum": 0.9, "nesterov": True}, "SGD maximize": {"lr": 0.1, "maximize": True},
    "Adagrad": {"lr": 0.1, "lr_decay": 0.01, "initial_accumulator_value": 0.1},
    "SparseAdam": {"lr": 0.1}, "SparseAdam maximize": {"betas": (0.8, 0.9), "maximize": True},
}  # fmt: skip
BATCHES = [[1, 3, 1], [0, 3, 2], [1, 1, 4], [1, 3, 1]]


def trained(t, name, compiled=False):
    """A table after steps on BATCHES, and the state of the optimizer."""
    w = t.nn.Parameter(tensor(t, numbers(np.float32, 5, 3) / 8))
    optimizer = getattr(t.optim, name.split()[0])([w], **OPTIMIZERS[name])

    def step(i):
        optimizer.zero_grad()
        loss = t.nn.functional.embedding(i, w, sparse=True).pow(2).sum()
        loss.backward()
        optimizer.step()
        return loss

    run = graphc.compile(step) if compiled else step
    losses = [run(t.tensor(batch)).item() for batch in BATCHES]
    return w, losses, optimizer.state_dict()["state"]


def agree(one, two):
    np.testing.assert_allclose(plain(one[0]), plain(two[0]), 1e-5, 1e-6)
    np.testing.assert_allclose(one[1], two[1], 1e-5)
    for key, value in one[2].get(0, {}).items():
        other = two[2][0][key]
        np.testing.assert_allclose(plain(value), plain(other) if hasattr(other, "layout") else other, 1e-5, 1e-6)


@asked_of_torch("name", OPTIMIZERS)
def test_optimizers_take_the_steps_of_pytorch(name: str):
    agree(trained(eager, name), trained(torch_or_skip(), name))


@pytest.mark.parametrize("name", [name for name in OPTIMIZERS if "momentum" not in name and "nesterov" not in name])
def test_compiled_steps_are_those_of_eager(name: str):
    one, two = trained(eager, name), trained(eager, name, compiled=True)
    agree(one, two)
    assert two[0].grad.is_sparse
    np.testing.assert_allclose(plain(one[0].grad), plain(two[0].grad), 1e-5, 1e-6)


def test_other_rows_are_left_alone():
    w = eager.nn.Parameter(eager.ones(1000, 4))
    optimizer = eager.optim.SparseAdam([w])
    eager.nn.functional.embedding(eager.tensor([7]), w, sparse=True).sum().backward()
    optimizer.step()
    assert (w != 1).any(1).nonzero().tolist() == [[7]]
    assert (optimizer.state[w]["exp_avg"] != 0).any(1).nonzero().tolist() == [[7]]


@pytest.mark.parametrize(
    "name", "Adam AdamW RMSprop Adadelta Adamax NAdam RAdam ASGD Rprop Adafactor".split()
)  # fmt: skip
def test_other_optimizers_refuse_sparse_gradients(name: str):
    w = eager.nn.Parameter(eager.ones(4, 2))
    eager.nn.functional.embedding(eager.tensor([1]), w, sparse=True).sum().backward()
    remedy = ", please consider SparseAdam instead" if name in ("Adam", "AdamW") else ""
    called = "Adam" if remedy else name
    with pytest.raises(RuntimeError, match=f"^{called} does not support sparse gradients{remedy}$"):
        getattr(eager.optim, name)([w], lr=0.1).step()
    np.testing.assert_array_equal(w.detach().numpy(), np.ones((4, 2)))
    with pytest.raises(RuntimeError, match="SparseAdam does not support dense gradients, please consider Adam instead"):
        (p := eager.nn.Parameter(eager.ones(2))).sum().backward()
        eager.optim.SparseAdam([p]).step()
    with pytest.raises(RuntimeError, match="weight_decay option is not compatible with sparse gradients"):
        eager.optim.Adagrad([w], weight_decay=0.1).step()


def test_gradients_are_clipped_and_cleared():
    w = eager.nn.Parameter(eager.ones(4, 2))
    eager.nn.functional.embedding(eager.tensor([1, 1]), w, sparse=True).sum().backward()
    total = eager.nn.utils.clip_grad_norm_([w], 1.0)  # of the sum for each row
    np.testing.assert_allclose(total.item(), np.sqrt(8), 1e-6)
    np.testing.assert_allclose(plain(w.grad)[1], np.full(2, 2 / np.sqrt(8)), 1e-5)
    optimizer = eager.optim.SGD([w])
    optimizer.zero_grad(set_to_none=False)
    assert w.grad.is_sparse and w.grad._nnz() == 0
    optimizer.zero_grad()
    assert w.grad is None


def test_a_sparse_gradient_from_before_a_program_is_refused():
    w = eager.ones(4, 2, requires_grad=True)
    f = graphc.compile(lambda i: eager.nn.functional.embedding(i, w, sparse=True).sum().backward())
    f(eager.tensor([1]))
    with pytest.raises(CaptureError, match=r"sparse \.grad from before"):
        f(eager.tensor([1]))


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


MODELS = {"graph": graph_model, "regression": regression, "words": words}


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
