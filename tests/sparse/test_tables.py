"""Tables of which rows are looked up: their sparse gradients, and the optimizers that take them."""

from __future__ import annotations

import numpy as np
import pytest

import eager
import graphc
from graphc.errors import CaptureError
from tests.oracle import asked_of_torch, torch_or_skip
from tests.sparse.operands import numbers, plain, tensor

pytestmark = [pytest.mark.on_numpy, pytest.mark.filterwarnings("ignore:Sparse")]

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


# --- gradients that meet in one `.grad`: each name is a backward pass, "clear" is zero_grad(set_to_none=False)

LOSSES = {
    "rows": lambda t, w: looked_up(t, w, [1, 3, 1]).sum(),
    "more": lambda t, w: looked_up(t, w, [[0, 1], [4, 4]]).pow(2).sum(),
    "none": lambda t, w: looked_up(t, w, np.zeros(0, np.int64)).sum(),
    "dense": lambda t, w: (w**2).sum(),
    "both": lambda t, w: (w**2).sum() + LOSSES["rows"](t, w),
    "turned": lambda t, w: LOSSES["rows"](t, w) + (w**2).sum(),
    "tied": lambda t, w: (looked_up(t, w, [2, 2]) @ w.t()).pow(2).sum(),
}
PASSES = ("rows", "none", "both", "turned", "tied", "rows more", "more rows", "rows none", "rows dense", "dense rows",
          "rows clear", "rows clear more", "dense clear rows")  # fmt: skip


def looked_up(t, w, where):
    return t.nn.functional.embedding(t.tensor(where), w, sparse=True)


def met(t, passes):
    w = t.nn.Parameter(tensor(t, numbers(np.float32, 5, 2)))
    for name in passes.split():
        if name == "clear":
            t.optim.SGD([w]).zero_grad(set_to_none=False)
        else:
            LOSSES[name](t, w).backward()
    return w.grad


@asked_of_torch("passes", PASSES)
def test_gradients_meet_as_in_pytorch(passes: str):
    found, wanted = met(eager, passes), met(torch_or_skip(), passes)
    assert str(found.layout) == str(wanted.layout)
    np.testing.assert_allclose(plain(found), plain(wanted), 1e-6)


@pytest.mark.parametrize("passes", PASSES)
def test_gradients_meet_as_dense_ones(passes: str, monkeypatch: pytest.MonkeyPatch):
    found = met(eager, passes)
    monkeypatch.setitem(globals(), "looked_up", lambda t, w, where: w[t.tensor(where)])
    np.testing.assert_allclose(plain(found), plain(met(eager, passes)), 1e-6)


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


def test_a_compiled_step_that_would_lose_its_momentum_is_refused():
    with pytest.raises(CaptureError, match="momentum of a sparse gradient"):
        trained(eager, "SGD momentum", compiled=True)


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


@pytest.mark.parametrize("sparse_first", [True, False])
def test_a_cotangent_that_meets_a_sparse_gradient_stays_as_it_is(sparse_first: bool):
    w = eager.ones(5, 2, requires_grad=True)
    rows, dense = eager.ones(2, 2), eager.full((5, 2), 3.0)
    pairs = [(TABLES["embedding"](eager, w, eager.tensor([1, 1])), rows), (w.clone(), dense)]
    outputs, cotangents = zip(*(pairs if sparse_first else pairs[::-1]), strict=True)
    eager.autograd.backward(outputs, cotangents)
    assert w.grad.tolist() == [[3.0, 3.0], [5.0, 5.0], [3.0, 3.0], [3.0, 3.0], [3.0, 3.0]]
    assert dense.tolist() == [[3.0, 3.0]] * 5 and rows.tolist() == [[1.0, 1.0]] * 2
