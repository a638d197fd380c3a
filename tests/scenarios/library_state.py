"""State that schedules, optimizers and modules keep, changed inside of compiled functions and outside."""

from __future__ import annotations

from typing import Any

import graphc
from eager import is_tensor, nn, no_grad, ones, optim
from eager.optim import lr_scheduler
from tests.scenarios.harness import attempt, program


def parameter_and_optimizer(momentum=0.0):
    w = ones(2, requires_grad=True)
    return w, optim.SGD([w], lr=0.1, momentum=momentum)


SCHEDULES = {
    "exponential": lambda opt: lr_scheduler.ExponentialLR(opt, 0.5),
    "step": lambda opt: lr_scheduler.StepLR(opt, 2, gamma=0.5),
    "cosine": lambda opt: lr_scheduler.CosineAnnealingLR(opt, 5),
    "lambda": lambda opt: lr_scheduler.LambdaLR(opt, lambda k: 1 / (k + 1)),
    "chained": lambda opt: lr_scheduler.ChainedScheduler(
        [lr_scheduler.ExponentialLR(opt, 0.5), lr_scheduler.ConstantLR(opt, 0.5, 2)]
    ),
    "sequential": lambda opt: lr_scheduler.SequentialLR(
        opt, [lr_scheduler.ConstantLR(opt, 0.5, 2), lr_scheduler.ExponentialLR(opt, 0.5)], [3]
    ),
}


@program
def schedules_stepped_inside(compile):
    found = []
    for make in SCHEDULES.values():
        w, opt = parameter_and_optimizer()
        schedule = make(opt)

        @compile
        def step(opt=opt, schedule=schedule, w=w):
            opt.zero_grad()
            (w * w).sum().backward()
            opt.step()
            schedule.step()

        for _ in range(6):
            step()
            found.append((schedule.get_last_lr(), type(schedule.get_last_lr()[0]), w.detach().clone()))
        schedule.step()
        step()
        saved = schedule.state_dict()
        found.append([saved.get(name) for name in ("last_epoch", "_step_count", "_last_lr", "base_lrs")])
    return found


@program
def the_rate_of_a_schedule_on_a_plateau(compile):
    w, opt = parameter_and_optimizer()
    schedule = lr_scheduler.ReduceLROnPlateau(opt, patience=1, factor=0.5)

    @compile
    def step():
        opt.zero_grad()
        loss = w.sum()
        loss.backward()
        opt.step()
        schedule.step(2.0)
        return loss

    return [
        (step(), schedule.get_last_lr(), type(schedule.get_last_lr()[0]), schedule.num_bad_epochs) for _ in range(6)
    ]


@program
def the_last_rate_is_asked_for_inside(compile):
    _, opt = parameter_and_optimizer()
    schedule = lr_scheduler.ExponentialLR(opt, 0.5)
    f = compile(lambda x: x * schedule.get_last_lr()[0])
    found = []
    for _ in range(4):
        found.append(f(ones(2)))
        opt.step()
        schedule.step()
    return found


OPTIMIZERS = {
    "momentum": lambda params: optim.SGD(params, lr=0.1, momentum=0.9, dampening=0.5),
    "adam": lambda params: optim.Adam(params, lr=0.1, amsgrad=True),
}


@program
def optimizer_state_dropped_and_replaced_outside(compile):
    found = []
    for make in OPTIMIZERS.values():
        w, frozen = ones(2, requires_grad=True), ones(2, requires_grad=True)
        opt = make([w, frozen])

        @compile
        def step(x, opt=opt, w=w):
            def loss():
                opt.zero_grad()
                loss = (w * w * x).sum()
                loss.backward()
                return loss

            return opt.step(loss)

        def steps(opt=opt, w=w, step=step):
            for x in (1.0, 3.0):
                step(x)
            found.append((w.detach().clone(), [dict(s) for p, s in opt.state.items() if p is w]))

        steps()
        opt.state.clear()
        steps()
        opt.state.pop(w)
        steps()
        del opt.state[w]
        steps()
        opt.state[w].clear()
        steps()
        for name, value in opt.state[w].items():
            if is_tensor(value):
                opt.state[w][name] = value * 0.5
        steps()
    return found


@program
def state_of_parameters_that_a_step_does_not_use(compile):
    a, b = ones(2, requires_grad=True), ones(2, requires_grad=True)
    opt = optim.Adam([a, b], lr=0.1)
    traced = []

    def stepping(p):
        def step():
            traced.append(p is a)
            opt.zero_grad()
            (p * p).sum().backward()
            opt.step()

        return compile(step)

    first, second = stepping(a), stepping(b)
    for _ in range(3):
        first()
        second()
    count = len(traced) if compile is graphc.compile else 2
    opt.state.pop(b)
    first()
    count += (len(traced) if compile is graphc.compile else 2) - count
    second()
    return a, b, count


