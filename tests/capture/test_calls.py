"""A graph takes the arguments of the function that it was traced from, and gives results as that does."""

from __future__ import annotations

import collections
import dataclasses
import io
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import eager as torch
import graphc
from graphc.capture.tree import map_leaves, tensors_of
from tests.depth import one_in

Pair = collections.namedtuple("Pair", "first second")


@dataclasses.dataclass
class Config:
    weight: Any
    power: int = 2
    name: str = "c"


@dataclasses.dataclass(frozen=True)
class Frozen:
    inner: Any
    flag: bool = True


def total(tree: Any) -> Any:
    """A sum over the tensors of a nest, each with a factor of its own, and over its numbers."""
    found = torch.zeros(())
    for k, t in enumerate(tensors_of(tree)):
        found = found + (k + 1) * (t * t).sum()
    return found


def tensor(rng: random.Random) -> Any:
    return torch.tensor([rng.random() for _ in range(rng.choice([1, 2, 3]))])


def value(rng: random.Random, depth: int = 2) -> Any:
    """A nest of tensors and values."""
    kinds = (
        ["tensor"] * 3 + ["static"] * 2 + (["dict", "list", "tuple", "named", "dataclass", "frozen"] if depth else [])
    )
    kind = rng.choice(kinds)
    inner = [value(rng, depth - 1) for _ in range(2)] if depth else []
    match kind:
        case "tensor":
            return tensor(rng)
        case "dict":
            return dict(zip(rng.sample(["x", "y", 3], 2), inner, strict=True))
        case "list":
            return inner
        case "tuple":
            return tuple(inner)
        case "named":
            return Pair(*inner)
        case "dataclass":
            return Config(inner[0], 3)
        case "frozen":
            return Frozen(inner[0])
    return rng.choice([2, -1, 0.5, -0.0, float("inf"), True, None, "text", "it's [odd]: {}", (), [], {}, 1 << 40])


def returned(everything: dict[str, Any]) -> Any:
    """A result with the structure of the arguments, and tensors that were computed."""
    return {"total": total(everything), "nest": map_leaves(everything, lambda t, path: t * 2 + 1), "static": [1, None]}


def plain(a, b):
    return returned(locals())


def defaults(a, b=2.0, c=None):
    return returned(locals())


def starred(a, *rest):
    return returned(locals())


def keyword_only(a, *, key, other=1):
    return returned(locals())


def positional_only(a, /, b):
    return returned(locals())


def everything(a, b=1, /, c=2, *rest, key, other="o", **more):
    return returned(locals())


class Holder:
    """Its methods reach a tensor by themselves."""

    def __init__(self) -> None:
        self.scale = torch.tensor([2.0])

    def method(self, a, *, key=1):
        return returned({"a": a, "key": key, "scale": self.scale})

    @classmethod
    def of_class(cls, a, b=3):
        return returned({"a": a, "b": b})


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor([3.0]))

    def forward(self, a, *rest, key=None):
        return returned({"a": a, "rest": rest, "key": key, "w": self.weight})


# how each is called: numbers of positional arguments, and names of others
FORMS: list[tuple[Callable[..., Any], list[tuple[int, tuple[str, ...]]]]] = [
    (plain, [(2, ()), (1, ("b",)), (0, ("b", "a"))]),
    (defaults, [(1, ()), (2, ()), (1, ("c",)), (0, ("c", "a"))]),
    (starred, [(1, ()), (3, ())]),
    (keyword_only, [(1, ("key",)), (0, ("other", "key", "a"))]),
    (positional_only, [(2, ()), (1, ("b",))]),
    (everything, [(1, ("key",)), (5, ("key", "extra")), (2, ("c", "other", "key", "some", "more_"))]),
    (Holder().method, [(1, ()), (1, ("key",))]),
    (Holder.of_class, [(2, ()), (0, ("a",))]),
    (Layer(), [(1, ()), (3, ("key",))]),
]


def arrays(tree: Any) -> Any:
    return map_leaves(tree, lambda t, path: np.array(t.detach().numpy()))


def reached(graph: Any, fn: Any) -> dict[str, Any]:
    """By name, what the function reaches by itself."""
    own = {"scale": getattr(getattr(fn, "__self__", None), "scale", None), "weight": getattr(fn, "weight", None)}
    rest = [name for id, name in zip(graph.inputs, graph.input_names, strict=True) if id not in graph.call.leaves]
    return {name: own[name.rpartition(".")[2].partition("_")[0]].detach().numpy() for name in rest}


