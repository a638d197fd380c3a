"""Layers with state, random numbers and structure: normalization, dropout, generators, recurrent nets, attention."""

from __future__ import annotations

import copy

import eager as torch
import graphc
from tests.scenarios.harness import attempt, program, refused, state

nn, optim, F = torch.nn, torch.optim, torch.nn.functional


def trained(compile, net, batches, loss_of, steps=20):
    # not Adam, which blows up what is nothing but rounding: the gradient of a bias before a normalization
    opt = optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.1, momentum=0.5)

    @compile
    def step(*batch):
        opt.zero_grad()
        loss = loss_of(net, *batch)
        loss.backward()
        opt.step()
        return loss

    losses = [step(*batches(i)).detach() for i in range(steps)]
    return losses, [state(p) for p in net.parameters()], [b.clone() for b in net.buffers()]


@program
def batch_norm_in_every_mode(compile):
    norm = nn.BatchNorm1d(3)
    c = compile(norm)
    found = []
    for mode in (True, True, False, True, False):
        norm.train(mode)
        x = torch.randn(4, 3, requires_grad=True)
        y = c(x)
        (y * torch.arange(3.0)).exp().sum().backward()
        found += [y, state(x), {k: v.clone() for k, v in norm.state_dict().items()}]
    norm.reset_running_stats()
    return found, c(torch.ones(4, 3)), norm.state_dict()


@program
def batch_norm_with_a_cumulative_average(compile):
    norm = nn.BatchNorm2d(2, momentum=None)
    c = compile(norm)
    return [(c(torch.randn(2, 2, 3, 3)), copy.deepcopy(norm.state_dict())) for _ in range(5)]


@program
def batch_norm_without_statistics_or_weights(compile):
    plain, instance = nn.BatchNorm1d(3, affine=False, track_running_stats=False), nn.InstanceNorm1d(3, affine=True)
    c = compile(lambda x: instance(plain(x)))
    found = [c(torch.randn(2, 3, 4)) for _ in range(3)]
    plain.eval()
    return found, c(torch.randn(2, 3, 4)), attempt(compile(plain), torch.ones(1, 3))


@program
def the_mode_is_changed_inside(compile):
    net = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Dropout(0.5))

    def f(x):
        net.eval()
        with torch.no_grad():
            clean = net(x)
        net.train()
        return clean, net(x)

    c = compile(f)
    return [(c(torch.ones(4, 3) * i), [b.clone() for b in net.buffers()], net.training) for i in range(3)]


@program
def dropout_and_seeds(compile):
    drop = nn.Dropout(0.5)
    c = compile(lambda x: drop(x) + F.dropout(x, 0.2, training=True))
    found = [c(torch.ones(3, 4)) for _ in range(3)]
    torch.manual_seed(7)
    found += [c(torch.ones(3, 4)), torch.rand(2), c(torch.ones(2, 2))]
    drop.p = 0.9
    found.append(c(torch.ones(3, 4)))
    drop.eval()
    return found, c(torch.ones(3, 4)), torch.rand(2)


@program
def every_kind_of_random_number(compile):
    def f(x):
        return (
            torch.rand(2, 3), torch.randn(3), torch.randint(0, 10, (4,)), torch.randperm(5), torch.rand_like(x),
            torch.bernoulli(torch.full((6,), 0.5)), torch.normal(0.0, 2.0, (3,)), x.clone().uniform_(-1, 1),
            torch.empty(3).normal_(), torch.empty(2).exponential_(), nn.init.xavier_uniform_(torch.empty(3, 3)),
        )  # fmt: skip

    c = compile(f)
    return [c(torch.ones(2, 2)) for _ in range(3)], torch.rand(3)


@program
def as_many_random_numbers_as_the_values_ask_for(compile):
    m = nn.RReLU()

    def f(x, y):
        return m(x), torch.rand(2), m(y * torch.rand(3) - 0.5), torch.poisson(x.abs() * 9), torch.rand(1)

    c, long = compile(f), compile(lambda x: (m(x), torch.rand(1)))
    found = [(c(torch.randn(5), torch.ones(3)), long(torch.randn(100))) for _ in range(4)]
    w = torch.tensor([-1.0, 2.0, -3.0], requires_grad=True)
    compile(lambda: m(w).sum().backward())()
    return found, w.grad, torch.rand(3)


@program
def initial_values_drawn_at_each_call(compile):
    w, tall, t = torch.zeros(4, 3), nn.Parameter(torch.zeros(3, 2, 2)), torch.zeros(5, 4).t()
    own = torch.Generator().manual_seed(3)

    def f(std):
        before = torch.rand(1)
        nn.init.trunc_normal_(w, 0.0, std)
        kept = [w.clone()]
        nn.init.trunc_normal_(t, 0.0, 2.0, 3.0, 4.0)
        nn.init.orthogonal_(tall, 2.0)
        nn.init.sparse_(w, 0.4, std, generator=own)
        return before, kept, torch.rand(1)

    c = compile(f)
    return [(c(std), w.clone(), tall.detach().clone(), t.clone()) for std in (1.0, 1.0, 0.5, 0.25, 2.0)], torch.rand(3)


