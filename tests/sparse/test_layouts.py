"""Making, printing, converting and saving sparse tensors; hybrid ones and batches; PyTorch's errors."""

from __future__ import annotations

import copy
import io
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse

import eager
from tests.devices.far import far
from tests.oracle import asked_of_torch, torch_or_skip
from tests.sparse.operands import EDGES, LAYOUTS, numbers, plain, sparse, tensor

WHERE = [[0, 1, 1], [2, 0, 2]]
# what makes a tensor, or raises; PyTorch shows the same text, or raises the same error
MADE = {
    "list": lambda t: t.sparse_coo_tensor(WHERE, [3.0, 4.0, 5.0], (2, 3)),
    "no size": lambda t: t.sparse_coo_tensor(WHERE, [3, 4, 5]),
    "hybrid": lambda t: t.sparse_coo_tensor([[0, 1]], [[1.0, 2.0], [3.0, 4.0]], (3, 2)),
    "twice": lambda t: t.sparse_coo_tensor([[0, 0]], [True, True], (2,)).coalesce(),
    "size alone": lambda t: t.sparse_coo_tensor((2, 3)),
    "no elements": lambda t: t.sparse_coo_tensor(t.empty(2, 0, dtype=t.int64), t.empty(0), (2, 3)),
    "dtype": lambda t: t.sparse_coo_tensor([[0, 1]], [1, 2], (3,), dtype=t.float64),
    "half": lambda t: t.eye(2).half().to_sparse(),
    "bool": lambda t: (t.eye(2) > 0).to_sparse(),
    "complex": lambda t: t.eye(2, dtype=t.complex64).to_sparse(),
    "requires_grad": lambda t: t.sparse_coo_tensor(WHERE, [3.0, 4.0, 5.0], (2, 3), requires_grad=True),
    "0-d": lambda t: t.tensor(3.0).to_sparse(),
    "large": lambda t: t.eye(2000).to_sparse(),
    "sparse_dim": lambda t: t.ones(2, 3).to_sparse(1),
    "rows": lambda t: t._convert_indices_from_coo_to_csr(t.tensor([0, 0, 2]), 4, out_int32=True),
    "rows of a matrix": lambda t: t._convert_indices_from_coo_to_csr(t.tensor([[0]]), 4),
    "places": lambda t: t._convert_indices_from_csr_to_coo(t.tensor([0, 2, 2]), t.tensor([5, 6]), transpose=True),
    "csr": lambda t: t.sparse_csr_tensor([0, 1, 3], [2, 0, 2], [3.0, 4.0, 5.0], (2, 3)),
    "csr without size": lambda t: t.sparse_csr_tensor([0, 1, 3], [2, 0, 2], [3.0, 4.0, 5.0]),
    "csr large": lambda t: t.eye(2000).to_sparse_csr(),
    "csr of batches": lambda t: t.tensor([[[1.0, 0], [0, 1]], [[1.0, 1], [0, 0]]]).to_sparse_csr(),
    "csr of vectors": lambda t: t.ones(2, 2, 2).to_sparse_csr(dense_dim=1),
    "csr empty": lambda t: t.zeros(2, 2).to_sparse_csr(),
    "csr int": lambda t: t.eye(2, dtype=t.int32).to_sparse_csr(),
    "csc": lambda t: t.sparse_csc_tensor([0, 1, 2], [0, 1], [1.0, 2.0], (2, 2)),
    "bsr": lambda t: t.eye(4).to_sparse_bsr((2, 2)),
    "bsc": lambda t: t.sparse_bsc_tensor([0, 1], [0], [[[1.0, 2.0], [3.0, 4.0]]]),
    "compressed": lambda t: t.sparse_compressed_tensor([0, 1, 2], [0, 1], [1.0, 2.0], (2, 2), layout=t.sparse_csr),
    "spdiags": lambda t: t.sparse.spdiags(t.arange(9.0).reshape(3, 3), t.tensor([0, -1, 2]), (3, 3)),
    "spdiags csr": lambda t: t.sparse.spdiags(t.arange(3.0), t.tensor([1]), (3, 3), layout=t.sparse_csr),
    "softmax": lambda t: t.sparse.softmax(t.sparse_coo_tensor(WHERE, [3.0, 4.0, 5.0], (2, 3)), 1),
    "log_softmax": lambda t: t.sparse.log_softmax(t.sparse_coo_tensor(WHERE, [3.0, 4.0, 5.0], (2, 3)), 0),
    "sampled": lambda t: t.sparse.sampled_addmm(t.eye(3).to_sparse_csr(), t.ones(3, 4), t.ones(4, 3)),
    "zeros": lambda t: t.zeros(2, 3, layout=t.sparse_csr),
    "zeros_like": lambda t: t.zeros_like(t.eye(2).to_sparse()),
    "zero_": lambda t: t.eye(2).to_sparse().zero_(),
    "resize": lambda t: t.eye(2).to_sparse().sparse_resize_((3, 4), 2, 0),
    "hspmm": lambda t: t.hspmm(t.sparse_coo_tensor(WHERE, [3.0, 4.0, 5.0], (2, 3)), t.ones(3, 2)),
    "sum hybrid": lambda t: t.sparse.sum(t.sparse_coo_tensor([[0, 1]], [[1.0, 2.0], [3.0, 4.0]], (3, 2)), 1),
    "sum sparse dims": lambda t: t.sparse.sum(t.sparse_coo_tensor([[0, 1]], [[1.0, 2.0], [3.0, 4.0]], (3, 2)), 0),
    "parameter": lambda t: t.nn.Parameter(t.eye(2).to_sparse()),
    "zeros_like of hybrid": lambda t: t.zeros_like(t.ones(3, 2).to_sparse(1)),
    "mm mean": lambda t: t.sparse.mm(t.eye(2).to_sparse_csr(), t.ones(2, 3), "mean"),
    "mm max": lambda t: t.sparse.mm(t.eye(2).to_sparse_csr(), t.ones(2, 3), "max"),
    # errors
    "wrong size": lambda t: t.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (3, 2)),
    "wrong nnz": lambda t: t.sparse_coo_tensor([[0, 1]], [1.0, 2.0, 3.0], (3,)),
    "wrong dense dims": lambda t: t.sparse_coo_tensor([[0, 1]], [[1.0, 2.0], [3.0, 4.0]], (3, 3)),
    "negative": lambda t: t.sparse_coo_tensor([[-1, 1]], [1.0, 2.0]),
    "out of range": lambda t: t.sparse_coo_tensor([[0, 5]], [1.0, 2.0], (3,), check_invariants=True),
    "not coalesced": lambda t: t.sparse_coo_tensor([[0, 0]], [1.0, 2.0], (3,)).indices(),
    "dense indices": lambda t: t.ones(2).indices(),
    "dense values": lambda t: t.ones(2).values(),
    "dense crow": lambda t: t.ones(2).crow_indices(),
    "dense coalesce": lambda t: t.ones(2).coalesce(),
    "csr indices": lambda t: t.eye(2).to_sparse_csr().indices(),
    "sparse + dense": lambda t: t.eye(2).to_sparse() + t.eye(2),
    "sparse / dense": lambda t: t.eye(2).to_sparse() / t.eye(2),
    "sparse ** 0": lambda t: t.eye(2).to_sparse() ** 0,
    "shapes of +": lambda t: t.eye(2).to_sparse() + t.eye(3).to_sparse(),
    "cat with dense": lambda t: t.cat([t.eye(2).to_sparse(), t.eye(2)]),
    "numpy": lambda t: t.eye(2).to_sparse().numpy(),
    "bool of many": lambda t: bool(t.eye(2).to_sparse()),
    "item of many": lambda t: t.eye(2).to_sparse().item(),
    "reshape": lambda t: t.eye(2).to_sparse().reshape(4),
    "expand": lambda t: t.eye(2).to_sparse().expand(2, 2, 2),
    "transpose of dense dims": lambda t: t.ones(2, 2).to_sparse(1).transpose(0, 1),
    "blocks": lambda t: t.ones(3, 3).to_sparse_bsr((2, 2)),
    "sparse_dim 3": lambda t: t.ones(2, 3).to_sparse(3),
    "batches": lambda t: t.tensor([[[1.0, 0], [0, 1]], [[1.0, 1], [0, 1]]]).to_sparse_csr(),
    "mask": lambda t: t.ones(3, 3).sparse_mask(t.eye(2).to_sparse()),
    "offsets": lambda t: t.sparse.spdiags(t.arange(6.0).reshape(2, 3), t.tensor([0, 0]), (3, 3)),
    "sizes of @": lambda t: t.eye(2).to_sparse() @ t.ones(3, 3),
    "sizes of csr @": lambda t: t.eye(2).to_sparse_csr() @ t.ones(3, 3),
    "dtypes of @": lambda t: t.eye(2).to_sparse() @ t.ones(2, 2).double(),
    "nbytes": lambda t: t.eye(2).to_sparse().nbytes,
    "copy_": lambda t: t.ones(2, 2).copy_(t.eye(2).to_sparse()),
    "csr rows": lambda t: t.sparse_csr_tensor([0, 1], [0, 1], [1.0, 2.0], (2, 2), check_invariants=True),
    "crow": lambda t: t.sparse_csr_tensor([1, 1, 2], [1, 0], [1.0, 2.0], (2, 2), check_invariants=True),
    "csr columns": lambda t: t.sparse_csr_tensor([0, 1, 2], [1, 5], [1.0, 2.0], (2, 2), check_invariants=True),
    "csr unsorted": lambda t: t.sparse_csr_tensor([0, 2, 2], [1, 0], [1.0, 2.0], (2, 2), check_invariants=True),
    "index vector": lambda t: t.sparse_coo_tensor([0, 1], [1.0, 2.0]),
    "integers": lambda t: t.sparse_coo_tensor([[0, 1]], [1, 2], requires_grad=True),
    "select": lambda t: t.eye(2).to_sparse()[2],
    "dropout": lambda t: t.nn.functional.dropout(t.eye(2).to_sparse()),
    "rand_like": lambda t: t.rand_like(t.eye(2).to_sparse_csr()),
    "randn_like": lambda t: t.randn_like(t.eye(2).to_sparse()),
    "normal_": lambda t: t.eye(2).to_sparse().normal_(),
    "SparseAdam": lambda t: t.optim.SparseAdam([t.eye(2).to_sparse().requires_grad_()]),
    "bag max": lambda t: t.nn.functional.embedding_bag(t.tensor([[0]]), t.ones(2, 2), mode="max", sparse=True),
    **{name: lambda t, name=name: getattr(t, name)(t.eye(2).to_sparse()) for name in ("exp", "cos", "log", "tril")},
}  # fmt: skip


