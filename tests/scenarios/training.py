"""Whole training steps: forward, backward() and the optimizer in one program, over 20 steps."""

from __future__ import annotations

import eager as torch
from tests.scenarios.harness import program, state

nn, optim, F = torch.nn, torch.optim, torch.nn.functional


def data(n=8):
    x = torch.randn(n, 3)
    return x, (x[:, :1] * 2 - x[:, 1:2]).sin()


def mlp():
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))


def trained(compile, make, steps=20, net=None, before=None, scheduler=None, each=None):
    """The losses of `steps` steps, the weights, and the optimizer's state."""
    net = mlp() if net is None else net
    opt = make(net.parameters())
    plan = None if scheduler is None else scheduler(opt)

    @compile
    def step(x, y):
        opt.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        if before is not None:
            before(net)
        opt.step()
        return loss

    losses = []
    for i in range(steps):
        losses.append(step(*data()).detach())
        if plan is not None:
            plan.step()
            losses.append(plan.get_last_lr())
        if each is not None:
            each(i, net, opt)
    return losses, [state(p) for p in net.parameters()], opt.state_dict()


def with_optimizer(name, make):
    def run(compile):
        return trained(compile, make)

    run.__name__ = run.__qualname__ = name
    return program(run)


OPTIMIZERS = {
    "sgd": lambda ps: optim.SGD(ps, lr=0.1),
    "momentum": lambda ps: optim.SGD(ps, lr=0.1, momentum=0.9, dampening=0.1, weight_decay=0.01),
    "nesterov": lambda ps: optim.SGD(ps, lr=0.05, momentum=0.9, nesterov=True),
    "maximize": lambda ps: optim.SGD(ps, lr=0.001, maximize=True),
    "adam": lambda ps: optim.Adam(ps, lr=0.01),
    "adam_with_decay": lambda ps: optim.Adam(ps, lr=0.01, weight_decay=0.1, betas=(0.8, 0.9), eps=1e-6),
    "amsgrad": lambda ps: optim.Adam(ps, lr=0.01, amsgrad=True),
    "adamw": lambda ps: optim.AdamW(ps, lr=0.01, weight_decay=0.1),
    "rmsprop": lambda ps: optim.RMSprop(ps, lr=0.01, momentum=0.5, centered=True),
    "adagrad": lambda ps: optim.Adagrad(ps, lr=0.1, lr_decay=0.01),
    "adadelta": lambda ps: optim.Adadelta(ps, lr=1.0),
    "adafactor": lambda ps: optim.Adafactor(ps, lr=0.05, weight_decay=0.1),
    "adamax": lambda ps: optim.Adamax(ps, lr=0.01),
    "nadam": lambda ps: optim.NAdam(ps, lr=0.01),
    "radam": lambda ps: optim.RAdam(ps, lr=0.01),
    "asgd": lambda ps: optim.ASGD(ps, lr=0.01),
    "rprop": lambda ps: optim.Rprop(ps, lr=0.01),
}
for _name, _make in OPTIMIZERS.items():
    with_optimizer(_name, _make)

adam = OPTIMIZERS["adam"]


@program
def clipped_by_norm(compile):
    return trained(compile, adam, before=lambda net: nn.utils.clip_grad_norm_(net.parameters(), 0.1))


@program
def clipped_by_value(compile):
    return trained(compile, adam, before=lambda net: nn.utils.clip_grad_value_(net.parameters(), 0.05))


@program
def noisy_gradients(compile):
    def noise(net):
        for p in net.parameters():
            p.grad.add_(torch.randn_like(p), alpha=0.01)

    return trained(compile, adam, before=noise)


@program
def step_schedule(compile):
    return trained(
        compile, OPTIMIZERS["sgd"], scheduler=lambda opt: optim.lr_scheduler.StepLR(opt, 5, gamma=0.5)
    )  # fmt: skip


@program
def cosine_schedule(compile):
    return trained(compile, adam, scheduler=lambda opt: optim.lr_scheduler.CosineAnnealingLR(opt, 20))


@program
def one_cycle_schedule(compile):
    return trained(compile, adam, scheduler=lambda opt: optim.lr_scheduler.OneCycleLR(opt, 0.05, total_steps=21))


@program
def warm_up_schedule(compile):
    return trained(
        compile, OPTIMIZERS["momentum"], scheduler=lambda opt: optim.lr_scheduler.LambdaLR(opt, lambda k: min(1, k / 5))
    )  # fmt: skip


