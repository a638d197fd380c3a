"""Tables of vectors."""

from __future__ import annotations

from typing import Any

from eager.core.parameter import Parameter
from eager.core.tensor import Tensor
from eager.nn import functional as F
from eager.nn import init
from eager.nn.layer import Layer, unusual
from eager.nn.parameters import new_parameter

__all__ = ["Embedding", "EmbeddingBag"]


class _Table(Layer):
    """weight: (num_embeddings, embedding_dim), drawn from N(0, 1); the vector at `padding_idx` starts as zeros."""

    def _begin(self, arguments: dict[str, Any], out_of_range: str) -> None:
        """Check and keep the arguments of `__init__`, and make the table."""
        weight, freeze = arguments.pop("_weight"), arguments.pop("_freeze", False)
        self._keep(arguments)
        if self.padding_idx is not None:
            if not -self.num_embeddings <= self.padding_idx < self.num_embeddings:
                raise AssertionError(out_of_range)
            self.padding_idx %= self.num_embeddings
        shape = (self.num_embeddings, self.embedding_dim)
        if weight is None:
            self.weight = new_parameter(shape, arguments["device"], arguments["dtype"])
            self.weight.requires_grad_(not freeze)
            self.reset_parameters()
            return
        if tuple(weight._d.shape) != shape:
            raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
        self.weight = Parameter(weight, requires_grad=not freeze)

    def reset_parameters(self) -> None:
        """Draw new values."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            init.zeros_(self.weight.detach()[self.padding_idx])


def _two_dims(embeddings: Tensor) -> tuple[int, int]:
    if len(embeddings._d.shape) != 2:
        raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
    rows, columns = embeddings._d.shape
    return rows, columns


class Embedding(_Table):
    """A table of `num_embeddings` vectors, looked up by number. The one at `padding_idx` gets no gradient."""

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False, _weight: Tensor | None = None,
        _freeze: bool = False, device: Any = None, dtype: Any = None,
    ):  # fmt: skip
        self._begin(locals(), "Padding_idx must be within num_embeddings")

    def forward(self, input: Tensor) -> Tensor:
        """(*) of integers -> (*, embedding_dim)."""
        return F.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse
        )

    def extra_repr(self) -> str:
        usual: Any = {"padding_idx": None, "max_norm": None, "norm_type": 2, "scale_grad_by_freq": False}
        return f"{self.num_embeddings}, {self.embedding_dim}{unusual(self, **usual, sparse=False)}"

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None,
                        max_norm: float | None = None, norm_type: float = 2.0, scale_grad_by_freq: bool = False,
                        sparse: bool = False) -> Embedding:  # fmt: skip
        """A layer with the given table. Raises AssertionError unless it is 2-D."""
        rows, columns = _two_dims(embeddings)
        return cls(
            rows, columns, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, _weight=embeddings,
            _freeze=freeze,
        )  # fmt: skip


class EmbeddingBag(_Table):
    """The sum, mean or max of the vectors of bags of numbers."""

    def __init__(
        self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, _weight: Tensor | None = None,
        include_last_offset: bool = False, padding_idx: int | None = None, device: Any = None, dtype: Any = None,
    ):  # fmt: skip
        self._begin(locals(), "padding_idx must be within num_embeddings")

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        """(B, n) of integers, or (N,) with offsets (B,) -> (B, embedding_dim)."""
        return F.embedding_bag(
            input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse,
            per_sample_weights, self.include_last_offset, self.padding_idx,
        )  # fmt: skip

    def extra_repr(self) -> str:
        first = unusual(self, max_norm=None, norm_type=2, scale_grad_by_freq=False)
        return (
            f"{self.num_embeddings}, {self.embedding_dim}{first}, mode={self.mode!r}{unusual(self, padding_idx=None)}"
        )

    @classmethod
    def from_pretrained(
        cls, embeddings: Tensor, freeze: bool = True, max_norm: float | None = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> EmbeddingBag:  # fmt: skip
        """A layer with the given table. Raises AssertionError unless it is 2-D."""
        rows, columns = _two_dims(embeddings)
        made = cls(
            rows, columns, max_norm, norm_type, scale_grad_by_freq, mode, sparse, embeddings, include_last_offset,
            padding_idx,
        )  # fmt: skip
        made.weight.requires_grad_(not freeze)
        return made
