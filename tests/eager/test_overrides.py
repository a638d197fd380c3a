"""`__torch_function__`: who is asked, what for, and what results are; nothing changes for plain tensors."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from typing import Any

import pytest

import compare
import eager as torch
import graphc
from eager.core import overriding
from tests.oracle import torch_or_skip

F = torch.nn.functional
Told = list[tuple[Any, ...]]  # (function, types, types of the arguments)

# expression -> what a class is told, and what results; recorded from PyTorch 2.13
TOLD = {
    "s + 1": "add S S,int > S", "1 + s": "add S S,int > S", "p * s": "mul S Tensor,S > S",
    "1 - s": "__rsub__ S S,int > S", "2 / s": "__rdiv__ S S,int > S", "s / 2": "div S S,int > S",
    "p + s2": "add S2 Tensor,S2 > S2", "s + s2": "add S2,S S,S2 > S2", "s2 + s": "add S2,S S2,S > S2",
    "p @ s": "matmul S Tensor,S > S", "s % 2": "remainder S S,int > S", "5 // s": "__rfloordiv__ S S,int > S",
    "-s": "neg S S > S", "s > 1": "gt S S,int > S", "1 < s": "gt S S,int > S", "s == p": "__eq__ S S,Tensor > S",
    "s[0]": "__getitem__ S S,int > S", "p.add(s)": "add S Tensor,S > S", "p.mul(s)": "mul S Tensor,S > S",
    "q * s": "mul S Parameter,S > S", "p.clone().copy_(s)": "copy_ S Tensor,S > S",
    "p.clone().add_(s)": "add_ S Tensor,S > S", "p.double() * s.double()": "double S S; mul S Tensor,S > S",
    "len(s)": "__len__ S S > int", "torch.add(p, s)": "add S Tensor,S > S", "torch.cat([p, s])": "cat S list > S",
    "torch.stack((p, p))": "> Tensor", "torch.sum(s)": "sum S S > S", "s.sum()": "sum S S > S",
    "s.max(0)": "max S S,int > max", "s.shape": "__get__ S S > Size", "s.T": "__get__ S S > S",
    "s.grad": "__get__ S S > NoneType", "s.tolist()": "tolist S S > list",
    "F.linear(s, p[None])": "linear S S,Tensor > S", "F.relu(s)": "relu S S > S", "torch.nn.ReLU()(p)": "> Tensor",
    "torch.nn.Flatten(0)(s)": "flatten S S,int,int > S", "torch.linalg.vector_norm(s)": "vector_norm S S > S",
    "torch.special.expit(s)": "sigmoid S S > S", "torch.tensor(s)": "> Tensor", "torch.is_tensor(s)": "> bool",
    "q + 1": "> Tensor", "torch.zeros_like(s)": "zeros_like S S > S", "s.as_subclass(torch.Tensor)": "> Tensor",
    "torch.einsum('i,i', p, s)": "einsum S str,Tensor,S > S", "s.detach()": "detach S S > S",
    "hash(s) == id(s)": "> bool",
}  # fmt: skip


def _world() -> tuple[dict[str, Any], Told]:
    """Names for the expressions of the table, and where calls are noted."""
    told: Told = []

    class S(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            told.append(
                (func.__name__, *(tuple(getattr(t, "__name__", "") for t in ts) for ts in (types, map(type, args))))
            )
            return super().__torch_function__(func, types, args, kwargs)

    class S2(S):
        pass

    p = torch.tensor([1.0, 2.0, 3.0])
    names = {"torch": torch, "F": F, "p": p, "q": torch.nn.Parameter(p.clone()), "s": p.as_subclass(S)}
    return {**names, "s2": p.as_subclass(S2)}, told


@pytest.mark.filterwarnings("ignore:To copy construct from a tensor")
def test_who_is_told_what() -> None:
    names, told = _world()
    found: dict[str, str] = {}
    for text in TOLD:
        told.clear()
        result = type(eval(text, names)).__name__
        calls = (" ".join((name, ",".join(types), ",".join(args))) for name, types, args in told)
        found[text] = f"{'; '.join(calls)} > {result}".lstrip()
    assert found == TOLD


def test_a_function_is_told_as_what_users_know() -> None:
    seen: list[Any] = []

    class Seen(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func)
            return super().__torch_function__(func, types, args, kwargs)

    x = torch.ones(2).as_subclass(Seen)
    made = torch.cat([x, x]), torch.exp(x), F.softmax(x, 0), x.add(1), x * 2, x.shape
    assert len(made) == 6
    wanted: list[Any] = [
        torch.cat,
        torch.exp,
        F.softmax,
        torch.Tensor.add,
        torch.Tensor.mul,
        torch.Tensor.shape.__get__,
    ]
    assert seen == wanted and all(a is b for a, b in zip(seen[:-1], wanted[:-1], strict=True))
    assert {torch.cat: 1}[seen[0]] and torch.overrides.resolve_name(seen[-1]) == "torch.Tensor.shape.__get__"
    assert torch.overrides.is_tensor_method_or_property(seen[-1]) and pickle.loads(pickle.dumps(torch.cat)) == torch.cat
    assert torch.overrides.resolve_name(F.softmax) == "torch.nn.functional.softmax"
    with torch.overrides.DisableTorchFunctionSubclass():
        assert type(x + 1) is torch.Tensor is type(torch.exp(x))


def test_classes_that_do_not_know_each_other() -> None:
    class A(torch.Tensor):
        pass

    class B(torch.Tensor):
        pass

    a, b = torch.ones(1).as_subclass(A), torch.ones(1).as_subclass(B)
    with pytest.raises(TypeError, match=r"Multiple dispatch failed for 'torch\.add'; all __torch_function__ handlers"):
        torch.add(a, b)
    with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for \+: 'A' and 'B'"):
        assert a + b
    with pytest.raises(TypeError, match=r"no implementation found for 'torch\.nn\.functional\.mse_loss' on types that"):
        F.mse_loss(a, b)


DUCK = """
import eager as torch
class Duck:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func.__name__, len(args), kwargs
    def __init__(self):
        self.shape = (1,)