@program
def plateau_schedule_by_hand(compile):
    def halve(i, net, opt):
        if i % 6 == 5:
            for group in opt.param_groups:
                group["lr"] *= 0.5

    return trained(compile, adam, each=halve)


@program
def parameter_groups(compile):
    net = mlp()
    return trained(
        compile,
        lambda ps: optim.AdamW([
            {"params": net[0].parameters(), "lr": 0.001}, {"params": net[2].parameters(), "weight_decay": 0.0}
        ], lr=0.01), net=net,
    )  # fmt: skip


@program
def frozen_layers_are_unfrozen(compile):
    net = mlp()
    net[0].requires_grad_(False)

    def unfreeze(i, net, opt):
        if i == 7:
            net[0].requires_grad_(True)
        if i == 14:
            net[2].requires_grad_(False)

    return trained(compile, adam, net=net, each=unfreeze)


@program
def weights_are_loaded_in_between(compile):
    kept = {}

    def load(i, net, opt):
        if i == 5:
            kept["net"] = {k: v.clone() for k, v in net.state_dict().items()}
            import copy

            kept["opt"] = copy.deepcopy(opt.state_dict())
        if i == 12:
            net.load_state_dict(kept["net"])
            opt.load_state_dict(kept["opt"])

    return trained(compile, adam, each=load)


@program
def weights_are_reset_by_data(compile):
    def reset(i, net, opt):
        if i == 9:
            for p in net.parameters():
                p.data = torch.zeros_like(p) + 0.1

    return trained(compile, adam, each=reset)


@program
def gradients_are_kept_at_zero(compile):
    net = mlp()
    opt = optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

    @compile
    def step(x, y):
        opt.zero_grad(set_to_none=False)
        loss = F.mse_loss(net(x), y)
        loss.backward()
        opt.step()
        return loss.item()

    return [step(*data()) for _ in range(20)], [state(p) for p in net.parameters()]


@program
def old_gradients_are_kept_by_the_caller(compile):
    net = mlp()
    opt = optim.SGD(net.parameters(), lr=0.1)

    @compile
    def step(x, y):
        opt.zero_grad()
        F.mse_loss(net(x), y).backward()
        opt.step()

    kept = []
    for _ in range(4):
        step(*data())
        kept.append([p.grad for p in net.parameters()])
    return kept


@program
def accumulation_over_micro_batches(compile):
    net = mlp()
    opt = adam(net.parameters())

    @compile
    def micro(x, y):
        loss = F.mse_loss(net(x), y) / 4
        loss.backward()
        return loss

    @compile
    def update():
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        opt.zero_grad()

    losses = []
    for i in range(20):
        losses.append(micro(*data()))
        if i % 4 == 3:
            update()
    return losses, [state(p) for p in net.parameters()]


@program
def accumulation_inside(compile):
    net = mlp()
    opt = adam(net.parameters())

    @compile
    def step(xs, ys):
        opt.zero_grad()
        total = 0.0
        for x, y in zip(xs.chunk(4), ys.chunk(4), strict=True):
            loss = F.mse_loss(net(x), y)
            (loss / 4).backward()
            total += loss.item()
        opt.step()
        return total

    return [step(*data(16)) for _ in range(20)], [state(p) for p in net.parameters()]


