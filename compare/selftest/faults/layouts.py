"""Faults that show only where tensors lie otherwise than new ones do: in kernels, writes, gradients, write-back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from compare.checking.equivalence import check
from compare.layouts.layout import Layout, laid_out, repeated, stepped
from compare.locating.surroundings import STATE
from compare.selftest.fault import Expected, Fault, Trial, Trials
from compare.selftest.planting import attribute, declared, edited, entry, with_rule
from compare.selftest.trials import numbers, program
from eager.core import tape
from eager.core.tensor import Tensor
from eager.engine import inplace
from eager.engine.language import E
from graphc.execution import steps
from graphc.ops import OPS
from graphc.ops.spec import Vjp

LAYER = "layouts"
Where = Callable[..., bool]


def _on(fn: Callable[..., Any], *given: np.ndarray) -> Trials:
    """`check` of a function on tensors that show these very arrays, with gradients and without."""

    def trials() -> Iterator[Trial]:
        for grad in (True, False):
            tensors = [Tensor._wrap(a).requires_grad_(grad and a.dtype.kind == "f") for a in given]
            yield Trial("program with gradients" if grad else "program", check(fn, *tensors))

    return trials


def _kernel(what: str, name: str, wrong: Where, call: Callable[..., Any], *given: np.ndarray) -> Fault:
    """The kernel of op `name` is off by one for operands of which `wrong` is true."""
    op = OPS[name]

    def plant() -> AbstractContextManager[None]:
        sound = op.kernel

        def kernel(*arrays: Any, **params: Any) -> Any:
            result = sound(*arrays, **params)
            return result + result.dtype.type(1) if result.size and wrong(*arrays) else result

        return declared(op, kernel=kernel)

    return Fault(f"kernel of {name}: {what}", LAYER, plant, Expected(name, "kernel"), _on(call, *given), name)


def _gap(x: np.ndarray) -> bool:
    """Whether the elements do not lie one behind the other in any order."""
    return not (x.flags.c_contiguous or x.flags.f_contiguous)


def _step(x: np.ndarray) -> int:
    return x.strides[-1] // x.itemsize if x.ndim else 1


def _rows(n: int, step: int, **more: int) -> np.ndarray:
    return stepped((n,), step)._replace(**more).placed(numbers(n))


_matrix, _wide = numbers(3, 4), numbers(4, 4, dtype=np.float64)

_KERNELS = (
    _kernel("wrong at step 4", "abs", lambda x: _step(x) == 4, lambda x: E.abs(x) * 2, _rows(7, 4)),
    _kernel("wrong backwards", "exp", lambda x: _step(x) < 0, lambda x: E.exp(x) * 2, _rows(5, -1)),
    _kernel(
        "wrong on repeated elements", "tanh", lambda x: 0 in x.strides, lambda x: E.tanh(x) * 2,
        repeated((3, 4), (0,)).placed(_matrix),
    ),
    _kernel(
        "wrong out of alignment", "floor", lambda x: not x.flags.aligned, lambda x: E.floor(x * 1) + E.floor(x),
        Layout((1,), 0, 1).placed(numbers(6)),
    ),
    _kernel(
        "wrong where the length is no multiple of 8", "sin", lambda x: _step(x) > 1 and x.shape[-1] % 8 != 0,
        lambda x: E.sin(x), _rows(13, 2),
    ),
    _kernel(
        "wrong column by column", "sum", lambda x: x.ndim > 1 and x.flags.f_contiguous and not x.flags.c_contiguous,
        lambda x: E.sum(x, axis=(0,), keepdims=False), laid_out(_matrix, "column by column"),
    ),
    _kernel(
        "wrong for integers with gaps", "cumsum", lambda x: x.dtype.kind == "i" and _gap(x),
        lambda x: E.cumsum(x, axis=0), stepped((6,), 3).placed(np.arange(6)),
    ),
    _kernel(
        "wrong where only the second operand has gaps", "atan2",
        lambda x, y: x.flags.c_contiguous and _step(y) not in (0, 1), lambda x, y: E.atan2(x, y), numbers(5),
        _rows(5, 2),
    ),
    _kernel(
        "wrong between rows with gaps", "amax", lambda x: x.ndim == 2 and x.strides[0] > 4 * x.itemsize,
        lambda x: E.amax(x, axis=(0,), keepdims=False), laid_out(_matrix, "gaps between rows"),
    ),
    _kernel(
        "wrong for a transposed operand", "matmul", lambda x, y: y.ndim > 1 and y.strides[0] < y.strides[1],
        lambda x, y: E.matmul(x, y), _wide, laid_out(_wide, "column by column, step 4"),
    ),
    _kernel(
        "wrong at a step of one element backwards in float64", "sqrt",
        lambda x: x.dtype == np.float64 and _step(x) == -1, lambda x: E.sqrt(x),
        stepped((4,), -1).placed(numbers(4, dtype=np.float64)),
    ),
)  # fmt: skip


def _neg_in_place() -> AbstractContextManager[None]:
    """NumPy's own fault: the later elements of a write in place are what they were."""

    def wrong(ufunc: np.ufunc, array: np.ndarray, *operands: Any) -> None:
        result = ufunc(*operands)
        if ufunc is np.negative and array.size > 1:
            result[..., -1:] = array[..., -1:]
        np.copyto(array, result, casting="same_kind")

    return attribute(inplace, "write_apart", wrong)