d, x = Duck(), torch.ones(2)
print([torch.mean(d), torch.add(x, d, alpha=2), x * d, torch.cat([d]), torch.exp(d), torch.sum(d, dim=0)])
class Shy(Duck):
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return NotImplemented
try:
    x + Shy()
except TypeError as error:
    print(error)
"""


def test_objects_that_are_no_tensors() -> None:
    """In a process of its own, in which no class of tensors has made the functions ask before they fail."""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", DUCK], capture_output=True, text=True, check=True)
    calls, error = done.stdout.splitlines()
    assert eval(calls) == [("mean", 1, None), ("add", 2, {"alpha": 2}), ("mul", 2, None), ("cat", 1, None),
                           ("exp", 1, None), ("sum", 1, {"dim": 0})]  # fmt: skip
    assert error == "unsupported operand type(s) for +: 'Tensor' and 'Shy'"


def test_modes_see_everything_and_leave_nothing() -> None:
    seen: list[str] = []

    class Mode(torch.overrides.TorchFunctionMode):
        def __init__(self, tag: str):
            self.tag = tag

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(self.tag + (torch.overrides.resolve_name(func) or "?").removeprefix("torch."))
            return func(*args, **(kwargs or {}))

    _world()
    with Mode("") as mode:
        x = torch.ones(2)
        y = (x * 2).sum()
        made = F.relu(x), x[0], x.requires_grad, torch.tensor([1.0])
        with Mode("inner "):
            torch.exp(x)
    assert isinstance(mode, Mode) and y.item() == len(made)
    wanted = "ones Tensor.mul Tensor.sum nn.functional.relu Tensor.__getitem__ Tensor.requires_grad.__get__ tensor"
    assert seen == [*wanted.split(), "inner exp", "exp"]
    assert (x * 2).shape == torch.exp(x).shape and len(seen) == 9
    asking = [name for name in ("shape", "mul", "exp", "item", "__mul__") if name in vars(overriding.Asking)]
    assert len(asking) == 5 and not [n for n in asking if vars(torch.Tensor)[n] is vars(overriding.Asking)[n]]


class Tagged(torch.Tensor):
    """With an attribute that results take over."""

    tag: str

    def __new__(cls, data: Any, tag: str = "") -> Any:
        return super().__new__(cls, data)

    def __init__(self, data: Any, tag: str = ""):
        self.tag = tag

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = super().__torch_function__(func, types, args, kwargs)
        if isinstance(result, Tagged) and func is not torch.Tensor.as_subclass:
            result.tag = "".join(a.tag for a in args if isinstance(a, Tagged) and hasattr(a, "tag"))
        return result


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_are_of_the_class(way: Any) -> None:
    made = way(Tagged([1.0, 2.0], "a"))
    assert type(made) is Tagged and made.tag == "a" and made.as_subclass(torch.Tensor).tolist() == [1.0, 2.0]


def _product(x: Any, y: Any) -> Any:
    return (x * y).exp().sum()


@pytest.mark.on_numpy
def test_a_compiled_call_gives_the_class_and_what_it_has() -> None:
    x, y = Tagged([1.0, 2.0], "a"), Tagged([0.5, 1.0], "b")
    compiled = graphc.compile(_product)
    for _ in range(3):
        result = compiled(x, y)
        assert type(result) is Tagged and result.tag == "ab" and result.tolist() == _product(x, y).tolist()
    y.tag = "c"
    assert compiled(x, y).tag == "ac"
    w = x.clone().requires_grad_()
    compiled(w, y).backward()
    found = w.grad
    _product(v := x.clone().requires_grad_(), y).backward()
    assert type(found) is torch.Tensor and torch.allclose(found, v.grad)
    assert compiled(x, y.as_subclass(torch.Tensor)).tag == "a"
    same = graphc.compile(lambda x: x)
    assert same(x) is x


@pytest.mark.on_numpy
def test_check_holds_subclasses() -> None:
    assert compare.check(_product, Tagged([1.0, 2.0], "a"), Tagged([0.5, 1.0], "b")).ok


@pytest.mark.on_numpy
def test_a_parameter_of_a_class_is_trained() -> None:
    class Weight(torch.Tensor):
        pass

    def trained(compiled: bool) -> torch.Tensor:
        torch.manual_seed(0)
        layer = torch.nn.Linear(2, 1)
        layer.weight = torch.nn.Parameter(torch.ones(1, 2).as_subclass(Weight))
        assert [type(p) for p in layer.parameters()] == [Weight, torch.nn.Parameter]
        assert isinstance(layer.weight, torch.nn.Parameter) and type(layer.state_dict()["weight"]) is Weight
        optimizer = torch.optim.Adam(layer.parameters())

        def step(x: Any) -> Any:
            optimizer.zero_grad()
            loss = layer(x).square().sum()
            loss.backward()
            optimizer.step()
            return loss

        run = graphc.compile(step) if compiled else step
        for _ in range(3):
            assert type(run(torch.ones(3, 2))) is Weight
        return layer.weight.as_subclass(torch.Tensor).detach()

    assert torch.allclose(trained(True), trained(False))


def test_a_tensor_made_by_new_of_a_subclass() -> None:
    own = Tagged([1.0, 2.0], "m")
    assert own.tag == "m" and own.shape == (2,) and type(torch.Tensor._make_subclass(Tagged, torch.ones(2))) is Tagged
    assert repr(torch.nn.Parameter(torch.ones(1).as_subclass(Tagged))) == "Parameter(Tagged([1.], requires_grad=True))"
    assert [type(row) for row in own] == [Tagged, Tagged] and type(reversed(own)) is Tagged


def test_functions_of_ones_own() -> None:
    @torch.overrides.wrap_torch_function(lambda x: (x,))
    def twice(x: Any) -> Any:
        return x * 2

    names, told = _world()
    assert twice(names["p"]).tolist() == [2.0, 4.0, 6.0] and not told
    assert type(twice(names["s"])).__name__ == "S" and told[0][0] == "twice"
    assert torch.overrides.has_torch_function((names["s"],)) and not torch.overrides.has_torch_function((names["q"],))


@pytest.mark.filterwarnings("ignore:To copy construct from a tensor")
def test_what_is_told_is_what_pytorch_tells() -> None:
    """The table, in PyTorch: but for names that PyTorch has inside, `linalg_vector_norm`."""
    theirs = torch_or_skip()
    told: Told = []

    class S(theirs.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            told.append((func.__name__, *(tuple(t.__name__ for t in ts) for ts in (types, map(type, args)))))
            return super().__torch_function__(func, types, args, kwargs)

    class S2(S):
        pass

    p = theirs.tensor([1.0, 2.0, 3.0])
    names = {"torch": theirs, "F": theirs.nn.functional, "p": p, "s": p.as_subclass(S), "s2": p.as_subclass(S2)}
    names["q"] = theirs.nn.Parameter(p.clone())
    for text, wanted in TOLD.items():
        told.clear()
        result = type(eval(text, names)).__name__
        kinds = [",".join(t for t in types if t != "Tensor") for _, types, _ in told]  # of Python code: Tensor, too
        calls = [" ".join((name, k, ",".join(args))) for k, (name, _, args) in zip(kinds, told, strict=True)]
        found = f"{'; '.join(calls)} > {result}".lstrip()
        assert found.replace("linalg_", "").replace("special_expit", "sigmoid") == wanted, text


def test_the_packages_themselves_have_no_class_that_asks() -> None:
    """So nobody pays for asking who has no such class: neither who compiles nor who checks or distributes."""
    program = (
        "import eager, graphc, compare, eager.distributed.tensor\n"
        "from eager.surface import overriding\n"
        "f = graphc.compile(lambda x, k: eager.nn.functional.relu(x) * k)\n"
        "[f(eager.ones(3), k) for k in (1.0, 2.0)]\n"
        "assert compare.check(lambda x: x.exp(), eager.ones(3)).ok\n"
        "assert not overriding.asking\n"
        "class Own(eager.Tensor): pass\n"
        "assert overriding.asking\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_lazy_objects_of_other_modules_are_left_alone() -> None:
    program = """