@program
def two_optimizers(compile):
    made, judge = nn.Linear(2, 3), nn.Sequential(nn.Linear(3, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
    opt_g, opt_d = adam(made.parameters()), adam(judge.parameters())
    bce = nn.BCEWithLogitsLoss()

    @compile
    def step(real, z):
        fake = made(z)
        opt_d.zero_grad()
        loss_d = bce(judge(real), torch.ones(len(real), 1)) + bce(judge(fake.detach()), torch.zeros(len(z), 1))
        loss_d.backward()
        opt_d.step()
        opt_g.zero_grad()
        loss_g = bce(judge(fake), torch.ones(len(z), 1))
        loss_g.backward()
        opt_g.step()
        return {"d": loss_d.item(), "g": loss_g.item()}

    losses = [step(torch.randn(8, 3) + 1, torch.randn(8, 2)) for _ in range(20)]
    return losses, [state(p) for p in (*made.parameters(), *judge.parameters())]


@program
def weight_clipping_by_data(compile):
    net = mlp()
    opt = OPTIMIZERS["rmsprop"](net.parameters())

    @compile
    def step(x):
        loss = -net(x).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        for p in net.parameters():
            p.data.clamp_(-0.2, 0.2)
        return loss

    return [step(data()[0]) for _ in range(20)], [state(p) for p in net.parameters()]


@program
def averaged_weights(compile):
    import copy

    net = mlp()
    average = copy.deepcopy(net)
    opt = adam(net.parameters())

    @compile
    def step(x, y):
        opt.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        opt.step()
        with torch.no_grad():
            for old, new in zip(average.parameters(), net.parameters(), strict=True):
                old.lerp_(new, 0.1)
        return loss, F.mse_loss(average(x), y).detach()

    losses = [step(*data()) for _ in range(20)]
    return [(a.detach(), b) for a, b in losses], [state(p) for p in average.parameters()]


@program
def by_hand_without_an_optimizer(compile):
    w, b = torch.randn(3, 1, requires_grad=True), torch.zeros(1, requires_grad=True)

    @compile
    def step(x, y):
        loss = ((x @ w + b - y) ** 2).mean()
        loss.backward()
        with torch.no_grad():
            for p in (w, b):
                p -= 0.1 * p.grad
                p.grad = None
        return loss.item()

    return [step(*data()) for _ in range(20)], state(w), state(b)


@program
def by_functional_updates(compile):
    @compile
    def step(params, x, y):
        w, b = params
        loss = ((x @ w + b - y) ** 2).mean()
        gw, gb = torch.autograd.grad(loss, (w, b))
        return [(w - 0.1 * gw).detach().requires_grad_(), (b - 0.1 * gb).detach().requires_grad_()], loss.detach()

    params, losses = [torch.randn(3, 1, requires_grad=True), torch.zeros(1, requires_grad=True)], []
    for _ in range(20):
        params, loss = step(params, *data())
        losses.append(loss)
    return losses, params


@program
def a_closure_for_the_optimizer(compile):
    net = mlp()
    opt = OPTIMIZERS["momentum"](net.parameters())

    @compile
    def step(x, y):
        def closure():
            opt.zero_grad()
            loss = F.mse_loss(net(x), y)
            loss.backward()
            return loss

        return opt.step(closure)

    return [step(*data()).detach() for _ in range(20)], [state(p) for p in net.parameters()]


@program
def only_the_loss_is_compiled(compile):
    net = mlp()
    opt = adam(net.parameters())
    loss_of = compile(lambda x, y: F.mse_loss(net(x), y) + 1e-3 * sum(p.pow(2).sum() for p in net.parameters()))
    losses = []
    for _ in range(20):
        loss = loss_of(*data())
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.detach())
    return losses, [state(p) for p in net.parameters()]


@program
def only_the_update_is_compiled(compile):
    net = mlp()
    opt = adam(net.parameters())
    update = compile(opt.step)
    losses = []
    for _ in range(20):
        x, y = data()
        loss = F.mse_loss(net(x), y)
        opt.zero_grad()
        loss.backward()
        update()
        losses.append(loss.detach())
    return losses, [state(p) for p in net.parameters()]


@program
def the_last_batch_is_smaller_and_training_stops_early(compile):
    net = mlp()
    opt = adam(net.parameters())

    @compile
    def step(x, y):
        opt.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        opt.step()
        return loss

    @compile
    def evaluate(x, y):
        with torch.no_grad():
            return F.mse_loss(net(x), y)

    best, since, log = float("inf"), 0, []
    for _ in range(8):
        for n in (8, 8, 3):
            log.append(step(*data(n)).item())
        score = evaluate(*data(5)).item()
        log.append(score)
        best, since = (score, 0) if score < best else (best, since + 1)
        if since >= 2:
            break
    return log, [state(p) for p in net.parameters()]


@program
def one_cycle_with_momentum(compile):
    return trained(
        compile, OPTIMIZERS["momentum"], scheduler=lambda opt: optim.lr_scheduler.OneCycleLR(opt, 0.05, total_steps=21)
    )  # fmt: skip


@program
def betas_are_set_by_hand(compile):
    def change(i, net, opt):
        opt.param_groups[0]["betas"] = (0.9 - 0.01 * i, 0.99 + 0.0001 * i) if i != 10 else (0, 0.9)

    return trained(compile, adam, each=change)
