"""What PyTorch has for the ops of the registry. Imports PyTorch."""

# pyright: reportMissingImports=false
# PyTorch is optional.
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import ml_dtypes
import numpy as np
import torch

from graphc.ops import Op

_PLACES = (torch.linalg, torch, torch.nn.functional, torch.special)  # torch's own factorizations are deprecated
_NAMES = {"axis": "dim", "keepdims": "keepdim"}  # ours -> PyTorch's


class Lacking(Exception):
    """PyTorch has no function for an op."""


def to_torch(array: np.ndarray) -> torch.Tensor:
    """A copy of an array. Raises TypeError for a dtype that PyTorch does not take from NumPy."""
    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.astype(np.float32)).bfloat16()
    return torch.from_numpy(np.array(array))  # np.array: it takes no negative strides


def to_numpy(tensor: torch.Tensor) -> np.ndarray:
    """A copy of a tensor."""
    plain = tensor.detach().resolve_conj().resolve_neg()
    if plain.dtype == torch.bfloat16:
        return plain.float().numpy().astype(ml_dtypes.bfloat16)
    return np.array(plain.numpy())


def run(op: Op, operands: list[torch.Tensor], params: Mapping[str, Any]) -> Any:
    """The op by PyTorch's function, a tensor or a tuple of several. Raises Lacking, or what PyTorch raises."""
    own = _OWN.get(op.name)
    if own is not None:
        return own(*operands, **params)
    if params.get("axis") == () and operands[0].ndim:
        raise Lacking(op.name)  # no axes: PyTorch takes that for all of them
    name = op.name.removeprefix("special_")
    found = next((getattr(place, name) for place in _PLACES if hasattr(place, name)), None)
    if found is None or op.structured:
        raise Lacking(op.name)
    try:
        result = found(*operands, **{_NAMES.get(name, name): value for name, value in params.items()})
    except TypeError as error:  # the function is another one, or has other parameters
        raise Lacking(op.name) from error
    if not isinstance(result, torch.Tensor):
        raise Lacking(op.name)
    return result


def _dtype(dtype: np.dtype) -> torch.dtype:
    return getattr(torch, dtype.name)


def _index(spec: tuple[int | None, ...], indices: tuple[torch.Tensor, ...]) -> tuple[Any, ...]:
    return tuple(slice(None) if s is None else indices[s] for s in spec)


def _sort(x: Any, axis: int, descending: bool, first: int | None) -> tuple[Any, Any]:
    found = torch.sort(x, dim=axis, descending=descending, stable=True)  # topk keeps no order of equals
    wanted = x.shape[axis] if first is None else min(first, x.shape[axis])
    return found[0].narrow(axis, 0, wanted), found[1].narrow(axis, 0, wanted)


def _put_slice(x: torch.Tensor, src: torch.Tensor, start: Any, stop: Any, step: Any) -> torch.Tensor:
    result = x.clone()
    result[tuple(map(slice, start, stop, step))] = src
    return result


def _index_put(
    x: torch.Tensor, values: torch.Tensor, *indices: torch.Tensor, spec: Any, accumulate: bool
) -> torch.Tensor:
    if None in spec[: len(indices)]:
        raise Lacking("index_put")
    return x.index_put([indices[s] for s in spec if s is not None], values, accumulate)


def _pad_zeros(x: torch.Tensor, low: Any, high: Any, interior: Any) -> torch.Tensor:
    if any(interior):
        raise Lacking("pad_zeros")
    return torch.nn.functional.pad(x, [n for pair in reversed(list(zip(low, high, strict=True))) for n in pair])


def _max_pool(x: torch.Tensor, kernel: Any, stride: Any, padding: Any, dilation: Any) -> torch.Tensor:
    if any(low != high for low, high in padding):
        raise Lacking("max_pool")
    pool = getattr(torch.nn.functional, f"max_pool{len(kernel)}d")
    return pool(x, kernel, stride, [low for low, _ in padding], dilation)


def _prod(x: torch.Tensor, axis: tuple[int, ...], keepdims: bool) -> torch.Tensor:
    for k in sorted(axis, reverse=True):
        x = x.prod(k, keepdim=keepdims)
    return x


def _lu(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    factors, pivots = torch.linalg.lu_factor(x)
    return factors, torch.lu_unpack(factors, pivots)[0].argmax(-2), pivots


# Where names or parameters differ from the registry's.
_OWN: dict[str, Callable[..., Any]] = {
    "arange": lambda shape, start, step, dtype: torch.arange(shape[0], dtype=_dtype(dtype)) * step + start,
    # of equal elements, PyTorch promises an order only if asked to
    "argsort": lambda x, axis, descending: torch.argsort(x, dim=axis, descending=descending, stable=True),
    "broadcast_to": lambda x, shape: x.broadcast_to(shape),
    "cast": lambda x, dtype: x.to(_dtype(dtype)),
    "cat": lambda *xs, axis: torch.cat(xs, axis),
    "constant": lambda value: to_torch(value.array),
    "cumsum": lambda x, axis, reverse: x.flip(axis).cumsum(axis).flip(axis) if reverse else x.cumsum(axis),
    "eig": torch.linalg.eig,
    "eigh": lambda x, upper: torch.linalg.eigh((x + x.mH) / 2, "U" if upper else "L"),
    "einsum": lambda *xs, equation: torch.einsum(equation, *xs),
    "expand": lambda x, shape: x.expand(shape),
    "flip": lambda x, axis: x.flip(axis),
    "full": lambda shape, value, dtype: torch.full(shape, value, dtype=_dtype(dtype)),
    "gather": lambda x, index, axis: x.gather(axis, index),
    "index": lambda x, *indices, spec: x[_index(spec, indices)],
    "index_put": _index_put,
    "integer_pow": lambda x, exponent: x.pow(exponent),
    "inv": lambda x, checked: torch.linalg.inv(x),
    "item": lambda results, index: results[index],
    "lu": _lu,
    "max_dim": lambda x, axis, keepdims: torch.max(x, axis, keepdims),
    **{f"max_pool{n}d": _max_pool for n in (1, 2, 3)},
    "min_dim": lambda x, axis, keepdims: torch.min(x, axis, keepdims),
    "pad_zeros": _pad_zeros,
    "pow_scalar": lambda x, exponent: x.pow(exponent),
    "prod": _prod,
    "put_slice": _put_slice,
    "qr": lambda x, complete: torch.linalg.qr(x, "complete" if complete else "reduced"),
    "scatter": lambda x, index, src, axis, distinct: x.scatter(axis, index, src),
    "scatter_add": lambda x, index, src, axis: x.scatter_add(axis, index, src),
    "slice": lambda x, start, stop, step: x[tuple(map(slice, start, stop, step))],
    "solve": lambda a, b, checked: torch.linalg.solve(a, b),
    "sort": _sort,
    "stop_gradient": lambda x: x.detach(),
    "svd": lambda x: torch.linalg.svd(x, full_matrices=False),
}
