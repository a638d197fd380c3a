"""Modules: the same names, values, texts and errors as PyTorch's."""

from __future__ import annotations

import copy
import operator
import pickle
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import eager
from eager import nn, random
from eager.core.interpreter import Interpreter, interpreting
from eager.core.parameter import Parameter
from eager.core.tensor import Tensor
from tests.eager.tensors import leaf, tensor
from tests.oracle import asked_of_torch, torch_or_skip

Make = Callable[[Any], Any]

MODULES: dict[str, Make] = {
    "linear": lambda n: n.Linear(20, 30),
    "linear without bias": lambda n: n.Linear(3, 4, bias=False),
    "conv": lambda n: n.Conv2d(3, 6, 3, padding=1, stride=2),
    "conv same": lambda n: n.Conv2d(2, 4, (3, 5), padding="same", groups=2, bias=False),
    "conv of other sizes": lambda n: n.Sequential(
        n.Conv2d(1, 2, (3,)), n.Conv2d(1, 2, 3, (2,), padding=(1,)), n.Conv1d(1, 2, (2, 3, 4), padding="same")
    ),
    "conv dilated": lambda n: n.Conv2d(1, 2, 3, dilation=2, padding=(1, 2)),
    "embedding": lambda n: n.Embedding(10, 4),
    "embedding with padding": lambda n: n.Embedding(10, 4, padding_idx=-2),
    "layer norm": lambda n: n.Sequential(n.LayerNorm(5), n.LayerNorm((2, 5), elementwise_affine=False)),
    "sequential": lambda n: n.Sequential(
        n.Linear(4, 8), n.ReLU(), n.Linear(8, 2), n.Softmax(dim=1), n.Dropout(0.3), n.Flatten(), n.Identity(3)
    ),
    "list": lambda n: n.ModuleList([n.Linear(2, 2) for _ in range(3)] + [n.Tanh(), n.ReLU(True), n.ReLU(True)]),
    "nested": lambda n: n.Sequential(
        n.Sequential(n.Conv2d(1, 2, 3), n.MaxPool2d(2), n.AvgPool2d(2, 1, 1)),
        n.ModuleList([n.GELU(), n.GELU("tanh"), n.SiLU(), n.Sigmoid(), n.LogSoftmax(1)]),
        n.ModuleDict({"a": n.Unflatten(1, (2, 3))}),
    ),
    "batch norm": lambda n: n.Sequential(n.BatchNorm1d(3), n.BatchNorm2d(4, affine=False, track_running_stats=False)),
    "more activations": lambda n: n.Sequential(n.LeakyReLU(), n.ELU(0.5, True), n.Softplus()),
    "linear cross entropy": lambda n: n.LinearCrossEntropyLoss(5, 4, out_features=(2, 3), bias=True),
    "losses": lambda n: n.Sequential(n.CrossEntropyLoss(), n.MSELoss(), n.NLLLoss(), n.L1Loss(), n.BCEWithLogitsLoss()),
    "empty": lambda n: n.Sequential(n.Sequential(), n.ModuleList()),
    "attention": lambda n: n.ModuleList(
        [n.MultiheadAttention(4, 2, kdim=k, vdim=v) for k in (None, 4, 3) for v in (None, 4, 5)]
    ),
}


def both(make: Make, seed: int = 0) -> tuple[Any, Any]:
    """The module made with torch.nn and with eager.nn, from the same seed."""
    torch = torch_or_skip()
    torch.manual_seed(seed)
    random.manual_seed(seed)
    return make(torch.nn), make(nn)


@pytest.mark.parametrize("make", MODULES.values(), ids=list(MODULES))
def test_text_names_and_initial_values_are_pytorchs(make: Make):
    theirs, mine = both(make)
    assert repr(mine) == repr(theirs)
    assert [name for name, _ in mine.named_modules()] == [name for name, _ in theirs.named_modules()]
    assert [name for name, _ in mine.named_parameters()] == [name for name, _ in theirs.named_parameters()]
    expected = theirs.state_dict()
    found = mine.state_dict()
    assert list(found) == list(expected)
    for name, value in found.items():
        np.testing.assert_allclose(value.numpy(), expected[name].numpy(), rtol=0, atol=2e-6)  # as normal numbers do


