"""DTensors made on a mesh. As the functions of `torch.distributed.tensor`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from eager.core.tensor import Tensor
from eager.distributed.device_mesh import DeviceMesh
from eager.distributed.tensor.dtensor import DTensor, distribute_tensor
from eager.distributed.tensor.placements import Placement
from eager.functional import creation
from eager.rng import functions

__all__ = ["empty", "full", "ones", "rand", "randn", "zeros"]


def _on_mesh(made: Callable[..., Tensor], what: str) -> Any:
    def function(
        *size: Any, requires_grad: bool = False, dtype: Any = None, layout: Any = None,
        device_mesh: DeviceMesh, placements: Sequence[Placement] | None = None,
    ) -> DTensor:  # fmt: skip
        whole = made(*size, dtype=dtype) if layout is None else made(*size, dtype=dtype, layout=layout)
        found = distribute_tensor(whole, device_mesh, placements)
        found.requires_grad_(requires_grad)
        return found

    function.__name__ = function.__qualname__ = made.__name__
    function.__doc__ = f"""{what} of the global shape `size`, which lie on the mesh as `placements` say.

    As `torch.distributed.tensor.{made.__name__}`. Raises what `distribute_tensor` does. Random numbers are those that
    one device would draw: how a tensor lies does not change them.
    """
    return function


zeros = _on_mesh(creation.zeros, "Zeros")
ones = _on_mesh(creation.ones, "Ones")
empty = _on_mesh(creation.empty, "Values that are not set to anything,")
rand = _on_mesh(functions.rand, "Uniform numbers in [0, 1)")
randn = _on_mesh(functions.randn, "Normal numbers")


_full = _on_mesh(creation.full, "One value")


def full(
    size: Sequence[int], fill_value: Any, *, dtype: Any = None, layout: Any = None, requires_grad: bool = False,
    device_mesh: DeviceMesh, placements: Sequence[Placement] | None = None,
) -> DTensor:  # fmt: skip
    """`fill_value` in the global shape `size`. As `torch.distributed.tensor.full`; see `zeros`."""
    return _full(size, fill_value, dtype=dtype, layout=layout, requires_grad=requires_grad, device_mesh=device_mesh,
                 placements=placements)  # fmt: skip
