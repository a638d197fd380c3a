"""Changes that do not matter.

A case is a generator: it yields a function, or a function and its arguments, and then changes something.
"""

from __future__ import annotations

import copy
import math
import types

import numpy as np

import eager as torch
from eager import nn
from tests.capture.changes import Config, Holder, Net, X, unchanged

SCALE = 2.0
NAME = "relu"
LIST = [1.0, 2.0]
TABLE = {"a": {"b": 2.0}, "other": 1}


@unchanged
def unrelated_global():
    yield lambda x: x * SCALE
    globals()["NAME"] = "other"
    globals()["BRAND_NEW"] = 1


@unchanged
def equal_float_rebound():
    scale = float("1.5")
    yield lambda x: x * scale
    scale = float("1.50")


@unchanged
def nan_rebound():
    scale = float("nan")
    yield lambda x: x * scale
    scale = float("nan")


@unchanged
def equal_string_rebound():
    mode = "re" + str(1)
    yield lambda x: x if mode else -x
    mode = "re" + str(1)


@unchanged
def equal_big_integer():
    big = 10**30
    yield lambda x: x * float(big)
    big = 10**29 * 10


@unchanged
def equal_list_rebound():
    global LIST
    yield lambda x: x * sum(LIST)
    LIST = [float("1"), 2.0]


@unchanged
def equal_nest_rebound():
    global TABLE
    yield lambda x: x * TABLE["a"]["b"]
    TABLE = copy.deepcopy(TABLE)


@unchanged
def equal_tuple_of_the_same_tensors():
    w = torch.ones(3)
    ws = (w, w)
    yield lambda x: x * ws[0] + ws[1]
    ws = (w, w)


@unchanged
def equal_array_rebound():
    a = np.array([1.0, math.nan])
    yield lambda x: x * float(a[0])
    a = a.copy()


@unchanged
def element_written_with_an_equal():
    xs = [1.5, 2.5]
    yield lambda x: x * sum(xs)
    xs[0] = float("1.5")


@unchanged
def unread_entry_of_a_dict():
    yield lambda x: x * TABLE["a"]["b"]
    TABLE["other"] = 7
    TABLE["new"] = 8


@unchanged
def unread_attribute():
    cfg = Config()
    yield lambda x: x * cfg.scale
    cfg.unread = 7
    cfg.brand_new = 8


@unchanged
def unread_attribute_of_self():
    holder = Holder(Config())
    yield holder.run
    holder.epoch += 1
    holder.items.append(1)


@unchanged
def attribute_of_another_instance():
    cfg, other = Config(), Config()
    yield lambda x: x * cfg.scale
    other.scale = 9.0


@unchanged
def same_named_method_and_counter():
    class Trainer:
        def __init__(self):
            self.w = nn.Parameter(torch.ones(3))
            self.opt = torch.optim.SGD([self.w], lr=0.1)
            self.step = 0

        def train(self, x):
            self.opt.zero_grad()
            self.opt.step()
            return x * self.w

    trainer = Trainer()
    yield trainer.train
    trainer.step += 1


@unchanged
def counter_in_a_method_that_is_not_called():
    class Trainer:
        def __init__(self):
            self.epoch = 0

        def report(self):
            return self.epoch

        def run(self, x):
            return x * 2

    trainer = Trainer()
    yield trainer.run
    trainer.epoch += 1


@unchanged
def other_class_attribute():
    class Local(Config):
        pass

    cfg = Local()
    yield lambda x: x * cfg.scale
    Local.rate = 0.75
    Local.more = 1


@unchanged
def unread_name_of_a_module():
    config = types.ModuleType("config")
    config.scale, config.other = 1.0, 2.0
    yield lambda x: x * config.scale
    config.other = 3.0


@unchanged
def values_of_a_tensor():
    w = torch.ones(3)
    yield lambda x: x * w
    w.mul_(2)
    w.zero_()


