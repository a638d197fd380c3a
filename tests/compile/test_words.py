"""Guards that look at words of memory in place of Python objects notice every change, and only what stays is kept."""

from __future__ import annotations

import gc
import weakref
from collections import OrderedDict
from types import SimpleNamespace

import numpy as np
import pytest

import eager as torch
import graphc
from eager import nn
from graphc.capture.generated import Names
from graphc.capture.state import words
from graphc.capture.state.places import Cell, DictItem, Inside, Path, RequiresGrad, Table
from graphc.compiling import guards

X = torch.linspace(-1, 1, 12).reshape(4, 3)
PATH = Path("x", "x")


def _turned(p: torch.Tensor) -> None:
    p.grad.mul_(-3)


def scaled():
    """A module with all that a guard may be on, and more of it than is asked one by one; its class is its own."""

    class Scaled(nn.Module):
        factor = 1.0

        def __init__(self):
            super().__init__()
            self.first = nn.Linear(3, 4)
            self.rest = nn.Sequential(
                nn.Tanh(), nn.Linear(4, 4), nn.Dropout(0.5), nn.Sequential(nn.ReLU(), nn.Linear(4, 2))
            )
            self.register_buffer("shift", torch.ones(2))
            self.power, self.scales, self.options = 1, [1.0, 2.0], {"bias": 0.5}
            self.config = SimpleNamespace(deep=SimpleNamespace(gain=1.5))
            self.rest[2].eval()

        def forward(self, x):
            y = self.rest(self.first(x)) * self.factor * self.scales[0] * self.config.deep.gain
            return y**self.power + self.shift + self.options["bias"]

    return Scaled()


