"""What is autocast on the CPU, as PyTorch 2.13 has it.

An op that is autocast says so in its declaration (`Op.autocast`), as those of users do. PyTorch's functions that are
made of several ops, or that check dtypes before they reach one, are listed here by where they are.

    lower    computes in the dtype of autocast: floats but float64 are cast to it
    float32  computes in float32: the same floats are cast to that
    promote  takes tensors of several dtypes: in float32 if one is of it, else in the dtype of autocast
    dtypes   `lower` for a function of dtypes
    off      runs what it calls as without autocast: PyTorch has one kernel for it, which is in no list
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

FUNCTIONS: dict[str, dict[str, str]] = {
    "lower": {
        "functional.linear": "mm bmm addmm baddbmm",
        "functional.rearranging": "addbmm",
        "linalg.products": "vecdot",
        "nn.functions.distance": "linear",
        "nn.functions.convolution": "conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d",
        "nn.functions.activation": "prelu",
        "nn.functions.attention": "scaled_dot_product_attention",
        "nn.modules.rnn": "mkldnn_rnn_layer",
    },
    "dtypes": {"functional.einsums": "contracted_dtype"},
    "float32": {
        "functional.reductions": "prod",
        "functional.shapes": "trace",
        "functional.distances": "cdist",
        "functional.sorting": "quantile nanquantile",
        "functional.complexes": "polar view_as_complex",
        "signal.spectral": "stft",
        "fft": "fft ifft fft2 ifft2 fftn ifftn rfft irfft rfft2 irfft2 rfftn irfftn hfft ihfft",
        "linalg.named": "cholesky cholesky_inverse cholesky_solve geqrf lu_solve ormqr pinverse qr svd "
        "triangular_solve",
        "linalg.factors": "cholesky cholesky_ex householder_product qr",
        "linalg.norms": "cond",
        "linalg.solving": "inv inv_ex lstsq solve tensorinv tensorsolve",
        "linalg.spectra": "eig eigh eigvals eigvalsh matrix_rank svd svdvals",
        "nn.functions.adaptive_pooling": "adaptive_avg_pool3d adaptive_max_pool3d fractional_max_pool2d "
        "fractional_max_pool3d",
        "nn.functions.class_losses": "cross_entropy ctc_loss nll_loss",
        "nn.functions.grid": "grid_sample",
        "nn.functions.loss": "binary_cross_entropy binary_cross_entropy_with_logits huber_loss kl_div l1_loss mse_loss "
        "poisson_nll_loss smooth_l1_loss",
        "nn.functions.margin_losses": "cosine_embedding_loss hinge_embedding_loss margin_ranking_loss "
        "multi_margin_loss multilabel_margin_loss soft_margin_loss triplet_margin_loss",
        "nn.functions.padding": "pad",
        "nn.functions.pooling": "avg_pool3d max_pool3d max_unpool1d max_unpool2d max_unpool3d",
    },
    "promote": {"functional.joining": "cat stack", "functional.slices": "index_copy"},
    "off": {
        "functional.linear": "mv dot addmv",
        "functional.outputs": "into",
        "nn.functions.image": "interpolate",
        "nn.functions.adaptive_pooling": "adaptive_avg_pool1d adaptive_avg_pool2d",
        "functional.rearranging": "addbmm_",
        "functional.updates": "addmm_ addmv_ baddbmm_ index_copy_",
        "engine.walks": "share",  # gradient rules follow the dtypes of what was computed
    },
}  # fmt: skip


def _padding_is_listed(given: Mapping[str, Any]) -> bool:
    return given["mode"] == "replicate" or (given["mode"] == "reflect" and len(given["pad"]) < 6)


# functions of which PyTorch lists some kernels: whether a call with these arguments, by name, goes to one
LISTED: dict[str, Callable[[Mapping[str, Any]], bool]] = {
    "pad": _padding_is_listed,
    "max_pool3d": lambda given: not given["return_indices"],
}


def rows() -> Iterator[tuple[str, str, str]]:
    """(policy, module below `eager`, attribute) of each function."""
    for policy, places in FUNCTIONS.items():
        for module, names in places.items():
            for name in names.split():
                yield policy, module, name
