"""Programs and the changes of Python state that their guards must notice, or must not."""

from __future__ import annotations

import pytest

import eager as torch
from eager import nn

X = torch.ones(2, 3)
CHANGED: list = []
UNCHANGED: list = []


def changed(*messages):
    """A case that breaks the guards, with these among the messages."""
    return lambda case: CHANGED.append(pytest.param(case, messages, id=case.__name__)) or case


def unchanged(case):
    """A case that does not."""
    UNCHANGED.append(pytest.param(case, id=case.__name__))
    return case


class Config:
    rate = 0.5

    def __init__(self, scale=1.0):
        self.scale = scale
        self.unread = 0

    def apply(self, x):
        return x * self.scale

    @property
    def double(self):
        return 2 * self.scale

    @staticmethod
    def fixed(x):
        return x + 1

    @classmethod
    def rated(cls, x):
        return x * cls.rate


class Holder:
    def __init__(self, cfg):
        self.cfg = cfg
        self.items = [cfg]
        self.epoch = 0

    def run(self, x):
        return x * self.cfg.scale

    def run_items(self, x):
        for item in self.items:
            x = x * item.scale
        return x

    def __call__(self, x):
        return self.run(x)


class Net(nn.Module):
    gain = 1.0

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.blocks = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])
        self.table = nn.ModuleDict({"a": nn.Tanh(), "b": nn.ReLU()})
        self.drop = nn.Dropout(0.5)
        self.norm = nn.BatchNorm1d(4)
        self.out = nn.Sequential(nn.Linear(4, 2), nn.Sigmoid())
        self.register_buffer("offset", torch.zeros(4))
        self.w = nn.Parameter(torch.ones(4))
        self.scale = 1.0
        self.seen = 0

    def body(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = block(x)
        return self.table["a"](x)

    def forward(self, x):
        return self.out(self.norm(self.drop(self.body(x))) * self.w * self.scale * self.gain + self.offset)
