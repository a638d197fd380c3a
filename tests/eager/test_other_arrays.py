"""Arrays of JAX and PyTorch as data and as arguments, and tensors as theirs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import eager
import graphc
from eager.functional.buffers import is_of_elsewhere

VALUES = np.arange(6.0, dtype=np.float32).reshape(2, 3)


def jax_array(dtype: str) -> Any:
    return pytest.importorskip("jax.numpy").array(VALUES, dtype=dtype)


def torch_tensor(dtype: str) -> Any:
    torch = pytest.importorskip("torch")
    return torch.from_numpy(VALUES.copy()).to(getattr(torch, dtype))


LIBRARIES = {"jax": jax_array, "torch": torch_tensor}
DTYPES = ("float32", "bfloat16", "int32", "float16")


@pytest.mark.parametrize("library", LIBRARIES)
def test_data_of_other_libraries(library: str) -> None:
    for dtype in DTYPES:
        array = LIBRARIES[library](dtype)
        assert is_of_elsewhere(array)
        for make in (eager.as_tensor, eager.tensor, eager.asarray, eager.from_dlpack):
            made = make(array)
            assert (made.dtype, made.tolist()) == (getattr(eager, dtype), VALUES.tolist()), (make, dtype)
        assert eager.as_tensor(array, dtype=eager.float64).dtype is eager.float64


def test_memory_is_shared_with_pytorch_and_not_with_jax() -> None:
    theirs = torch_tensor("bfloat16")
    ours = eager.as_tensor(theirs)
    theirs += 1
    assert ours.tolist() == (VALUES + 1).tolist()
    eager.tensor(theirs).add_(1)
    assert ours.tolist() == (VALUES + 1).tolist()
    array = jax_array("float32")
    eager.as_tensor(array).add_(1)
    assert np.asarray(array).tolist() == VALUES.tolist()


def test_tensors_are_arrays_of_other_libraries() -> None:
    jnp, torch = pytest.importorskip("jax.numpy"), pytest.importorskip("torch")
    for dtype in ("float32", "bfloat16"):
        ours = eager.from_numpy(VALUES.copy()).to(getattr(eager, dtype))
        array = jnp.asarray(ours)
        assert str(array.dtype) == dtype and (array + ours).tolist() == (2 * VALUES).tolist()
        shared = torch.from_dlpack(ours)
        shared += 1
        assert str(shared.dtype) == f"torch.{dtype}" and ours.tolist() == (VALUES + 1).tolist()
        assert array.tolist() == VALUES.tolist()


def test_gradients_do_not_cross() -> None:
    jnp, torch = pytest.importorskip("jax.numpy"), pytest.importorskip("torch")
    ours, theirs = eager.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    for refused in (lambda: torch.from_dlpack(ours), lambda: eager.as_tensor(theirs)):
        with pytest.raises(BufferError, match=r"Can't export tensors that require gradient, use tensor\.detach\(\)"):
            refused()
    with pytest.raises(RuntimeError, match=r"Can't call numpy\(\) on Tensor that requires grad"):
        jnp.asarray(ours)


@pytest.mark.on_numpy
@pytest.mark.parametrize("library", LIBRARIES)
def test_compiled_functions_take_them(library: str) -> None:
    array, w = LIBRARIES[library]("float32"), eager.ones(3, requires_grad=True)

    def f(a: Any, more: dict[str, Any]) -> Any:
        return (a @ w + more["b"].sum()).sum() + (a is more["b"])

    compiled = graphc.compile(f)
    for _ in range(3):
        w.grad = None
        result = compiled(array, {"b": array})
        result.backward()
        assert result.item() == VALUES.sum() * 3 + 1 and w.grad.tolist() == VALUES.sum(0).tolist()
    assert str(compiled.explain()).count("because:") == 1
    with graphc.disable():
        assert compiled(array, {"b": array}).item() == VALUES.sum() * 3 + 1
    assert len(graphc.trace(lambda a: a.sum(), array).inputs) == 1
