"""Attention whose scores and mask are functions of the user's. As `torch.nn.attention.flex_attention`."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple, final

from eager.core import dtypes
from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.func.mapping import vmap
from eager.functional.creation import ones, zeros
from eager.functional.gathering import where
from eager.functional.lines import arange
from eager.functional.slices import repeat_interleave
from eager.nn.functions.padding import pad

__all__ = [
    "AuxOutput", "AuxRequest", "BlockMask", "and_masks", "create_block_mask", "create_mask", "flex_attention",
    "noop_mask", "or_masks",
]  # fmt: skip

_DEFAULT_SPARSE_BLOCK_SIZE = 128  # transformers imports it
Mod = Callable[..., Tensor]  # of (batch, head, query, key), 0-d int tensors; a score's has the score before them


class AuxRequest(NamedTuple):
    """What `flex_attention` is to return beside its result."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """`lse`: the logsumexp of the scores, `max_scores`: the largest, (B, Hq, L) each; None if it was not asked for."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """A mask that is True everywhere."""
    return ones((), dtype=dtypes.bool)


def and_masks(*mask_mods: Mod) -> Mod:
    """The mask that is True where all are."""
    return lambda *at: functools.reduce(E.logical_and, [mod(*at) for mod in mask_mods], noop_mask(*at))


def or_masks(*mask_mods: Mod) -> Mod:
    """The mask that is True where one is."""
    return lambda *at: functools.reduce(E.logical_or, [mod(*at) for mod in mask_mods], zeros((), dtype=dtypes.bool))


def _everywhere(mod: Mod, sizes: tuple[int, ...], score: Tensor | None = None) -> Tensor:
    """What `mod` gives at each place of an array (B, H, L, S), for the elements of `score` if it takes one."""
    given = () if score is None else (score,)
    for axis in reversed(range(4)):
        mod = vmap(mod, in_dims=(*(0 for _ in given), *(0 if k == axis else None for k in range(4))))
    return mod(*given, *map(arange, sizes))


def create_mask(
    mod_fn: Mod, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None
) -> Tensor:  # fmt: skip
    """The bool tensor (B, H, Q_LEN, KV_LEN) of a mask function, or of where a score function does not give -inf.
    A size of None is 1."""
    sizes = B or 1, H or 1, Q_LEN, KV_LEN
    if mod_fn.__code__.co_argcount == 5:
        return E.ne(_everywhere(mod_fn, sizes, zeros(sizes)), -math.inf)
    return _everywhere(mod_fn, sizes)


@final
class BlockMask:
    """A mask function, with the blocks of a (B, H, Q_LEN, KV_LEN) array in which it is True somewhere, or everywhere.

    kv_num_blocks, kv_indices            of each row of blocks: how many are mixed, and the columns, those first
    full_kv_num_blocks, full_kv_indices  the same for blocks that are True everywhere
    """

    def __init__(self, mask_mod: Mod, mask: Tensor, BLOCK_SIZE: tuple[int, int]):
        self.mask_mod, self.BLOCK_SIZE = mask_mod, BLOCK_SIZE
        self.shape = tuple(mask.shape)
        self.seq_lengths = self.shape[-2:]
        missing = [-n % size for n, size in zip(self.seq_lengths, BLOCK_SIZE, strict=True)]
        padded = pad(mask, (0, missing[1], 0, missing[0]))
        blocks = padded.unflatten(-1, (-1, BLOCK_SIZE[1])).unflatten(-3, (-1, BLOCK_SIZE[0])).sum((-3, -1))
        self._full = blocks == BLOCK_SIZE[0] * BLOCK_SIZE[1]
        self._mixed = (blocks > 0) & ~self._full
        self.kv_num_blocks, self.kv_indices = _ordered(self._mixed)
        self.full_kv_num_blocks, self.full_kv_indices = _ordered(self._full)

    def to_dense(self) -> Tensor:
        """1 for each block that is True somewhere, else 0: int32."""
        return (self._full | self._mixed).to(dtypes.int32)

    def numel(self) -> int:
        """The number of elements of the mask."""
        return math.prod(self.shape)

    def sparsity(self) -> float:
        """The percentage of elements in blocks that are False everywhere."""
        return 100 * (1 - int(self.to_dense().sum()) * math.prod(self.BLOCK_SIZE) / self.numel())

    def __repr__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, mask_mod={self.mask_mod.__name__})"


def _ordered(blocks: Tensor) -> tuple[Tensor, Tensor]:
    order = E.logical_not(blocks).to(dtypes.int32).argsort(-1, stable=True)
    return blocks.sum(-1).to(dtypes.int32), order.to(dtypes.int32)


def create_block_mask(
    mask_mod: Mod, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE, _compile: bool = False,
) -> BlockMask:  # fmt: skip
    """The `BlockMask` of a mask function of (batch, head, query, key). A size of None is 1: the mask is broadcast."""
    size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
    return BlockMask(mask_mod, create_mask(mask_mod, B, H, Q_LEN, KV_LEN), size)


def flex_attention(
    query: Tensor, key: Tensor, value: Tensor, score_mod: Mod | None = None, block_mask: BlockMask | None = None,
    scale: float | None = None, enable_gqa: bool = False, return_lse: bool = False, kernel_options: Any = None, *,
    return_aux: AuxRequest | None = None,
) -> Any:  # fmt: skip
    """softmax(score_mod(query @ key.T * scale), where block_mask is True) @ value.

    query (B, Hq, L, E), key (B, Hkv, S, E), value (B, Hkv, S, Ev); the result is (B, Hq, L, Ev), 0 in a row without a
    True. With `return_lse` also the logsumexp of the scores, with `return_aux` an `AuxOutput`. ValueError for shapes
    that do not fit, NotImplementedError for other than four dims.
    """
    _check(query, key, value, block_mask, enable_gqa)
    if enable_gqa:
        key, value = (repeat_interleave(x, query.shape[1] // x.shape[1], 1) for x in (key, value))
    factor = 1 / math.sqrt(max(query.shape[-1], 1)) if scale is None else scale
    scores = query @ key.transpose(-2, -1) * factor
    if score_mod is not None:
        scores = _everywhere(score_mod, tuple(scores.shape), scores).to(query.dtype)
    if block_mask is not None:
        mask = _everywhere(block_mask.mask_mod, (*block_mask.shape[:2], *scores.shape[-2:]))
        scores = where(mask, scores, -math.inf)
    nowhere = (scores == -math.inf).all(-1, keepdim=True)
    weights = where(nowhere, 0.0, where(nowhere, 0.0, scores).softmax(-1))
    result = weights @ value
    if return_aux is not None:
        lse, largest = (f(scores) for f in (_lse, lambda x: x.amax(-1)))
        return result, AuxOutput(lse if return_aux.lse else None, largest if return_aux.max_scores else None)
    return (result, _lse(scores)) if return_lse else result


def _lse(scores: Tensor) -> Tensor:
    return scores.logsumexp(-1)


def _check(query: Tensor, key: Tensor, value: Tensor, block_mask: BlockMask | None, enable_gqa: bool) -> None:
    if not query.dim() == key.dim() == value.dim() == 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    heads, kv_heads = query.shape[1], key.shape[1]
    if not enable_gqa and heads != kv_heads:
        raise ValueError(
            f"Expect query and key/value to have the same number of heads but got Hq={heads} and Hkv={kv_heads}. Try "
            "setting enable_gqa=True for GQA."
        )
    if heads % kv_heads:
        raise ValueError(
            f"Expect number of query heads to be a multiple of kv heads for GQA but got Hq={heads} and Hkv={kv_heads}."
        )
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(
            "Expect query and key/value to have the same embedding dimension but got "
            f"E={query.shape[-1]} and E={key.shape[-1]}."
        )
    lengths = query.shape[-2], key.shape[-2]
    if block_mask is not None and block_mask.seq_lengths != lengths:
        raise ValueError(
            f"block_mask was created for block_mask.shape={block_mask.shape} but got q_len={lengths[0]} and "
            f"kv_len={lengths[1]}. Create a new block mask with the correct length."
        )
