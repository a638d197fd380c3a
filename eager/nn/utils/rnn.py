"""Sequences of different lengths, padded or packed. As `torch.nn.utils.rnn`."""

from eager.nn.modules import packed
from eager.nn.modules.packed import *  # noqa: F403

__all__ = packed.__all__  # pyright: ignore[reportUnsupportedDunderAll]
