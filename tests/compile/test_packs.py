"""State in packs is seen, written, shared and kept as state in eager mode is, between calls and by several programs."""

from __future__ import annotations

import copy
import gc
import tracemalloc
import warnings
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import eager as torch
import graphc
from eager import nn
from eager.core.stand_ins import Deferred
from eager.nn import functional as F
from graphc.execution.host_packs import Part, StatePack

DEPTH, WIDTH = 4, 5
OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.05),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=0.01),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.01),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.05),
}


class World:
    """A model with its optimizer, and a step that trains it."""

    def __init__(self, compiled: bool, optimizer: str = "adam", norm: bool = False, device: str = "cpu"):
        torch.manual_seed(0)
        layers: list[nn.Module] = []
        for _ in range(DEPTH):
            layers += [nn.Linear(WIDTH, WIDTH, bias=not norm), *([nn.BatchNorm1d(WIDTH)] if norm else []), nn.Tanh()]
        self.model = nn.Sequential(*layers).to(device)
        self.first = next(iter(self.model.parameters()))
        self.opt = OPTIMIZERS[optimizer](self.model.parameters())
        self.step: Any = graphc.compile(self._step) if compiled else self._step
        self.seen: list[Any] = []  # what a user keeps between steps
        self.data = torch.randn(16, WIDTH).to(device), torch.randn(16, WIDTH).to(device)

    def _step(self, x, y):
        self.opt.zero_grad()
        loss = F.mse_loss(self.model(x), y)
        loss.backward()
        self.opt.step()
        return loss

    def train(self, size: int = 16) -> float:
        return self.step(self.data[0][:size], self.data[1][:size]).item()

    def all(self) -> list[np.ndarray]:
        """All that a user can see, without changing how it lies."""
        state = [v for s in self.opt.state.values() for v in s.values() if isinstance(v, torch.Tensor)]
        tensors = [*self.model.parameters(), *self.model.buffers(), *state]
        grads = [p.grad for p in self.model.parameters() if p.grad is not None]
        return [copy.copy(np.asarray(t._d if isinstance(t._d, np.ndarray) else t._d.array)) for t in (*tensors, *grads)]


def reads(world: World) -> Any:
    return [p.sum().item() for p in world.model.parameters()]


def writes(world: World) -> Any:
    with torch.no_grad():
        world.first.mul_(0.9)
        list(world.model.parameters())[-1].zero_()


def replaces_data(world: World) -> Any:
    world.first.data = torch.ones(WIDTH, WIDTH, device=world.first.device) * 0.1


def sees_by_a_view(world: World) -> Any:
    if not world.seen:
        world.seen.append(world.first.detach())
    return world.seen[0].sum().item()


def writes_by_a_view(world: World) -> Any:
    if not world.seen:
        world.seen.append(world.first.detach()[1:3])
    world.seen[0].add_(0.01)
    return world.first.sum().item()


def sees_by_numpy(world: World) -> Any:
    if not world.seen:
        world.seen.append(world.first.detach().cpu().numpy())
    return world.seen[0].sum().item()


def keeps_gradients(world: World) -> Any:
    world.seen.append(world.first.grad)
    return [g.sum().item() for g in world.seen]


def keeps_a_gradients_view(world: World) -> Any:
    world.seen.append(world.first.grad[0])
    return [g.sum().item() for g in world.seen]


def clears_gradients(world: World) -> Any:
    world.opt.zero_grad()
    assert world.first.grad is None


def scales_a_gradient(world: World) -> Any:
    world.first.grad.mul_(2)
    return world.first.grad.sum().item()


def saves_and_loads(world: World) -> Any:
    world.seen.append(copy.deepcopy(world.model.state_dict()))
    if len(world.seen) == 3:
        world.model.load_state_dict(world.seen[0])


def reloads_the_optimizer(world: World) -> Any:
    state = copy.deepcopy(world.opt.state_dict())
    world.opt.load_state_dict(state)


def changes_one_step_count(world: World) -> Any:
    if not world.seen:
        world.seen.append(None)
        world.opt.state[world.first]["step"].add_(5)


def freezes_one(world: World) -> Any:
    if not world.seen:
        world.seen.append(world.first.requires_grad_(False))


