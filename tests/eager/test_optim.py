"""Optimizers follow PyTorch's trajectories, and a step under a trace guards what it bakes in."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import eager
from eager import optim
from eager.core.interpreter import IMMEDIATE, Interpreter, interpreting
from eager.core.parameter import Parameter
from eager.core.tensor import Tensor
from tests.eager.tensors import tensor
from tests.oracle import asked_of_torch, torch_or_skip

SETTINGS: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.01}),
    ("SGD", {"lr": 0.01, "momentum": 0.9}),
    ("SGD", {"lr": 0.01, "momentum": 0.9, "dampening": 0.5}),
    ("SGD", {"lr": 0.01, "momentum": 0.9, "nesterov": True}),
    ("SGD", {"lr": 0.01, "momentum": 0.5, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.01, "maximize": True}),
    ("Adam", {"lr": 0.01}),
    ("Adam", {"lr": 0.01, "amsgrad": True}),
    ("Adam", {"weight_decay": 0.1}),
    ("Adam", {"betas": (0.5, 0.9), "maximize": True}),
    ("Adam", {"betas": (0.0, 0.0)}),
    ("AdamW", {"lr": 0.01}),
    ("AdamW", {"lr": 0.01, "amsgrad": True, "weight_decay": 0.2}),
    ("Adadelta", {}),
    ("Adagrad", {}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.5}),
    ("Adamax", {}),
    ("Adamax", {"lr": 0.01, "betas": (0.5, 0.9), "weight_decay": 0.1, "maximize": True}),
    ("ASGD", {}),
    ("ASGD", {"lr": 0.1, "lambd": 0.01, "alpha": 0.5, "t0": 5, "weight_decay": 0.1}),
    ("NAdam", {}),
    ("NAdam", {"lr": 0.01, "weight_decay": 0.1, "momentum_decay": 0.01, "maximize": True}),
    ("NAdam", {"lr": 0.01, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {"lr": 0.01}),
    ("RAdam", {"lr": 0.01, "betas": (0.8, 0.9), "weight_decay": 0.1}),
    ("RAdam", {"lr": 0.01, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RMSprop", {}),
    ("RMSprop", {"lr": 0.01, "alpha": 0.9, "momentum": 0.9, "weight_decay": 0.1}),
    ("RMSprop", {"lr": 0.01, "centered": True, "maximize": True}),
    ("Rprop", {}),
    ("Rprop", {"lr": 0.1, "etas": (0.4, 1.5), "step_sizes": (1e-3, 0.5)}),
]
REAL = [  # not for complex numbers
    ("Adafactor", {}),
    (
        "Adafactor",
        {"lr": 0.1, "beta2_decay": -0.5, "eps": (1e-6, 1e-2), "d": 2.0, "weight_decay": 0.1, "maximize": True},
    ),
    ("Adadelta", {"lr": 0.5, "rho": 0.8, "eps": 1e-4, "weight_decay": 0.1, "maximize": True}),
]


def parameter(values: Any, dtype: Any = np.float32) -> Parameter:
    return Parameter(tensor(np.array(values, dtype)))


def gradient(p: np.ndarray, step: int) -> np.ndarray:
    """Bounded and changing, so that no trajectory blows a rounding error up."""
    return np.sin(2 * p + step).astype(p.dtype)


@asked_of_torch(("name", "settings"), [*SETTINGS, *REAL], ids=lambda value: str(value))
@asked_of_torch(("dtype", "tolerance"), [(np.float32, 1e-6), (np.float64, 1e-14)])
def test_trajectories_are_pytorchs(
    name: str, settings: dict[str, Any], dtype: Any, tolerance: float, rng: np.random.Generator
):
    torch = torch_or_skip()
    start = [rng.standard_normal(shape).astype(dtype) for shape in ((5,), (2, 3))]
    theirs = [torch.nn.Parameter(torch.tensor(p)) for p in start]
    mine = [parameter(p, dtype) for p in start]
    reference, found = getattr(torch.optim, name)(theirs, **settings), getattr(optim, name)(mine, **settings)
    assert repr(found) == repr(reference)
    for step in range(40):
        for p in theirs:
            p.grad = torch.tensor(gradient(p.detach().numpy(), step))
        for p in mine:
            p.grad = tensor(gradient(p.detach().numpy(), step))
        reference.step()
        found.step()
        for p, q in zip(theirs, mine, strict=True):
            np.testing.assert_allclose(q.detach().numpy(), p.detach().numpy(), rtol=tolerance, atol=tolerance)
    expected, kept = reference.state_dict(), found.state_dict()
    assert kept["param_groups"] == expected["param_groups"]
    for number, values in expected["state"].items():
        assert list(kept["state"][number]) == list(values)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, 0.512),
        ({"momentum": 0.9}, 0.062),
        ({"momentum": 0.9, "dampening": 0.5}, 0.252),
        ({"momentum": 0.9, "nesterov": True}, -0.10835),
        ({"weight_decay": 0.1}, 0.49304),
        ({"maximize": True}, 1.728),
    ],
)
def test_sgd_reaches_recorded_values(settings: dict[str, Any], expected: float):
    p = parameter([1.0, 2.0], np.float64)
    optimizer = optim.SGD([p], lr=0.1, **settings)
    for _ in range(3):
        optimizer.zero_grad()
        (p * p).sum().backward()
        optimizer.step()
    assert p.tolist()[0] == pytest.approx(expected, abs=1e-5)


def test_groups_have_settings_of_their_own():
    p, q = parameter([1.0]), parameter([1.0])
    optimizer = optim.SGD([{"params": p}, {"params": [q], "lr": 1.0}], lr=0.5)
    p.grad = q.grad = tensor(np.ones(1, np.float32))
    optimizer.step()
    assert (p.tolist(), q.tolist()) == ([0.5], [0.0])


def test_a_parameter_without_gradient_stays():
    p, q = parameter([1.0]), parameter([1.0])
    p.grad = tensor(np.ones(1, np.float32))
    optimizer = optim.Adam([p, q])
    optimizer.step()
    assert q.tolist() == [1.0]
    assert q not in optimizer.state


def test_closure_runs_with_gradients_and_its_loss_is_returned():
    p = parameter([1.0])
    optimizer = optim.SGD([p], lr=0.5)

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 1.0
    assert p.tolist() == [0.0]


def test_zero_grad():
    p = parameter([1.0])
    p.grad = tensor(np.ones(1, np.float32))
    optimizer = optim.SGD([p])
    optimizer.zero_grad(set_to_none=False)
    assert p.grad.tolist() == [0.0]
    optimizer.zero_grad()
    assert p.grad is None


@pytest.mark.parametrize(
    "make", [lambda p: optim.Adam(p, lr=0.1, amsgrad=True), lambda p: optim.SGD(p, lr=0.1, momentum=0.9)]
)
def test_a_loaded_state_continues_the_trajectory(make: Callable[[Any], optim.Optimizer]):
    def steps(optimizer: optim.Optimizer, p: Parameter, count: int) -> None:
        for _ in range(count):
            p.grad = tensor(gradient(p.detach().numpy(), 0))
            optimizer.step()

    p = parameter([1.0, -0.5])
    first = make([p])
    steps(first, p, 3)
    q = parameter(p.tolist())
    second = make([q])
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    steps(first, p, 3)
    steps(second, q, 3)
    assert q.tolist() == p.tolist()


NAMES = "Adam AdamW SGD RMSprop Adagrad Adadelta Adamax NAdam RAdam ASGD Rprop".split()


@asked_of_torch("name", NAMES)
def test_a_loaded_state_is_that_of_the_other_optimizer_as_in_pytorch(name: str):
    """What is not copied has the same tensors, which both optimizers move; another dtype takes a copy."""

    def values(module: Any) -> list[float]:
        settings = {"lr": 0.1, **({"momentum": 0.9} if name == "SGD" else {})}
        dtypes = [module.float32, module.float32, module.float64]
        p = [module.ones(2, dtype=dtype, requires_grad=True) for dtype in dtypes]
        optimizers = [getattr(module.optim, name)([each], **settings) for each in p]

        def step(each: Any, optimizer: Any) -> None:
            optimizer.zero_grad()
            (each**2).sum().backward()
            optimizer.step()

        step(p[0], optimizers[0])
        for optimizer in optimizers[1:]:
            optimizer.load_state_dict(optimizers[0].state_dict())
        for _ in range(3):
            for each, optimizer in zip(p, optimizers, strict=True):
                step(each, optimizer)
        return [value for each in p for value in each.tolist()]

    np.testing.assert_allclose(values(eager), values(torch_or_skip()), rtol=1e-5)


@asked_of_torch("name", NAMES)
def test_steps_by_foreach_are_not_differentiated(name: str):
    def told(module: Any) -> str:
        p = module.ones(2, requires_grad=True)
        p.grad = module.ones(2)
        optimizer = getattr(module.optim, name)([p], lr=0.1, foreach=True, differentiable=True)
        with pytest.raises((AssertionError, RuntimeError)) as error:
            optimizer.step()
        assert p.tolist() == [1.0, 1.0]
        return str(error.value)

    assert told(eager) == told(torch_or_skip())


def tensors_of(module: Any) -> Any:
    """(parameter, non-leaf) of torch or of this engine."""
    if module is optim:
        p = parameter([1.0])
        return p, p * 2
    torch = torch_or_skip()
    p = torch.nn.Parameter(torch.ones(1))
    return p, p * 2


ERRORS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "empty": lambda o, p, q: o.SGD([]),
    "rate": lambda o, p, q: o.SGD([p], lr=-1),
    "momentum": lambda o, p, q: o.SGD([p], momentum=-1),
    "decay": lambda o, p, q: o.Adam([p], weight_decay=-1),
    "epsilon": lambda o, p, q: o.Adam([p], eps=-1),
    "beta": lambda o, p, q: o.AdamW([p], betas=(0.9, 1.0)),
    "nesterov": lambda o, p, q: o.SGD([p], nesterov=True),
    "non-leaf": lambda o, p, q: o.SGD([q]),
    "no tensor": lambda o, p, q: o.SGD([3]),
    "set": lambda o, p, q: o.SGD([{"params": {p}}]),
    "twice": lambda o, p, q: o.SGD([{"params": [p]}, {"params": [p]}]),
    "group": lambda o, p, q: o.SGD([p]).add_param_group([p]),
    "number of groups": lambda o, p, q: o.SGD([p]).load_state_dict({"state": {}, "param_groups": []}),
    "size of a group": lambda o, p, q: o.SGD([p]).load_state_dict({"state": {}, "param_groups": [{"params": [0, 1]}]}),
}


@asked_of_torch("call", ERRORS.values(), ids=list(ERRORS))
def test_errors_are_pytorchs(call: Callable[[Any, Any, Any], Any]):
    torch = torch_or_skip()
    with pytest.raises(Exception) as expected:
        call(torch.optim, *tensors_of(torch.optim))
    with pytest.raises(type(expected.value)) as found:
        call(optim, *tensors_of(optim))
    assert str(found.value) == str(expected.value)


class Guards(Interpreter):
    """An interpreter that runs everything in eager mode and keeps the guards."""

    def __init__(self):
        self.kept: list[tuple[Callable[[], Any], Any]] = []

    def guard(self, getter: Callable[[], Any], value: Any, what: str) -> None:
        self.kept.append((getter, value))

    def apply(self, op: Any, operands: Any, params: Any) -> Any:
        return IMMEDIATE.apply(op, operands, params)

    def assign(self, target: Tensor, value: Tensor, name: str, where: Tensor | None = None) -> Tensor:
        np.copyto(target._d, value._d)
        return target


# with dampening the first step is another one; without, the program of the first step is that of all
@pytest.mark.parametrize(("dampening", "changed"), [(0, []), (0.5, [False])])
def test_a_traced_step_does_the_same_and_guards_its_state(dampening: float, changed: list[bool]):
    p, q = parameter([1.0, 2.0]), parameter([1.0, 2.0])
    traced, plain = (optim.SGD([r], lr=0.1, momentum=0.9, dampening=dampening) for r in (p, q))
    p.grad, q.grad = tensor(np.ones(2, np.float32)), tensor(np.ones(2, np.float32))
    guards = Guards()
    with interpreting(guards):
        traced.step()
    plain.step()
    assert p.tolist() == q.tolist()
    broken = [value for getter, value in guards.kept if getter() != value]
    assert broken == changed  # whether there is a momentum buffer
    traced.load_state_dict(traced.state_dict())
    assert len([value for getter, value in guards.kept if getter() != value]) == len(changed) + 1


def test_a_traced_adam_step_reads_no_number():
    p, q = parameter([1.0, 2.0]), parameter([1.0, 2.0])
    traced, plain = optim.Adam([p]), optim.Adam([q])
    p.grad, q.grad = tensor(np.ones(2, np.float32)), tensor(np.ones(2, np.float32))
    with interpreting(Guards()):
        traced.step()
    plain.step()
    assert p.tolist() == q.tolist()
    assert traced.state[p]["step"].item() == 1.0


def rosenbrock(x: Any) -> Any:
    return (1 - x[:-1]).square().sum() + 100 * (x[1:] - x[:-1].square()).square().sum()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", dict(SETTINGS))
def test_loaded_state_has_the_dtype_of_the_parameter_but_for_steps(name: str, dtype: Any):
    def stepped() -> Any:
        p = parameter([[1.0, 2.0], [3.0, 4.0]], dtype)
        p.grad = tensor(gradient(p.detach().numpy(), 0))
        optimizer = getattr(optim, name)([p], **dict(SETTINGS)[name])
        optimizer.step()
        return optimizer

    def dtypes(optimizer: Any) -> dict[str, Any]:
        found = [(key, value) for held in optimizer.state.values() for key, value in held.items()]
        return {key: value.dtype for key, value in found if isinstance(value, Tensor)}

    other = stepped()
    own, kept = other.param_groups[0]["params"][0].dtype, dtypes(other)
    other.load_state_dict(stepped().state_dict())
    assert dtypes(other) == {key: kept[key] if key == "step" else own for key in kept}


@asked_of_torch(
    "settings",
    [
        {"lr": 1e-3},
        {"lr": 1e-3, "max_iter": 5, "history_size": 2},
        {"line_search_fn": "strong_wolfe"},
        {"line_search_fn": "strong_wolfe", "max_iter": 8, "history_size": 3, "lr": 0.5},
        {"line_search_fn": "strong_wolfe", "max_eval": 7},
    ],
    ids=str,
)
def test_lbfgs_walks_pytorchs_path(settings: dict[str, Any]):
    torch = torch_or_skip()

    def walk(module: Any, optimizers: Any) -> list[Any]:
        x = module.tensor([-1.2, 1.0, 0.5, 2.0], dtype=module.float64, requires_grad=True)
        y = module.zeros(2, dtype=module.float64, requires_grad=True)
        optimizer = optimizers.LBFGS([x, y], **settings)

        def closure() -> Any:
            optimizer.zero_grad()
            loss = rosenbrock(x) * 0.1 + (y - 1).pow(4).sum()
            loss.backward()
            return loss

        seen = []
        for _ in range(4):
            loss = optimizer.step(closure).item()
            kept = optimizer.state_dict()["state"][0]
            seen.append([loss, *x.tolist(), *y.tolist(), kept["n_iter"], kept["func_evals"]])
        return [seen, sorted(kept)]

    (expected, names), (found, own_names) = walk(torch, torch.optim), walk(eager, optim)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert own_names == names


def test_lbfgs_steps_on_from_a_second_trial_that_is_no_better():
    """A trial that is low enough, still descends and is no better than the one before it: PyTorch 2.13's own trials."""
    p = eager.tensor([1.5], dtype=eager.float64, requires_grad=True)
    optimizer = optim.LBFGS([p], lr=0.3, max_iter=3, line_search_fn="strong_wolfe")
    tried = list[float]()

    def closure() -> Any:
        optimizer.zero_grad()
        waves = zip((-0.92, -0.92, -0.17, -0.39), (0.98, 4.97, 4.24, 1.56), strict=True)
        loss = 0.01 * p.square().sum()
        for k, (height, phase) in enumerate(waves):
            loss = loss + height * eager.sin((k * 7 + 1) * p + phase).sum()
        loss.backward()
        tried.append(p.item())
        return loss

    optimizer.step(closure)
    np.testing.assert_allclose(tried, [1.5, 1.2, -0.1515], rtol=1e-6)