@program
def random_numbers_in_the_order_of_the_memory(compile):
    def f(x):
        return (
            torch.empty_like(x).normal_(), torch.zeros_like(x.t().t()).uniform_(), F.dropout(x), torch.bernoulli(x / 2),
            torch.zeros_like(x).bernoulli_(x / 2), F.dropout(x * 2 + 1), torch.multinomial(x, 2),
            F.dropout(x[:1].expand(3, 6)),
        )  # fmt: skip

    c = compile(f)
    return [c(x) for x in (torch.ones(6, 4).t(), torch.ones(4, 6), torch.ones(8, 6)[::2], torch.ones(6, 5).t())]


@program
def generators_of_ones_own(compile):
    generator = torch.Generator().manual_seed(3)
    c = compile(lambda x: torch.randn(3, generator=generator) * x + torch.rand(3))
    found = [c(torch.ones(3)) for _ in range(2)]
    kept = generator.get_state()
    found += [c(torch.ones(3)), torch.randn(2, generator=generator)]
    generator.set_state(kept)
    found.append(c(torch.ones(3)))
    generator.manual_seed(3)
    return found, c(torch.ones(3)), torch.rand(1)


@program
def seeding_inside(compile):
    def f(x):
        before = torch.rand(2)
        torch.manual_seed(1)
        return x + before, torch.rand(2), torch.randn(2)

    c = compile(f)
    return [(c(torch.ones(2)), torch.rand(1)) for _ in range(3)]


@program
def seeding_inside_where_values_decide(compile):
    def f(x):
        torch.manual_seed(2)
        if torch.rand(1).item() * x.sum() > 0.5:
            return torch.rand(2)
        return x + torch.rand(2)

    c = compile(f)
    return [(c(torch.ones(2) * s), torch.rand(1)) for s in (1.0, -1.0, 2.0, 1.0, -1.0)]


@program
def generators_made_inside(compile):
    def f(x):
        own = torch.Generator().manual_seed(5)
        return torch.rand(2, generator=own) + x, torch.rand(2, generator=torch.Generator()), torch.rand(1)

    c = compile(f)
    return [(c(torch.ones(2)), torch.rand(1)) for _ in range(3)]


@program
def states_of_generators(compile):
    generator = torch.Generator()
    kept = generator.get_state()

    def f(x):
        with torch.random.fork_rng():
            torch.manual_seed(4)
            forked = torch.rand(2)
        generator.set_state(kept)
        return forked, torch.rand(2) + x, torch.rand(2, generator=generator), torch.get_rng_state()

    c = compile(f)
    return [(c(torch.ones(2)), torch.rand(1)) for _ in range(3)]


@program
def seeding_in_each_step_of_a_loop(compile):
    def step(c, _):
        torch.manual_seed(8)
        return c + torch.rand(2), torch.rand(1)

    c = compile(lambda x: graphc.scan(step, x, length=3))
    return [(c(torch.ones(2)), torch.rand(1)) for _ in range(2)]


@refused("set_state() with a state of this very call")
def a_state_that_goes_back_within_the_call(compile):
    def f(x):
        kept = torch.get_rng_state()
        a = torch.rand(2)
        torch.set_rng_state(kept)
        return a + torch.rand(2) + x

    return compile(f)(torch.ones(2))


@program
def noise_on_one_path_only(compile):
    def f(x):
        if x.sum() > 0:
            return x + torch.rand(3)
        return x * 2

    c = compile(f)
    return [c(torch.ones(3) * s) for s in (1.0, -1.0, 1.0, -1.0, 2.0)], torch.rand(2)


@program
def buffers_of_modules(compile):
    class Meter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", torch.zeros(3))
            self.register_buffer("count", torch.tensor(0))
            self.register_buffer("scratch", torch.zeros(3), persistent=False)
            self.last = None

        def forward(self, x):
            self.count += 1
            self.mean += (x - self.mean) / self.count
            self.scratch = x * 2
            self.last = x
            return self.mean * self.scratch

    meter = Meter()
    c = compile(meter)
    found = []
    for i in range(5):
        x = torch.ones(3) * i
        found += [c(x), meter.scratch.clone(), meter.last is x, meter.count.clone()]
    meter.load_state_dict({"mean": torch.ones(3), "count": torch.tensor(100)})
    return found, c(torch.zeros(3)), meter.state_dict()


@program
def convolution_with_norm_and_dropout(compile):
    net = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout2d(0.3), nn.Flatten(),
        nn.Linear(16, 3),
    )  # fmt: skip
    return trained(
        compile, net, lambda i: (torch.randn(5 if i % 5 else 3, 1, 4, 4), torch.randint(0, 3, (5 if i % 5 else 3,))),
        lambda net, x, y: F.cross_entropy(net(x), y),
    )  # fmt: skip


