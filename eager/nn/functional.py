"""`torch.nn.functional`: layers, activations and losses as functions. Each family is a file of `eager.nn.functions`."""

from __future__ import annotations

from eager.functional.checking import OF_CPP, checking
from eager.functional.gathering import one_hot
from eager.functional.outputs import with_out
from eager.nn import functions
from eager.nn.functions import bags, margin_losses, patches, pooling, unpooling
from eager.nn.functions.activation import *  # noqa: F403
from eager.nn.functions.adaptive_pooling import *  # noqa: F403
from eager.nn.functions.attention import *  # noqa: F403
from eager.nn.functions.bags import *  # noqa: F403
from eager.nn.functions.class_losses import *  # noqa: F403
from eager.nn.functions.convolution import *  # noqa: F403
from eager.nn.functions.ctc import *  # noqa: F403
from eager.nn.functions.distance import *  # noqa: F403
from eager.nn.functions.dropouts import *  # noqa: F403
from eager.nn.functions.embeddings import *  # noqa: F403
from eager.nn.functions.fractional_pooling import *  # noqa: F403
from eager.nn.functions.grid import *  # noqa: F403
from eager.nn.functions.image import *  # noqa: F403
from eager.nn.functions.loss import *  # noqa: F403
from eager.nn.functions.margin_losses import *  # noqa: F403
from eager.nn.functions.normalization import *  # noqa: F403
from eager.nn.functions.padding import *  # noqa: F403
from eager.nn.functions.patches import *  # noqa: F403
from eager.nn.functions.pooling import *  # noqa: F403
from eager.nn.functions.unpooling import *  # noqa: F403

_FAMILIES = (
    "activation adaptive_pooling attention bags class_losses convolution ctc distance dropouts embeddings "
    "fractional_pooling grid image loss margin_losses normalization padding patches pooling unpooling"
).split()
__all__ = ["one_hot", *(name for family in _FAMILIES for name in getattr(functions, family).__all__)]  # pyright: ignore[reportUnsupportedDunderAll]

# those of Python that are asked what was wrong in a call: others are called so often that they do it themselves
_ASKED = (
    *bags.__all__, *margin_losses.__all__, *patches.__all__, *pooling.__all__, *unpooling.__all__,
    "celu", "dropout1d", "dropout2d", "dropout3d", "elu", "gaussian_nll_loss", "glu", "hinge_embedding_loss",
    "instance_norm", "interpolate", "leaky_relu", "normalize", "pad", "poisson_nll_loss", "sigmoid", "softmin",
    "softsign", "tanh", "tanhshrink", "upsample", "upsample_bilinear", "upsample_nearest",
)  # fmt: skip
for _name in {*_ASKED, *OF_CPP} & globals().keys():
    globals()[_name] = checking(_name, globals()[_name], python=_name not in OF_CPP, written=False)
# those that PyTorch declares with an `out`; `linear` has one of its own
_OUT = ("avg_pool2d", "avg_pool3d", "gelu", "hardshrink", "logsigmoid", "softplus", "softshrink")
globals().update({name: with_out(name, globals()[name]) for name in _OUT})
