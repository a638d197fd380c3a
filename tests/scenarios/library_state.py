"""State that eager's own objects keep, changed inside of compiled functions and outside: schedules, optimizers, modules."""

from __future__ import annotations

from eager import ones, optim
from eager.optim import lr_scheduler
from tests.scenarios.harness import program


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

    return [(step(), schedule.get_last_lr(), type(schedule.get_last_lr()[0]), schedule.num_bad_epochs) for _ in range(6)]


@program
def the_last_rate_is_asked_for_inside(compile):
    w, opt = parameter_and_optimizer()
    schedule = lr_scheduler.ExponentialLR(opt, 0.5)
    f = compile(lambda x: x * schedule.get_last_lr()[0])
    found = []
    for _ in range(4):
        found.append(f(ones(2)))
        opt.step()
        schedule.step()
    return found