def check_equal(found: Any, expected: Any, path: str = "result", named: bool = False) -> None:
    """The same nest, of the same classes (of the same names, if it has been read from a text)."""
    if isinstance(expected, torch.Tensor):
        np.testing.assert_allclose(np.asarray(found), expected.detach().numpy(), rtol=1e-5, err_msg=path)
        return
    if dataclasses.is_dataclass(expected) and not isinstance(expected, type):
        names = [f.name for f in dataclasses.fields(expected)]
        pairs = [(getattr(found, n), getattr(expected, n), n) for n in names]
    elif isinstance(expected, dict):
        assert list(found) == list(expected), path
        pairs = [(found[k], expected[k], str(k)) for k in expected]
    elif isinstance(expected, (list, tuple)):
        assert len(found) == len(expected), path
        pairs = [(a, b, str(k)) for k, (a, b) in enumerate(zip(found, expected, strict=True))]
    else:
        assert repr(found) == repr(expected), path
        return
    assert type(found).__name__ == type(expected).__name__ if named else type(found) is type(expected), path
    for a, b, name in pairs:
        check_equal(a, b, f"{path}.{name}", named)


def case(fn: Any, positional: int, names: tuple[str, ...], rng: random.Random) -> tuple[list[Any], dict[str, Any]]:
    args, kwargs = [value(rng) for _ in range(positional)], {name: value(rng) for name in names}
    if not any(True for _ in tensors_of((args, kwargs))):
        return ([tensor(rng), *args[1:]], kwargs) if args else (args, {**kwargs, names[0]: tensor(rng)})
    if rng.random() < 0.3:  # one tensor in two places
        found = next(tensors_of((args, kwargs)))
        return ([found, *args[1:]], kwargs) if args else (args, {**kwargs, names[0]: found})
    return args, kwargs


@pytest.mark.parametrize("seed", one_in(3, range(6)))
def test_a_graph_is_called_as_its_function(seed: int) -> None:
    rng = random.Random(seed)
    for fn, ways in FORMS:
        for positional, names in ways:
            args, kwargs = case(fn, positional, names, rng)
            expected = fn(*args, **kwargs)
            graph = graphc.trace(fn, *args, **kwargs)
            given, named = arrays(args), arrays(kwargs)
            more = reached(graph, fn)
            check_equal(graph(*given, **named, **more), expected)
            assert graphc.optimize(graph).call is graph.call
            check_equal(graphc.optimize(graph)(*given, **named, **more), expected)
            file = io.BytesIO()
            graph.save(file)
            loaded = graphc.load(io.BytesIO(file.getvalue()))
            assert loaded == graph and str(loaded) == str(graph)
            check_equal(loaded(*given, **named, **more), expected, named=True)
            flat = [np.array(t.detach().numpy()) for t in tensors_of((args, kwargs))] + list(more.values())
            check_equal(graph(*flat), expected)


def loss(parameters, batch, power=2, *, scale):
    return ((parameters["w"] * batch[0] - batch[1]) ** power).mean() * scale.value


@dataclasses.dataclass
class Scale:
    value: Any


PARAMETERS, BATCH = {"w": torch.tensor([1.0, 2.0])}, (torch.tensor([3.0, 4.0]), torch.tensor([1.0, 1.0]))


def lossy() -> Any:
    return graphc.trace(loss, PARAMETERS, BATCH, scale=Scale(torch.tensor(0.5)))


def test_lowered_and_differentiated_graphs_take_them_too() -> None:
    graph, scale = lossy(), Scale(np.float32(0.5) * np.ones((), np.float32))
    expected = float(loss(PARAMETERS, BATCH, scale=Scale(torch.tensor(0.5))))
    executable = graphc.lower(graphc.optimize(graph))
    assert float(executable(PARAMETERS, BATCH, scale=scale)) == pytest.approx(expected)
    assert float(executable(batch=BATCH, parameters=PARAMETERS, scale=scale, power=2)) == pytest.approx(expected)
    gradients = graphc.gradients(graph, wrt=["parameters.w"], values=True)
    value, found = graphc.lower(gradients)(PARAMETERS, BATCH, scale=scale)
    assert float(value) == pytest.approx(expected)
    assert list(found) == ["parameters.w"]
    seeded = graphc.gradients(graph, cotangents=True)
    cotangent = np.ones((), np.float32)
    for g in (seeded, graphc.Graph.parse(str(seeded))):
        again = g(PARAMETERS, BATCH, scale=scale, ct_0=cotangent)
        np.testing.assert_allclose(again["parameters.w"], np.asarray(found["parameters.w"]), rtol=1e-6)
    assert graphc.lower(graph)(*[np.array(t.numpy()) for t in (PARAMETERS["w"], *BATCH)], np.float32(0.5)) is not None


