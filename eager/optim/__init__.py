"""Optimizers. As `torch.optim`."""

from eager.optim import lr_scheduler, swa_utils
from eager.optim.adafactor import Adafactor
from eager.optim.adagrad import Adadelta, Adagrad, RMSprop
from eager.optim.adam import Adam, Adamax, AdamW, NAdam, RAdam, SparseAdam
from eager.optim.lbfgs import LBFGS
from eager.optim.muon import Muon
from eager.optim.optimizer import Optimizer
from eager.optim.sgd import ASGD, SGD, Rprop

__all__ = [
    "ASGD", "LBFGS", "SGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "Muon", "NAdam",
    "Optimizer", "RAdam", "RMSprop", "Rprop", "SparseAdam", "lr_scheduler", "swa_utils",
]  # fmt: skip
