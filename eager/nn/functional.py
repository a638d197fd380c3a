"""`torch.nn.functional`: layers, activations and losses as functions. Each family is a file of `eager.nn.functions`."""

from __future__ import annotations

from eager.functional.checking import OF_CPP, checking
from eager.functional.gathering import one_hot
from eager.functional.outputs import with_out
from eager.nn.functions import margin_losses, patches, pooling
from graphc.lazy import families

_FAMILIES = families(
    "eager.nn.functions",
    "activation adaptive_pooling attention class_losses convolution distance dropouts embeddings grid image loss "
    "margin_losses normalization padding patches pooling",
)
__all__ = ["one_hot", *_FAMILIES]  # pyright: ignore[reportUnsupportedDunderAll]
globals().update(_FAMILIES)

# those of Python that are asked what was wrong in a call: others are called so often that they do it themselves
_ASKED = (
    *margin_losses.__all__, *patches.__all__, *pooling.__all__,
    "celu", "dropout1d", "dropout2d", "dropout3d", "elu", "embedding_bag", "gaussian_nll_loss", "glu",
    "hinge_embedding_loss", "instance_norm", "interpolate", "leaky_relu", "normalize", "pad", "poisson_nll_loss",
    "sigmoid", "softmin", "softsign", "tanh", "tanhshrink", "upsample", "upsample_bilinear", "upsample_nearest",
)  # fmt: skip
for _name in {*_ASKED, *OF_CPP} & globals().keys():
    globals()[_name] = checking(_name, globals()[_name], python=_name not in OF_CPP, written=False)
# those that PyTorch declares with an `out`; `linear` has one of its own
_OUT = ("avg_pool2d", "avg_pool3d", "gelu", "hardshrink", "logsigmoid", "softplus", "softshrink")
globals().update({name: with_out(name, globals()[name]) for name in _OUT})