P, B = PARAMETERS, BATCH
MISTAKES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "missing": (lambda g: g(P, B), r"loss\(\) missing a required .*'scale'"),
    "unexpected": (lambda g: g(P, B, scale=Scale(1), other=1), "unexpected keyword argument 'other'"),
    "too many": (lambda g: g(P, B, 2, 3, scale=1), "too many positional"),
    "twice": (lambda g: g(P, B, parameters=P, scale=1), "multiple values for argument"),
    "another value": (lambda g: g(P, B, 3, scale=Scale(1)), "'power' is 3; the graph was traced for 2"),
    "another type": (lambda g: g(P, B, 2.0, scale=Scale(1)), "'power' is 2.0; the graph was traced for 2"),
    "another key": (lambda g: g({"v": 1}, B, scale=Scale(1)), "'parameters' is a dict of 'v'; .* a dict of 'w'"),
    "another container": (lambda g: g(P, list(B), scale=Scale(1)), "'batch' is a list of 2; .* a tuple of 2"),
    "another length": (lambda g: g(P, B[:1], scale=Scale(1)), "'batch' is a tuple of 1"),
    "another class": (lambda g: g(P, B, scale=Config(1)), "'scale' is a Config; .* a Scale of value"),
    "no tensor": (lambda g: g({"w": None}, B, scale=Scale(1)), "'parameters.w' is None; .* a tensor"),
    "another shape": (
        lambda g: g({"w": np.ones(3, np.float32)}, tuple(map(arrays, B)), scale=Scale(np.float32(1))),
        r"argument 'parameters.w' must be f32\[2\]",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_other_arguments_are_errors_in_the_functions_words(name: str) -> None:
    call, text = MISTAKES[name]
    kind = ValueError if name == "another shape" else TypeError
    for graph in (lossy(), graphc.Graph.parse(str(lossy()))):
        with pytest.raises(kind, match=text):
            call(graph)


def test_by_position_as_the_function_not_as_the_inputs() -> None:
    graph = graphc.trace(lambda x, y: x - 2 * y, y=torch.tensor(3.0), x=torch.tensor(1.0))
    x, y = np.float32(1) * np.ones((), np.float32), np.float32(3) * np.ones((), np.float32)
    assert graph(x, y) == graph(y=y, x=x) == graphc.Graph.parse(str(graph))(x, y) == -5.0


FORGED = (
    "call: ({'x': x}, ('y',), {})",
    "call: ({'x': v1}, ('x',), {})",
    "call: ({'x': x, 'y': x}, ('x', 'y'), {})",
    "call: ({'x': x}, ('x', 'x'), {})",
    "call: ({'x': x}, ('not a name',), {})",
    "call: ({'x': x}, (1,), {})",
    "call: ([x], ('x',), {})",
    "call: ({'x': x}, ('x',), 3)",
    "call: (x, x)",
    "call: ({'r': x}, ('*r',), {})",
    "call: ({1: x}, (1,), {})",
    "call: ({'x': x}, 'x', {})",
    "call: ({'x': x}, ('x',), {'x': x})",
)


@pytest.mark.parametrize("line", FORGED)
def test_a_call_that_no_function_has_is_no_text(line: str) -> None:
    with pytest.raises(graphc.errors.ParseError, match="line"):
        graphc.Graph.parse(f"def f(x: f32):\n    {line}\n    v1: f32 = tanh(x)\n    return v1\n")


def test_what_a_text_cannot_hold_is_left_out() -> None:
    x = torch.ones(2)
    graph = graphc.trace(lambda x, dtype: x.to(dtype), x, torch.float64)
    assert graph(arrays(x), torch.float64).dtype == np.float64
    with pytest.raises(TypeError, match="traced for"):
        graph(arrays(x), torch.float32)
    read = graphc.Graph.parse(str(graph))
    assert read == graph and "call:" not in str(graph)
    assert read(arrays(x)).dtype == np.float64
