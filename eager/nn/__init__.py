"""Neural networks: modules, layers, losses, initializers. As `torch.nn`."""

from eager.nn import functional, init, parallel, utils
from eager.nn.activations import (
    ELU,
    GELU,
    Identity,
    LeakyReLU,
    LogSoftmax,
    ReLU,
    Sigmoid,
    SiLU,
    Softmax,
    Softplus,
    Tanh,
)
from eager.nn.batch_norm import BatchNorm1d, BatchNorm2d
from eager.nn.containers import ModuleDict, ModuleList, Sequential
from eager.nn.layers import AvgPool2d, Conv2d, Dropout, Embedding, Flatten, LayerNorm, Linear, MaxPool2d, Unflatten
from eager.nn.losses import BCEWithLogitsLoss, CrossEntropyLoss, L1Loss, MSELoss, NLLLoss
from eager.nn.module import Module
from eager.nn.parallel import DataParallel
from eager.tensor import Parameter

__all__ = [
    "ELU", "GELU", "AvgPool2d", "BCEWithLogitsLoss", "BatchNorm1d", "BatchNorm2d", "Conv2d", "CrossEntropyLoss",
    "Dropout", "Embedding", "Flatten", "Identity", "L1Loss", "LayerNorm", "LeakyReLU", "Linear", "LogSoftmax",
    "MSELoss", "MaxPool2d", "Module", "ModuleDict", "ModuleList", "NLLLoss", "Parameter", "ReLU", "Sequential", "SiLU",
    "Sigmoid", "Softmax", "Softplus", "Tanh", "Unflatten", "functional", "init",
    "DataParallel", "parallel", "utils",
]  # fmt: skip
