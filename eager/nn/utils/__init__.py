"""Functions on the gradients and parameters of modules. As `torch.nn.utils`."""

from eager.nn.utils import rnn
from eager.nn.utils.clip_grad import (
    clip_grad_norm,
    clip_grad_norm_,
    clip_grad_value_,
    clip_grads_with_norm_,
    get_total_norm,
)
from eager.nn.utils.convert_parameters import parameters_to_vector, vector_to_parameters
from graphc.lazy import lazy

__getattr__, __dir__ = lazy(
    __name__,
    {
        name: f"eager.nn.utils.{module}"
        for module, names in {
            "fusion": "fuse_conv_bn_eval fuse_conv_bn_weights fuse_linear_bn_eval fuse_linear_bn_weights",
            "init": "skip_init",
            "memory_format": "convert_conv2d_weight_memory_format convert_conv3d_weight_memory_format",
            "spectral_norm": "remove_spectral_norm spectral_norm",
            "weight_norm": "remove_weight_norm weight_norm",
        }.items()
        for name in names.split()
    },
    ("fusion", "init", "parametrizations", "parametrize", "prune", "stateless"),
)
__all__ = [
    "clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm",
    "parameters_to_vector", "rnn", "vector_to_parameters",
]  # fmt: skip
