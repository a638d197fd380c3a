"""Sequences of different lengths, packed step by step. As `torch.nn.utils.rnn`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.engine.node_names import named
from eager.functional.joining import cat, stack
from graphc.ops.rules import broadcast_shapes

__all__ = [
    "PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence",
    "pad_sequence", "unpack_sequence", "unpad_sequence",
]  # fmt: skip


class PackedSequence(NamedTuple):
    """The rows of all sequences, step by step, the longest sequence first; `batch_sizes[t]` of them at step t."""

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None = None
    unsorted_indices: Tensor | None = None

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The sequences with data of another dtype, or on another device: these, if that changes nothing."""
        return self._with(self.data.to(*args, **kwargs))  # type: ignore[attr-defined]

    def _with(self, data: Any) -> PackedSequence:
        if data is self.data:
            return self
        there = data.device
        order, back = (i if i is None else i.to(there) for i in (self.sorted_indices, self.unsorted_indices))  # type: ignore[attr-defined]
        return type(self)(data, self.batch_sizes, order, back)

    @property
    def is_cuda(self) -> bool:
        """Whether the data lies on a GPU."""
        return self.data.is_cuda  # type: ignore[attr-defined]

    def is_pinned(self) -> bool:
        """Whether the data lies in pinned memory."""
        return self.data.is_pinned()  # type: ignore[attr-defined]


def _converted(name: str) -> Any:
    def convert(self: PackedSequence, *args: Any, **kwargs: Any) -> PackedSequence:
        return self._with(getattr(self.data, name)(*args, **kwargs))

    convert.__doc__ = f"The sequences with `data.{name}()`."
    convert.__name__ = name
    return convert


for _name in ("byte", "char", "cpu", "cuda", "double", "float", "half", "int", "long", "pin_memory", "short"):
    setattr(PackedSequence, _name, _converted(_name))


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes this one."""
    return None if permutation is None else Tensor._wrap(np.argsort(permutation._known()))


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """input (T, B, *) with sequences of `lengths`, packed. As `torch.nn.utils.rnn.pack_padded_sequence`.

    Raises RuntimeError for lengths that do not fit or, with `enforce_sorted`, that increase.
    """
    sizes = lengths._known() if isinstance(lengths, Tensor) else np.asarray(lengths, np.int64)
    order = None if enforce_sorted else np.argsort(-sizes, kind="stable")
    x = E.permute(input, dims=(1, 0, *range(2, len(input._d.shape)))) if batch_first else input
    if order is not None:
        sizes = sizes[order]
        x = E.index(x, Tensor._wrap(order), spec=(None, 0))
    if not x._d.shape[0] * x._d.shape[1]:
        raise RuntimeError("Cannot pack empty tensors.")
    if len(sizes) != x._d.shape[1]:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(sizes)} (batch_size={x._d.shape[1]})"
        )
    if sizes[-1] <= 0 or (sizes <= 0).any():
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if (np.diff(sizes) > 0).any():
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you "
            "do not need ONNX exportability."
        )
    batch_sizes = (np.arange(sizes[0])[:, None] < sizes).sum(axis=1)
    time = np.repeat(np.arange(len(batch_sizes)), batch_sizes)
    row = np.concatenate([np.arange(n) for n in batch_sizes])
    data = E.index(x, Tensor._wrap(time), Tensor._wrap(row), spec=(0, 1))
    indices = None if order is None else Tensor._wrap(order)
    return PackedSequence(data, Tensor._wrap(batch_sizes), indices, invert_permutation(indices))


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """(padded (T, B, *), lengths) of packed sequences. As `torch.nn.utils.rnn.pad_packed_sequence`."""
    batch_sizes = sequence.batch_sizes._known()
    steps, batch = len(batch_sizes), int(batch_sizes[0])
    if total_length is not None:
        if total_length < steps:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, but got "
                f"total_length={total_length} and max sequence length being {steps}"
            )
        steps = total_length
    data = sequence.data
    lengths = (np.arange(batch)[:, None] < batch_sizes).sum(axis=1)
    time = np.repeat(np.arange(len(batch_sizes)), batch_sizes)
    row = np.concatenate([np.arange(n) for n in batch_sizes])
    blank = E.full(shape=(steps, batch, *data._d.shape[1:]), value=padding_value, dtype=data._dtype())
    padded = E.index_put(blank, data, Tensor._wrap(time), Tensor._wrap(row), spec=(0, 1), accumulate=False)
    if sequence.unsorted_indices is not None:
        padded = named(E.index(padded, sequence.unsorted_indices, spec=(None, 0)), "IndexSelectBackward0")
        lengths = lengths[sequence.unsorted_indices._known()]
    if batch_first:
        padded = E.permute(padded, dims=(1, 0, *range(2, len(padded._d.shape))))
    return padded, Tensor._wrap(lengths)


def pad_sequence(
    sequences: Any, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """Sequences (L, *) as one tensor (T, B, *). As `torch.nn.utils.rnn.pad_sequence`."""
    if isinstance(sequences, Tensor):
        sequences = list(sequences)  # type: ignore[arg-type]
    elif not isinstance(sequences, (list, tuple)):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        )
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    for s in sequences[1:]:
        broadcast_shapes([(1, *sequences[0]._d.shape[1:]), (1, *s._d.shape[1:])])  # an error if they do not fit
    longest = max(s._d.shape[0] for s in sequences)
    padded = []
    for s in sequences:
        missing = longest - s._d.shape[0]
        if missing:
            fill = E.full(shape=(missing, *s._d.shape[1:]), value=padding_value, dtype=s._dtype())
            s = cat([s, fill] if padding_side == "right" else [fill, s])
        padded.append(s)
    return stack(padded, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """The sequences that `pad_sequence` was given. As `torch.nn.utils.rnn.unpad_sequence`."""
    x = padded_sequences if batch_first else padded_sequences.transpose(0, 1)  # type: ignore[attr-defined]
    return [row[: int(n)] for row, n in zip(x, lengths._known(), strict=True)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Sequences (L, *), packed. As `torch.nn.utils.rnn.pack_sequence`."""
    lengths = [s._d.shape[0] for s in sequences]
    return pack_padded_sequence(pad_sequence(list(sequences)), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences that `pack_sequence` was given. As `torch.nn.utils.rnn.unpack_sequence`."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
