"""The modules, a family a file. As `torch.nn.modules`."""

from eager.core.missing import explain
from eager.nn.modules import (
    activations,
    adaptive,
    attention,
    basic,
    batch_norm,
    cells,
    containers,
    convolutions,
    dropouts,
    embeddings,
    images,
    lazy_layers,
    losses,
    normalizations,
    pads,
    parameter_containers,
    pools,
    recurrent,
    transformer,
)
from eager.nn.modules.activations import *  # noqa: F403
from eager.nn.modules.adaptive import *  # noqa: F403
from eager.nn.modules.attention import *  # noqa: F403
from eager.nn.modules.basic import *  # noqa: F403
from eager.nn.modules.batch_norm import *  # noqa: F403
from eager.nn.modules.cells import *  # noqa: F403
from eager.nn.modules.containers import *  # noqa: F403
from eager.nn.modules.convolutions import *  # noqa: F403
from eager.nn.modules.dropouts import *  # noqa: F403
from eager.nn.modules.embeddings import *  # noqa: F403
from eager.nn.modules.images import *  # noqa: F403
from eager.nn.modules.lazy_layers import *  # noqa: F403
from eager.nn.modules.losses import *  # noqa: F403
from eager.nn.modules.normalizations import *  # noqa: F403
from eager.nn.modules.pads import *  # noqa: F403
from eager.nn.modules.parameter_containers import *  # noqa: F403
from eager.nn.modules.pools import *  # noqa: F403
from eager.nn.modules.recurrent import *  # noqa: F403
from eager.nn.modules.transformer import *  # noqa: F403

_FAMILIES = (
    activations, adaptive, attention, basic, batch_norm, cells, containers, convolutions, dropouts, embeddings,
    images, lazy_layers, losses, normalizations, pads, parameter_containers, pools, recurrent, transformer,
)  # fmt: skip
__all__ = [name for family in _FAMILIES for name in family.__all__]  # pyright: ignore[reportUnsupportedDunderAll]
explain(__name__)