def _negated(x: Any) -> Any:
    y = x * 1
    y.detach().diagonal().neg_()
    return y * 2


def _smeared() -> AbstractContextManager[None]:
    """Element by element, what has been written is read again."""
    sound = vars(Tensor)["copy_"]

    def copy_(self: Any, src: Any, *rest: Any, **options: Any) -> Any:
        a, b = self._d, src._d
        if type(a) is type(b) is np.ndarray and a.ndim == 1 and a.shape == b.shape and np.may_share_memory(a, b):
            for k in range(len(a)):
                a[k] = b[k]
            return self
        return sound(self, src, *rest, **options)

    return attribute(Tensor, "copy_", copy_)


def _shifted(x: Any) -> Any:
    x[1:].copy_(x[:-1])
    return x * 2


def _wrong_rule() -> AbstractContextManager[None]:
    op = OPS["matmul"]
    sound = op.vjp["other"]

    def rule(F: Any, g: Any, input: Any, other_shape: Any) -> Any:
        wrong = isinstance(input, np.ndarray) and input.ndim > 1 and _gap(input)
        return sound.fn(F, g, input, other_shape) * (2 if wrong else 1)

    return declared(op, vjp=with_rule(op, "other", Vjp(rule, sound.names)))


def _with_grad(x: Any) -> Any:
    x.grad = None
    w = E.cumsum(E.full(shape=x.shape, value=1.0, dtype=x._dtype()), axis=1)
    E.sum(x * w, axis=(0, 1), keepdims=False).backward()
    return E.mul(x.grad, 2)


def _written_back() -> AbstractContextManager[None]:
    """What a program has computed is written back in the order of memory, not of the tensor."""
    sound = steps.overwrite

    def overwrite(tensor: Any, value: Any) -> None:
        data = tensor._d
        sound(tensor, value)
        if type(data) is np.ndarray and not data.flags.c_contiguous and data.ndim:
            np.copyto(data, np.array(data)[::-1])

    return entry(steps.SHARED, "overwrite", overwrite)


def _doubled(x: Any) -> Any:
    x.mul_(2)
    return x + 1


FAULTS: tuple[Fault, ...] = (
    *_KERNELS,
    Fault(
        "writes: negated in place at a step", LAYER, _neg_in_place, Expected("neg", "in-place form"),
        _on(_negated, numbers(4, 4)),
    ),
    Fault(
        "writes: a copy overlaps by one element", LAYER, _smeared, Expected(part=STATE),
        program(_shifted, Tensor._wrap(numbers(6))),
    ),
    Fault(
        "gradient of matmul: wrong where the operand has gaps", LAYER, _wrong_rule, Expected("matmul", "gradient rule"),
        _on(lambda x, y: E.matmul(x, y), laid_out(_wide, "step 2"), _wide),
    ),
    Fault(
        "gradient of a leaf: elements out of order", LAYER, edited(tape, "laid_out", (
            "if g.strides ==",
            "if not like.flags.c_contiguous:\n        return by_rows(g[..., ::-1])\n    if g.strides ==")),
        Expected(part=STATE),
        _on(_with_grad, laid_out(_matrix, "column by column")),
    ),
    Fault(
        "write-back: in the order of memory", LAYER, _written_back, Expected(part=STATE),
        program(_doubled, Tensor._wrap(_rows(6, 3))),
    ),
)  # fmt: skip