FORWARD: dict[str, tuple[Make, tuple[int, ...]]] = {
    "linear": (lambda n: n.Linear(5, 3), (4, 5)),
    "conv": (lambda n: n.Conv2d(3, 4, 3, padding=1), (2, 3, 6, 6)),
    "conv strided": (lambda n: n.Conv2d(2, 4, 3, stride=2, groups=2, bias=False), (2, 2, 7, 7)),
    "conv same": (lambda n: n.Conv2d(2, 4, 3, padding="same"), (2, 2, 7, 7)),
    "layer norm": (lambda n: n.LayerNorm(5), (4, 5)),
    "max pool": (lambda n: n.MaxPool2d(2), (2, 3, 6, 6)),
    "average pool": (lambda n: n.AvgPool2d(2, 1), (2, 3, 6, 6)),
    "activations": (
        lambda n: n.Sequential(n.Tanh(), n.GELU(), n.SiLU(), n.Sigmoid(), n.LogSoftmax(dim=1), n.Softmax(dim=-1)),
        (3, 4),
    ),
    "more activations": (lambda n: n.Sequential(n.LeakyReLU(0.2), n.ELU(), n.Softplus(2.0)), (3, 4)),
    "batch norm": (lambda n: n.BatchNorm2d(3), (4, 3, 2, 2)),
    "mlp": (lambda n: n.Sequential(n.Flatten(), n.Linear(12, 8), n.ReLU(inplace=True), n.Linear(8, 4)), (3, 3, 4)),
    "unflatten": (lambda n: n.Sequential(n.Unflatten(1, (2, 3)), n.GELU("tanh"), n.Identity()), (4, 6)),
    "dropout": (lambda n: n.Dropout(0.4), (10, 10)),
}  # fmt: skip


@asked_of_torch(("make", "shape"), FORWARD.values(), ids=list(FORWARD))
def test_values_and_gradients_are_pytorchs(make: Make, shape: tuple[int, ...], rng: np.random.Generator):
    torch = torch_or_skip()
    theirs, mine = both(make)
    values = rng.standard_normal(shape).astype(np.float32)
    x, y = torch.tensor(values, requires_grad=True), leaf(values.copy())
    a, b = theirs(x), mine(y)
    np.testing.assert_allclose(b.detach().numpy(), a.detach().numpy(), rtol=1e-5, atol=1e-6)
    (a * a).sum().backward()
    (b * b).sum().backward()
    pairs = [(x, y), *zip(theirs.parameters(), mine.parameters(), strict=True)]
    for expected, found in pairs:
        np.testing.assert_allclose(found.grad.numpy(), expected.grad.numpy(), rtol=1e-4, atol=1e-5)


def test_adaptive_softmax_predicts_each_class_that_is_the_most_probable():
    rng = np.random.default_rng(0)  # with which each class is so for some row
    layer = nn.AdaptiveLogSoftmaxWithLoss(4, 7, [2, 4], div_value=1.0)
    for p in layer.parameters():
        p.data = tensor(2 * rng.standard_normal(tuple(p.shape)).astype(np.float32))
    x = tensor(3 * rng.standard_normal((400, 4)).astype(np.float32))
    found = layer.predict(x).numpy()
    np.testing.assert_array_equal(found, layer.log_prob(x).detach().numpy().argmax(1))
    assert set(found) == set(range(7))


LOSSES: dict[str, tuple[Make, str]] = {
    "cross entropy": (lambda n: n.CrossEntropyLoss(label_smoothing=0.1), "classes"),
    "nll": (lambda n: n.NLLLoss(reduction="sum"), "classes"),
    "mse": (lambda n: n.MSELoss(), "values"),
    "l1": (lambda n: n.L1Loss(reduction="none"), "values"),
    "bce": (lambda n: n.BCEWithLogitsLoss(), "values"),
}


@asked_of_torch(("make", "kind"), LOSSES.values(), ids=list(LOSSES))
def test_losses_are_pytorchs(make: Make, kind: str, rng: np.random.Generator):
    torch = torch_or_skip()
    theirs, mine = both(make)
    values = rng.standard_normal((4, 5)).astype(np.float32)
    target = rng.integers(0, 5, 4) if kind == "classes" else rng.random((4, 5), np.float32)
    x, y = torch.tensor(values, requires_grad=True), leaf(values.copy())
    a, b = theirs(x, torch.tensor(target)), mine(y, tensor(target))
    np.testing.assert_allclose(b.detach().numpy(), a.detach().numpy(), rtol=1e-6)
    a.sum().backward()
    b.sum().backward()
    np.testing.assert_allclose(y.grad.numpy(), x.grad.numpy(), rtol=1e-5, atol=1e-7)