import sys, types
import eager

class Lazy:
    @property
    def __class__(self):
        raise RuntimeError("working outside of a context")

module = types.ModuleType("someones")
module.current, module.sum = Lazy(), eager.sum
sys.modules["someones"] = module
class Own(eager.Tensor):
    pass
assert module.sum is eager.sum
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_asking_ends_with_the_trace_or_the_mode_that_wanted_it() -> None:
    """Nobody pays for asking after the last who has to be asked."""
    program = """
import eager, types, sys
from eager import fx
from eager.overrides import TorchFunctionMode, get_overridable_functions
from eager.surface import overriding
from eager.core.tensor import Tensor

someones = sys.modules["someones"] = types.ModuleType("someones")
someones.relu = eager.nn.functional.relu
eager.ones(2, 2).add(1).matmul(eager.ones(2, 2)).view(4)[0]  # what is made at first use is
before = {name: id(vars(Tensor)[name]) for name in ("add", "matmul", "__getitem__", "shape", "view")}
plain = eager.nn.functional.relu, eager.softmax, eager.nn.ReLU._function

def is_as_before():
    assert not overriding.asking and eager.nn.functional.relu is someones.relu is plain[0], someones.relu
    assert eager.softmax is plain[1] and eager.nn.ReLU._function is plain[2]
    assert before == {name: id(vars(Tensor)[name]) for name in before}

class Counting(TorchFunctionMode):
    count = 0
    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.count += 1
        return func(*args, **(kwargs or {}))

traced = fx.symbolic_trace(lambda x: someones.relu(x) + x.softmax(-1).view(-1))
is_as_before()
assert traced(eager.ones(3)).sum() == 4
with Counting() as outer, Counting() as inner:
    someones.relu(eager.ones(3)).view(3, 1)
    fx.symbolic_trace(lambda x: someones.relu(x))
    assert overriding.asking and inner.count and inner.count == outer.count
is_as_before()
assert get_overridable_functions()[eager.nn.functional]
is_as_before()
class Own(eager.Tensor): pass
fx.symbolic_trace(lambda x: someones.relu(x))
assert overriding.asking and type(someones.relu(eager.ones(3).as_subclass(Own))) is Own
"""
    subprocess.run([sys.executable, "-c", program], check=True)
