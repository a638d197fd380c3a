"""The modules, a family a file. As `torch.nn.modules`."""

from eager.nn.modules import batchnorm, images, linear
from eager.nn.modules import module as module
from eager.nn.modules import utils as utils
from graphc.lazy import families

_FAMILIES = families(
    __name__,
    "activation adaptive linear batchnorm cells container conv dropout sparse images lazy_layers loss "
    "padding parameter_containers pooling rnn transformer",
)
__all__ = [*_FAMILIES]  # pyright: ignore[reportUnsupportedDunderAll]
globals().update(_FAMILIES)
# what PyTorch has in other files
channelshuffle = fold = pixelshuffle = upsampling = images
distance = flatten = linear
instancenorm = batchnorm