def shown(make, t):
    try:
        return repr(make(t))
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        return "RuntimeError" if isinstance(error, RuntimeError) else type(error).__name__, str(error)


@asked_of_torch("name", MADE)
def test_texts_and_errors_are_those_of_pytorch(name: str):
    torch = torch_or_skip()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = shown(MADE[name], torch)
    found = shown(MADE[name], eager)
    if isinstance(wanted, tuple) and wanted[1].startswith("Could not run"):
        assert found[1].startswith(wanted[1].split(". ")[0].replace(".Scalar", "").replace(".float", "")), found
    elif name == "csr rows":
        assert found[1].split(",")[0] == wanted[1].split(",")[0]
    else:
        assert found == wanted


def test_a_text_as_recorded():
    assert repr(MADE["list"](eager)) == (
        "tensor(indices=tensor([[0, 1, 1],\n                       [2, 0, 2]]),\n       values=tensor([3., 4., 5.]),\n"
        "       size=(2, 3), nnz=3, layout=torch.sparse_coo)"
    )
    with pytest.raises(NotImplementedError, match="Could not run 'aten::exp' with arguments from the 'SparseCPU'"):
        MADE["exp"](eager)


@pytest.mark.parametrize("name", (*LAYOUTS, *EDGES))
def test_conversions_copies_and_files_keep_the_values(name: str):
    s = sparse(eager, name)
    wanted = plain(s)
    file = io.BytesIO()
    eager.save({"s": s}, file)
    file.seek(0)
    again = [
        copy.deepcopy(s),
        copy.copy(s),
        pickle.loads(pickle.dumps(s)),
        eager.load(file)["s"],
        s.clone(),
        s.detach(),
    ]
    for x in again:
        assert (x.layout, x.shape, x.dtype, x._nnz()) == (s.layout, s.shape, s.dtype, s._nnz())
        assert x.layout is not eager.sparse_coo or x.is_coalesced() == s.is_coalesced()
        np.testing.assert_array_equal(plain(x), wanted)
    for layout in "coo csr csc".split():
        np.testing.assert_array_equal(plain(getattr(s, f"to_sparse_{layout}")()), wanted)
    if name != "no_rows":
        for layout in "bsr bsc".split():
            np.testing.assert_array_equal(plain(getattr(s, f"to_sparse_{layout}")((2, 1))), wanted)


