"""`vmap`: a function of one example as a function of a batch."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from eager.core.interpreter import current_interpreter, interpreting
from eager.core.pytree import TreeSpec, broadcast_leaves, flatten, unflatten
from eager.core.state import TRANSFORMS, active_transforms
from eager.core.tensor import Tensor
from eager.func.batching import BatchInterpreter
from eager.functional.joining import cat, tensor_split
from eager.functional.shapes import movedim
from graphc.ops.rules import normalize_axis
from graphc.scoped import variable

RANDOMNESS = ("error", "different", "same")


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """A function that applies `func` to each slice of its positional arguments, all at once. As `torch.func.vmap`.

    `in_dims` says along which dim each argument is sliced (None: not at all), `out_dims` where the results have the new
    dim; both may be nests like the arguments and results. `randomness`: whether random numbers inside are an error,
    "different" or the "same" for each slice. `chunk_size` slices are done at a time, all if None.

    Raises ValueError for dims that do not fit the arguments or results, and for slices of several sizes.
    """
    if randomness not in RANDOMNESS:
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func, updated=())
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        _check_out_dims(out_dims, func)
        leaves, dims, spec, size = _taken_apart(in_dims, args, func)

        def run(part: Sequence[Any], count: int) -> Any:
            return _mapped(func, part, dims, spec, count, out_dims, randomness, kwargs)

        if chunk_size is None or chunk_size >= size:
            return run(leaves, size)
        return _in_chunks(run, leaves, dims, size, chunk_size, out_dims)

    return wrapped


def name_of(func: Any) -> str:
    """How messages call `func`."""
    if hasattr(func, "__name__"):
        return func.__name__
    return f"functools.partial({name_of(func.func)}, ...)" if isinstance(func, functools.partial) else repr(func)


def _check_out_dims(out_dims: Any, func: Any) -> None:
    for dim in flatten(out_dims)[0]:
        if not isinstance(dim, int) and dim is not None:
            raise ValueError(
                f"vmap({name_of(func)}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python "
                "collection of ints representing where in the outputs the vmapped dimension should appear."
            )


def _taken_apart(in_dims: Any, args: Any, func: Any) -> tuple[list[Any], list[int | None], TreeSpec, int]:
    """The leaves of the arguments, the dim of each, and the size of the batch. Raises PyTorch's ValueErrors."""
    start = f"vmap({name_of(func)}, in_dims={in_dims}, ...)(<inputs>): "
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"{start}expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, "
            f"got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({name_of(func)})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to "
            "vmap over a function with no inputs. The latter is unsupported."
        )
    leaves, spec = flatten(args)
    dims = broadcast_leaves(in_dims, spec)
    if dims is None:
        raise ValueError(
            f"{start}in_dims is not compatible with the structure of `inputs`. in_dims has structure "
            f"{flatten(in_dims)[1]} but inputs has structure {spec}."
        )
    dims = [_in_dim(start, x, dim) for x, dim in zip(leaves, dims, strict=True)]
    sizes = [x._d.shape[dim] for x, dim in zip(leaves, dims, strict=True) if dim is not None]
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if any(n != sizes[0] for n in sizes):
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{sizes} for the mapped dimension"
        )
    return leaves, dims, spec, sizes[0]


def _in_dim(start: str, x: Any, dim: Any) -> int | None:
    """`dim` of the argument `x`, counted from the front."""
    if dim is None:
        return None
    if not isinstance(dim, int):
        raise ValueError(
            f"{start}Got in_dim={dim} for an input but in_dim must be either an integer dimension or None."
        )
    if not isinstance(x, Tensor):
        raise ValueError(
            f"{start}Got in_dim={dim} for an input but the input is of type {type(x)}. We cannot vmap over non-Tensor "
            "arguments, please use None as the respective in_dim"
        )
    ndim = len(x._d.shape)
    if not -ndim <= dim < ndim:
        raise ValueError(
            f"{start}Got in_dim={dim} for some input, but that input is a Tensor of dimensionality {ndim} so expected "
            f"in_dim to satisfy -{ndim} <= in_dim < {ndim}."
        )
    return dim % ndim


def _mapped(
    func: Any, leaves: Sequence[Any], dims: Sequence[int | None], spec: TreeSpec, size: int, out_dims: Any,
    randomness: str, kwargs: Any,
) -> Any:  # fmt: skip
    interpreter = BatchInterpreter(size, randomness, current_interpreter())
    values = [movedim(x, dim, 0) if dim else x for x, dim in zip(leaves, dims, strict=True)]
    with variable(TRANSFORMS, (*active_transforms(), interpreter)), interpreting(interpreter):
        args = [v if dim is None else interpreter.wrap(v) for v, dim in zip(values, dims, strict=True)]
        result = func(*unflatten(args, spec), **kwargs)
    outputs, out_spec = flatten(result)
    places = _out_places(out_dims, result, out_spec, func)
    # fast paths stay closed: what is outside may be a vmap too, whose tensors they do not know
    return unflatten([_out(interpreter, x, dim, func) for x, dim in zip(outputs, places, strict=True)], out_spec)


def _out_places(out_dims: Any, result: Any, spec: TreeSpec, func: Any) -> list[int | None]:
    if isinstance(result, Tensor) and isinstance(out_dims, tuple) and len(out_dims) == 1:
        return list(out_dims)
    places = broadcast_leaves(out_dims, spec)
    if places is None:
        raise ValueError(
            f"vmap({name_of(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure "
            f"of `outputs`. out_dims has structure {flatten(out_dims)[1]} but outputs has structure {spec}."
        )
    return places


def _out(interpreter: BatchInterpreter, x: Any, dim: int | None, func: Any) -> Any:
    name = name_of(func)
    if dim is None:
        if interpreter.batch_of(x) is not None:
            raise ValueError(f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None")
        return x
    if not isinstance(x, Tensor):
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(x)}. Did you mean to set out_dims= "
            "to None for output?"
        )
    value = interpreter.physical(x)
    return movedim(value, 0, normalize_axis(dim, len(value._d.shape))) if dim else value


def _in_chunks(
    run: Callable[[Sequence[Any], int], Any], leaves: Sequence[Any], dims: Sequence[int | None], size: int, count: int,
    out_dims: Any,
) -> Any:  # fmt: skip
    """The results of `count` slices at a time, joined."""
    edges = tuple(range(count, size, count))
    pieces = [[x] * (len(edges) + 1) if d is None else tensor_split(x, edges, d)
              for x, d in zip(leaves, dims, strict=True)]  # fmt: skip
    results = [run([p[k] for p in pieces], min(count, size - k * count)) for k in range(len(edges) + 1)]
    flat = [flatten(result)[0] for result in results]
    spec = flatten(results[0])[1]
    single = isinstance(out_dims, tuple) and len(out_dims) == 1 and isinstance(results[0], Tensor)
    places = list(out_dims) if single else broadcast_leaves(out_dims, spec) or []
    columns = zip(*flat, strict=True)
    joined = [parts[0] if d is None else cat(list(parts), d) for parts, d in zip(columns, places, strict=True)]
    return unflatten(joined, spec)