INITIALIZERS: list[tuple[str, tuple[Any, ...]]] = [
    ("uniform_", (-1, 2)),
    ("normal_", (1, 2)),
    ("constant_", (3.0,)),
    ("zeros_", ()),
    ("ones_", ()),
    ("xavier_uniform_", (2.0,)),
    ("xavier_normal_", ()),
    ("kaiming_uniform_", (0.2, "fan_out", "leaky_relu")),
    ("kaiming_normal_", (0, "fan_in", "relu")),
]


@asked_of_torch(("name", "arguments"), INITIALIZERS)
def test_initializers_are_pytorchs(name: str, arguments: tuple[Any, ...]):
    torch = torch_or_skip()
    torch.manual_seed(2)
    random.manual_seed(2)
    theirs, mine = torch.zeros(4, 3, 5, requires_grad=True), leaf(np.zeros((4, 3, 5), np.float32))
    getattr(torch.nn.init, name)(theirs, *arguments)
    assert getattr(nn.init, name)(mine, *arguments) is mine
    assert mine.requires_grad
    np.testing.assert_allclose(mine.detach().numpy(), theirs.detach().numpy(), rtol=0, atol=2e-6)


def load(n: Any, change: Callable[[dict[str, Any]], Any]) -> None:
    module = n.Linear(2, 3)
    values = dict(module.state_dict())
    change(values)
    module.load_state_dict(values)


def before_init(n: Any, value: Any) -> None:
    class Early(n.Module):
        def __init__(self):
            self.attribute = value

    Early()


ERRORS: dict[str, Make] = {
    "missing key": lambda n: load(n, lambda d: d.pop("bias")),
    "unexpected keys": lambda n: load(n, lambda d: d.update(x=1, y=2)),
    "size": lambda n: load(n, lambda d: d.update(weight=d["bias"])),
    "all at once": lambda n: load(n, lambda d: d.update(weight=d.pop("bias"), z=1)),
    "no dict": lambda n: n.Linear(2, 3).load_state_dict(3),
    "module before init": lambda n: before_init(n, n.Linear(1, 1)),
    "parameter before init": lambda n: before_init(n, n.Linear(1, 1).weight),
    "value for a parameter": lambda n: setattr(n.Linear(2, 2), "weight", 3),
    "value for a module": lambda n: setattr(n.Sequential(n.ReLU()), "0", 3),
    "no forward": lambda n: n.Module()(1),
    "dot in a name": lambda n: n.Linear(2, 2).register_parameter("a.b", None),
    "empty name": lambda n: n.Linear(2, 2).register_parameter("", None),
    "name taken": lambda n: n.Linear(2, 2).register_buffer("weight", None),
    "not a module": lambda n: n.Linear(2, 2).add_module("x", 3),
    "dot in a module's name": lambda n: n.Linear(2, 2).add_module("a.b", n.ReLU()),
    "no attribute": lambda n: n.Linear(2, 2).nothing,
    "mode": lambda n: n.Linear(2, 2).train(1),
    "index of a sequence": lambda n: n.Sequential()[0],
    "index of a list": lambda n: n.ModuleList()[0],
    "list of what": lambda n: n.ModuleList(3),
    "probability": lambda n: n.Dropout(2),
    "channels": lambda n: n.Conv2d(3, 2, 1, groups=2),
    "submodule": lambda n: n.Sequential(n.ReLU()).get_submodule("1"),
    "parameter": lambda n: n.Linear(2, 2).get_parameter("x"),
    "padding": lambda n: n.Embedding(2, 2, padding_idx=4),
    "unflattened size": lambda n: n.Unflatten(1, 3),
    "nonlinearity": lambda n: n.init.calculate_gain("x"),
    "fan": lambda n: n.init.xavier_normal_(n.Linear(1, 1).bias),
    "fan mode": lambda n: n.init.kaiming_uniform_(n.Linear(1, 1).weight, mode="x"),
    "device": lambda n: n.Linear(2, 2).cuda(),
}


@asked_of_torch("call", ERRORS.values(), ids=list(ERRORS))
def test_errors_are_pytorchs(call: Make):
    torch = torch_or_skip()
    with pytest.raises(Exception) as expected:
        call(torch.nn)
    with pytest.raises(type(expected.value)) as found:
        call(nn)
    assert str(found.value) == str(expected.value)


PLACES = [slice(0, 1), slice(None, None, 2), slice(5, 1, -1), 0, -1, 2, 5, -5, "a", 1.0]


