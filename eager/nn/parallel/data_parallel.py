"""Data parallelism over the devices of one machine: there is one, the CPU."""

from __future__ import annotations

from typing import Any

from eager.nn.module import Module

__all__ = ["DataParallel", "data_parallel"]


class DataParallel(Module):
    """Calls `module`, which stays an attribute. As `torch.nn.DataParallel` on a machine without accelerators.

    The other arguments choose devices, and change nothing here.
    """

    module: Module

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0):
        super().__init__()
        self.module = module
        self.device_ids: list[int] = []

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """What the module computes."""
        return self.module(*inputs, **kwargs)


def data_parallel(module: Module, inputs: Any, device_ids: Any = None, output_device: Any = None, dim: int = 0,
                  module_kwargs: dict[str, Any] | None = None) -> Any:  # fmt: skip
    """`module(*inputs, **module_kwargs)`. As `torch.nn.parallel.data_parallel` without accelerators."""
    arguments = inputs if isinstance(inputs, tuple) else (inputs,)
    return module(*arguments, **(module_kwargs or {}))