def evaluates(world: World) -> Any:
    if not world.seen:
        world.seen.append(graphc.compile(lambda x: world.model(x).sum()) if world.step is not world._step else None)
    with torch.no_grad():
        x = world.data[0]
        return (world.seen[0](x) if world.seen[0] else world.model(x).sum()).item()


def trains_on_less(world: World) -> Any:
    return world.train(7)


def trains_by_hand(world: World) -> Any:
    return world._step(*world.data).item()


def backward_alone(world: World) -> Any:
    loss = F.mse_loss(world.model(world.data[0]), world.data[1])
    loss.backward()
    return world.first.grad.sum().item()


def looks_at_all(world: World) -> Any:
    return [p.grad.abs().max().item() for p in world.model.parameters()] + [repr(world.first)[:9]]


def clones(world: World) -> Any:
    world.seen.append([p.clone() for p in world.model.parameters()])
    return world.seen[0][0].sum().item()


HABITS = [writes, sees_by_a_view, keeps_gradients, changes_one_step_count, freezes_one, evaluates]
RARER = [
    reads, replaces_data, writes_by_a_view, sees_by_numpy, keeps_a_gradients_view, clears_gradients, scales_a_gradient,
    saves_and_loads, reloads_the_optimizer, trains_on_less, trains_by_hand, backward_alone, looks_at_all, clones,
]  # fmt: skip
DEEP = [pytest.param(habit, marks=pytest.mark.deep) for habit in RARER]


def packs_of(world: World) -> Any:
    return world.step._latest.runner.packs


