"""Tensors among arrays: NumPy's ufuncs and functions, DLPack, shared memory, copies and pickles."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import eager
from eager.surface import interop

UFUNCS: dict[str, Any] = {
    "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "sin": np.sin, "tanh": np.tanh, "negative": np.negative,
    "square": np.square, "absolute": np.abs, "floor": np.floor, "reciprocal": np.reciprocal, "expm1": np.expm1,
    "arctan": np.arctan, "isfinite": np.isfinite, "sign": np.sign, "cbrt": np.cbrt, "degrees": np.degrees,
}  # fmt: skip
BINARY: dict[str, Any] = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide, "power": np.power,
    "maximum": np.maximum, "minimum": np.minimum, "arctan2": np.arctan2, "less": np.less, "equal": np.equal,
    "floor_divide": np.floor_divide, "remainder": np.remainder, "logaddexp": np.logaddexp, "fmax": np.fmax,
    "hypot": np.hypot, "copysign": np.copysign,
}  # fmt: skip
FUNCTIONS: dict[str, Any] = {
    "sum": np.sum, "sum over 0": lambda x: np.sum(x, axis=0), "kept": lambda x: np.sum(x, axis=1, keepdims=True),
    "two axes": lambda x: np.sum(x, axis=(0, 1)), "mean": lambda x: np.mean(x, axis=1), "max": np.max,
    "min": lambda x: np.min(x, axis=0), "argmax": lambda x: np.argmax(x, axis=1), "prod": np.prod, "std": np.std,
    "var": lambda x: np.var(x, axis=0, ddof=1), "concatenate": lambda x: np.concatenate([x, x], axis=1),
    "stack": lambda x: np.stack([x, x]), "vstack": lambda x: np.vstack([x, x]), "dot": lambda x: np.dot(x, x.T),
    "matmul": lambda x: np.matmul(x, x.T), "transpose": np.transpose, "axes": lambda x: np.transpose(x, (1, 0)),
    "reshape": lambda x: np.reshape(x, (6,)), "squeeze": lambda x: np.squeeze(x[:1]), "ravel": np.ravel,
    "expand_dims": lambda x: np.expand_dims(x, 0), "clip": lambda x: np.clip(x, 0.4, 0.8),
    "outer": lambda x: np.outer(x[0], x[1]),
    "where": lambda x: np.where(x > 0.5, x, 0.0), "cumsum": lambda x: np.cumsum(x, axis=0),
    "round": lambda x: np.round(x),
    "flip": lambda x: np.flip(x, 0), "roll": lambda x: np.roll(x, 1, 0), "trace": np.trace, "diag": np.diag,
    "tril": np.tril, "swapaxes": lambda x: np.swapaxes(x, 0, 1), "moveaxis": lambda x: np.moveaxis(x, 0, 1),
    "einsum": lambda x: np.einsum("ij,kj->ik", x, x), "zeros_like": np.zeros_like, "all": np.all,
    "any": lambda x: np.any(x > 0.5, axis=0), "sort": lambda x: np.sort(x, axis=1),
    "broadcast_to": lambda x: np.broadcast_to(x, (4, 2, 3)),
    "percentile": lambda x: np.percentile(x, 30), "unique": np.unique, "add.reduce": np.add.reduce,
    "maximum.reduce": lambda x: np.maximum.reduce(x, axis=1), "add.accumulate": np.add.accumulate,
}  # fmt: skip


@pytest.fixture
def array(rng: np.random.Generator) -> np.ndarray:
    return rng.uniform(0.1, 1, (2, 3))


def agree(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(found, dtype=np.float64), np.asarray(expected, dtype=np.float64), rtol=1e-12)


@pytest.mark.parametrize("name", UFUNCS)
def test_ufuncs_give_tensors(name: str, array: np.ndarray):
    result = UFUNCS[name](eager.from_numpy(array))
    assert isinstance(result, eager.Tensor)
    agree(result.numpy(), UFUNCS[name](array))


@pytest.mark.parametrize("name", BINARY)
def test_arrays_on_either_side(name: str, array: np.ndarray):
    other, function = array + 0.5, BINARY[name]
    for result in (
        function(eager.from_numpy(array), other),
        function(array, eager.from_numpy(other)),
        function(eager.from_numpy(array), eager.from_numpy(other)),
    ):
        assert isinstance(result, eager.Tensor)
        agree(result.numpy(), function(array, other))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_agree_with_numpys(name: str, array: np.ndarray):
    agree(FUNCTIONS[name](eager.from_numpy(array)), FUNCTIONS[name](array))


@pytest.mark.parametrize("name", [n for n in interop._FUNCTIONS if not hasattr(np, n)])
def test_the_table_names_functions_of_numpy(name: str):
    pytest.fail(f"NumPy has no {name}")


def test_gradients_flow_through_numpy():
    x = eager.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    loss = np.sum(np.exp(x) * np.array([1.0, 2.0])) + np.mean(np.matmul(x, x)) + np.dot(x[0], x[1])
    loss.backward()
    y = eager.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    ((y.exp() * eager.tensor([1.0, 2.0])).sum() + (y @ y).mean() + y[0] @ y[1]).backward()
    agree(x.grad.numpy(), y.grad.numpy())


def test_a_gradient_is_never_lost():
    x = eager.ones(2, requires_grad=True)
    for call in (np.unwrap, lambda t: np.percentile(t, 50), np.spacing, lambda t: np.add(t, 1, out=np.zeros(2))):
        with pytest.raises(RuntimeError, match=r"Can't call numpy\(\)"):
            call(x)


def test_writing_into_an_array():
    a = np.ones(2)
    a += eager.tensor([1.0, 2.0])
    assert isinstance(a, np.ndarray) and a.tolist() == [2, 3]


@pytest.mark.parametrize("make", [
    lambda: eager.arange(6.0), lambda: eager.arange(6).reshape(2, 3).t(), lambda: eager.zeros(2, 3, 4).permute(2, 0, 1),
    lambda: eager.arange(10)[2:8:2], lambda: eager.tensor(5), lambda: eager.zeros(0, 3),
    lambda: eager.ones(3, dtype=eager.bfloat16)[1:], lambda: eager.zeros(3, 1).expand(3, 4),
    lambda: eager.tensor([1 + 2j, 3]).imag,
])  # fmt: skip
@pytest.mark.parametrize("through", [
    copy.deepcopy, copy.copy, *(lambda t, p=p: pickle.loads(pickle.dumps(t, p)) for p in range(2, 6))
])  # fmt: skip
def test_copies_keep_values_and_strides(make: Any, through: Any):
    t = make()
    again = through(t)
    assert repr(again) == repr(t)
    assert (
        again.stride() == t.stride()
        or t.permute(*range(t.ndim)[::-1]).numel() == 0
        or not t._array().flags.c_contiguous
    )


def test_deepcopy_keeps_what_is_shared():
    x = eager.zeros(4)
    first, second, bits = copy.deepcopy([x, x[1:3], x.view(eager.int32)])
    first[1] = 1.0
    assert second[0] == 1 and bits[1] == 0x3F800000
    assert x[1] == 0


def test_dlpack_shares_memory():
    t = eager.arange(3.0)
    assert np.shares_memory(np.from_dlpack(t), t.numpy())
    a = np.arange(3)
    assert np.shares_memory(eager.from_dlpack(a).numpy(), a)
    with pytest.raises(BufferError, match="require gradient"):
        np.from_dlpack(t.requires_grad_())


def test_dlpack_of_other_libraries():
    torch = pytest.importorskip("torch")
    theirs = torch.arange(3.0)
    ours = eager.from_dlpack(theirs)
    theirs[0] = 5
    assert ours[0] == 5
    back = torch.from_dlpack(ours)
    back[1] = 7
    assert ours[1] == 7


def test_a_trace_goes_through_numpy():
    pytest.importorskip("jax")
    import graphc

    @graphc.compile
    def f(x: Any) -> Any:
        return np.sum(np.exp(x) * 2.0) + np.ones(2, np.float32) @ x

    x = eager.tensor([1.0, 2.0])
    agree(f(x).numpy().astype(np.float32), (x.exp() * 2).sum() + x.sum())


@pytest.mark.parametrize("step", [1, 3, 4, 8])
@pytest.mark.parametrize("dtype", [eager.float32, eager.float64], ids=str)
def test_a_ufunc_writes_into_any_tensor(step: int, dtype: Any):
    """NumPy's own `negative`, in place, and `isnan`, with such an `out`, are wrong at some of these steps."""
    x = (eager.arange(20.0 * step, dtype=dtype) - 4.5)[::step]
    expected = [-v for v in x.tolist()]
    np.negative(x, out=x)
    assert x.tolist() == expected
    flags = eager.zeros(20 * step, dtype=eager.bool)[::step]
    np.isnan(x * float("nan"), out=flags)
    assert flags.tolist() == [True] * 20


def test_a_ufunc_that_writes_a_tensor_is_a_write():
    w, a = eager.tensor([1.0, 2.0], requires_grad=True), eager.tensor([1.0, 2.0])
    loss = (w * a).sum()
    np.add(a, 1, out=a)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_parts_of_a_ufunc_with_several_results_go_where_they_are_wanted():
    whole, x = eager.zeros(4), np.array([1.5, -2.25], np.float32)
    found = np.modf(eager.from_numpy(x), out=(None, whole[::2]))
    assert whole.tolist() == [1.0, 0.0, -2.0, 0.0] and np.asarray(found[0]).tolist() == [0.5, -0.25]
    np.negative(whole, out=whole, where=np.array([True, False, False, True]))
    assert whole.tolist() == [-1.0, 0.0, -2.0, 0.0]


def test_arrays_of_tensors_that_require_grad_where_nothing_is_recorded():
    x = eager.ones(2, requires_grad=True)
    for look in (lambda: x.numpy(), lambda: np.asarray(x), lambda: x.view(-1).numpy()):
        with pytest.raises(RuntimeError, match=r"Can't call numpy\(\) on Tensor that requires grad"):
            look()
        with eager.no_grad():
            assert look().tolist() == [1.0, 1.0]
