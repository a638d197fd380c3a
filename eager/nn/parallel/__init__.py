"""Data parallelism: over the devices of a machine, and over processes. As `torch.nn.parallel`."""

from typing import Any

from eager.nn.parallel.data_parallel import DataParallel, data_parallel

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel"]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name == "DistributedDataParallel":  # which loads what processes need
        from eager.nn.parallel.distributed import DistributedDataParallel

        globals()[name] = DistributedDataParallel
        return DistributedDataParallel
    raise AttributeError(name)
