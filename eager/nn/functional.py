"""`torch.nn.functional`: layers, activations and losses as functions."""

from __future__ import annotations

from eager.functional.gathering import one_hot
from eager.nn import (
    activation_functions,
    attention_functions,
    class_losses,
    convolution_functions,
    ctc,
    distance_functions,
    grid_functions,
    image_functions,
    lookup_functions,
    loss_functions,
    margin_losses,
    normalization_functions,
    padding_functions,
    pooling_functions,
    unpooling_functions,
)
from eager.nn.activation_functions import *  # noqa: F403
from eager.nn.attention_functions import *  # noqa: F403
from eager.nn.class_losses import *  # noqa: F403
from eager.nn.convolution_functions import *  # noqa: F403
from eager.nn.ctc import *  # noqa: F403
from eager.nn.distance_functions import *  # noqa: F403
from eager.nn.grid_functions import *  # noqa: F403
from eager.nn.image_functions import *  # noqa: F403
from eager.nn.lookup_functions import *  # noqa: F403
from eager.nn.loss_functions import *  # noqa: F403
from eager.nn.margin_losses import *  # noqa: F403
from eager.nn.normalization_functions import *  # noqa: F403
from eager.nn.padding_functions import *  # noqa: F403
from eager.nn.pooling_functions import *  # noqa: F403
from eager.nn.unpooling_functions import *  # noqa: F403

__all__ = ["one_hot"]
__all__ += activation_functions.__all__
__all__ += attention_functions.__all__
__all__ += class_losses.__all__
__all__ += convolution_functions.__all__
__all__ += ctc.__all__
__all__ += distance_functions.__all__
__all__ += grid_functions.__all__
__all__ += image_functions.__all__
__all__ += lookup_functions.__all__
__all__ += loss_functions.__all__
__all__ += margin_losses.__all__
__all__ += normalization_functions.__all__
__all__ += padding_functions.__all__
__all__ += pooling_functions.__all__
__all__ += unpooling_functions.__all__
