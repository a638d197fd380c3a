"""Wrong parts of what runs for some programs only: for long rows, many steps, state in packs, masks, hooks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np

import eager as torch
import graphc
from compare.locating.surroundings import STATE
from compare.modes.tape import TAPE
from compare.selftest.fault import Expected, Fault, Trials, of_lowering, of_pass
from compare.selftest.planting import Plant, attribute, declared, edited, wrapped
from compare.selftest.trials import numbers, program, session
from eager import nn
from eager.engine import blocks, inplace
from graphc.capture import masked_selection
from graphc.capture.gradients import Autograd
from graphc.capture.masked_selection import Selection
from graphc.execution import host_packs
from graphc.lowering.loading import jax
from graphc.ops import OPS
from graphc.ops.dtypes import FLOAT32, FLOAT64, INT64
from graphc.passes import loops, maps, nans, places, slices, support

LAYER = "machinery"


def _lowered(what: str, op: str, plant: Callable[[], Plant], trials: Trials) -> Fault:
    """`plant()` is made when the fault is: what it changes loads JAX."""
    return of_lowering(what, op, lambda: plant()(), trials, LAYER)


def _module(name: str) -> Any:
    return import_module(f"graphc.lowering.{name}")


def _part(what: str, part: str, plant: Plant, trials: Trials, op: str = "") -> Fault:
    return Fault(f"machinery: {what}", LAYER, plant, Expected(op, part), trials)


def _signed_halves() -> Plant:
    return lambda: attribute(_module("orders"), "_LEAST", np.int32(0))


def _parts_apart() -> Plant:
    """Running sums of long rows begin anew in each part of a part."""

    def wrong(sound: Any) -> Any:
        def by_products(x: Any, reverse: bool) -> Any:
            return sound(x, reverse) if x.shape[-1] > 40 else jax.numpy.cumsum(x, -1) * 0 + x

        return by_products

    return wrapped(_module("scans"), "_by_products", wrong)


def _zeros_around() -> Plant:
    return lambda: attribute(_module("windows"), "lowest", lambda dtype: np.zeros((), dtype))


def _uncorrected() -> Plant:
    return wrapped(
        _module("remainders"), "_less", lambda sound: lambda size, by: size - jax.numpy.floor(size / by) * by
    )


def _only_traced(sound: Any) -> Any:
    return lambda target: target if target._d.__class__ is np.ndarray else sound(target)


def _unrolled(x: Any, w: Any) -> Any:
    h = x[0]
    for t in range(30):
        h = torch.tanh(h @ w + x[t])
    return h


def _products_of_rows(x: Any, w: Any) -> Any:
    total = x[0] * 0
    for t in range(1, 7):
        total = total + torch.tanh(w @ x[t])
    return total


def _recurrent(x: Any, w: Any) -> Any:
    return graphc.scan(lambda h, row: (torch.tanh(w @ row + w @ h), h.sum()), x[0] * 0, x)


def _training(optimizer: Any, rewrites: bool = False) -> Any:
    def training(compile: Any) -> Iterator[Any]:
        torch.manual_seed(3)
        model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2), nn.Tanh(), nn.Linear(2, 1)).double()
        chosen = optimizer(model.parameters())

        def step(x: Any) -> Any:
            chosen.zero_grad()
            loss = (model(x) ** 2).mean()
            loss.backward()
            chosen.step()
            return loss.detach()

        f = compile(step)
        for k in range(4):
            yield f(torch.from_numpy(numbers(5, 3, seed=k, dtype=FLOAT64)))
            if rewrites:
                with torch.no_grad():
                    model[0].bias.mul_(2)
        yield list(model.parameters())

    return session(training)


def _hooked(x: Any) -> Any:
    y = x * 2
    y.register_hook(lambda g: g * 3)
    return (y * y).sum()


def _selected(x: Any) -> Any:
    y = x * 1
    y[x > 0] += y[x > 0].sqrt()
    return y


def _exchanged(x: Any) -> Any:
    y = x * 1
    y[x > 0] = y[x < 0] * 2
    return y


def _overwritten(x: Any) -> Any:
    y = x * 2
    y[1:] = 3.0
    y.mul_(x)
    z = y * 1
    z.zero_()
    return y + z


def _views_written(x: Any) -> Any:
    y = x * 2
    view = y[1:]
    y.mul_(3)
    return (view * view).sum()


def _written_twice(x: Any) -> Any:
    y = x * 1
    y.sin_()
    y.pow_(3)
    return y * x


def _padded(x: Any, y: Any) -> Any:
    pad = torch.nn.functional.pad
    return torch.where(torch.arange(60) < 8, pad(x, (3, 53)), pad(y, (10, 46))) * 2


_x = numbers(4)
_signs = np.array([1.0, -2.0, 0.5, -3.0], FLOAT32)
_rows, _w = numbers(30, 3, low=-0.5, high=0.5), numbers(3, 3, low=-0.5, high=0.5, seed=6)

FAULTS: tuple[Fault, ...] = (
    _lowered("low halves with a sign", "argsort", _signed_halves,
             program(lambda x: torch.argsort(x), np.array([2**31, 1, 2**32 - 1, 5, -(2**31)], INT64))),
    _lowered("parts of parts begin anew", "cumsum", _parts_apart,
             program(lambda x: x.cumsum(0), numbers(9000), modes=("graph", "compiled"))),
    _lowered("zeros around the image", "max_pool2d", _zeros_around,
             program(lambda x: torch.nn.functional.max_pool2d(x, 2, padding=1), -numbers(1, 2, 4, 4))),
    _lowered("a quotient that was rounded up", "fmod", _uncorrected,
             program(lambda x, y: torch.fmod(x, y), numbers(8192, high=1e6), numbers(8192, seed=6),
                     modes=("graph", "compiled"))),
    of_pass("every function keeps zeros", "support", wrapped(support._Writer, "_keeps_zeros",
        lambda sound: lambda self, node: True),
        program(lambda x: torch.nn.functional.pad(x, (3, 50)).cos() * 2, _x)),
    of_pass("of two parts the first", "support", lambda: attribute(support, "_around", lambda a, b: a),
            program(_padded, _x, _x * 2)),
    of_pass("nan is a number", "constant folding", wrapped(nans, "_written", lambda sound: lambda builder, number, own:
            builder.language.full(shape=builder.nodes[number.mask].shape, value=number.value,
                                  dtype=builder.nodes[number.mask].dtype)),
            program(lambda x: (x - x).exp(), np.array([1, np.nan, np.inf], FLOAT32))),
    of_pass("slices from the first on", "slices", edited(slices._Writer, "_some", (
        "(places[0], *zeros), (places[-1] + 1,", "(0, *zeros), (places[-1] + 1 - places[0],")),
            program(_products_of_rows, numbers(8, 20), numbers(20, 20, seed=6, low=-0.2, high=0.2))),
    of_pass("places in ascending order", "places", wrapped(places, "_digits",
        lambda sound: lambda values, size: sound(np.sort(values), size)),
        program(lambda x: x[torch.tensor([3, 2, 1, 0])] * 2, _x)),
    of_pass("carries are constant", "rows of scans", edited(maps, "_operands", (
        "consts : consts + carries]:", "consts:consts]:"),
        ("body.inputs[:consts])", "body.inputs[: consts + carries])")),
            program(_recurrent, numbers(5, 20), numbers(20, 20, seed=6, low=-0.3, high=0.3),
                    modes=("graph", "compiled"))),
    of_pass("rows of the first step", "repeats", edited(loops.Loop, "_symbol", (
        "self.leaves.append(column)", "self.leaves.append(column[:1] * len(column))")),
            program(_unrolled, _rows, _w, modes=("graph", "compiled"))),
    _part("values that are not selected have gradients", STATE, lambda: attribute(masked_selection, "guarded",
          lambda selection, x: x), program(_selected, _signs)),
    _part("places of any mask", STATE, lambda: attribute(Selection, "_is_same", lambda self, a, b: True),
          program(_exchanged, _signs)),
    _part("hooks change nothing", STATE, lambda: attribute(
          Autograd, "_arrived", lambda self, id_, g, create_graph: g), program(_hooked, _x)),
    _part("detached tensors have gradients", "gradient rule", lambda: declared(
        OPS["stop_gradient"], vjp={"input": OPS["positive"].vjp["input"]}),
          program(lambda x: x.detach() * x, _x), "stop_gradient"),
    _part("parameters in a pack overlap", STATE, edited(host_packs, "_parts", (
        "return parts", "for part in parts[1:-1]:\n        part.start -= 1\n    return parts")),
          _training(lambda p: torch.optim.SGD(p, 0.1, momentum=0.9))),
    _part("writes between calls are lost in a pack", STATE, edited(host_packs.StatePack, "gather", (
        "if not self.equal:", "if not self.equal and len(apart) == len(self.members):")),
          _training(lambda p: torch.optim.SGD(p, 0.1, momentum=0.9), rewrites=True)),
    _part("blocks of operands in another order", "eager form", lambda: attribute(
        blocks, "_line", lambda a, result: a.ravel("K") if a.ndim else a),
          program(lambda x: x.t().tanh() * 2, numbers(270, 270), modes=("graph", "compiled"))),
    _part("what was overwritten has a gradient", TAPE, lambda: attribute(
        inplace, "_OVERWRITTEN", inplace.by_rule("ZeroBackward0", lambda F, node, g: [g])),
        program(_overwritten, _x)),
    _part("views keep the history from before", TAPE, lambda: attribute(
        inplace, "_record_view", lambda base, view: None), program(_views_written, _x)),
    _part("what a write needs is not kept", TAPE, wrapped(inplace, "copied", _only_traced),
          program(_written_twice, _x)),
)  # fmt: skip
