"""Tensors, modules and optimizers that change.

A case is a generator: it yields a function, or a function and its arguments, and then changes something.
"""

from __future__ import annotations

import types

import pytest

import eager as torch
from eager import nn
from tests.capture.changes import CHANGED, Net, X, changed


@changed("`w` is another tensor")
def tensor_rebound():
    w = torch.ones(3)
    yield lambda x: x * w
    w = torch.ones(3)


@changed("`ws[1]` is another tensor")
def tensor_in_a_list():
    ws = [torch.ones(3), torch.ones(3)]
    yield lambda x: x * ws[0] + ws[1]
    ws[1] = torch.zeros(3)


@changed("`d['w']` is another tensor")
def tensor_in_a_dict():
    d = {"w": torch.ones(3)}
    yield lambda x: x * d["w"]
    d["w"] = torch.zeros(3)


@changed("`w.requires_grad` changed from True to False")
def tensor_frozen():
    w = torch.ones(3, requires_grad=True)
    yield lambda x: x * w
    w.requires_grad_(False)


@changed("`state.h` is another tensor")
def tensor_attribute():
    state = types.SimpleNamespace(h=torch.zeros(3))
    yield lambda x: x + state.h
    state.h = torch.ones(3)


@changed("`w` changed from a tensor to 2.0")
def tensor_becomes_number():
    w = torch.ones(3)
    yield lambda x: x * w
    w = 2.0


def net_case(change, *messages):
    """Two cases: the module itself, and a function that calls it."""

    def module():
        net = Net()
        yield net
        change(net)

    def function():
        net = Net()
        yield lambda x: net(x)
        change(net)

    name = change.__name__
    CHANGED.append(pytest.param(module, [m.replace("NET", "self") for m in messages], id=f"{name}-module"))
    CHANGED.append(pytest.param(function, [m.replace("NET", "net") for m in messages], id=f"{name}-function"))


def net_changed(*messages):
    return lambda change: net_case(change, *messages)


@net_changed("`NET.scale` changed from 1.0 to 2.0")
def module_attribute(net):
    net.scale = 2.0


@net_changed("`NET.gain` was added")
def module_class_attribute_shadowed(net):
    net.gain = 2.0


@net_changed("`NET.training` changed from True to False", "`NET.blocks.0.training` changed from True to False")
def module_mode(net):
    net.eval()


@net_changed("`NET.drop.training` changed from True to False")
def mode_of_a_child(net):
    net.drop.eval()


@net_changed("`NET.drop.p` changed from 0.5 to 0.1")
def dropout_rate(net):
    net.drop.p = 0.1


@net_changed("`NET.norm.momentum` changed from 0.1 to 0.2")
def momentum(net):
    net.norm.momentum = 0.2


@net_changed("`NET.norm.eps` changed from 1e-05 to 0.001")
def epsilon(net):
    net.norm.eps = 1e-3


@net_changed("`NET.first` is another Linear")
def child_replaced(net):
    net.first = nn.Linear(3, 4)


@net_changed("`NET.first` changed from a Linear to a Identity")
def child_of_another_class(net):
    net.first = nn.Identity()


@net_changed("`NET.out.1` changed from a Sigmoid to a Tanh")
def child_of_a_sequence(net):
    net.out[1] = nn.Tanh()


@net_changed("`NET.out.2` was added")
def child_appended(net):
    net.out.append(nn.Tanh())


@net_changed("`NET.out.1` was deleted")
def child_removed(net):
    del net.out[1]


@net_changed("`NET.blocks.2` was added")
def block_appended(net):
    net.blocks.append(nn.Linear(4, 4))


@net_changed("`NET.blocks.0` is another Linear")
def blocks_exchanged(net):
    net.blocks[0], net.blocks[1] = net.blocks[1], net.blocks[0]


@net_changed("`NET.table.a` changed from a Tanh to a ReLU")
def entry_of_a_module_dict(net):
    net.table["a"] = nn.ReLU()


@net_changed("`NET.w` is another Parameter")
def parameter_replaced(net):
    net.w = nn.Parameter(torch.zeros(4))