@unchanged
def gradient_of_a_tensor():
    w = torch.ones(3, requires_grad=True)
    yield lambda x: x * w
    (w * 2).sum().backward()


@unchanged
def training_of_the_parameters():
    net = Net()
    opt = torch.optim.Adam(net.parameters())
    yield lambda x: net(x)
    net(X).sum().backward()
    opt.step()


@unchanged
def unread_attribute_of_a_module():
    net = Net()
    yield lambda x: net(x)
    net.seen += 1
    net.brand_new = "x"


@unchanged
def other_module():
    net, other = Net(), Net()
    yield lambda x: net(x)
    other.eval()
    other.scale = 3.0


@unchanged
def state_dict_loaded():
    net, other = Net(), Net()
    yield lambda x: net(x)
    net.load_state_dict(other.state_dict())


@unchanged
def mode_set_to_what_it_was():
    net = Net()
    yield lambda x: net(x)
    net.eval()
    net.train()


@unchanged
def tensor_arguments():
    batch = {"x": X, "y": X}
    yield (lambda batch: batch["x"] + batch["y"]), (batch,)
    batch["x"] = torch.zeros(2, 3)


@unchanged
def tensor_in_a_list_argument():
    xs = [X, X]
    yield (lambda xs: xs[0] + xs[1]), (xs,)
    xs[0] = torch.zeros(2, 3)


@unchanged
def local_names_like_globals():
    def f(x):
        SCALE = 3.0
        return x * SCALE

    yield f
    globals()["SCALE"] = 9.0


@unchanged
def function_that_is_only_defined():
    scale = 1.0

    def never(x):
        return x * scale

    yield lambda x: x * 2
    scale = never


@unchanged
def cell_of_another_function():
    a, b = 1.0, 2.0
    yield lambda x: x * a
    b = a + b


@unchanged
def list_that_is_only_appended_to():
    history = []

    def f(x):
        history.append(0.0)
        return x

    yield f
    history.append(1.0)


@unchanged
def attribute_that_is_only_written():
    cfg = Config()

    def f(x):
        cfg.last = 1.0
        return x

    yield f
    cfg.last = 2.0


@unchanged
def entry_that_is_only_written():
    stats = {"loss": 0.0}

    def f(x):
        stats["loss"] = 1.0
        return x

    yield f
    stats["loss"] = 2.0


@unchanged
def step_of_an_optimizer():
    net = nn.Linear(3, 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

    def f(x):
        opt.zero_grad()
        loss = net(x).sum()
        loss.backward()
        opt.step()
        return loss

    yield f
    f(X)


@unchanged
def library_settings():
    yield lambda x: x * math.pi
    np.set_printoptions(precision=8)


@unchanged
def bound_method_taken_again():
    cfg = Config()
    holder = types.SimpleNamespace(run=cfg.apply)
    yield lambda x: holder.run(x)
    holder.run = cfg.apply


@unchanged
def counter_with_the_name_of_a_method_of_an_argument():
    class Trainer:
        def __init__(self):
            self.opt = torch.optim.SGD([nn.Parameter(torch.ones(3))], lr=0.1)
            self.step = 0

        def train(self, x):
            self.opt.step()
            return x

    trainer = Trainer()
    yield Trainer.train, (trainer, X)
    trainer.step += 1


@unchanged
def counter_with_the_name_of_a_method_of_a_module():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 3)
            self.mean = 0

        def forward(self, x):
            return self.layer(x).mean()

    model = Model()
    yield model
    model.mean += 1


@unchanged
def string_methods_are_no_reflection():
    cfg = Config()

    def use(c, x):
        return x * c.scale * len("a-b".replace("-", "")) * LIST.copy()[0]

    yield lambda x: use(cfg, x)
    cfg.unread += 1


@unchanged
def parameters_registered_again():
    net = nn.Linear(3, 3)
    yield lambda x: net(x)
    bias = net._parameters.pop("bias")
    net.bias = bias