@pytest.mark.parametrize("name", ("coo", "unsorted", "csr", "csc", "bsr"))
def test_scipy_takes_and_gives_the_same(name: str):
    s = sparse(eager, name)
    there = eager.sparse.to_scipy(s)
    np.testing.assert_array_equal(there.toarray(), plain(s))
    back = eager.sparse.from_scipy(there)
    assert back.layout is s.layout
    np.testing.assert_array_equal(plain(back), plain(s))
    x = numbers(np.float64, 6, 3)
    np.testing.assert_allclose((back @ tensor(eager, x)).numpy(), there @ x)
    assert eager.sparse.from_scipy(scipy.sparse.dia_array(np.eye(3))).layout is eager.sparse_coo


@pytest.mark.parametrize("direction", ("there", "back"))
def test_files_are_pytorchs(direction: str):
    torch = torch_or_skip()
    writer, reader = (eager, torch) if direction == "there" else (torch, eager)
    for name in LAYOUTS:
        file = io.BytesIO()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            writer.save(sparse(writer, name), file)
            file.seek(0)
            found = reader.load(file)
            assert str(found.layout) == str(sparse(writer, name).layout)
            np.testing.assert_array_equal(plain(found), plain(sparse(writer, name)))


def test_hybrid_tensors_and_batches_compute_as_dense_ones():
    rng = np.random.default_rng(0)
    hybrid = eager.sparse_coo_tensor([[2, 0, 2], [1, 1, 1]], tensor(eager, rng.random((3, 4))), (3, 2, 4))
    batch = tensor(eager, np.kron(rng.random((2, 1, 1)), np.eye(3)) + np.zeros((2, 3, 3)))
    functions = {
        "add": lambda x: x + x, "scale": lambda x: x * 3, "mul": lambda x: x * tensor(eager, rng_of(x)),
        "sum 2": lambda x: x.sum(2), "sum 0": lambda x: x.sum(0), "sum 01": lambda x: x.sum((0, 1)),
        "select": lambda x: x.select(2, 1), "select sparse": lambda x: x[2], "one": lambda x: x[2, 1],
        "dense slice": lambda x: x[:, :, 1:3], "index_select": lambda x: x.index_select(2, eager.tensor([3, 0])),
        "swap": lambda x: x.transpose(0, 1), "cat": lambda x: eager.cat([x, x], 2),
        "unsqueeze": lambda x: x.unsqueeze(2), "tanh": eager.tanh,
    }  # fmt: skip
    for name, f in functions.items():
        np.testing.assert_allclose(plain(f(hybrid)), plain(f(hybrid.to_dense())), err_msg=name)
    np.testing.assert_allclose(plain(eager.sparse.softmax(hybrid, 2).coalesce())[2, 1],
                               plain(eager.softmax(hybrid.to_dense(), 2))[2, 1])  # fmt: skip
    for s in (batch.to_sparse(), batch.to_sparse_csr(), batch.to_sparse_csc(), batch.to_sparse_bsr((3, 3))):
        d = tensor(eager, rng.random((2, 3, 4)))
        np.testing.assert_allclose((s @ d).numpy(), (batch @ d).numpy())
        np.testing.assert_allclose(eager.bmm(s, d).numpy(), (batch @ d).numpy())
        np.testing.assert_allclose(plain(s * 2), plain(batch * 2))
        np.testing.assert_allclose(plain(s.transpose(1, 2)), plain(batch.transpose(1, 2)))