@net_changed("`NET.first.weight` is another Parameter")
def parameter_of_a_child(net):
    net.first.weight = nn.Parameter(torch.zeros(4, 3))


@net_changed("`NET.first.bias` changed from a Parameter to None")
def bias_removed(net):
    net.first.bias = None


@net_changed("`NET.first.weight.requires_grad` changed from True to False")
def parameter_frozen(net):
    net.first.weight.requires_grad_(False)


@net_changed("`NET.offset` is another tensor")
def buffer_replaced(net):
    net.offset = torch.ones(4)


@net_changed("`NET.body` was added")
def method_of_a_module_replaced(net):
    net.body = lambda x: x


@net_changed("`NET.forward` was added")
def forward_replaced(net):
    net.forward = lambda x: x


@net_changed("`NET.first.forward` was added")
def forward_of_a_child_replaced(net):
    net.first.forward = lambda x: x


@net_changed("`NET.first._forward_hooks` was added")
def hook_registered(net):
    net.first.register_forward_hook(lambda module, args, out: out * 2)


@net_changed("`NET._forward_pre_hooks` was added")
def pre_hook_registered(net):
    net.register_forward_pre_hook(lambda module, args: args)


@changed("`scale` changed from 1.0 to 2.0")
def closure_of_a_hook():
    scale = 1.0
    layer = nn.Linear(3, 3)
    layer.register_forward_hook(lambda module, args, out: out * scale)
    yield lambda x: layer(x)
    scale = 2.0


@changed("`layer.gain` changed from 1.0 to 2.0")
def hook_that_reads_its_module():
    layer = nn.Linear(3, 3)
    layer.gain = 1.0
    layer.register_forward_hook(lambda module, args, out: out * module.gain)
    yield lambda x: layer(x)
    layer.gain = 2.0


@changed("`net.scale` changed from 1.0 to 2.0")
def module_as_argument():
    net = Net()
    yield (lambda x, net: net(x)), (X, net)
    net.scale = 2.0


@changed("`nets[1].scale` changed from 1.0 to 2.0")
def modules_in_a_list():
    nets = [Net(), Net()]
    yield lambda x: sum(net(x) for net in nets)
    nets[1].scale = 2.0


@changed("`layer.padding_mode` changed from 'zeros' to 'circular'")
def settings_of_a_layer():
    layer = nn.Conv2d(1, 1, 3)
    yield (lambda x: layer(x)), (torch.ones(1, 1, 5, 5),)
    layer.padding_mode = "circular"


@changed("`layer.extra` changed from 1.0 to 2.0")
def subclass_of_a_layer():
    class Scaled(nn.Linear):
        def __init__(self):
            super().__init__(3, 3)
            self.extra = 1.0

        def forward(self, x):
            return super().forward(x) * self.extra

    layer = Scaled()
    yield lambda x: layer(x)
    layer.extra = 2.0


@changed("`opt.param_groups[0]['lr']` changed from 0.1 to 0.01")
def learning_rate_that_is_read():
    w = nn.Parameter(torch.ones(3))
    opt = torch.optim.SGD([w], lr=0.1)
    yield lambda x: x * opt.param_groups[0]["lr"]
    opt.param_groups[0]["lr"] = 0.01


@changed("`opt.param_groups[0]['params'][0]` is another Parameter")
def parameter_of_an_optimizer():
    w = nn.Parameter(torch.ones(3))
    opt = torch.optim.SGD([w], lr=0.1)

    def f(x):
        opt.step()
        return x

    yield f
    opt.param_groups[0]["params"][0] = nn.Parameter(torch.ones(3))


@changed("`opt` is another Adam")
def optimizer_replaced():
    w = nn.Parameter(torch.ones(3))
    opt = torch.optim.Adam([w])

    def f(x):
        opt.step()
        return x

    yield f
    opt = torch.optim.Adam([w])


@changed("`torch.get_default_dtype()` changed from dtype('float32') to dtype('float64')")
def default_dtype():
    yield lambda x: torch.zeros(2, 3)
    torch.set_default_dtype(torch.float64)
