"""Training code as tutorials and well-known repositories have it: several models, losses and optimizers at once."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

import eager as torch
from tests.scenarios.harness import program, state

nn, F, optim = torch.nn, torch.nn.functional, torch.optim


def states(*modules):
    return [state(p) for module in modules for p in module.parameters()]


@program
def tensors_that_begin_alike_are_written_apart(compile):
    given = torch.ones(3)
    kept: dict[str, Any] = {}

    @compile
    def step(x):
        a, b, c = torch.zeros(3), torch.zeros(3), torch.zeros_like(given)
        a.add_(x)
        b.add_(2 * x)
        c.mul_(0.5).add_(given)
        kept["first"], kept["second"] = torch.tensor(1.0), torch.tensor(1.0)
        kept["first"] *= x.sum()
        return a, b, c, torch.zeros(3), torch.eye(2).mul_(3), torch.eye(2)

    return [(step(torch.rand(3)), dict(kept)) for _ in range(3)]


@program
def an_optimizer_of_ones_own_with_weights_of_one_shape(compile):
    class Lion(optim.Optimizer):
        def __init__(self, params, lr=0.01, betas=(0.9, 0.99), weight_decay=0.0):
            super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

        @torch.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    p.mul_(1 - group["lr"] * group["weight_decay"])
                    known = self.state[p]
                    if len(known) == 0:
                        known["step"], known["exp_avg"] = 0, torch.zeros_like(p)
                    known["step"] += 1
                    average, (b1, b2) = known["exp_avg"], group["betas"]
                    p.add_((average * b1 + p.grad * (1 - b1)).sign_(), alpha=-group["lr"])
                    average.mul_(b2).add_(p.grad, alpha=1 - b2)

    net = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 2))
    decayed, others = [p for p in net.parameters() if p.ndim > 1], [p for p in net.parameters() if p.ndim < 2]
    opt = Lion([{"params": decayed, "weight_decay": 0.1}, {"params": others}])
    plan = optim.lr_scheduler.LambdaLR(opt, lambda k: min(1.0, (k + 1) / 4))

    @compile
    def step(x, y):
        opt.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
        plan.step()
        return loss.item(), plan.get_last_lr()[0]

    losses = [step(torch.randn(6, 3), torch.randint(0, 2, (6,))) for _ in range(6)]
    return losses, states(net), [dict(opt.state[p]) for p in net.parameters()], plan.last_epoch


@program
def averages_of_one_shape_that_are_read_between_steps(compile):
    known = {nn.Parameter(torch.ones(3)): {} for _ in range(3)}
    rate = {"by": 1.0}

    @compile
    def step(x):
        for k, (p, of) in enumerate(known.items()):
            if not of:
                of["count"], of["average"] = 0, torch.zeros_like(p)
            of["count"] += 1
            of["average"].mul_(rate["by"]).add_(x * k)

    for k in range(6):
        rate["by"] = min(1.0, (k + 1) / 4)
        step(torch.ones(3) * k)
        assert all(state["average"].detach().numpy().shape == (3,) for state in known.values())
    return [dict(state) for state in known.values()]


@program
def gradients_of_one_value_are_written_apart(compile):
    x, y = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)

    @compile
    def step(scale):
        x.grad = y.grad = None
        h = x + y
        h.retain_grad()
        for _ in range(2):
            (h * scale).sum().backward(retain_graph=True)
        total = nn.utils.clip_grad_norm_([x, y], 0.1)
        x.grad.mul_(3)
        a, b = torch.autograd.grad((x + y).sum(), (x, y))
        a.add_(1)
        seed = torch.full((3,), 2.0)
        x.backward(seed)
        seed.add_(1)
        return total, h.grad, a, b, seed

    return [(step(s), state(x), state(y)) for s in (1.0, 2.0, 3.0)]


@program
def a_critic_that_is_frozen_for_a_part_of_the_step(compile):
    critic, actor = nn.Linear(3, 1), nn.Linear(3, 3)
    of_critic, of_actor = optim.Adam(critic.parameters(), lr=0.01), optim.Adam(actor.parameters(), lr=0.01)
    fixed = torch.ones(3)

    @compile
    def step(x, y):
        of_critic.zero_grad()
        of_actor.zero_grad()
        F.mse_loss(critic(x), y).backward()
        of_critic.step()
        critic.requires_grad_(False)
        (critic(actor(x)) * fixed.sum()).mean().backward()
        critic.requires_grad_(True)
        of_actor.step()
        before = (actor(x) * fixed).sum()
        fixed.requires_grad_()
        (before + (x * fixed).sum()).backward()
        found = fixed.grad.clone()
        fixed.requires_grad_(False)
        fixed.grad = None
        fixed.mul_(0.9)
        return found

    return [step(torch.randn(4, 3), torch.randn(4, 1)) for _ in range(5)], states(critic, actor), state(fixed)


@program
def activations_in_place(compile):
    class Block(nn.Module):
        def __init__(self, act):
            super().__init__()
            self.first, self.act, self.second = nn.Linear(3, 4), act, nn.Linear(4, 1)

        def forward(self, x):
            return self.second(self.act(self.first(x)))

    kinds = [nn.LeakyReLU(0.2, inplace=True), nn.SiLU(inplace=True), nn.Mish(inplace=True), nn.Hardswish(inplace=True),
             nn.SELU(inplace=True), nn.ELU(inplace=True), nn.RReLU(inplace=True).eval()]  # fmt: skip
    nets = nn.ModuleList(Block(kind) for kind in kinds)
    opt = optim.SGD(nets.parameters(), lr=1e-4)

    @compile
    def step(x):
        opt.zero_grad()
        x = x.clone().requires_grad_(True)
        out = sum(net(x).sum() for net in nets)
        slope = torch.autograd.grad(out, x, create_graph=True)[0]
        loss = ((slope.norm(2, dim=1) - 1) ** 2).mean() + out.pow(2)
        loss.backward()
        opt.step()
        return loss

    return [step(torch.randn(4, 3)).detach() for _ in range(3)], states(nets)


@program
def contrastive_learning_with_masks_of_constants(compile):
    encoder = nn.Sequential(nn.Linear(5, 6), nn.ReLU(inplace=True), nn.Linear(6, 3))
    opt = optim.SGD(encoder.parameters(), lr=0.1, momentum=0.9)

    def info_nce(features, n):
        labels = torch.cat([torch.arange(n)] * 2)
        labels = (labels.unsqueeze(0) == labels.unsqueeze(1)).float()
        features = F.normalize(features, dim=1)
        similar = features @ features.T
        mask = torch.eye(len(labels), dtype=torch.bool)
        labels, similar = labels[~mask].view(len(labels), -1), similar[~mask].view(len(similar), -1)
        positive = similar[labels.bool()].view(len(labels), -1)
        negative = similar[~labels.bool()].view(len(similar), -1)
        logits = torch.cat([positive, negative], dim=1)
        return logits / 0.5, torch.zeros(len(logits), dtype=torch.long)

    @compile
    def step(a, b):
        logits, labels = info_nce(encoder(torch.cat([a, b])), len(a))
        loss = F.cross_entropy(logits, labels)
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss, (logits.argmax(1) == labels).float().mean()

    sizes = (6, 6, 4, 6)
    return [[t.detach() for t in step(torch.randn(n, 5), torch.randn(n, 5))] for n in sizes], states(encoder)


@program
def masks_that_are_built_by_writing(compile):
    @compile
    def f(x):
        mask = torch.zeros(12, 8, dtype=torch.bool)
        mask[2:5, ::2] = True
        for i in range(8):
            mask[i, i] = True
        upper = torch.triu(torch.ones(8, 8), diagonal=1).bool()
        return x[mask], x[:8][upper].sum(), mask.nonzero(), torch.where(upper)[0], int(mask.sum())

    return [f(torch.randn(12, 8)) for _ in range(3)]


@program
def indices_that_are_written_or_captured(compile):
    table, captured = torch.randn(6, 2), torch.tensor([1, 2])

    @compile
    def f(x):
        begin = torch.full((2,), 99)
        begin.copy_(x)
        bags = F.embedding_bag(begin, table, torch.tensor([0]))
        picked = F.embedding(begin, table), table.index_select(0, begin), bags
        return picked, torch.zeros(6).index_fill(0, captured, 1.0), F.embedding(captured, table), f"{captured} {begin}"

    found = []
    for i in range(4):
        found.append(f(torch.tensor([i, 5 - i])))
        captured.copy_(torch.tensor([(i + 3) % 6, 0]))
    return found


@program
def lengths_that_are_captured(compile):
    lengths, gru = torch.tensor([3, 2]), nn.GRU(2, 3, batch_first=True)

    @compile
    def f(x):
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        return nn.utils.rnn.pad_packed_sequence(gru(packed)[0], batch_first=True, total_length=3)

    found = []
    for now in ([3, 2], [1, 3], [2, 2], [3, 2]):
        lengths.copy_(torch.tensor(now))
        found.append([t.detach() for t in f(torch.ones(2, 3, 2))])
    return found


@program
def averages_inside_and_a_second_order_method_around(compile):
    net = nn.Linear(3, 1)
    opt = optim.LBFGS(net.parameters(), lr=0.5, max_iter=2, line_search_fn="strong_wolfe")
    mean = optim.swa_utils.AveragedModel(net)

    loss_of = compile(lambda x, y: F.mse_loss(net(x), y))
    average = compile(lambda: mean.update_parameters(net))
    x = torch.randn(8, 3)
    y = x.sum(1, keepdim=True).sin()

    def closure():
        opt.zero_grad()
        loss = loss_of(x, y)
        loss.backward()
        return loss

    losses = []
    for _ in range(2):
        losses.append(opt.step(closure).item())
        average()
    return losses, states(net, mean.module), mean.n_averaged


@program
def domains_by_a_reversed_gradient(compile):
    class Reverse(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, alpha):
            ctx.alpha = alpha
            return x.view_as(x)

        @staticmethod
        def backward(ctx, g):
            return g.neg() * ctx.alpha, None

    features, label, domain = nn.Linear(4, 3), nn.Linear(3, 2), nn.Linear(3, 2)
    opt = optim.RMSprop([*features.parameters(), *label.parameters(), *domain.parameters()], lr=0.01)
    log = defaultdict(list)

    @compile
    def step(x, y, d, alpha):
        h = torch.tanh(features(x))
        losses = {"label": F.cross_entropy(label(h), y), "domain": F.cross_entropy(domain(Reverse.apply(h, alpha)), d)}
        opt.zero_grad()
        sum(losses.values()).backward()
        opt.step()
        return {name: loss.item() for name, loss in losses.items()}

    for i in range(6):
        given = torch.randn(5, 4), torch.randint(0, 2, (5,)), torch.randint(0, 2, (5,))
        for name, value in step(*given, 2 / (1 + math.exp(-i)) - 1).items():
            log[name].append(value)
    return dict(log), states(features, label, domain)
