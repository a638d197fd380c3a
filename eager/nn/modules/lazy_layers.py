"""Layers whose number of input features or channels is that of the first input."""

from __future__ import annotations

from typing import Any

from eager.core.tensor import Tensor
from eager.nn.modules.batchnorm import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
    no_batches,
)
from eager.nn.modules.conv import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from eager.nn.modules.lazy import LazyModuleMixin, materialized
from eager.nn.modules.linear import Linear
from eager.nn.parameter import UninitializedBuffer, UninitializedParameter

__all__ = [
    "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d", "LazyConv1d", "LazyConv2d", "LazyConv3d",
    "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d",
    "LazyInstanceNorm3d", "LazyLinear",
]  # fmt: skip


class _LazyLayer(LazyModuleMixin):
    """A layer with a `weight` and perhaps a `bias` that wait for a size, `_inferred`, which is 0 till then."""

    _inferred: str
    weight: Any
    bias: Any

    def _wait(self, bias: bool, device: Any, dtype: Any) -> None:
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Set new values, once there are any."""
        if not self.has_uninitialized_params() and getattr(self, self._inferred) != 0:
            super().reset_parameters()  # type: ignore[misc]


class LazyLinear(_LazyLayer, Linear):
    """A Linear whose `in_features` is the last size of the first input."""

    cls_to_become = Linear
    _inferred = "in_features"

    def __init__(self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None):
        super().__init__(0, 0, False)
        self.out_features = out_features
        self._wait(bias, device, dtype)

    def initialize_parameters(self, input: Tensor) -> None:
        """Take `in_features` from `input`."""
        features = input._d.shape[-1]
        if self.has_uninitialized_params():
            self.in_features = features
            materialized((self.out_features, features), self.weight)
            materialized((self.out_features,), self.bias)
            self.reset_parameters()
        if self.in_features == 0:  # a state has been loaded
            known = self.weight._d.shape[-1]
            if features != known:
                raise AssertionError(
                    f"The in_features inferred from input: {features} is not equal to in_features from self.weight: "
                    f"{known}"
                )
            self.in_features = features


class _LazyConv(_LazyLayer):
    """`in_channels` is that of the first input."""

    _inferred = "in_channels"
    rank: int
    groups: int
    transposed: bool
    kernel_size: tuple[int, ...]

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        """Take `in_channels` from `input`. Raises ValueError if `groups` does not divide it."""
        if not self.has_uninitialized_params():
            return
        self.in_channels = self._channels_of(input)
        if self.in_channels % self.groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        inner, outer = self.in_channels, self.out_channels
        channels = (inner, outer // self.groups) if self.transposed else (outer, inner // self.groups)
        materialized((*channels, *self.kernel_size), self.weight)
        materialized((outer,), self.bias)
        self.reset_parameters()

    def _channels_of(self, input: Tensor) -> int:
        shape, rank = tuple(input._d.shape), self.rank
        if len(shape) not in (rank + 1, rank + 2):
            raise RuntimeError(
                f"Expected {rank + 1}D (unbatched) or {rank + 2}D (batched) input to {type(self).__name__}, but got "
                f"input of size: {input.shape}"
            )
        return shape[-rank - 1]


class _LazyForward(_LazyConv):
    def __init__(self, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
                 groups: int = 1, bias: bool = True, padding_mode: str = "zeros", device: Any = None,
                 dtype: Any = None):  # fmt: skip
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode, device, dtype)
        self.out_channels = out_channels
        self._wait(bias, device, dtype)


class _LazyTransposed(_LazyConv):
    def __init__(self, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
                 groups: int = 1, bias: bool = True, dilation: Any = 1, padding_mode: str = "zeros",
                 device: Any = None, dtype: Any = None):  # fmt: skip
        super().__init__(
            0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode, device, dtype
        )
        self.out_channels = out_channels
        self._wait(bias, device, dtype)


class _LazyNorm(_LazyLayer):
    """`num_features` is the number of channels of the first input."""

    _inferred = "num_features"

    def __init__(self, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
                 track_running_stats: bool = True, device: Any = None, dtype: Any = None, *,
                 bias: bool = True):  # fmt: skip
        super().__init__(0, eps, momentum, False, False, device, dtype, bias=False)
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self._wait(bias, device, dtype)
        if track_running_stats:
            for name in ("running_mean", "running_var"):
                setattr(self, name, UninitializedBuffer(device=device, dtype=dtype))
            self.num_batches_tracked = no_batches()

    def initialize_parameters(self, input: Tensor) -> None:
        """Take `num_features` from `input`."""
        if self.has_uninitialized_params():
            self.num_features = input._d.shape[1]
            materialized((self.num_features,), self.weight, self.bias, self.running_mean, self.running_var)
            self.reset_parameters()


def _lazy(kind: Any, base: Any) -> Any:
    """The lazy kind of the module `base`."""
    fields = {
        "__doc__": f"A {base.__name__} that takes its sizes from the first input.", "__module__": __name__,
        "cls_to_become": base,
    }  # fmt: skip
    return type(f"Lazy{base.__name__}", (kind, base), fields)


LazyConv1d, LazyConv2d, LazyConv3d = (_lazy(_LazyForward, base) for base in (Conv1d, Conv2d, Conv3d))
LazyConvTranspose1d, LazyConvTranspose2d, LazyConvTranspose3d = (
    _lazy(_LazyTransposed, base) for base in (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)
)
LazyBatchNorm1d, LazyBatchNorm2d, LazyBatchNorm3d = (
    _lazy(_LazyNorm, base) for base in (BatchNorm1d, BatchNorm2d, BatchNorm3d)
)
LazyInstanceNorm1d, LazyInstanceNorm2d, LazyInstanceNorm3d = (
    _lazy(_LazyNorm, base) for base in (InstanceNorm1d, InstanceNorm2d, InstanceNorm3d)
)