@program
def optimizer_hooks_added_and_removed(compile):
    found = []
    for make in (lambda p: optim.SGD(p, lr=0.1), lambda p: optim.Adam(p, lr=0.1)):
        w = ones(2, requires_grad=True)
        opt = make([w])

        @compile
        def step(opt=opt, w=w):
            def loss():
                opt.zero_grad()
                loss = (w * w).sum()
                loss.backward()
                return loss

            opt.step(loss)

        def after(w=w, step=step):
            step()
            step()
            found.append(w.detach().clone())

        def shrink(opt, args, kwargs):
            with no_grad():
                opt.param_groups[0]["params"][0].mul_(0.5)

        after()
        before_step = opt.register_step_pre_hook(shrink)
        after()
        after_step = opt.register_step_post_hook(shrink)
        another = opt.register_step_post_hook(shrink)
        after()
        before_step.remove()
        after()
        another.remove()
        opt.register_state_dict_pre_hook(lambda opt: None)
        after()
        after_step.remove()
        after()
    return found


def members(module):
    """Names, types, values and flags of all that a module holds."""
    kinds = [(name, type(child).__name__) for name, child in module.named_modules()]
    tensors = [*module.named_parameters(), *module.named_buffers()]
    held = [(name, isinstance(t, nn.Parameter), t.is_leaf, t.detach().clone()) for name, t in tensors]
    return kinds, held, list(module.state_dict())


@program
def buffers_added_to_a_module(compile):
    m, found = nn.Module(), []

    @compile
    def f(x):
        if not hasattr(m, "cache"):
            m.register_buffer("cache", x.clone())
            m.register_buffer("other", x * 2, persistent=False)
        else:
            m.cache = m.cache * 0.5 + x
            m.other += 1
        return m.cache.sum()

    for k in range(4):
        found.append((f(ones(2) * k), members(m)))
    del m.cache
    return found, f(ones(2)), members(m)


@program
def buffers_that_come_and_go(compile):
    m, found = nn.Module(), []

    @compile
    def f(x):
        if hasattr(m, "held"):
            x = x + m.held
            del m.held
        else:
            m.register_buffer("held", x * 3)
        return x

    for k in range(5):
        found.append((f(ones(2) * k), members(m)))
    return found


class Lazy(nn.Module):
    def __init__(self):
        super().__init__()
        self.w: Any = None
        self.layer: Any = None

    def forward(self, x):
        if self.w is None:
            self.w = nn.Parameter(x * 2)
            self.layer = nn.Linear(2, 2)
            self.more = nn.ModuleDict({"a": nn.Module()})
            self.more["a"].register_buffer("seen", x + 1)
        self.more["a"].seen += x
        return self.layer(self.w * x).sum()


@program
def a_module_that_makes_its_parameters_when_it_is_called(compile):
    m, found = Lazy(), []
    f = compile(m)
    for k in range(1, 4):
        loss = f(ones(2) * k)
        loss.backward()
        found.append((loss, members(m), m.w.grad.clone(), m.layer.weight.grad.clone()))
    return found


@program
def members_of_a_module_made_anew_at_each_call(compile):
    m, found = nn.Module(), []

    @compile
    def f(x):
        m.last = m.norm = nn.BatchNorm1d(2)
        m.weight = nn.Parameter(x[0] * 2)
        return m.norm(x * m.weight)

    for k in range(4):
        y = f(ones(3, 2) * k)
        y.sum().backward()
        found.append((y, members(m), m.last is m.norm, m.weight.grad))
    return found


@program
def modules_that_are_returned(compile):
    @compile
    def f(x):
        layer = nn.Linear(2, 2)
        layer.weight = nn.Parameter(x * 2)
        norm = nn.BatchNorm1d(2)
        norm(x)
        return {"layer": layer, "both": nn.Sequential(layer, norm)}

    found = []
    for k in range(3):
        out = f(ones(2, 2) * k)
        found.append((members(out["both"]), out["both"][0] is out["layer"], out["layer"].weight.detach()))
    return found


@program
def an_exception_after_members_were_added(compile):
    m, found = Lazy(), []

    @compile
    def f(x):
        m(x)
        m.register_buffer("b", x * 2)
        raise ValueError("no")

    for k in range(3):
        found.append((attempt(f, ones(2) * k), members(m)))
    return found
