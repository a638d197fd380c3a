"""Programs read NumPy's memory in place: what is written to it is seen, and nobody else's memory is moved."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import jax
import numpy as np
import pytest

import eager as torch
import graphc
from eager.core.state import version_of
from graphc.lowering import ALIGNMENT, alias, aligned

DTYPES = ["float32", "float64", "int64", "int32", "bool", "complex64", "float16"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_alias_shows_what_is_written_and_keeps_nothing_alive(dtype: str):
    array = aligned(np.ones((3, 5), dtype))
    seen = alias(array)
    assert seen is not None and seen.dtype == array.dtype
    array[0, 0] = 0
    np.testing.assert_array_equal(np.asarray(seen), array)
    ref = weakref.ref(array)
    del array
    gc.collect()
    assert ref() is None


def test_what_cannot_be_read_in_place_has_no_alias():
    array = aligned(np.ones((4, 16), np.float32))
    assert alias(array.T) is None and alias(array[:, 1:]) is None and alias(array[:0]) is None
    assert alias(array.reshape(-1)[1:]) is None


def misaligned(*shape: int) -> Any:
    """A tensor in memory that XLA would copy."""
    kept = []
    while True:
        tensor = torch.randn(*shape)
        if tensor._d.ctypes.data % ALIGNMENT:
            return tensor
        kept.append(tensor)  # else the same memory comes again


@pytest.fixture
def _alone(monkeypatch: pytest.MonkeyPatch):
    """Threads that other tests have left do nothing to the tensors of these."""
    monkeypatch.setattr(threading, "active_count", lambda: 1)


@pytest.mark.usefixtures("_alone")
def test_a_tensor_that_programs_read_is_moved_once_and_stays_the_same_tensor():
    w = misaligned(16, 16)
    w.mul_(2)
    version, x = w._version, torch.randn(2, 16)
    compiled = graphc.compile(lambda x: x @ w)
    for _ in range(5):
        torch.testing.assert_close(compiled(x), x @ w)
    assert w._d.ctypes.data % ALIGNMENT == 0 and w._version == version == version_of(w._d)
    assert w.storage_offset() == 0 and w.untyped_storage().nbytes() == w.nbytes
    place = w.data_ptr()
    for write in (lambda: w.add_(1), lambda: w[3:].fill_(5), lambda: w.T.neg_(), lambda: w.numpy().fill(0.5)):
        write()
        torch.testing.assert_close(compiled(x), x @ w)
        assert w.data_ptr() == place
    w.data = torch.randn(16, 16)
    for _ in range(4):
        torch.testing.assert_close(compiled(x), x @ w)


def test_memory_that_somebody_else_sees_is_not_moved():
    w, x = misaligned(16, 16), torch.randn(2, 16)
    held, part = w.numpy(), w[1:]
    compiled = graphc.compile(lambda x: x @ w)
    for _ in range(5):
        compiled(x)
    held[:] = 2
    part.fill_(3)
    assert w._d is held and float(w[0, 0]) == 2 and float(w[1, 0]) == 3
    torch.testing.assert_close(compiled(x), x @ w)


def test_nothing_is_moved_while_other_threads_run():
    w, x, end = misaligned(16, 16), torch.randn(2, 16), threading.Event()
    place, other = w.data_ptr(), threading.Thread(target=end.wait)
    compiled = graphc.compile(lambda x: x @ w)
    other.start()
    try:
        for _ in range(8):
            compiled(x)
        assert w.data_ptr() == place
    finally:
        end.set()
        other.join()


def test_what_is_saved_for_gradients_or_written_is_no_alias():
    w = misaligned(4, 4).requires_grad_()
    x = torch.randn(2, 4)
    compiled = graphc.compile(lambda x: (x @ w).square().sum())
    for _ in range(4):
        loss = compiled(x)
    (expected,) = torch.autograd.grad((x @ w).square().sum(), w)
    loss.backward()
    torch.testing.assert_close(w.grad, expected)
    counter = misaligned(4)

    @graphc.compile
    def count(x: Any) -> Any:
        counter.add_(x)
        return counter * 2

    start = counter.clone()
    for k in range(1, 5):
        torch.testing.assert_close(count(torch.ones(4)), (start + k) * 2)
    torch.testing.assert_close(counter, start + 4)


LARGE = (160, 160)


@pytest.mark.usefixtures("_alone")
def test_a_large_argument_that_comes_again_is_moved():
    x, w = misaligned(*LARGE).round_(), misaligned(*LARGE).round_()
    version = x._version
    compiled = graphc.compile(lambda x, w: x @ w)
    for _ in range(4):
        torch.testing.assert_close(compiled(x, w), x @ w)
    assert x._d.ctypes.data % ALIGNMENT == w._d.ctypes.data % ALIGNMENT == 0 and x._version == version
    place = x.data_ptr()
    x[3:].fill_(5)
    torch.testing.assert_close(compiled(x, w), x @ w)
    assert x.data_ptr() == place
    again = graphc.compile(lambda x, w: x + w)  # of what is not in NumPy's memory
    for _ in range(4):
        torch.testing.assert_close(again(compiled(x, w), w), x @ w + w)


def test_a_large_argument_that_somebody_else_sees_is_not_moved():
    x, w = misaligned(*LARGE).round_(), misaligned(*LARGE).round_().requires_grad_()
    held, part, loss = x.numpy(), x[1:], (w * w).sum()
    compiled = graphc.compile(lambda x, w: x @ w.detach())
    places = x.data_ptr(), w.data_ptr()
    for _ in range(4):
        compiled(x, w)
    held[:] = 2
    part.fill_(3)
    loss.backward()
    assert (x.data_ptr(), w.data_ptr()) == places
    torch.testing.assert_close(w.grad, 2 * w.detach())
    torch.testing.assert_close(compiled(x, w), x @ w.detach())


def test_arrays_that_are_no_tensors_go_the_long_way():
    """Also once the short way for tensors like them has been made."""
    compiled = graphc.compile(lambda x: x * 2)
    for _ in range(4):
        compiled(torch.ones(*LARGE))
    for other in (np.ones(LARGE, np.float32), jax.numpy.ones(LARGE)):
        assert np.asarray(compiled(other)).tolist() == np.full(LARGE, 2.0).tolist()
