"""Names that PyTorch has in other modules, functions of lists, calls of PyTorch 1, Sobol' points, futures."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import pytest

import eager
from eager.core import elsewhere, warned
from eager.surface import foreach, names
from tests.oracle import torch_or_skip

ROWS = [(module, name) for module, listed in elsewhere.table().items() for name in listed]


def test_every_name_of_the_table_is_there():
    for module, name in ROWS:
        if name != elsewhere.ALL:
            assert elsewhere.value(module, name) is not None, (module, name)
        elif module != elsewhere.TOP:
            importlib.import_module(f"eager.{module}")


def test_pytorch_has_the_modules_and_names_of_the_table():
    torch_or_skip()
    for module, name in ROWS:
        there: Any = importlib.import_module("torch" if module == elsewhere.TOP else f"torch.{module}")
        assert name == elsewhere.ALL or hasattr(there, name), (module, name)


def test_a_module_that_is_no_file_has_its_names_and_no_others():
    DTensor = importlib.import_module("eager.distributed._tensor.api").DTensor
    Upsample = importlib.import_module("eager.nn.modules.upsampling").Upsample
    assert DTensor is eager.distributed.tensor.DTensor and Upsample is eager.nn.Upsample
    with pytest.raises(ImportError, match="cannot import name 'Upsampel'"):
        exec("from eager.nn.modules.upsampling import Upsampel")


def test_functions_of_lists_are_those_of_tensors():
    torch: Any = eager
    x, y = eager.tensor([1.0, -2.0]), eager.tensor([[3.0]])
    assert torch._foreach_add([x, y], 1)[1].tolist() == [[4.0]]
    assert [t.tolist() for t in torch._foreach_mul([x, y], [2.0, 3.0])] == [[2.0, -4.0], [[9.0]]]
    assert [t.tolist() for t in torch._foreach_maximum([x, y], 2.0)] == [[2.0, 2.0], [[3.0]]]
    assert torch._foreach_addcmul([x], [x], [x], eager.tensor([2.0]))[0].tolist() == [3.0, 6.0]
    assert torch._foreach_pow(2.0, [x])[0].tolist() == [2.0, 0.25]
    assert torch._foreach_add_([x, y], [x.clone(), y.clone()], alpha=2) is not None and x.tolist() == [3.0, -6.0]
    assert (torch._foreach_norm([x], 1)[0].item(), torch._foreach_powsum([x], 2)[0].item()) == (9.0, 45.0)
    listed = {name for entry in names.FUNCTIONS["surface.foreach"].split() for name in (entry[len("_foreach_") :],)}
    assert listed == {*foreach.FUNCTIONS} and all(callable(getattr(eager, f"_foreach_{name}")) for name in listed)


@pytest.mark.parametrize(
    "call",
    [
        "t._foreach_add([], 1)", "t._foreach_add([x], [1, 2])", "t._foreach_add([x], [x, x])", "t._foreach_mul([x], x)",
        "t._check(1)", "t._check(x)", "t._check(False)", "t._check(False, lambda: 'why')", "t._check_index(False)",
        "t._check_tensor_all(x)", "t._check_tensor_all(x > 9)", "t._assert_async(t.tensor(0))", "t._check(False, 0)",
    ],
)  # fmt: skip
def test_errors_are_pytorch_s(call: str):
    messages: list[str] = []
    for t in (eager, torch_or_skip()):
        with pytest.raises(Exception) as caught:
            eval(call, {"t": t, "x": t.ones(2)})
        messages.append(f"{caught.type.__name__}: {caught.value}")
    assert messages[0] == messages[1]


OLD_CALLS = {
    "x.add_(2, y)": [7.0, 10.0], "t.add(x, 2, y)": [7.0, 10.0], "x.sub(2, y)": [-5.0, -6.0],
    "x.addcmul_(2, y, y)": [19.0, 34.0], "x.addcdiv_(-1, y, y)": [0.0, 1.0],
    "t.addmm(2, x[None], 3, y[:1, None], x[None]).ravel()": [11.0, 22.0],
    "t.addmm(2, x[None], y[:1, None], x[None]).ravel()": [5.0, 10.0],
}  # fmt: skip


@pytest.mark.parametrize("call", OLD_CALLS)
def test_calls_of_pytorch_1_warn_once_and_work(call: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(warned, "_given", set())
    space = {"t": eager, "x": eager.tensor([1.0, 2.0]), "y": eager.tensor([3.0, 4.0])}
    with pytest.warns(UserWarning, match=r"This overload of \w+ is deprecated:\n\t\w+\("):
        assert eval(call, space).tolist() == OLD_CALLS[call]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        eval(call, space)


def test_sobol_points_are_even_and_go_on():
    engine = eager.quasirandom.SobolEngine(2)
    first, rest = engine.draw(3), engine.draw_base2(0)
    assert eager.cat([first, rest]).tolist() == [[0.0, 0.0], [0.5, 0.5], [0.75, 0.25], [0.25, 0.75]]
    assert engine.reset().fast_forward(3).draw().tolist() == [[0.25, 0.75]]
    points = eager.quasirandom.SobolEngine(3, scramble=True, seed=1).draw(256, dtype=eager.float64)
    assert all(sorted((points[:, k] * 256).long().tolist()) == list(range(256)) for k in range(3))
    with pytest.raises(ValueError, match="power of 2"):
        engine.draw_base2(1)
    with pytest.raises(ValueError, match="dimensionality"):
        eager.quasirandom.SobolEngine(0)


@pytest.mark.parametrize("scramble", [False, True])
def test_sobol_points_are_pytorch_s(scramble: bool):
    torch = torch_or_skip()
    ours, theirs = (t.quasirandom.SobolEngine(7, scramble, seed=5) for t in (eager, torch))
    for step in ("draw()", "draw(5)", "fast_forward(9)", "draw(2)", "reset()", "draw_base2(4)"):
        results = [eval(f"engine.{step}", {"engine": engine}) for engine in (ours, theirs)]
        if "draw" in step:
            assert results[0].tolist() == results[1].tolist(), step
    assert repr(ours) == repr(theirs)


def test_futures_complete_once_and_call_back():
    future, seen = eager.futures.Future(), []
    later = future.then(lambda done: done.value() + 1)
    future.add_done_callback(lambda done: seen.append(done.value()))
    assert not future.done() and not later.done()
    future.set_result(3)
    assert (future.wait(), later.wait(), seen) == (3, 4, [3])
    assert eager.futures.wait_all([future, later]) == [3, 4] and eager.jit.fork(max, 1, 2).wait() == 2
    with pytest.raises(RuntimeError, match="can only be marked completed once"):
        future.set_result(4)
    failed = eager.futures.Future()
    failed.set_exception(ValueError("no"))
    with pytest.raises(ValueError, match="no"):
        failed.wait()
    with pytest.raises(RuntimeError, match="ValueError: no"):
        failed.then(lambda done: done.value()).wait()


def test_what_optimizers_of_libraries_import():
    from eager.optim import optimizer
    from eager.optim.optimizer import Optimizer, required
    from eager.utils._foreach_utils import _group_tensors_by_device_and_dtype

    decorated: Any = vars(optimizer)["__getattr__"]("_use_grad_for_differentiable")

    class Wrapper(Optimizer):  # as accelerate has one: without the `__init__` of its base
        def __init__(self, inner: Optimizer):
            self.inner = inner

        def step(self, closure: Any = None) -> Any:
            return self.inner.step(closure)

    class Own(Optimizer):
        def __init__(self, params: Any, lr: Any = required, differentiable: bool = False):
            super().__init__(params, {"lr": lr, "differentiable": differentiable})

        @decorated
        def step(self, closure: Any = None) -> None:
            assert not eager.is_grad_enabled()
            for parameter in self.param_groups[0]["params"]:
                parameter.add_(parameter.grad, alpha=-self.param_groups[0]["lr"])

    x = eager.tensor([1.0], requires_grad=True)
    (x * x).sum().backward()
    calls: list[Any] = []
    wrapper = Wrapper(Own([x], lr=0.25))
    wrapper.register_step_post_hook(lambda *given: calls.append(given))
    wrapper.step()
    assert x.item() == 0.5 and len(calls) == 1 and repr(required) == "<required parameter>"
    with pytest.raises(ValueError, match="didn't specify a value of required optimization parameter"):
        Own([x])
    a, b = eager.ones(1), eager.ones(1, dtype=eager.float64)
    groups = _group_tensors_by_device_and_dtype([[a, b, a], [b, a, b]], with_indices=True)
    assert [places for _, places in groups.values()] == [[0, 2], [1]]