def test_lbfgs_refuses():
    p = parameter([1.0])
    with pytest.raises(ValueError, match="doesn't support per-parameter options"):
        optim.LBFGS([{"params": [p]}, {"params": [parameter([1.0])]}])
    with pytest.raises(RuntimeError, match="only 'strong_wolfe' is supported"):
        optim.LBFGS([p], line_search_fn="golden").step(lambda: p.sum())


@asked_of_torch(
    "name", ["SGD", "Adam", "AdamW", "Adadelta", "Adagrad", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop"]
)
def test_gradients_flow_through_differentiable_steps(name: str):
    torch = torch_or_skip()

    def gradients(module: Any, optimizers: Any) -> list[Any]:
        start = module.tensor([1.0, -2.0], dtype=module.float64, requires_grad=True)
        first = module.tensor([0.5, 1.5], dtype=module.float64, requires_grad=True)
        second = module.tensor([0.25, -1.0], dtype=module.float64, requires_grad=True)
        p = start.clone()
        # a small epsilon would make the derivative of the first Adam-like step vanish in rounding
        settings = {} if name in ("SGD", "ASGD", "Rprop") else {"eps": 0.1}
        optimizer = getattr(optimizers, name)([p], lr=0.1, differentiable=True, **settings)
        steps = 1 if name in ("Adamax", "Rprop") else 2  # PyTorch's own cannot go back through two
        for grad in (first, second)[:steps]:
            p.grad = grad
            optimizer.step()
        found = module.autograd.grad(p.square().sum(), (start, first, second), allow_unused=True)
        return [[0.0, 0.0] if g is None else g.tolist() for g in found]

    # PyTorch counts the steps of a differentiable Adam in float32
    np.testing.assert_allclose(gradients(eager, optim), gradients(torch, torch.optim), rtol=1e-4, atol=1e-12)


@pytest.mark.parametrize(("name", "settings"), [*SETTINGS, ("LBFGS", {"max_iter": 2})], ids=str)
def test_a_complex_parameter_is_optimized_as_its_parts(name: str, settings: dict[str, Any]):
    start = [np.array([1 + 2j, -1 + 0.5j], np.complex64), np.array(0.5 - 1j, np.complex64)]
    whole = [parameter(p, p.dtype) for p in start]
    apart = [parameter(np.stack((p.real, p.imag), -1)) for p in start]
    curves = []
    for parameters, of in ((whole, eager.view_as_real), (apart, lambda p: p)):
        optimizer = getattr(optim, name)(parameters, **settings)

        def closure(parameters: Any = parameters, optimizer: Any = optimizer, of: Any = of) -> Any:
            optimizer.zero_grad()
            p, q = map(of, parameters)
            loss = ((p - 1) * (p - 1) * tensor([[1.0, 2.0]])).sum() + (q * q * q * q).sum()
            loss.backward()
            return loss

        for _ in range(3):
            if name != "LBFGS":
                closure()
            optimizer.step(closure)
        state = optimizer.state_dict()["state"]
        optimizer.load_state_dict(optimizer.state_dict())
        optimizer.step(closure)
        curves.append((parameters, state))
    (found, kept), (wanted, of_parts) = curves
    for p, q in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(eager.view_as_real(p.detach()).numpy(), q.detach().numpy())
    for k in kept if name != "LBFGS" else ():
        for key, value in of_parts[k].items():
            if isinstance(value, Tensor) and value.shape == wanted[k].shape:
                np.testing.assert_array_equal(eager.view_as_real(kept[k][key]).numpy(), value.numpy())
            else:
                assert kept[k][key] == value


def test_complex_steps_are_pytorchs():
    torch = torch_or_skip()
    import eager

    def run(t: Any, name: str) -> Any:
        w = t.tensor([1 + 2j, -1 + 0.5j], requires_grad=True)
        optimizer = getattr(t.optim, name)([w], lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            (w.abs() ** 2).sum().backward()
            optimizer.step()
        return w.detach().numpy()

    for name in ("Adam", "AdamW", "NAdam", "RAdam", "RMSprop", "Adagrad", "Adadelta", "Adamax", "Rprop", "ASGD", "SGD"):
        np.testing.assert_allclose(run(eager, name), run(torch, name), rtol=1e-5, err_msg=name)


@pytest.mark.on_numpy
@pytest.mark.parametrize(
    ("name", "settings"), [row for row in SETTINGS if row[0] not in ("SGD", "Adam", "AdamW")], ids=str
)
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_compiled_steps_are_eagers(name: str, settings: dict[str, Any], dtype: Any):
    import graphc

    curves = []
    for compiled in (False, True):
        p = parameter([3.0, -1.0, 0.5], dtype)
        optimizer = getattr(optim, name)([p], **settings)

        def step(p: Any = p, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            loss = (abs(p - 1) * abs(p - (1 + 2j if p.is_complex() else 1))).sum()
            loss.backward()
            optimizer.step()
            return loss

        run = graphc.compile(step) if compiled else step
        curves.append([run().item() for _ in range(5)])
    np.testing.assert_allclose(curves[1], curves[0], rtol=1e-5)


def test_hooks_run_around_every_kind_of_step():
    class Own(optim.Optimizer):
        def step(self, closure: Any = None) -> str:
            return "own"

    p = parameter([1.0])
    for made, result in ((optim.SGD([p]), None), (Own([p], {"lr": 1.0}), "own")):
        calls: list[Any] = []
        before = made.register_step_pre_hook(lambda o, args, kwargs, calls=calls: calls.append((args[0] is o, kwargs)))
        made.register_step_post_hook(lambda o, args, kwargs, calls=calls: calls.append("after"))
        assert made.step() == result and calls == [(True, {}), "after"]
        before.remove()
        made.step()
        assert calls[2:] == ["after"]
    made.register_step_pre_hook(lambda o, args, kwargs: 3)
    with pytest.raises(RuntimeError, match=r"must return None or a tuple of \(new_args, new_kwargs\), but got 3"):
        made.step()


MUON = [{}, {"lr": 0.1, "nesterov": False, "adjust_lr_fn": "match_rms_adamw"}, {"ns_steps": 3, "weight_decay": 0.0}]


@asked_of_torch("settings", MUON, ids=str)
def test_muon_is_pytorchs_within_16_bits(settings: dict[str, Any], rng: np.random.Generator):
    """Its step is an orthogonal factor in bfloat16, of 8 bits."""
    torch = torch_or_skip()
    start = [rng.standard_normal(shape).astype(np.float32) for shape in ((4, 3), (3, 5))]
    grads = [[rng.standard_normal(p.shape).astype(np.float32) for p in start] for _ in range(3)]
    theirs, mine = [torch.nn.Parameter(torch.tensor(p)) for p in start], [parameter(p) for p in start]
    reference, found = torch.optim.Muon(theirs, **settings), optim.Muon(mine, **settings)
    assert repr(found) == repr(reference)
    for given in grads:
        for p, q, g in zip(theirs, mine, given, strict=True):
            p.grad, q.grad = torch.tensor(g), tensor(g)
        reference.step()
        found.step()
    for p, q, before in zip(theirs, mine, start, strict=True):
        moved = np.abs(p.detach().numpy() - before).max()
        np.testing.assert_allclose(q.detach().numpy(), p.detach().numpy(), rtol=0, atol=0.15 * moved)
        assert found.state[q]["momentum_buffer"].shape == q.shape


def test_muon_is_for_matrices():
    with pytest.raises(ValueError, match="Muon only supports 2D parameters"):
        optim.Muon([parameter([1.0, 2.0])])


def test_adafactor_refuses_complex_parameters():
    p = parameter([1 + 1j], np.complex64)
    p.grad = tensor(np.ones(1, np.complex64))
    with pytest.raises(RuntimeError, match="Adafactor does not support complex parameters"):
        optim.Adafactor([p]).step()


@asked_of_torch(("name", "settings"), [*SETTINGS, *REAL], ids=lambda value: str(value))
def test_state_before_the_first_step_is_pytorchs(name: str, settings: dict[str, Any]):
    def state(module: Any) -> Any:
        parameter = module.nn.Parameter(module.ones(2))
        made = getattr(module.optim, name)([parameter], **settings)
        return {k: {n: (str(v.dtype), v.tolist()) for n, v in s.items()} for k, s in made.state_dict()["state"].items()}

    assert state(eager) == state(torch_or_skip())