def rng_of(x):
    return np.random.default_rng(11).random(x.shape)


@pytest.mark.parametrize("columns", [[0, 10**7], [0, -5]])
def test_scipy_never_sees_a_place_out_of_range(columns: list[int]):
    for s in (eager.sparse_csr_tensor([0, 1, 2], columns, [1.0, 2.0], (2, 3)),
              eager.sparse_coo_tensor([[0, 1], columns], [1.0, 2.0], (2, 3))):  # fmt: skip
        with pytest.raises(ValueError):
            eager.sparse.to_scipy(s)
        with pytest.raises(IndexError):
            s @ eager.ones(3, 2)
    for f in (lambda s: s[eager.tensor([0, 2])], lambda s: s.index_select(0, eager.tensor([0, 2]))):
        with pytest.raises(IndexError):
            f(eager.eye(2).to_sparse())
    with pytest.raises(RuntimeError, match="negative dimension -3"):
        eager.sparse_coo_tensor((-3,))


@pytest.mark.parametrize("device", ["meta", "xla"])
def test_sparse_tensors_are_on_the_cpu_alone(device: str):
    with far():
        for f in (lambda: eager.eye(2).to_sparse().to(device), lambda: eager.eye(2, device=device).to_sparse(),
                  lambda: eager.sparse_coo_tensor([[0]], [1.0], (2,), device=device),
                  lambda: eager.sparse_csr_tensor([0, 1], [0], eager.ones(1, device=device), (1, 1)),
                  lambda: eager.zeros(2, 2, layout=eager.sparse_coo, device=device)):  # fmt: skip
            with pytest.raises(NotImplementedError):
                f()


