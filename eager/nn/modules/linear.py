"""Linear layers, and layers that reshape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eager.core.tensor import Tensor
from eager.nn import functional as F
from eager.nn.layer import Layer
from eager.nn.module import Module
from eager.nn.parameters import add_parameters, fan_in_init, uniform_init

__all__ = ["Bilinear", "CosineSimilarity", "Flatten", "Identity", "Linear", "PairwiseDistance", "Unflatten"]


class Identity(Module):
    """Its input, whatever it was constructed with."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Linear(Layer, shown="in_features={in_features}, out_features={out_features}, bias={bias}"):
    """x @ weight.T + bias. weight: (out_features, in_features), bias: (out_features,)."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None):
        self._keep(locals())
        add_parameters(self, device, dtype, weight=(out_features, in_features), bias=(out_features,) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new values: uniform in +-1 / sqrt(in_features)."""
        fan_in_init(self.weight, self.bias)

    def forward(self, input: Tensor) -> Tensor:
        """(*, in_features) -> (*, out_features)."""
        return F.linear(input, self.weight, self.bias)


class Bilinear(
    Layer,
    shown="in1_features={in1_features}, in2_features={in2_features}, out_features={out_features}, bias={bias}",
):
    """x1^T weight x2 + bias. weight: (out_features, in1_features, in2_features)."""

    def __init__(self, in1_features: int, in2_features: int, out_features: int, bias: bool = True, device: Any = None,
                 dtype: Any = None):  # fmt: skip
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got {in1_features}")
        self._keep(locals())
        shape = (out_features, in1_features, in2_features)
        add_parameters(self, device, dtype, weight=shape, bias=(out_features,) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new values: uniform in +-1 / sqrt(in1_features)."""
        uniform_init(self, self.in1_features)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        """(*, in1_features) and (*, in2_features) -> (*, out_features)."""
        return F.bilinear(input1, input2, self.weight, self.bias)


class Flatten(Layer, shown="start_dim={start_dim}, end_dim={end_dim}"):
    """The dimensions `start_dim` to `end_dim` merged into one: by default (N, *) -> (N, product of *)."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1):
        self._keep(locals())

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)  # type: ignore[attr-defined]


class Unflatten(Layer, shown="dim={dim}, unflattened_size={unflattened_size}"):
    """Dimension `dim` split into dimensions of `unflattened_size`."""

    def __init__(self, dim: int, unflattened_size: Sequence[int]):
        self._keep(locals())
        if not isinstance(unflattened_size, (tuple, list)):
            raise TypeError(
                f"unflattened_size must be a tuple of ints, but found type {type(unflattened_size).__name__}"
            )
        for i, size in enumerate(unflattened_size):
            if not isinstance(size, int):
                raise TypeError(
                    f"unflattened_size must be tuple of ints, but found element of type {type(size).__name__} at "
                    f"pos {i}"
                )

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)  # type: ignore[attr-defined]


class CosineSimilarity(Layer, function=F.cosine_similarity):
    """The cosine of the angle between two tensors along `dim`."""

    def __init__(self, dim: int = 1, eps: float = 1e-8):
        self._keep(locals())


class PairwiseDistance(Module):
    """The p-norm of the difference along the last dimension: (N, D) and (N, D) -> (N,)."""

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False):
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)
