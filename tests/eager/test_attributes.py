"""Attributes that users give to tensors and parameters: copies, files, compiled functions, `compare`."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import compare
import eager as torch
import graphc

nn = torch.nn


def _loaded(value: Any) -> Any:
    file = io.BytesIO()
    torch.save(value, file)
    return torch.load(io.BytesIO(file.getvalue()))


@pytest.mark.parametrize("make", [torch.ones, lambda n: nn.Parameter(torch.ones(n))], ids=["tensor", "parameter"])
def test_copies_and_files_keep_them(make: Callable[[int], Any]) -> None:
    x = make(2)
    x.tag, x.scale = "head", torch.full((1,), 2.0)
    for again in (copy.copy(x), pickle.loads(pickle.dumps(x)), _loaded(x), _loaded({"x": x})["x"]):
        assert type(again) is type(x) and again.tag == "head" and again.scale.item() == 2.0
    assert vars(copy.deepcopy(x)).keys() == ({"tag", "scale"} if type(x) is torch.Tensor else set())  # as PyTorch's
    assert vars(x + 1) == vars(x.detach()) == {}


def test_a_file_cannot_replace_what_a_tensor_is() -> None:
    x = torch.ones(2)
    vars(x)["_d"] = "nothing"
    assert _loaded(x).tolist() == [1.0, 1.0]


def test_groups_of_parameters_by_attribute() -> None:
    model = nn.Linear(2, 2)
    model.bias.no_decay = True
    plain = [p for p in model.parameters() if not getattr(p, "no_decay", False)]
    assert len(plain) == 1 and plain[0] is model.weight


class Sub(torch.Tensor):
    pass


def _given(kind: type) -> Any:
    x = torch.arange(2.0)
    return x if kind is torch.Tensor else x.as_subclass(kind)


@pytest.mark.on_numpy
@pytest.mark.parametrize("kind", [torch.Tensor, Sub])
def test_compiled_functions_read_and_write_those_of_arguments(kind: type) -> None:
    def function(x: Any) -> Any:
        x.seen = getattr(x, "seen", 0) + 1
        x.double = x * 2
        y = x + (x.double if x.seen > 2 else 0)
        y.of = x.seen
        return y

    compiled, x, same = graphc.compile(function), _given(kind), _given(kind)
    for _ in range(4):
        y, expected = compiled(x), function(same)
        assert y.tolist() == expected.tolist() and vars(y) == vars(expected)
        assert x.seen == same.seen and x.double.tolist() == [0.0, 2.0] and type(x.double) is kind
    assert compare.check(function, _given(kind)).ok


@pytest.mark.on_numpy
@pytest.mark.parametrize("kind", [torch.Tensor, Sub])
def test_compiled_functions_read_and_write_those_of_captured_tensors(kind: type) -> None:
    w = _given(kind)
    w.calls = 0

    def function(x: Any) -> Any:
        w.calls += 1
        return x * w if getattr(w, "on", False) else x - w.calls

    compiled, x = graphc.compile(function), torch.ones(2)
    assert [compiled(x).tolist() for _ in range(3)] == [[0.0, 0.0], [-1.0, -1.0], [-2.0, -2.0]]
    w.on = True
    assert compiled(x).tolist() == [0.0, 1.0]
    w.on = False
    assert compiled(x).tolist() == [-4.0, -4.0] and w.calls == 5


@pytest.mark.on_numpy
def test_a_loop_over_parameters_gives_them_attributes() -> None:
    model = nn.Linear(2, 1)

    def function(x: Any) -> Any:
        for p in model.parameters():
            p.norm = p.square().sum().detach()
        return model(x) * sum(getattr(p, "scale", 1.0) for p in model.parameters())

    compiled, x = graphc.compile(function), torch.ones(1, 2)
    for change in (lambda: None, lambda: model.weight.mul_(2), lambda: setattr(model.bias, "scale", 3.0)):
        with torch.no_grad():
            change()
        y = compiled(x)
        assert torch.allclose(model.weight.norm, model.weight.square().sum())  # type: ignore[attr-defined]
        assert torch.allclose(y, function(x))


@pytest.mark.on_numpy
def test_compare_asks_for_the_class_of_results() -> None:
    def other_when_compiled(x: Any) -> Any:
        return x + 1 if torch.compiler.is_compiling() else (x + 1).as_subclass(Sub)

    report = compare.check(other_when_compiled, torch.ones(2), modes=["compiled"])
    assert not report.ok and "class of result: bug\n      Tensor, eager has Sub" in str(report)
    assert compare.check(lambda x: (x + 1).as_subclass(Sub) * 2, torch.ones(2), modes=["compiled"]).ok


def test_explain_names_the_attribute_that_changed() -> None:
    fast, x = graphc.compile(lambda x: x * x.share), torch.ones(2)
    for x.share in (1, 3):
        fast(x)
    assert "because: attributes of a tensor changed: share" in str(fast.explain())