def equal(a: World, b: World) -> None:
    for x, y in zip(a.all(), b.all(), strict=True):
        np.testing.assert_allclose(y, x, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("device", ["cpu", "xla:0"])
@pytest.mark.parametrize("habit", [*HABITS, *DEEP], ids=lambda f: f.__name__)
def test_what_users_do_between_steps(habit, device):
    worlds = [World(compiled, device=device) for compiled in (False, True)]
    for _ in range(5):
        eager, compiled = ((w.train(), habit(w)) for w in worlds)
        for a, b in zip(_flat(eager), _flat(compiled), strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-5) if not isinstance(a, str) else None
    equal(*worlds)
    if habit is not freezes_one:
        assert packs_of(worlds[1]) is not None


def _flat(x: Any) -> list[Any]:
    return [v for part in x for v in _flat(part)] if isinstance(x, (list, tuple)) else [] if x is None else [x]


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("norm", [False, pytest.param(True, marks=pytest.mark.deep)])
@pytest.mark.parametrize("device", ["cpu", pytest.param("xla:0", marks=pytest.mark.deep)])
def test_every_optimizer(optimizer, norm, device):
    worlds = [World(compiled, optimizer, norm, device) for compiled in (False, True)]
    for _ in range(6):
        np.testing.assert_allclose(*(w.train() for w in worlds), rtol=1e-4)
    assert packs_of(worlds[1]) is not None
    first = worlds[1].first._d
    assert isinstance(first, Part) if device == "cpu" else first.memory.pack is not None
    equal(*worlds)


@pytest.mark.parametrize("optimizer", [o for o in OPTIMIZERS if not o.startswith("adam")])
@pytest.mark.parametrize("device", ["cpu", pytest.param("xla:0", marks=pytest.mark.deep)])
def test_a_model_that_is_converted_between_steps(optimizer, device):
    worlds = [World(compiled, optimizer, device=device) for compiled in (False, True)]
    for dtype in (torch.float32, torch.float64, torch.float32):
        for w in worlds:
            w.model.to(dtype)
            w.data = tuple(t.to(dtype) for t in w.data)
        for _ in range(2):
            np.testing.assert_allclose(*(w.train() for w in worlds), rtol=1e-4)
            assert {p.grad.dtype for p in worlds[1].model.parameters()} == {dtype}
    equal(*worlds)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("optimizer", ["Adam", "AdamW", "NAdam", "RAdam", "Adamax"])
@pytest.mark.on_numpy
def test_averages_of_gradients_are_not_of_another_dtype(optimizer, compiled):
    world = World(compiled)
    world.opt = getattr(torch.optim, optimizer)(world.model.parameters())
    world.train()
    world.model.double()
    world.data = tuple(t.double() for t in world.data)
    with pytest.raises(RuntimeError, match=r"^expected dtype float for `end` but got dtype double"):
        world.train()


@pytest.mark.parametrize("device", ["cpu", "xla:0"])
def test_a_step_is_one_program_for_good(device):
    """Nothing is gathered, and nothing compiled, once the state lies in its packs."""
    world = World(True, device=device)
    for _ in range(3):
        world.train()
    packs, parts = packs_of(world), [t._d for t in packs_of(world).members]
    calls: list[Any] = []
    packs.gather = calls.append
    for _ in range(3):
        world.train()
    assert [t._d for t in packs.members] == parts and not calls
    assert len(world.step._log) == 1


def test_numbers_that_differ_make_another_program():
    world = World(True)
    world.train()
    world.opt.state[world.first]["step"].add_(5)
    world.train()
    assert "numbers that were equal differ" in world.step._log


def place(p: torch.Tensor) -> None:
    """Move it as a program for a device leaves it."""
    array = jax.device_put(p.detach().numpy(), jax.devices()[0])
    p._d = Deferred(array, array.shape, array.dtype)


def test_state_on_a_chosen_device_stays_there():
    world = World(True)
    for p in world.model.parameters():
        place(p)
    assert world.first._d.array.committed
    world.train()
    assert not [p for p in world.model.parameters() if isinstance(p._d, Part)]


def test_state_that_is_moved_to_a_device_leaves_its_pack():
    world, eager = World(True), World(False)
    for w in (world, eager):
        w.train()
    place(world.first)
    np.testing.assert_allclose(world.train(), eager.train(), rtol=1e-5)
    assert "state was moved to another device" in world.step._log
    np.testing.assert_allclose(world.train(), eager.train(), rtol=1e-5)


def test_programs_of_numpy_train_the_same_state():
    worlds = [World(compiled) for compiled in (False, True)]
    on_numpy = graphc.compile(worlds[1]._step, backend="numpy")
    for k in range(6):
        x, y = worlds[0].data
        expected = worlds[0]._step(x, y).item()
        got = (on_numpy if k % 3 == 1 else worlds[1].step)(x, y).item()
        np.testing.assert_allclose(got, expected, rtol=1e-4)
    equal(*worlds)


def test_members_are_arguments():
    world = World(True)
    world.train()
    total = {backend: graphc.compile(lambda p: (p * 2).sum(), backend=backend) for backend in ("jax", "numpy")}
    for p in world.model.parameters():
        before = (p.detach().clone() * 2).sum().item()
        world.train()
        world.train()
        for f in total.values():
            now = f(p).item()
            np.testing.assert_allclose(now, (p.detach() * 2).sum().item(), rtol=1e-5, atol=1e-6)
            assert now != before


def test_a_look_at_one_copies_only_that():
    """Of a large pack: each of many small tensors is read without the rest."""
    pack = StatePack([torch.zeros(2) for _ in range(4000)], False)
    whole = jax.numpy.arange(8000.0)
    pack.tensor._d = Deferred(whole, whole.shape, whole.dtype)
    tracemalloc.start()
    try:
        values = pack.parts[-1].values()
        assert tracemalloc.get_traced_memory()[1] < 0.5 * whole.nbytes
    finally:
        tracemalloc.stop()
    assert values.base is None
    assert values.tolist() == [7998, 7999]


def test_explain_says_what_lies_where():
    world = World(True)
    world.train()
    said = str(world.step.explain())
    assert f"{2 * DEPTH} tensors, side by side" in said and f"{2 * DEPTH} equal numbers" in said


@pytest.mark.parametrize("device", ["cpu", "xla:0"])
def test_programs_share_packs(device):
    """Of a batch of another size: the state is not moved to and fro."""
    world = World(True, device=device)
    world.train()
    parts = [t._d for t in packs_of(world).members]
    world.train(7)
    assert len(world.step._log) == 2
    assert [t._d for t in packs_of(world).members] == parts


@pytest.mark.parametrize("device", ["cpu", "xla:0"])
def test_gradients_are_the_same_tensors_while_nobody_has_them(device):
    world = World(True, device=device)
    world.train()
    number = id(world.first.grad)
    world.train()
    assert id(world.first.grad) == number
    world.train(7)  # by another program
    assert id(world.first.grad) == number
    kept = world.first.grad
    value = kept.clone()
    world.train()
    assert world.first.grad is not kept
    assert torch.equal(kept, value)


def test_a_failing_check_leaves_all_as_it_was():
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(DEPTH)))
    opt = torch.optim.Adam(model.parameters())

    @graphc.compile
    def step(x, i):
        opt.zero_grad()
        model(x)[i].sum().backward()
        opt.step()

    x = torch.randn(3, WIDTH)
    for _ in range(3):
        step(x, torch.tensor([0, 2]))
    before = [p.detach().clone() for p in model.parameters()]
    counts = [s["step"].item() for s in opt.state.values()]
    step(x, torch.tensor([0, 1]))
    after = [p.detach().clone() for p in model.parameters()]
    with pytest.raises(IndexError):
        step(x, torch.tensor([0, 3]))
    assert all(torch.equal(a, p) for a, p in zip(after, model.parameters(), strict=True))
    assert [s["step"].item() for s in opt.state.values()] == [c + 1 for c in counts]
    assert not torch.equal(before[0], after[0])
    step(x, torch.tensor([0, 2]))


