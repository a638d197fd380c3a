"""Calls of the functions that PyTorch autocasts on the CPU, and of some that it does not, by the dtypes of operands."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

KINDS = ("float32", "bfloat16", "float16", "float64", "complex64", "int64")
LOWER = ("bfloat16", "float16")
SQUARE, CUBE, IMAGE, VOLUME = (3, 3), (2, 3, 3), (1, 2, 4, 4), (1, 2, 4, 4, 4)

Case = tuple[tuple[tuple[int, ...], ...], Callable[..., Any]]
# name -> (shapes of operands, f(torch, *operands))
CASES: dict[str, Case] = {
    # lower
    "matmul": ((SQUARE, SQUARE), lambda t, a, b: a @ b),
    "matmul of a vector": ((SQUARE, (3,)), lambda t, a, b: t.matmul(a, b)),
    "mm": ((SQUARE, SQUARE), lambda t, a, b: a.mm(b)),
    "bmm": ((CUBE, CUBE), lambda t, a, b: t.bmm(a, b)),
    "addmm": ((SQUARE, SQUARE, SQUARE), lambda t, a, b, c: t.addmm(a, b, c)),
    "addmm with factors": ((SQUARE, SQUARE, SQUARE), lambda t, a, b, c: a.addmm(b, c, beta=0.5, alpha=2)),
    "baddbmm": ((CUBE, CUBE, CUBE), lambda t, a, b, c: t.baddbmm(a, b, c)),
    "addbmm": ((SQUARE, CUBE, CUBE), lambda t, a, b, c: t.addbmm(a, b, c)),
    "linear": ((SQUARE, SQUARE, (3,)), lambda t, a, b, c: t.nn.functional.linear(a, b, c)),
    "linear without bias": ((SQUARE, SQUARE), lambda t, a, b: t.nn.functional.linear(a, b)),
    "vecdot": ((SQUARE, SQUARE), lambda t, a, b: t.linalg.vecdot(a, b)),
    "linalg.matmul": ((SQUARE, SQUARE), lambda t, a, b: t.linalg.matmul(a, b)),
    "prelu": ((SQUARE, (1,)), lambda t, a, b: t.nn.functional.prelu(a, b)),
    "attention": ((CUBE, CUBE, CUBE), lambda t, a, b, c: t.nn.functional.scaled_dot_product_attention(a, b, c)),
    "conv_tbc": (((4, 1, 2), (2, 2, 3), (3,)), lambda t, a, b, c: t.conv_tbc(a, b, c)),
    **{
        f"conv{n}d": (((1, 2, *[4] * n), (2, 2, *[1] * n), (2,)),
                      lambda t, a, b, c, n=n: getattr(t.nn.functional, f"conv{n}d")(a, b, c))
        for n in (1, 2, 3)
    },
    **{
        f"conv_transpose{n}d": (((1, 2, *[4] * n), (2, 2, *[1] * n)),
                                lambda t, a, b, n=n: getattr(t, f"conv_transpose{n}d")(a, b))
        for n in (1, 2, 3)
    },
    "conv2d, same": ((IMAGE, (2, 2, 3, 3)), lambda t, a, b: t.conv2d(a, b, padding="same")),
    # what PyTorch makes of those
    "einsum": ((SQUARE, SQUARE), lambda t, a, b: t.einsum("ij,jk->ik", a, b)),
    "einsum without a contraction": ((SQUARE, SQUARE), lambda t, a, b: t.einsum("ij,ij->ij", a, b)),
    "tensordot": ((SQUARE, SQUARE), lambda t, a, b: t.tensordot(a, b, 1)),
    "inner": ((SQUARE, SQUARE), lambda t, a, b: t.inner(a, b)),
    "multi_dot": ((SQUARE, SQUARE, SQUARE), lambda t, a, b, c: t.linalg.multi_dot([a, b, c])),
    "matrix_power": ((SQUARE,), lambda t, a: t.linalg.matrix_power(a, 3)),
    "cov": ((SQUARE,), lambda t, a: t.cov(a)),
    # in no list
    "mv": ((SQUARE, (3,)), lambda t, a, b: t.mv(a, b)),
    "dot": (((3,), (3,)), lambda t, a, b: a.dot(b)),
    "addmv": (((3,), SQUARE, (3,)), lambda t, a, b, c: t.addmv(a, b, c)),
    "outer": (((3,), (3,)), lambda t, a, b: t.outer(a, b)),
    "add": ((SQUARE, SQUARE), lambda t, a, b: a + b),
    "softmax": ((SQUARE,), lambda t, a: t.softmax(a, 0)),
    "sum": ((SQUARE,), lambda t, a: a.sum()),
    "layer_norm": ((SQUARE, (3,), (3,)), lambda t, a, b, c: t.nn.functional.layer_norm(a, (3,), b, c)),
    "bilinear interpolation": ((IMAGE,),
                               lambda t, a: t.nn.functional.interpolate(a, scale_factor=2, mode="bilinear")),
    "adaptive_avg_pool2d": ((IMAGE,), lambda t, a: t.nn.functional.adaptive_avg_pool2d(a, 3)),
    "cosine_similarity": ((SQUARE, SQUARE), lambda t, a, b: t.nn.functional.cosine_similarity(a, b)),
    "mm, out": ((SQUARE, SQUARE), lambda t, a, b: t.mm(a, b, out=t.empty(3, 3))),
    "bmm, out": ((CUBE, CUBE), lambda t, a, b: t.bmm(a, b, out=t.empty(2, 3, 3))),
    "matmul, out": ((SQUARE, SQUARE), lambda t, a, b: t.matmul(a, b, out=t.empty(3, 3))),
    "addmm_": ((SQUARE, SQUARE, SQUARE), lambda t, a, b, c: a.addmm_(b, c)),
    "index_copy_": ((SQUARE, SQUARE), lambda t, a, b: a.index_copy_(0, t.arange(3), b)),
    # promote
    "cat": ((SQUARE, SQUARE), lambda t, a, b: t.cat([a, b])),
    "stack": ((SQUARE, SQUARE), lambda t, a, b: t.stack((a, b))),
    "vstack": ((SQUARE, SQUARE), lambda t, a, b: t.vstack((a, b))),
    "index_copy": ((SQUARE, SQUARE), lambda t, a, b: a.index_copy(0, t.arange(3), b)),
    # float32
    "prod": ((SQUARE,), lambda t, a: a.prod()),
    "prod in a dtype": ((SQUARE,), lambda t, a: t.prod(a, 0, dtype=t.bfloat16)),
    "trace": ((SQUARE,), lambda t, a: a.trace()),
    "cdist": ((SQUARE, SQUARE), lambda t, a, b: t.cdist(a, b)),
    "quantile": ((SQUARE,), lambda t, a: a.quantile(0.5)),
    "nanquantile": ((SQUARE, (2,)), lambda t, a, b: t.nanquantile(a, t.special.expit(b))),
    "polar": ((SQUARE, SQUARE), lambda t, a, b: t.polar(a, b)),
    "view_as_complex": (((3, 2),), lambda t, a: t.view_as_complex(a)),
    "stft": (((16,),), lambda t, a: t.stft(a, 8, return_complex=True, window=t.ones(8))),
    **{f"fft.{name}": ((SQUARE,), lambda t, a, name=name: getattr(t.fft, name)(a))
       for name in ("fft", "ifft", "fft2", "ifft2", "fftn", "ifftn", "rfft", "irfft", "rfft2", "irfft2", "rfftn",
                    "irfftn", "hfft", "ihfft")},
    **{f"linalg.{name}": ((SQUARE,), lambda t, a, name=name: getattr(t.linalg, name)(a @ a.mT + t.eye(3).to(a)))
       for name in ("cholesky", "cholesky_ex", "cond", "eig", "eigh", "eigvals", "eigvalsh", "inv", "inv_ex",
                    "matrix_rank", "qr", "svd", "svdvals")},
    **{name: ((SQUARE,), lambda t, a, name=name: getattr(t, name)(a * t.eye(3).to(a) + t.eye(3).to(a)))
       for name in ("cholesky", "cholesky_inverse", "geqrf", "inverse", "pinverse", "qr", "svd")},
    "cholesky_solve": ((SQUARE, SQUARE), lambda t, a, b: t.cholesky_solve(a, b)),
    "householder_product": ((SQUARE, (3,)), lambda t, a, b: t.linalg.householder_product(a, b)),
    "ormqr": ((SQUARE, (3,), SQUARE), lambda t, a, b, c: t.ormqr(a, b, c)),
    "triangular_solve": ((SQUARE, SQUARE), lambda t, a, b: t.triangular_solve(a, b)),
    "solve": ((SQUARE, SQUARE), lambda t, a, b: t.linalg.solve(a, b)),
    "lstsq": ((SQUARE, SQUARE), lambda t, a, b: t.linalg.lstsq(a, b).solution),
    "tensorinv": (((2, 3, 6),), lambda t, a: t.linalg.tensorinv(a)),
    "tensorsolve": (((2, 3, 6), (2, 3)), lambda t, a, b: t.linalg.tensorsolve(a, b)),
    "adaptive_avg_pool3d": ((VOLUME,), lambda t, a: t.nn.functional.adaptive_avg_pool3d(a, 2)),
    "adaptive_max_pool3d": ((VOLUME,), lambda t, a: t.nn.functional.adaptive_max_pool3d(a, 2)),
    "adaptive_max_pool3d with indices": ((VOLUME,),
                                         lambda t, a: t.nn.functional.adaptive_max_pool3d(a, 2, return_indices=True)),
    "avg_pool3d": ((VOLUME,), lambda t, a: t.nn.functional.avg_pool3d(a, 2)),
    "max_pool3d": ((VOLUME,), lambda t, a: t.nn.functional.max_pool3d(a, 2)),
    "max_pool3d with indices": ((VOLUME,), lambda t, a: t.nn.functional.max_pool3d(a, 2, return_indices=True)),
    "max_pool2d": ((IMAGE,), lambda t, a: t.nn.functional.max_pool2d(a, 2)),
    "fractional_max_pool2d": ((IMAGE,), lambda t, a: t.nn.functional.fractional_max_pool2d(a, 2, output_size=2)),
    "fractional_max_pool3d": ((VOLUME,), lambda t, a: t.nn.functional.fractional_max_pool3d(a, 2, output_size=2)),
    "max_unpool1d": (((1, 2, 2),),
                     lambda t, a: t.nn.functional.max_unpool1d(a, t.tensor([[[0, 2]] * 2]), 2)),
    "max_unpool2d": (((1, 1, 1, 2),),
                     lambda t, a: t.nn.functional.max_unpool2d(a, t.tensor([[[[0, 2]]]]), 2)),
    "max_unpool3d": (((1, 1, 1, 1, 2),),
                     lambda t, a: t.nn.functional.max_unpool3d(a, t.tensor([[[[[0, 2]]]]]), 2)),
    "grid_sample": ((IMAGE, (1, 2, 2, 2)), lambda t, a, b: t.nn.functional.grid_sample(a, b, align_corners=False)),
    **{f"{mode} padding, {n}d": (((1, 2, *[4] * n),),
                                 lambda t, a, n=n, mode=mode: t.nn.functional.pad(a, (1, 1) * n, mode=mode))
       for mode in ("reflect", "replicate", "circular") for n in (1, 2, 3)},
    **{name: ((SQUARE, SQUARE), lambda t, a, b, name=name: getattr(t.nn.functional, name)(a, b))
       for name in ("huber_loss", "kl_div", "l1_loss", "mse_loss", "poisson_nll_loss", "smooth_l1_loss",
                    "soft_margin_loss", "binary_cross_entropy_with_logits", "hinge_embedding_loss",
                    "multilabel_soft_margin_loss", "cross_entropy")},
    "binary_cross_entropy": ((SQUARE, SQUARE),
                             lambda t, a, b: t.nn.functional.binary_cross_entropy(a.abs() / 9, b.abs() / 9)),
    "cross_entropy of classes": ((SQUARE, (3,)),
                                 lambda t, a, b: t.nn.functional.cross_entropy(a, t.tensor([0, 2, 1]), b)),
    "nll_loss": ((SQUARE, (3,)), lambda t, a, b: t.nn.functional.nll_loss(a, t.tensor([0, 2, 1]), b)),
    "nll_loss of images": ((IMAGE,), lambda t, a: t.nn.functional.nll_loss(a, t.zeros(1, 4, 4, dtype=t.int64))),
    "multi_margin_loss": ((SQUARE,), lambda t, a: t.nn.functional.multi_margin_loss(a, t.tensor([0, 2, 1]))),
    "multilabel_margin_loss": ((SQUARE,), lambda t, a: t.nn.functional.multilabel_margin_loss(
        a, t.tensor([[0, -1, 1]] * 3))),
    "cosine_embedding_loss": ((SQUARE, SQUARE, (3,)),
                              lambda t, a, b, c: t.nn.functional.cosine_embedding_loss(a, b, c.sign())),
    "margin_ranking_loss": (((3,), (3,), (3,)),
                            lambda t, a, b, c: t.nn.functional.margin_ranking_loss(a, b, c)),
    "triplet_margin_loss": ((SQUARE, SQUARE, SQUARE),
                            lambda t, a, b, c: t.nn.functional.triplet_margin_loss(a, b, c)),
    "ctc_loss": (((4, 1, 3),), lambda t, a: t.nn.functional.ctc_loss(
        a.log_softmax(2), t.tensor([[1, 2]]), t.tensor([4]), t.tensor([2]))),
}  # fmt: skip


def mixes(count: int) -> Iterator[tuple[str, ...]]:
    """The dtypes of `count` operands: one of all kinds, and all mixtures of two among the floating ones."""
    for kind in KINDS:
        yield (kind,) * count
    for one, other in itertools.permutations(KINDS[:4], 2):
        if count > 1:
            yield (one,) + (other,) * (count - 1)


def outcome(torch: Any, lower: str, name: str, kinds: tuple[str, ...]) -> str:
    """The dtypes of what a case returns under autocast, or the kind of error."""
    shapes, function = CASES[name]
    rng = np.random.default_rng(0)
    operands = [torch.tensor(rng.normal(size=s) * 2).to(getattr(torch, k)) for s, k in zip(shapes, kinds, strict=True)]
    try:
        with warnings.catch_warnings(), torch.autocast("cpu", getattr(torch, lower)):
            warnings.simplefilter("ignore")
            result = function(torch, *operands)
    except (RuntimeError, TypeError, ValueError, NotImplementedError) as error:
        return "RuntimeError" if isinstance(error, torch.linalg.LinAlgError) else type(error).__name__
    parts = result if isinstance(result, (tuple, list)) else (result,)
    return " ".join(str(part.dtype).removeprefix("torch.") for part in parts)


def outcomes(torch: Any, name: str) -> dict[str, str]:
    """By the dtype of autocast and those of the operands: the outcome of a case."""
    return {
        f"{lower}: {' '.join(kinds)}": outcome(torch, lower, name, kinds)
        for lower in LOWER
        for kinds in mixes(len(CASES[name][0]))
    }
