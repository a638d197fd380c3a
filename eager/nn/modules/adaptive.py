"""The adaptive softmax: rare classes in clusters of their own."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

from eager.core.interpreter import on_arrays
from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.engine.node_names import named
from eager.functional.gathering import gather
from eager.functional.joining import cut
from eager.nn import functional as F
from eager.nn.module import Module
from eager.nn.modules.container import ModuleList, Sequential
from eager.nn.modules.linear import Linear
from graphc.ops.dtypes import INT64

__all__ = ["AdaptiveLogSoftmaxWithLoss"]

CUTOFFS = (
    "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each value is "
    "between 1 and n_classes-1"
)


class _ASMoutput(NamedTuple):
    """The log-probability of each target, and the mean of their negatives."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log-softmax over many classes, sorted by frequency (Grave et al. 2016, arXiv:1609.04309).

    Classes below `cutoffs[0]` and one number for each further cluster are in the `head`; the logits of a cluster come
    from fewer features: in_features / div_value, / div_value^2, ...
    """

    def __init__(self, in_features: int, n_classes: int, cutoffs: Sequence[int], div_value: float = 4.0,
                 head_bias: bool = False, device: Any = None, dtype: Any = None):  # fmt: skip
        super().__init__()
        given = list(cutoffs)
        if not given:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if (
            given != sorted(set(given)) or min(given) <= 0 or max(given) > n_classes - 1
            or any(int(c) != c for c in given)
        ):  # fmt: skip
            raise ValueError(CUTOFFS)
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*given, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, head_bias, device, dtype)
        self.tail = ModuleList()
        for i, (low, high) in enumerate(itertools.pairwise(self.cutoffs)):
            inner = int(in_features // (div_value ** (i + 1)))
            first = Linear(in_features, inner, False, device, dtype)
            self.tail.append(Sequential(first, Linear(inner, high - low, False, device, dtype)))

    def reset_parameters(self) -> None:
        """Draw new values for all layers."""
        self.head.reset_parameters()
        for pair in self.tail:
            for layer in pair.children():
                layer.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        """(N, in_features), (N,) or (in_features,), () -> the log-probabilities of the targets, and the loss.

        Raises RuntimeError for other shapes, and for targets outside [0, n_classes).
        """
        shape, batched = tuple(input_._d.shape), len(target_._d.shape) > 0
        _check_shapes(input_, target_)
        input = input_ if batched else E.reshape(input_, shape=(1, *shape))
        target = target_ if batched else E.reshape(target_, shape=(1,))
        logs, column = self._in_clusters(input, target)
        head = F.log_softmax(self.head(input), dim=1)
        rows = tuple(target._d.shape)
        output = E.add(logs, E.reshape(gather(head, 1, E.reshape(column, shape=(*rows, 1))), shape=rows))
        loss = E.mean(E.neg(output), axis=(0,), keepdims=False)
        return _ASMoutput(output if batched else named(E.reshape(output, shape=()), "SqueezeBackward1"), loss)

    def _in_clusters(self, input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """The log-probability of each target in its cluster, and the column of the head that is for it."""
        traced, rows = not on_arrays(input), tuple(target._d.shape)
        logs: Any = E.full(shape=rows, value=0, dtype=input._dtype())
        column = E.full(shape=rows, value=self.head_size, dtype=INT64)  # which `gather` refuses
        found = 0
        for i, (low, high) in enumerate(itertools.pairwise([0, *self.cutoffs])):
            here = E.bitwise_and(E.ge(target, low), E.lt(target, high))
            count = rows[0] if traced else int(here._array().sum())
            found += count
            if not count:
                continue
            if i == 0:
                column = E.where(here, target, column)
                continue
            column = E.where(here, self.shortlist_size + i - 1, column)
            every = traced or count == rows[0]
            at: Any = None if every else here.nonzero().reshape(count)  # type: ignore[attr-defined]
            x, within = (input, target) if every else (t.index_select(0, at) for t in (input, target))
            within = E.where(here, E.sub(within, low), 0) if every else E.sub(within, low)
            chosen = gather(F.log_softmax(self.tail[i - 1](x), dim=1), 1, E.reshape(within, shape=(count, 1)))
            chosen = E.reshape(chosen, shape=(count,))
            logs = E.where(here, chosen, logs) if every else logs.index_copy(0, at, chosen)
        if not traced and found != rows[0]:
            least, most = target.min().item(), target.max().item()  # type: ignore[attr-defined]
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range [{least}, {most}] were "
                "found. "
            )
        return logs, column

    def log_prob(self, input: Tensor) -> Tensor:
        """(N, in_features) -> (N, n_classes): the log-probabilities of all classes."""
        return self._of_all(input, self.head(input))

    def _of_all(self, input: Tensor, head_output: Tensor) -> Tensor:
        head = F.log_softmax(head_output, dim=1)
        parts = [cut(head, 1, 0, self.shortlist_size)]
        for i in range(self.n_clusters):
            column = self.shortlist_size + i
            parts.append(E.add(F.log_softmax(self.tail[i](input), dim=1), cut(head, 1, column, column + 1)))
        return E.cat(*parts, axis=1)

    def predict(self, input: Tensor) -> Tensor:
        """(N, in_features) -> (N,): the most probable class of each, as `log_prob(input).argmax(dim=1)`."""
        head_output = self.head(input)
        output = E.argmax(head_output, axis=1, keepdims=False)
        rare = E.ge(output, self.shortlist_size)
        if on_arrays(rare) and not rare._array().any():
            return output
        return E.where(rare, E.argmax(self._of_all(input, head_output), axis=1, keepdims=False), output)


def _check_shapes(input: Tensor, target: Tensor) -> None:
    dims = len(target._d.shape)
    if dims > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if dims and input._d.shape[0] != target._d.shape[0]:
        raise RuntimeError("Input and target should have the same size in the batch dimension.")
    if len(input._d.shape) != dims + 1:
        raise RuntimeError(
            f"{dims}D target tensor expects {dims + 1}D input tensors, but found inputs with size {input.shape}"
        )
