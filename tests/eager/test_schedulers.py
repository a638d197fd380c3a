"""Schedules give PyTorch's rates to the last bit, in both forms, and continue from their state."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import eager
from tests.oracle import asked_of_torch, torch_or_skip

SCHEDULES: list[tuple[str, dict[str, Any]]] = [
    ("LambdaLR", {"lr_lambda": lambda epoch: 0.95**epoch}),
    ("LambdaLR", {"lr_lambda": [lambda epoch: 0.95**epoch, lambda epoch: 1 / (epoch + 1)]}),
    ("MultiplicativeLR", {"lr_lambda": lambda epoch: 0.95}),
    ("StepLR", {"step_size": 3, "gamma": 0.5}),
    ("MultiStepLR", {"milestones": [2, 5, 5], "gamma": 0.3}),
    ("ConstantLR", {"factor": 0.5, "total_iters": 3}),
    ("LinearLR", {}),
    ("LinearLR", {"start_factor": 0.5, "end_factor": 0.1, "total_iters": 4}),
    ("ExponentialLR", {"gamma": 0.9}),
    ("PolynomialLR", {"total_iters": 6, "power": 2.0}),
    ("CosineAnnealingLR", {"T_max": 5}),
    ("CosineAnnealingLR", {"T_max": 4, "eta_min": 0.01}),
    ("CosineAnnealingWarmRestarts", {"T_0": 3}),
    ("CosineAnnealingWarmRestarts", {"T_0": 2, "T_mult": 2, "eta_min": 0.01}),
    ("CyclicLR", {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 3}),
    ("CyclicLR", {"base_lr": [0.01, 0.02], "max_lr": 0.1, "step_size_up": 2, "step_size_down": 3,
                  "mode": "triangular2"}),
    ("CyclicLR", {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 2, "mode": "exp_range", "gamma": 0.9}),
    ("CyclicLR", {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 2, "scale_fn": lambda x: 1 / x}),
    ("OneCycleLR", {"max_lr": 0.5, "total_steps": 18}),
    ("OneCycleLR", {"max_lr": [0.5, 0.1], "epochs": 4, "steps_per_epoch": 5, "three_phase": True,
                    "anneal_strategy": "linear"}),
    ("SWALR", {"swa_lr": [0.05, 0.01], "anneal_epochs": 3}),
    ("SWALR", {"swa_lr": 0.05, "anneal_epochs": 0, "anneal_strategy": "linear"}),
]  # fmt: skip


def optimizer_of(module: Any, kind: str) -> Any:
    groups = [{"params": [module.nn.Parameter(module.ones(2))], "lr": lr} for lr in (0.1, 0.2)]
    if kind == "SGD":
        return module.optim.SGD(groups, lr=0.1, momentum=0.9)
    return module.optim.Adam(groups, lr=0.1)


def schedule_of(module: Any, optimizer: Any, name: str, settings: dict[str, Any]) -> Any:
    home = module.optim.swa_utils if name == "SWALR" else module.optim.lr_scheduler
    return getattr(home, name)(optimizer, **settings)


def course(module: Any, kind: str, name: str, settings: dict[str, Any]) -> list[Any]:
    """The rates and momenta of 12 epochs, of a jump, and of a schedule that continues from the state; and the state."""
    optimizer = optimizer_of(module, kind)
    schedule = schedule_of(module, optimizer, name, settings)
    seen: list[Any] = [schedule.get_last_lr()]
    for _ in range(12):
        optimizer.step()
        schedule.step()
        group = optimizer.param_groups[0]
        seen.append((schedule.get_last_lr(), group.get("momentum"), group.get("betas"), schedule.last_epoch))
    state = schedule.state_dict()
    seen.append({k: v for k, v in state.items() if not k.startswith("_scale") and not callable(v)})
    other = optimizer_of(module, kind)
    again = schedule_of(module, other, name, settings)
    again.load_state_dict(dict(state))
    again.step()
    seen += [again.get_last_lr(), repr(other)]
    if name != "SWALR":
        schedule.step(4)
        seen.append(schedule.get_last_lr())
    return seen


@pytest.mark.filterwarnings("ignore:The epoch parameter", "ignore:Detected call of")
@asked_of_torch("kind", ["SGD", "Adam"])
@asked_of_torch(("name", "settings"), SCHEDULES, ids=[f"{name}{i}" for i, (name, _) in enumerate(SCHEDULES)])
def test_rates_and_state_are_pytorchs(name: str, settings: dict[str, Any], kind: str):
    expected, found = (course(module, kind, name, settings) for module in (torch_or_skip(), eager))
    assert found == expected


@pytest.mark.filterwarnings("ignore:Detected call of")
def course_of_groups(module: Any, name: str, settings: dict[str, Any], added: bool) -> list[Any]:
    """The rates of 12 epochs, in the third of which a group is added or taken away, or the exception."""
    optimizer = optimizer_of(module, "Adam")
    schedule = schedule_of(module, optimizer, name, settings)
    seen: list[Any] = []
    for k in range(12):
        if k == 2 and added:
            optimizer.add_param_group({"params": [module.nn.Parameter(module.ones(2))], "lr": 0.3})
        elif k == 2:
            optimizer.param_groups.pop()
        optimizer.step()
        try:
            schedule.step()
        except (ValueError, KeyError) as error:
            return [*seen, type(error).__name__, str(error) if type(error) is ValueError else ""]
        seen.append(schedule.get_last_lr())
    return seen


@asked_of_torch("added", [True, False])
@asked_of_torch(("name", "settings"), SCHEDULES, ids=[f"{name}{i}" for i, (name, _) in enumerate(SCHEDULES)])
def test_groups_that_are_added_and_taken_away(name: str, settings: dict[str, Any], added: bool):
    expected, found = (course_of_groups(module, name, settings, added) for module in (torch_or_skip(), eager))
    assert found == expected


def test_fractions_of_epochs_restart_where_pytorch_does():
    for growth in (1, 2):
        courses = []
        for module in (torch_or_skip(), eager):
            optimizer = optimizer_of(module, "SGD")
            schedule = module.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 2, growth)
            seen = []
            for epoch in (0.0, 0.5, 1.9, 2.0, 3.5, 6.25, 1.0):
                schedule.step(epoch)
                seen.append((schedule.get_last_lr(), schedule.T_i, schedule.T_cur, schedule.last_epoch))
            courses.append(seen)
        assert courses[0] == courses[1]


def test_order_of_steps_is_checked_once_and_the_optimizer_tells():
    optimizer = optimizer_of(eager, "SGD")
    schedule = eager.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    with pytest.warns(UserWarning, match="before `optimizer.step"):
        schedule.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        schedule.step()
        other = optimizer_of(eager, "SGD")
        following = eager.optim.lr_scheduler.ExponentialLR(other, 0.9)
        other.step()
        following.step()
        with pytest.raises(UserWarning, match="get_last_lr"):
            following.get_lr()


def test_functions_that_are_objects_keep_their_state():
    class Factor:
        def __init__(self, rate: float):
            self.rate = rate

        def __call__(self, epoch: int) -> float:
            return self.rate**epoch

    first = eager.optim.lr_scheduler.LambdaLR(optimizer_of(eager, "SGD"), Factor(0.5))
    state = first.state_dict()
    assert state["lr_lambdas"] == [{"rate": 0.5}] * 2
    second = eager.optim.lr_scheduler.LambdaLR(optimizer_of(eager, "SGD"), Factor(0.9))
    second.load_state_dict(state)
    assert second.lr_lambdas[0].rate == 0.5


def test_a_compiled_step_follows_the_schedule():
    import graphc

    curves = []
    for compiled in (False, True):
        p = eager.nn.Parameter(eager.tensor([1.0, 2.0]))
        optimizer = eager.optim.SGD([p], lr=0.1)
        schedule = eager.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)

        def step(p: Any = p, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            loss = p.square().sum()
            loss.backward()
            optimizer.step()
            return loss

        run = graphc.compile(step) if compiled else step
        curve = []
        for _ in range(6):
            curve.append(run().item())
            schedule.step()
        curves.append(curve)
    assert curves[1] == pytest.approx(curves[0], rel=1e-6)


def test_averaged_models():
    model = eager.nn.Sequential(eager.nn.Linear(1, 1), eager.nn.BatchNorm1d(1))
    running = eager.optim.swa_utils.AveragedModel(model)
    decayed = eager.optim.swa_utils.AveragedModel(
        model, multi_avg_fn=eager.optim.swa_utils.get_ema_multi_avg_fn(0.5), use_buffers=True
    )
    for value in (1.0, 2.0, 6.0):
        with eager.no_grad():
            model[0].weight.fill_(value)
            model[1].running_mean.fill_(value)
        running.update_parameters(model)
        decayed.update_parameters(model)
    assert running.module[0].weight.item() == pytest.approx(3.0)
    assert running.module[1].running_mean.item() == 6.0
    assert decayed.module[0].weight.item() == decayed.module[1].running_mean.item() == pytest.approx(3.75)
    assert running.n_averaged.item() == 3
    assert model[0].weight.item() == 6.0
    other = eager.optim.swa_utils.AveragedModel(model)
    other.load_state_dict(running.state_dict())
    assert other.n_averaged.item() == 3
    eager.optim.swa_utils.update_bn([eager.tensor([[1.0], [3.0]])] * 2, model)
    expected = model[0](eager.tensor([[1.0], [3.0]])).mean().item()
    assert model[1].running_mean.item() == pytest.approx(expected) and model[1].momentum == 0.1