def replace(container: Any, place: Any) -> None:
    if not isinstance(place, slice):
        container[place] = type(container)()


@asked_of_torch("kind", ["ModuleList", "Sequential"])
@pytest.mark.parametrize("size", [0, 3])
def test_places_in_containers_are_pytorchs(kind: str, size: int):
    def told(n: Any, do: Callable[[Any, Any], Any], place: Any) -> tuple[str, str]:
        container = getattr(n, kind)()
        container.extend(n.Linear(k + 1, k + 1) for k in range(size))
        try:
            return str(do(container, place)), str(container)
        except (IndexError, TypeError) as error:
            return repr(error), str(container)

    for do in (operator.getitem, operator.delitem, replace):
        for place in PLACES:
            assert told(nn, do, place) == told(torch_or_skip().nn, do, place), (do, place)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.register_buffer("count", tensor([1.0, 2.0], np.float32))
        self.register_buffer("scratch", tensor([0.0]), persistent=False)
        self.shared = self.first

    def forward(self, x: Tensor) -> Tensor:
        return self.first(x) * self.count[0]


def test_a_name_stands_for_what_was_assigned_last():
    net = Net()
    net.count = nn.Linear(2, 2)
    assert "count" not in dict(net.named_buffers()) and "count.weight" in net.state_dict()
    net.count = Parameter(tensor([1.0]))
    assert "count" not in dict(net.named_modules()) and net.state_dict()["count"].tolist() == [1.0]
    del net.scratch
    net.register_buffer("scratch", tensor([2.0]))
    assert "scratch" in net.state_dict()  # the one before was not to be saved


def test_batch_norm_keeps_running_statistics(rng: np.random.Generator):
    torch = torch_or_skip()
    theirs, mine = both(lambda n: n.BatchNorm1d(3))
    for _ in range(3):
        x = rng.standard_normal((6, 3)).astype(np.float32)
        theirs(torch.tensor(x))
        mine(tensor(x))
    theirs.eval()
    mine.eval()
    x = rng.standard_normal((6, 3)).astype(np.float32)
    np.testing.assert_allclose(
        mine(tensor(x)).detach().numpy(), theirs(torch.tensor(x)).detach().numpy(), rtol=1e-5, atol=1e-6
    )
    for name, value in theirs.state_dict().items():
        np.testing.assert_allclose(mine.state_dict()[name].numpy(), value.numpy(), rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match=r"expected 2D or 3D input \(got 4D input\)"):
        mine(tensor(np.zeros((1, 3, 1, 1), np.float32)))


def test_members_are_found_once_and_move_between_tables():
    net = Net()
    assert [name for name, _ in net.named_parameters()] == ["first.weight", "first.bias"]
    assert [name for name, _ in net.named_buffers()] == ["count", "scratch"]
    assert "scratch" not in net.state_dict()
    net.count = None
    assert net.count is None
    net.extra = Parameter(tensor([1.0]))
    assert "extra" in dict(net.named_parameters())
    del net.extra
    assert not hasattr(net, "extra")


def test_a_state_dict_that_does_not_fit_changes_nothing():
    net = nn.Linear(2, 3)
    before = net.weight.tolist()
    with pytest.raises(RuntimeError, match="size mismatch for bias"):
        net.load_state_dict({"weight": tensor(np.zeros((3, 2), np.float32)), "bias": tensor(np.zeros(2))})
    assert net.weight.tolist() == before


def test_loading_copies_and_assigning_takes_over():
    source, net = nn.Linear(2, 3), nn.Linear(2, 3)
    weight = net.weight
    assert repr(net.load_state_dict(source.state_dict())) == "<All keys matched successfully>"
    assert net.weight is weight
    assert net.weight.tolist() == source.weight.tolist()
    net.load_state_dict(source.state_dict(), assign=True)
    assert net.weight is not weight
    assert isinstance(net.weight, Parameter)
    incomplete = net.load_state_dict({}, strict=False)
    assert incomplete.missing_keys == ["weight", "bias"]


def test_hooks_see_and_change_what_passes():
    seen = []
    net = nn.Linear(2, 2)
    x = tensor(np.ones((1, 2), np.float32))
    plain = net(x).tolist()
    pre = net.register_forward_pre_hook(lambda module, args: (args[0] * 0,))
    with net.register_forward_hook(lambda module, args, output: seen.append(output.tolist())):
        net(x)
    assert seen == [[net.bias.tolist()]]
    pre.remove()
    pre.remove()
    assert net(x).tolist() == plain