@program
def lstm(compile):
    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(7, 4, padding_idx=0)
            self.lstm = nn.LSTM(4, 5, num_layers=2, batch_first=True, dropout=0.2, bidirectional=True)
            self.out = nn.Linear(10, 7)

        def forward(self, i):
            return self.out(self.lstm(self.embed(i))[0])

    return trained(
        compile, Tagger(), lambda i: (torch.randint(0, 7, (3, 5)), torch.randint(0, 7, (3, 5))),
        lambda net, x, y: F.cross_entropy(net(x).transpose(1, 2), y, ignore_index=0), steps=6,
    )  # fmt: skip


@program
def a_gru_with_its_state_carried_on(compile):
    cell, out = nn.GRUCell(2, 4), nn.Linear(4, 1)
    opt = optim.Adam([*cell.parameters(), *out.parameters()], lr=0.01)

    @compile
    def step(xs, ys, h):
        loss = 0.0
        for x, y in zip(xs, ys, strict=True):
            h = cell(x, h)
            loss = loss + F.mse_loss(out(h), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.item(), h.detach()

    h, losses = torch.zeros(3, 4), []
    for _ in range(10):
        loss, h = step(torch.randn(4, 3, 2), torch.randn(4, 3, 1), h)
        losses.append(loss)
    return losses, h


@program
def a_transformer_block(compile):
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
    head = nn.Linear(8, 1)
    net = nn.Sequential(layer, head)
    mask = nn.Transformer.generate_square_subsequent_mask(4)
    return trained(
        compile, net, lambda i: (torch.randn(2, 4, 8),),
        lambda net, x: (head(layer(x, src_mask=mask)) - x.sum(-1, keepdim=True)).pow(2).mean(), steps=8,
    )  # fmt: skip


@program
def mixed_losses(compile):
    net = nn.Linear(4, 4)

    def loss_of(net, x, y):
        z = net(x)
        return (
            F.cross_entropy(z, y, label_smoothing=0.1) + 0.1 * F.huber_loss(z, x) + 0.5 * F.kl_div(
                z.log_softmax(1), x.softmax(1), reduction="batchmean"
            ) + F.triplet_margin_loss(z, x, -x) + 0.01 * net.weight.abs().sum()
        )  # fmt: skip

    return trained(compile, net, lambda i: (torch.randn(6, 4), torch.randint(0, 4, (6,))), loss_of)


@program
def tied_autoencoder(compile):
    w, b, c = (nn.Parameter(torch.randn(*s) * 0.1) for s in ((3, 5), (3,), (5,)))

    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.w, self.b, self.c = w, b, c

        def forward(self, x):
            return F.linear(F.linear(x, self.w, self.b).tanh(), self.w.t(), self.c)

    return trained(compile, Tied(), lambda i: (torch.randn(4, 5),), lambda net, x: F.mse_loss(net(x), x))


@program
def other_normalizations(compile):
    net = nn.Sequential(
        nn.Linear(3, 8), nn.LayerNorm(8), nn.GELU(), nn.GroupNorm(2, 8), nn.RMSNorm(8), nn.PReLU(), nn.Linear(8, 1)
    )  # fmt: skip
    return trained(
        compile, net, lambda i: (torch.randn(4, 3),), lambda net, x: (net(x) - x[:, :1]).pow(2).mean(), steps=8
    )


@program
def a_copy_of_the_model_goes_its_own_way(compile):
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Linear(3, 1))
    c = compile(net)
    found = [c(torch.ones(4, 2))]
    other = copy.deepcopy(net)
    d = compile(other)
    with torch.no_grad():
        for p in net.parameters():
            p.add_(1)
    x = torch.randn(4, 2)
    return found, c(x), d(x), c(x), [b.clone() for m in (net, other) for b in m.buffers()]


@program
def results_of_inference_are_used_again(compile):
    net = nn.Linear(2, 2)
    c = compile(net)
    with torch.inference_mode():
        y = c(torch.ones(2))
        z = c(y)
    with torch.no_grad():
        u = c(y)
    c(y.clone()).sum().backward()
    return y, z, u, attempt(c, y), y.is_inference(), attempt(y.add_, 1), [state(p) for p in net.parameters()]


@program
def double_backward_after_a_write(compile):
    w = torch.randn(3, requires_grad=True)

    def f(x):
        with torch.no_grad():
            w.mul_(2)
        return (w**3 * x).sum()

    c = compile(f)
    y = c(torch.ones(3))
    (g,) = torch.autograd.grad(y, w, create_graph=True)
    return g, torch.autograd.grad(g.sum(), w)


@program
def a_hook_that_stays_on_a_captured_tensor(compile):
    w = torch.ones(3, requires_grad=True)

    def f(x):
        w.register_hook(lambda g: g * 2)
        return (w * x).sum()

    c = compile(f)
    for _ in range(3):
        c(torch.ones(3)).backward()
    return state(w)
