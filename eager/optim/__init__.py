"""Optimizers. As `torch.optim`."""

from eager.optim import lr_scheduler, swa_utils
from eager.optim.adadelta import Adadelta
from eager.optim.adafactor import Adafactor
from eager.optim.adagrad import Adagrad
from eager.optim.adam import Adam, AdamW
from eager.optim.adamax import Adamax
from eager.optim.asgd import ASGD
from eager.optim.lbfgs import LBFGS
from eager.optim.muon import Muon
from eager.optim.nadam import NAdam
from eager.optim.optimizer import Optimizer
from eager.optim.radam import RAdam
from eager.optim.rmsprop import RMSprop
from eager.optim.rprop import Rprop
from eager.optim.sgd import SGD
from eager.optim.sparse_adam import SparseAdam

__all__ = [
    "ASGD", "LBFGS", "SGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "Muon", "NAdam",
    "Optimizer", "RAdam", "RMSprop", "Rprop", "SparseAdam", "lr_scheduler", "swa_utils",
]  # fmt: skip
