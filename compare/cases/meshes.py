"""Calls of functions whose tensors lie on a mesh: on one device, and as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import numpy as np

from eager.core.devices import any_mesh, device
from eager.core.placed import Placed, spread
from eager.core.runtime import Dims, runtime
from eager.core.tensor import Tensor
from eager.distributed.tensor.dtensor import DTensor, is_distributed, on_one_device, one_device
from graphc.capture import capture
from graphc.capture.sources import Captured
from graphc.capture.state.environment import Environment
from graphc.capture.tree import map_tensors, tensors_of

COPIES = "{name}: devices that have the same part of it have different values: stale or made apart is that of {where}"


class Laid(NamedTuple):
    """A tensor that lies on a mesh, and how."""

    tensor: Tensor
    where: device
    dims: Dims

    def lay(self) -> list[tuple[Tensor, np.ndarray]]:
        """Put its values, and those of its gradient, on the mesh. Returns the tensors with the arrays that they had."""
        had = [(t, t._array()) for t in _with_gradient(self.tensor)]
        for t, array in had:
            t._d = spread(array, self.where, self.dims)
        return had


def _with_gradient(tensor: Tensor) -> list[Tensor]:
    grad = getattr(tensor, "_g", None)
    return [tensor] if grad is None else [tensor, grad]


def found(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Laid]:
    """The tensors on a mesh that a call reads or writes, among its arguments and those that `fn` reaches by itself."""
    if not any_mesh():
        return []  # there never was one
    tensors = [*tensors_of(args), *tensors_of(kwargs)]
    try:
        environment = Environment(fn, args, kwargs)
        sources = capture(fn, args, kwargs, environment=environment, keepers_stay=True).sources  # which undoes all
    except Exception:  # which the modes find, and compare
        sources = ()
    tensors += [s.tensor for s in sources if isinstance(s, Captured)]
    unique = {id(t): t for t in tensors if t._d.__class__ is Placed and is_distributed(t)}
    return [Laid(t, t._d.device, t._d.dims) for t in unique.values()]


def _check_copies(tensor: Tensor, name: str) -> None:
    """Raise AssertionError if devices that ought to have the same do not, which a look at one of them does not show."""
    data = tensor._d
    off = runtime().apart(data.memory.array) if data.__class__ is Placed else []
    if off:
        where = "; ".join(", ".join(f"{axis}={k}" for axis, k in place.items()) for place in off)
        raise AssertionError(COPIES.format(name=name, where=where))


@contextmanager
def lifted(laid: list[Laid]) -> Iterator[None]:
    """A context in which these tensors, and whatever is computed, are on one device."""
    with ExitStack() as stack:
        for t in {id(t): t for each in laid for t in _with_gradient(each.tensor)}.values():
            stack.callback(setattr, t, "_d", t._d)
            t._d = t._d.values
        if laid:
            stack.enter_context(on_one_device())
        yield


def on_mesh(fn: Callable[..., Any], laid: list[Laid], names: Mapping[int, str]) -> Callable[..., Any]:
    """`fn`, run with these tensors on their mesh; results are plain tensors again. names: of tensors, by id."""

    def call(*args: Any, **kwargs: Any) -> Any:
        had: list[tuple[Tensor, np.ndarray]] = []
        token = one_device.set(False)
        try:
            for each in laid:
                had += each.lay()
            result = map_tensors(fn(*args, **kwargs), _plain)
            for each in laid:
                name = names.get(id(each.tensor), f"a tensor of shape {each.tensor.shape}")
                for t, what in zip(_with_gradient(each.tensor), (name, f"{name}.grad"), strict=False):
                    _check_copies(t, what)
        finally:
            one_device.reset(token)
            for t, array in had:
                np.copyto(array, t._d.values)
                t._d = array
            for t in (t for each in laid for t in _with_gradient(each.tensor)):
                if t._d.__class__ is Placed:  # a gradient that the call has made
                    t._d = t._d.values
        return result

    known = {id(each.tensor) for each in laid}

    def _plain(tensor: Tensor, path: str) -> Tensor:
        if id(tensor) in known or not isinstance(tensor, DTensor):
            return tensor
        _check_copies(tensor, path)
        return tensor.full_tensor()

    return call