def test_modes_reach_every_module():
    net = nn.Sequential(nn.Dropout(), nn.Sequential(nn.Dropout()))
    net.eval()
    assert not any(module.training for module in net.modules())
    x = tensor(np.ones(5, np.float32))
    assert net(x).tolist() == [1.0] * 5
    assert net.train() is net and net[1][0].training


def test_conversion_keeps_the_parameters_identity():
    net = nn.Linear(2, 2)
    weight = net.weight
    net(tensor(np.ones((1, 2), np.float32))).sum().backward()
    assert net.double() is net
    assert net.weight is weight
    assert (weight._dtype(), weight.grad._dtype()) == (np.float64, np.float64)
    net.zero_grad(set_to_none=False)
    assert weight.grad.tolist() == [[0.0, 0.0], [0.0, 0.0]]
    net.zero_grad()
    assert weight.grad is None


def test_copies_and_pickles_are_independent():
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert other[0].weight is not net[0].weight
        assert other[0].weight.tolist() == net[0].weight.tolist()
        assert other[0].weight.requires_grad


def test_dropout_guards_the_mode_under_a_trace():
    guards = []

    class Tracing(Interpreter):
        def guard(self, getter: Callable[[], Any], value: Any, what: str) -> None:
            guards.append((getter, value))

    layer = nn.Dropout().eval()
    x = tensor(np.ones(3))
    with interpreting(Tracing()):
        layer(x)
    layer.train()
    ((getter, value),) = guards
    assert (getter(), value) == (True, False)


def test_a_mode_of_training_is_the_childrens_own_matter() -> None:
    """LoRA layers merge their weights in `train`; a module above them calls it."""

    class Merging(nn.Linear):
        merged = False

        def train(self, mode: bool = True) -> Merging:
            self.merged = not mode
            return super().train(mode)

    model = nn.Sequential(nn.Sequential(Merging(2, 2)), nn.Dropout())
    assert model.eval()[0][0].merged and not model[1].training
    assert not model.train()[0][0].merged and model[1].training


def test_tables_of_hooks_print_as_ordered_dicts() -> None:
    layer = nn.Linear(1, 1)
    layer.register_forward_hook(print)
    assert (
        str(layer._forward_hooks).startswith("OrderedDict([(")
        and str(nn.Linear(1, 1)._forward_hooks) == "OrderedDict()"
    )


def test_a_module_without_init_has_no_parameters_attribute() -> None:
    class Forgot(nn.Module):
        def __init__(self) -> None:
            self.size = 3

    with pytest.raises(AttributeError, match="'Forgot' object has no attribute '_parameters'"):
        list(Forgot().parameters())


def test_functions_that_pytorch_writes_in_cpp_are_no_methods_of_a_module():
    class Layer(nn.Module):
        activation, product, softened = eager.relu, eager.matmul, nn.functional.softplus
        bound = nn.functional.relu6  # written in Python: a method, there as here

        def own(self, x: Tensor) -> Tensor:
            return self.softened(self.product(x, self.activation(x)))

    layer, x = Layer(), eager.eye(2)
    assert layer.own(x).tolist() == nn.functional.softplus(x).tolist()
    with pytest.raises(TypeError):
        layer.bound(x)  # type: ignore[arg-type]


@asked_of_torch("training", [True, False])
def test_instance_norm_keeps_statistics_of_another_dtype(training: bool):
    def values(module: Any) -> list[Any]:
        norm = module.nn.InstanceNorm1d(2, track_running_stats=True).train(training)
        x = (module.arange(12.0) * 1.37).reshape(2, 2, 3).double()
        return [norm(x).reshape(-1).tolist(), norm.running_mean.tolist(), norm.running_var.tolist()]

    for mine, theirs in zip(values(eager), values(torch_or_skip()), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)


def test_a_parameter_dict_sorts_a_plain_dict_and_no_other() -> None:
    """As PyTorch does: the order of `parameters()`, and so of an optimizer's state, depends on it."""

    parts = {name: tensor(1.0) for name in "bca"}
    made = nn.ParameterDict(parts)
    made.update({"e": tensor(1.0), "d": tensor(1.0)})
    assert [*dict(made.named_parameters())] == [*"abcde"]
    given = [nn.ParameterDict(OrderedDict(parts)), nn.ParameterDict(parts.items()), made.fromkeys("bca", tensor(1.0))]
    for each in (*given, given[0].copy()):
        assert [*each] == [*"bca"]
