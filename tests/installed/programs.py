"""Programs that are made of an installed package's layers, whose state users change between the calls."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import eager as torch
from eager import nn
from tests.scenarios.harness import attempt, state

FOLDER = Path(__file__).parent / "site-packages"
PROGRAMS: dict[str, Any] = {}


def package() -> Any:
    """The package, freshly imported: with empty caches, and options as they are at first. It says `import torch`."""
    for name in [n for n in sys.modules if n.partition(".")[0] in ("axeskit", "plainkit")]:
        del sys.modules[name]
    sys.path.insert(0, str(FOLDER))
    try:
        return importlib.import_module("axeskit"), importlib.import_module("axeskit.layers")
    finally:
        sys.path.remove(str(FOLDER))


def program(fn: Any) -> Any:
    PROGRAMS[fn.__name__] = fn
    return fn


def classifier(layers: Any) -> Any:
    return nn.Sequential(
        layers.create("Embedding", 4, 3, 8), layers.create("Block", 8), layers.create("Block", 8),
        nn.Flatten(), nn.Linear(32, 5),
    )  # fmt: skip


def data(n: int = 4) -> tuple[Any, Any]:
    return torch.randn(n, 3, 8, 8), torch.randint(0, 5, (n,))


@program
def a_whole_step(compile):
    """Forward, backward and update, by an optimizer with state, from the first call on."""
    _, layers = package()
    model = classifier(layers)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)

    @compile
    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    given = data()
    found = [step(*given) for _ in range(3)]
    found += [step(*data(6)), step(*given)]
    return found, [state(p) for p in model.parameters()]


@program
def options_of_the_package(compile):
    axeskit, layers = package()
    model = layers.create("Attention", 8)
    f, x, found = compile(lambda x: model(x)), torch.randn(2, 4, 8), []
    for change in (
        lambda: None,
        lambda: setattr(axeskit.options, "scale", 2.0),
        lambda: setattr(axeskit.options, "norm", sys.modules["axeskit.options"].Norm.MEAN),
        lambda: setattr(sys.modules["axeskit.options"], "FACTOR", 0.5),
        lambda: setattr(model, "heads", 4),
        lambda: model.__dict__.update(factor=3.0),
    ):
        change()
        found += [f(x), f(x)]
    return found


@program
def functions_of_the_package_that_are_replaced(compile):
    _, layers = package()
    model, x = layers.create("Rearrange", "a b -> b a"), torch.randn(2, 3)
    f = compile(lambda x: layers.drop_path(model(x)) + 1)
    found = [f(x), f(x)]
    layers.rearrange = lambda x, pattern, **lengths: x.mT * 7
    found.append(f(x))
    layers.drop_path = lambda x: x * 2
    return [*found, f(x)]


@program
def settings_of_layers(compile):
    _, layers = package()
    model, x = classifier(layers), data()[0]
    f, found = compile(lambda x: model(x)), []
    for change in (
        lambda: None,
        lambda: model.eval(),
        lambda: setattr(model[1].scale, "inplace", False),
        lambda: setattr(model[1], "ratio", 3),
        lambda: setattr(model[0].cut, "pattern", "b c (h p) (w q) -> b (w h) (p q c)"),
        lambda: model.train(),
        lambda: setattr(model[2].drop, "drop_prob", 0.0),
    ):
        change()
        found += [f(x), f(x)]
    return found


@program
def a_metric_that_adds_up_in_place(compile):
    axeskit, layers = package()
    metric = layers.Mean()

    @compile
    def update(x):
        metric.update(x, 0.5)
        return metric.compute()

    found = []
    for k in range(5):
        found.append(update(torch.arange(4.0) + k))
        if k == 2:
            metric.reset()
            axeskit.options.extra["percent"] = 100.0
    return found, metric.total, metric.count, metric.updates, [x.clone() for x in metric.history]


@program
def state_of_modules_of_the_package(compile):
    axeskit, _ = package()
    functional = sys.modules["axeskit.functional"]
    f = compile(lambda x: axeskit.reduce(x, "(a b) c -> a c", "mean", b=2))
    found = [f(torch.arange(12.0).reshape(4, 3)) for _ in range(3)]
    return found, functional.calls, sorted(b.framework for b in sys.modules["axeskit.backends"]._loaded.values())


@program
def reductions_and_repetitions(compile):
    axeskit, _ = package()
    found = []
    for operation in ("sum", "mean", "amax", "prod"):
        f = compile(lambda x, w, op=operation: axeskit.reduce(x * w, "b (h p) -> h b", op, p=2))
        w = torch.tensor(1.5, requires_grad=True)
        for n in (2, 3, 5, 2):
            f(torch.rand(n, 4), w).sum().backward()
        found.append(w.grad)
    f = compile(lambda x: axeskit.repeat(x, "a b -> a (b r) s", r=2, s=3))
    return found, [f(torch.rand(n, 2)) for n in (2, 3, 5)]


@program
def errors_of_the_package(compile):
    axeskit, _ = package()
    f = compile(lambda x: axeskit.rearrange(x, "(a b) -> a b", a=2, b=3))
    return [attempt(f, torch.arange(float(n))) for n in (6, 5, 6)]


@program
def names_that_the_code_does_not_show(compile):
    """Reading attributes by computed names does not make an optimizer's own state a matter of guards."""
    w = torch.ones(40, 2, requires_grad=True)  # more than a trace reads the values of
    optimizer = torch.optim.Adam([w], lr=0.1)
    names = ["param_groups"]

    @compile
    def step(x):
        rate = getattr(optimizer, names[0])[0]["lr"]
        optimizer.zero_grad()
        (w * x).square().sum().backward()
        optimizer.step()
        return w * rate

    return [step(torch.tensor([1.0, float(k)])) for k in range(4)], state(w)