def training():
    """A model, its optimizer, and a step with both."""
    torch.manual_seed(0)
    model = scaled()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        loss = (model(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    return model, optimizer, step


def double(module, args, result):
    return result * 2


def other_weight():
    return nn.Parameter(torch.full((4, 3), 0.25))


def state_of(optimizer, model):
    return optimizer.state[model.first.weight]


def reordered(model, optimizer):
    model.rest._modules["0"] = model.rest._modules.pop("0")


def hooked(model, optimizer):
    other = nn.ReLU()
    other.register_forward_hook(double)
    vars(model.rest[3][1]).update(_forward_hooks=other._forward_hooks)


CHANGES = {
    "attribute": lambda m, o: setattr(m, "power", 2),
    "attribute by its dict": lambda m, o: m.__dict__.__setitem__("power", 2),
    "attribute by update": lambda m, o: vars(m).update(power=2),
    "attribute behind the module's back": lambda m, o: object.__setattr__(m, "power", 2),
    "attribute of another type": lambda m, o: vars(m).update(power=True) or m.options.update(bias=1),
    "attribute by dict's own method": lambda m, o: dict.__setitem__(vars(m), "power", 2),
    "attribute by merge": lambda m, o: vars(m).__ior__({"power": 2}),
    "shadowed class attribute": lambda m, o: setattr(m, "factor", 3.0),
    "class attribute": lambda m, o: setattr(type(m), "factor", 3.0),
    "parameter in its table": lambda m, o: m.first._parameters.__setitem__("weight", other_weight()),
    "bias deleted": lambda m, o: m.first.register_parameter("bias", None),
    "buffer in its table": lambda m, o: m._buffers.update(shift=torch.zeros(2)),
    "buffer in place": lambda m, o: m.shift.zero_(),
    "data": lambda m, o: setattr(m.first.weight, "data", torch.ones(4, 3)),
    "data of a moment": lambda m, o: setattr(state_of(o, m)["exp_avg"], "data", torch.ones(4, 3)),
    "frozen": lambda m, o: m.first.weight.requires_grad_(False),
    "submodule of a submodule": lambda m, o: m.rest[3].__setitem__(0, nn.Sigmoid()),
    "submodule in its table": lambda m, o: m.rest._modules.__setitem__("0", nn.Sigmoid()),
    "submodules in another order": reordered,
    "training of one": lambda m, o: m.rest[2].__dict__.update(training=True, p=1.0),
    "hook": lambda m, o: m.rest[3][1].register_forward_hook(double),
    "hook in its table": hooked,
    "hook on a leaf": lambda m, o: m.first.weight.register_hook(lambda g: g * -3),
    "hook after a leaf": lambda m, o: m.first.weight.register_post_accumulate_grad_hook(_turned),
    "forward of an object": lambda m, o: vars(m.rest[0]).update(forward=lambda x: x * 3),
    "forward of a class": lambda m, o: setattr(type(m), "forward", lambda self, x: self.first(x)),
    "code of forward": lambda m, o: setattr(type(m).forward, "__code__", (lambda self, x: self.first(x)).__code__),
    "list in place": lambda m, o: m.scales.__setitem__(0, 3.0),
    "dict in place": lambda m, o: m.options.update(bias=2.5),
    "attribute far inside": lambda m, o: setattr(m.config.deep, "gain", -1.0),
    "object far inside": lambda m, o: setattr(m.config, "deep", SimpleNamespace(gain=-1.0)),
    "rate": lambda m, o: o.param_groups[0].update(lr=0.5),
    "decay": lambda m, o: o.param_groups[0].__setitem__("weight_decay", 0.1),
    "fewer parameters": lambda m, o: o.param_groups[0]["params"].pop(),
    "steps": lambda m, o: state_of(o, m).update(step=torch.tensor(50.0)),
    "steps in place": lambda m, o: state_of(o, m)["step"].fill_(50.0),
    "state dropped": lambda m, o: o.state.clear(),
    "state of one dropped": lambda m, o: o.state.pop(m.first.weight),
    "state loaded": lambda m, o: o.load_state_dict(o.state_dict()),
}  # fmt: skip


def run(change, compiled):
    """Losses before and after a change, and the weights then."""
    model, optimizer, step = training()
    taken = graphc.compile(step) if compiled else step
    losses = [taken(X).item() for _ in range(4)]
    if compiled:
        assert taken._fast_call is not None
    change(model, optimizer)
    losses += [taken(X).item() for _ in range(3)]
    return losses, [p.detach().numpy().copy() for p in model.parameters()]


ON_XLA = {"data", "data of a moment", "frozen", "rate", "steps", "steps in place", "state dropped", "hook on a leaf"}


def cases():
    """Those of tensors on XLA, where their data are its own or lie in packs; the others where they compile quickly."""
    return [
        pytest.param(change, id=name, marks=[] if name in ON_XLA else [pytest.mark.on_numpy])
        for name, change in CHANGES.items()
    ]


@pytest.mark.parametrize("change", cases())
def test_a_change_between_calls_is_seen(change):
    (losses, weights), (expected, wanted) = run(change, True), run(change, False)
    np.testing.assert_allclose(losses, expected, rtol=2e-4, atol=1e-6)
    for a, b in zip(weights, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-4)


def test_what_all_programs_share_is_seen():
    """Hooks on all modules, and the default dtype."""
    _, _, step = training()
    compiled = graphc.compile(step)
    many = graphc.compile(lambda x: (step(x), torch.zeros(2)))
    losses = [compiled(X).item() for _ in range(4)]
    assert [many(X)[1].dtype for _ in range(4)] == [torch.float32] * 4
    handle = nn.modules.module.register_module_forward_hook(lambda module, args, result: result * 0)
    try:
        hooked = compiled(X).item()
    finally:
        handle.remove()
    assert hooked == 0 != losses[-1]
    torch.set_default_dtype(torch.float64)
    try:
        assert many(X)[1].dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    assert many(X)[1].dtype == torch.float32


def test_a_gradient_that_is_there_or_not_is_seen():
    w = torch.ones(3, requires_grad=True)
    step = graphc.compile(lambda x: (x @ w).sum().backward())
    for k in range(6):
        step(X)
        np.testing.assert_allclose(w.grad.numpy(), (k + 1) * X.sum(0).numpy(), rtol=1e-5, atol=1e-6)
    w.grad = None
    for k in range(3):
        step(X)
        np.testing.assert_allclose(w.grad.numpy(), (k + 1) * X.sum(0).numpy(), rtol=1e-5, atol=1e-6)


def guard_of(conditions, least=1):
    """Statements as a call has them, as a function; with the Words in it."""
    names = Names()
    lines = words.lines_by_words(conditions, names, "return False")
    found = [v for v in names._scope.values() if isinstance(v, words.Words)]
    assert len(found) == least
    return names.bind("holds", ["def holds():", *lines, " return True"]), *found


def places(space, kind=DictItem, keys=None):
    return [kind(space, key, PATH) for key in (keys or space)]


needs_words = pytest.mark.skipif(not words.available(), reason="dicts of this Python have no versions")


@needs_words
def test_nothing_is_asked_while_nothing_has_changed(monkeypatch):
    space = {f"k{k}": object() for k in range(20)}
    holds, found = guard_of(places(space))
    assert holds()
    asked = []
    found._walk, sound = lambda: asked.append(1) or sound(), found._walk
    assert [holds() for _ in range(5)] == [True] * 5
    assert not asked
    space["other"] = 1  # means nothing, and is asked for once
    assert [holds() for _ in range(5)] == [True] * 5
    assert len(asked) == 1
    space["k3"] = None
    assert not holds()
    assert not holds()


@needs_words
def test_places_of_a_restless_dict_are_asked_by_themselves():
    quiet, restless = {f"k{k}": object() for k in range(20)}, {"count": 0, "scale": 1.0}
    holds, found = guard_of([*places(quiet), *places(restless, keys=["scale"])])
    size = len(found.order)
    for k in range(3 * words.RESTLESS):
        restless["count"] = k
        assert holds()
    assert len(found.order) == size - 1
    assert found.restless is not None
    restless["scale"] = 2.0
    assert not holds()
    restless["scale"] = 1.0
    assert holds()
    quiet["k0"] = None
    assert not holds()


@needs_words
def test_an_equal_object_in_a_cell_is_not_remembered_by_its_address():
    def closed(value):
        return (lambda: value).__closure__[0]

    cells = [closed(1000.5 + k) for k in range(20)]
    holds, _ = guard_of([Cell(cell, None, PATH) for cell in cells])
    assert holds()
    cells[0].cell_contents = float("1000.5")  # equal, and nobody else holds it
    assert holds()
    for k in range(200):  # one of these may lie where that was
        cells[0].cell_contents = 2000.5 + k
        assert not holds()


@needs_words
def test_the_order_of_an_ordered_dict_is_asked():
    space = OrderedDict((f"k{k}", nn.ReLU()) for k in range(20))
    table, inside = Table(space, None, PATH), Inside(space, None, PATH)
    assert table.words is None
    assert inside.words is None
    holds, _ = guard_of([*places(space), table])
    assert holds()
    space.move_to_end("k0")
    assert not holds()


@needs_words
def test_what_the_words_are_in_stays_there():
    """A namespace that an object no longer has: nothing reads memory that was given back."""

    class Options:
        pass

    options = Options()
    options.scale = 1.0
    known = words.version_of(vars(options))
    freed = weakref.ref(options)
    holds, _ = guard_of([words.Judged(known, lambda name: "True", lambda: True) for _ in range(words.TOGETHER)])
    options.__dict__ = {"scale": 2.0}
    del options, known
    gc.collect()
    assert freed() is None
    assert holds()
    assert holds()


@needs_words
def test_flags_of_tensors_are_asked():
    weights = [torch.ones(2, requires_grad=k % 2 == 0) for k in range(20)]
    holds, _ = guard_of([RequiresGrad(w, None, PATH) for w in weights])
    assert holds()
    for w in weights[:2]:
        w.requires_grad_(not w.requires_grad)
        assert not holds()
        w.requires_grad_(not w.requires_grad)
        assert holds()


def test_without_versions_all_is_asked_as_before(monkeypatch):
    monkeypatch.setattr(words, "available", lambda: False)
    assert DictItem({"a": 1}, "a", PATH).words is None
    for name in ("attribute", "rate", "data", "steps"):
        (losses, _), (expected, _) = run(CHANGES[name], True), run(CHANGES[name], False)
        np.testing.assert_allclose(losses, expected, rtol=2e-4, atol=1e-6)


@needs_words
def test_a_word_that_stands_still_is_caught(monkeypatch):
    """The tests above can fail."""
    still = np.zeros(4, np.int64)

    def lost(space):
        return [words.Word(still.ctypes.data, None, (still,))]

    monkeypatch.setattr("graphc.capture.state.places.version_of", lost)
    monkeypatch.setattr(guards, "version_of", lost)
    with pytest.raises(AssertionError):
        test_a_change_between_calls_is_seen(CHANGES["attribute by its dict"])