def test_invariants_are_tested_on_request():
    check = eager.sparse.check_sparse_tensor_invariants
    make = lambda: eager.sparse_csr_tensor([0, 1, 2], [0, 4], [1.0, 2.0], (2, 2))
    make()
    assert not check.is_enabled()
    with check(), pytest.raises(RuntimeError, match="`0 <= col_indices < ncols` is not satisfied"):
        make()
    with pytest.raises(RuntimeError):
        check()(make)()
    assert not check.is_enabled()
    with pytest.raises(IndexError, match="out of range"):
        make() @ eager.ones(2, 2)


def test_a_file_whose_parts_do_not_fit_is_refused():
    from eager.checkpoints.pickle_globals import sparse_tensor

    where, values = eager.zeros(2, 3, dtype=eager.int64), eager.ones(3)
    for parts in ((where, eager.ones(2), (2, 2)), (where.float(), values, (2, 2)), (where, values, (2,)),
                  (where, values, (2, -1)), (where[0], values, (2, 2))):  # fmt: skip
        with pytest.raises((ValueError, TypeError)):
            sparse_tensor(eager.sparse_coo, (*parts, False))
    assert sparse_tensor(eager.sparse_coo, (where, values, (2, 2), False))._nnz() == 3


def test_sizes_are_changed_in_place():
    x = eager.tensor([[1.0, 0.0], [0.0, 2.0]]).to_sparse()
    assert x.sparse_resize_((2, 2), 2, 0).to_dense().tolist() == [[1, 0], [0, 2]]
    assert x.sparse_resize_((3, 2), 2, 0).to_dense().tolist() == [[1, 0], [0, 2], [0, 0]]
    for size, dims, message in (((1, 2), 2, "shrinking the size of sparse dimensions"), ((6,), 1, "changing the num")):
        with pytest.raises(RuntimeError, match=message):
            x.sparse_resize_(size, dims, 0)
    assert eager.zeros(2, 2).to_sparse().resize_as_sparse_(x).shape == (3, 2)
    assert x.sparse_resize_and_clear_((4,), 1, 0).to_dense().tolist() == [0] * 4


def test_a_sum_of_products_has_both_factors():
    x, y = eager.tensor([[1.0, 0.0], [0.0, 2.0]]).to_sparse(), eager.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert eager.sspaddmm(x, x, y, beta=3, alpha=2).to_dense().tolist() == [[5, 4], [12, 22]]
    assert eager.hspmm(x, y).to_dense().tolist() == [[1, 2], [6, 8]]
