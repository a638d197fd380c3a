"""What functions do with sparse operands, against dense ones always and against PyTorch where it is installed."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import eager
from tests.oracle import asked_of_torch, torch_or_skip
from tests.sparse.operands import EDGES, FUNCTIONS, LAYOUTS, numbers, of, plain, sparse

DTYPES = (np.float32, np.float64, np.complex64, np.int64, np.int32)
REFUSED = (RuntimeError, NotImplementedError, IndexError)  # also PyTorch's own errors


def operands(linear):
    """(name, dtype) of the operands of a function."""
    yield from ((name, np.float64) for name in (*LAYOUTS, *EDGES))
    yield from (("unsorted", dtype) for dtype in DTYPES if linear or np.dtype(dtype).kind == "f")
    yield from ((name, np.complex64) for name in ("csr", "bsc") if linear)


def outcome(f, *args):
    try:
        return f(*args), None
    except REFUSED as error:
        return None, error


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_give_what_they_give_for_dense_operands(name: str):
    f, linear = FUNCTIONS[name]
    done = 0
    for operand, dtype in operands(linear):
        s = sparse(eager, operand, dtype)
        found, error = outcome(f, eager, s)
        wanted, dense_error = outcome(f, eager, s.to_dense())
        if error is not None:  # as PyTorch: what has no form says so
            assert dense_error or isinstance(error, NotImplementedError) or s.layout is not eager.sparse_coo, (
                operand, dtype, error)  # fmt: skip
            continue
        assert found.shape == wanted.shape and found.dtype == wanted.dtype, (operand, dtype)
        np.testing.assert_allclose(plain(found), plain(wanted), 1e-5, 1e-6, err_msg=f"{operand} {dtype}")
        done += 1
    assert done >= 3


@asked_of_torch("name", FUNCTIONS)
def test_functions_give_what_pytorch_gives(name: str):
    torch = torch_or_skip()
    f, linear = FUNCTIONS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for operand, dtype in operands(linear):
            found, error = outcome(f, eager, sparse(eager, operand, dtype))
            wanted, refusal = outcome(f, torch, sparse(torch, operand, dtype))
            if refusal is not None:  # some of these are here
                assert error is None or isinstance(error, REFUSED)
                continue
            assert error is None, (operand, dtype, error)
            assert (found.shape, of(found)) == (tuple(wanted.shape), of(wanted)), (operand, dtype)
            if operand != "no_rows" and " @ s.t" not in name:
                assert str(found.layout) == str(wanted.layout), (operand, dtype)
            np.testing.assert_allclose(plain(found), plain(wanted), 1e-5, 1e-6, err_msg=f"{operand} {dtype}")


# --- gradients: what arrives at the elements of a sparse leaf is what arrives there at a dense one


def gradients(f, name):
    s = sparse(eager, name).requires_grad_()
    d = s.detach().to_dense().requires_grad_()
    for x in (s, d):
        result = f(eager, x)
        result = result if result.layout is eager.strided else result.to_dense()
        (result * eager.tensor(numbers(np.float64, *result.shape, seed=9))).real.sum().backward()
    places = eager.ones_like(d).sparse_mask(s.detach()).to_dense() != 0
    return plain(s.grad), np.where(places.numpy(), d.grad.numpy(), 0), s


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in ("isnan", "any", "mask", "sign", "trunc")])
def test_gradients_are_those_of_dense_operands_at_the_elements(name: str):
    f, _ = FUNCTIONS[name]
    # of what is stored and 0, `to_sparse` of the dense operand knows nothing
    for operand in LAYOUTS[:4] if name.startswith("to_sparse") else LAYOUTS:
        try:
            found, wanted, s = gradients(f, operand)
        except NotImplementedError:
            continue
        except RuntimeError:
            assert operand != "coo"
            continue
        assert s.grad.layout is s.layout
        np.testing.assert_allclose(found, wanted, 1e-9, 1e-9, err_msg=operand)


def test_gradients_agree_with_finite_differences():
    where = eager.tensor([[0, 1, 1, 3], [2, 0, 0, 2]])  # one place twice
    d = eager.tensor(numbers(np.float64, 4, 3))
    values = eager.tensor([1.0, -2.0, 0.5, 3.0], dtype=eager.float64, requires_grad=True)
    made = lambda v: eager.sparse_coo_tensor(where, v, (4, 4))
    for f in (
        lambda v: eager.sparse.mm(made(v), d),
        lambda v: eager.sin(made(v)).to_dense(),
        lambda v: eager.sparse.mm(made(v), made(v)).to_dense(),
        lambda v: eager.sparse.softmax(made(v), 0).to_dense(),
        lambda v: eager.sparse.log_softmax(made(v), 1).coalesce().values(),
        lambda v: eager.sparse.sum(made(v), 0).to_dense(),
        lambda v: eager.sparse.sampled_addmm(made(v).to_sparse_csr(), d, d.T, alpha=2).values(),
    ):
        assert eager.autograd.gradcheck(f, (values,))
    for f in (
        lambda d: eager.sparse.mm(made(values.detach()), d),
        lambda d: d.sparse_mask(made(values.detach())).to_dense(),
    ):
        assert eager.autograd.gradcheck(f, (eager.randn(4, 4, dtype=eager.float64, requires_grad=True),))
    assert eager.autograd.gradgradcheck(lambda v: eager.sparse.mm(made(v), d) ** 2, (values,))


def test_gradients_of_gradients_flow_through_products():
    where = eager.tensor([[0, 1], [1, 0]])
    v = eager.tensor([2.0, 3.0], requires_grad=True)
    x = eager.tensor([[1.0], [5.0]], requires_grad=True)
    loss = (eager.sparse_coo_tensor(where, v, (2, 2)) @ x).pow(2).sum()
    (g,) = eager.autograd.grad(loss, v, create_graph=True)
    np.testing.assert_allclose(g.detach().numpy(), [2 * 2 * 25, 2 * 3 * 1])
    (gg,) = eager.autograd.grad(g.sum(), v)
    np.testing.assert_allclose(gg.numpy(), [2 * 25, 2 * 1])


# --- planted faults are seen


@pytest.mark.parametrize("fault", ["values", "dense", "kernel"])
def test_a_wrong_product_is_seen(fault: str, monkeypatch: pytest.MonkeyPatch):
    from eager.engine.language import refresh
    from graphc.ops import OPS

    op = OPS["sparse_mm"]
    if fault == "kernel":
        right = op.kernel
        monkeypatch.setattr(op, "kernel", lambda rows, *rest, **params: right(rows[::-1].copy(), *rest, **params))
        check = lambda: test_functions_give_what_they_give_for_dense_operands("s @ d")
    else:
        wrong = op._vjp(fault, lambda F, g, values: values) if fault == "values" else op._vjp(
            "dense", lambda F, g, columns, rows, values, dense_shape: F.sparse_mm(
                columns, rows, values * values, g, size=dense_shape[0]))  # fmt: skip
        monkeypatch.setattr(op, "vjp", {**op.vjp, fault: wrong})
        check = test_gradients_agree_with_finite_differences
    refresh(op)
    try:
        with pytest.raises((AssertionError, RuntimeError)):
            check()
    finally:
        monkeypatch.undo()
        refresh(op)
