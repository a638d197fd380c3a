"""The modules, a family a file. As `torch.nn.modules`."""

from eager.nn.modules import batchnorm, images, linear
from eager.nn.modules import module as module
from eager.nn.modules import utils as utils
from eager.nn.modules.activation import *  # noqa: F403
from eager.nn.modules.adaptive import *  # noqa: F403
from eager.nn.modules.attention import *  # noqa: F403
from eager.nn.modules.batchnorm import *  # noqa: F403
from eager.nn.modules.cells import *  # noqa: F403
from eager.nn.modules.container import *  # noqa: F403
from eager.nn.modules.conv import *  # noqa: F403
from eager.nn.modules.dropout import *  # noqa: F403
from eager.nn.modules.images import *  # noqa: F403
from eager.nn.modules.lazy_layers import *  # noqa: F403
from eager.nn.modules.linear import *  # noqa: F403
from eager.nn.modules.loss import *  # noqa: F403
from eager.nn.modules.normalization import *  # noqa: F403
from eager.nn.modules.padding import *  # noqa: F403
from eager.nn.modules.parameter_containers import *  # noqa: F403
from eager.nn.modules.pooling import *  # noqa: F403
from eager.nn.modules.rnn import *  # noqa: F403
from eager.nn.modules.sparse import *  # noqa: F403
from eager.nn.modules.sync_batchnorm import *  # noqa: F403
from eager.nn.modules.transformer import *  # noqa: F403

_FAMILIES = (
    "activation adaptive attention linear batchnorm sync_batchnorm cells container conv dropout sparse images "
    "lazy_layers loss normalization padding parameter_containers pooling rnn transformer"
).split()
__all__ = [name for family in _FAMILIES for name in globals()[family].__all__]  # pyright: ignore[reportUnsupportedDunderAll]
# what PyTorch has in other files
channelshuffle = fold = pixelshuffle = upsampling = images
distance = flatten = linear
instancenorm = batchnorm
batchnorm.SyncBatchNorm = SyncBatchNorm  # type: ignore[attr-defined]  # noqa: F405
