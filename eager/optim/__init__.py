"""Optimizers. As `torch.optim`."""

from eager.optim.adam import Adam, AdamW
from eager.optim.optimizer import Optimizer
from eager.optim.sgd import SGD

__all__ = ["SGD", "Adam", "AdamW", "Optimizer"]