def test_strict_programs_have_none():
    world = World(False)
    world.step = graphc.compile(world._step, strict=True)
    world.train()
    assert packs_of(world) is None


def test_views_of_one_memory_have_none():
    """Parameters that are parts of one array stay that."""
    whole = torch.zeros(8)
    parts = [whole[2 * k : 2 * k + 2] for k in range(4)]

    @graphc.compile
    def step(g):
        for p in parts:
            p.add_(g.sum())

    for _ in range(3):
        step(torch.ones(2))
    assert whole.tolist() == [6.0] * 8


@pytest.mark.on_numpy
@pytest.mark.parametrize("held", [False, True])
def test_memory_is_written_only_where_somebody_else_sees_it(held):
    """What `randn` returns is an array that was reshaped: another array owns the memory, which nobody holds."""
    w = torch.randn(8, 4)
    first = w._d
    owner = first.base if held else None
    del first
    memory = w._d.ctypes.data

    @graphc.compile
    def step():
        w.mul_(0.5)

    for _ in range(3):
        step()
    if owner is None:
        assert w._d.__class__ is not np.ndarray or w._d.ctypes.data != memory
    else:
        np.testing.assert_array_equal(owner.reshape(8, 4), w.numpy())


def test_tied_parameters():
    losses = []
    for compiled in (False, True):
        torch.manual_seed(0)
        model = nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(DEPTH)))
        model[3].weight = model[0].weight
        opt = torch.optim.Adam(model.parameters(), lr=0.01)

        def step(x, model=model, opt=opt):
            opt.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            opt.step()
            return loss

        run = graphc.compile(step) if compiled else step
        x = torch.randn(8, WIDTH)
        losses.append([run(x).item() for _ in range(5)])
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-5)


def test_nothing_is_kept_alive():
    world = World(True)
    world.train()
    pack = packs_of(world)._packs[0]
    key = [k for k, v in graphc.execution.host_packs._known.items() if v is pack]
    assert key
    del pack, world
    gc.collect()
    assert key[0] not in graphc.execution.host_packs._known


def test_copies_are_apart():
    world = World(True)
    world.train()
    other = copy.deepcopy(world.model)
    value = next(iter(other.parameters())).detach().clone()
    world.train()
    assert torch.equal(next(iter(other.parameters())), value)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not torch.equal(world.first, value)


class Shortened(World):
    """A world whose layers are left out at random, in both halves: numbers are drawn after Python has decided."""

    def _step(self, x, y):
        self.opt.zero_grad()
        layers = list(self.model)
        for part in (layers[:DEPTH], layers[DEPTH:]):
            for layer, left_out in zip(part, torch.rand(len(part)) < 0.15, strict=True):
                x = x if left_out else layer(x)
        loss = F.mse_loss(F.dropout(x, 0.1) + self.first.sum(), y)
        loss.backward()
        self.opt.step()
        return loss


@pytest.mark.filterwarnings("ignore:_step is traced:UserWarning")
def test_what_is_drawn_in_a_trace_reaches_its_draw_beside_packs():
    eager, compiled = Shortened(False, "sgd"), Shortened(True, "sgd")
    for k in range(8):
        torch.manual_seed(k)
        expected = eager.train()
        state = torch.get_rng_state()
        torch.manual_seed(k)
        assert compiled.train() == pytest.approx(expected, rel=1e-5)
        assert torch.equal(torch.get_rng_state(), state)
    for a, b in zip(eager.all(), compiled.all(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
