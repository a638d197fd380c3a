"""Functions of a batch: those that need one graph for all sizes, two, or one for each size."""

from __future__ import annotations

import eager as torch
import eager.nn.functional as F
import graphc
from eager import nn

ONE_GRAPH, TWO_GRAPHS, PER_SIZE = [], [], []
SIZES = {}  # the least size that a function takes, if that is not 0
torch.manual_seed(0)
MLP = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.LayerNorm(8), nn.Linear(8, 4))
CNN = nn.Sequential(
    nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 5)
)
CNN.eval()
ENCODER = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)
LSTM, GRU, CELL = nn.LSTM(3, 5, batch_first=True), nn.GRU(3, 5), nn.LSTMCell(3, 4)
EMBEDDING = nn.Embedding(10, 4)


def program(*rest, into=ONE_GRAPH, least=0):
    def enter(fn):
        fn.rest = rest
        into.append(fn)
        if least:
            SIZES[fn] = least
        return fn

    return enter


@program(3)
def identity(x):
    return torch.eye(x.shape[0]) @ x


@program(3)
def mlp(x):
    return MLP(x)


@program(3, least=1)
def cross_entropy(x):
    return F.cross_entropy(MLP(x), torch.arange(x.shape[0]) % 4)


@program(1, 8, 8)
def cnn(x):
    return CNN(x)


@program(1, 8, 8, least=1)
def strided_cnn(x):
    return F.avg_pool2d(F.relu(F.conv2d(x, torch.ones(2, 1, 3, 3), stride=2)), 2).view(x.size(0), -1)


@program(1, 8, 8)
def resized(x):
    return F.adaptive_avg_pool2d(x, (1, 1)).flatten(1), F.interpolate(x, scale_factor=2)


@program(6, 8)
def transformer_block(x):
    return ENCODER(x)


@program(6, 8)
def attention(x):
    return F.scaled_dot_product_attention(x, x, x, is_causal=True)


@program(6)
def embedding(x):
    return EMBEDDING((x.abs() * 3).long().clamp(0, 9)).mean(1)


@program(4, 3, least=1)
def lstm(x):
    return LSTM(x)[0]


@program(3)
def lstm_cell(x):
    state = (torch.zeros(x.shape[0], 4), torch.zeros(x.size(0), 4))
    for _ in range(3):
        state = CELL(x, state)
    return state[0]


@program(3)
def over_time(x):
    return graphc.scan(lambda c, r: (c + r, c * r), torch.zeros(3), x)


@program(4, least=1)
def shapes(x):
    y = x.view(x.shape[0], 2, -1).transpose(1, 2).reshape(-1, 2)
    return (
        y,
        x.flatten(),
        x.reshape(-1) + 1,
        x.t().contiguous(),
        x.permute(1, 0),
        x.T.reshape(-1),
        x.unsqueeze(1).expand(-1, 3, -1),
    )


@program(3)
def statistics(x):
    return x.mean(), x.var(0), x.std(), x.mean(0, keepdim=True), F.layer_norm(x, (3,)), F.group_norm(x, 3)


@program(3)
def softmaxes(x):
    return x.softmax(0), x.log_softmax(-1), x.logsumexp(1), F.normalize(x, dim=1), x.norm(dim=1)


@program(4)
def joined(x):
    return (
        torch.cat([x, x * 2]),
        torch.stack([x, x], 1),
        x.split(2, 1)[1],
        x.chunk(2, -1)[0],
        x.unbind(1)[0],
        x.repeat(2, 1),
    )


@program(3, least=2)
def slices(x):
    return x[1:] - x[:-1], x[: x.shape[0] // 2] * 2, x[0], x[-1], x[:, 0], x[..., 1:], x[:, [0, 2]], x[:, None]


@program(3)
def made(x):
    n = x.shape[0]
    like = (
        torch.zeros_like(x) + 1,
        torch.ones_like(x) * x,
        x.new_zeros(x.shape),
        torch.full_like(x, 2),
        torch.empty_like(x).fill_(0),  # what was there before may be nan
    )
    return (
        torch.arange(n)[:, None] * x,
        torch.zeros(n, 2) + torch.ones(n, 1),
        torch.full((n,), 3.0),
        torch.eye(n),
        *like,
    )


@program(3)
def products(x):
    both = torch.einsum("bi,bj->bij", x, x), torch.einsum("bi,bi->b", x, x)
    return both, x @ x.T, torch.tril(torch.ones(x.shape[0], x.shape[0])) @ x, torch.outer(x[:, 0], x[:, 1])


@program(3)
def masked(x):
    return (
        x.masked_fill(x > 0, 0.0),
        torch.where(x > 0, x, torch.zeros_like(x)),
        F.one_hot(torch.arange(x.shape[0]) % 3, 3),
    )


@program(3)
def gathered(x):
    rows = torch.arange(x.shape[0])
    column = torch.zeros(x.shape[0], 1, dtype=torch.long)
    return x[rows, column[:, 0]], x.gather(1, column), torch.zeros(x.shape[0], 3).scatter(1, column, 1.0)


@program(3)
def sorted_(x):
    return x.sort(0)[0], x.cumsum(0), x.flip(0), x.topk(2, 1)[0], x.max(1)[0], F.pad(x, (1, 1)), torch.diff(x, dim=1)


@program(3, least=1)
def numbers(x):
    return (
        x.sum() / x.shape[0],
        x * (1 / max(x.shape[0], 1)),
        x.sum() * x.shape[0] ** 0.5,
        x * x.sum().item() / x.shape[0],
    )


@program(3)
def random_numbers(x):
    return F.dropout(x, 0.5), x + torch.randn(x.shape[0], 3) * torch.randn_like(x), x[torch.randperm(x.shape[0])]


@program(3)
def in_place(x):
    y = torch.zeros(x.shape[0], 3)
    y[:, 0] = x[:, 1]
    y += 1
    x.mul_(2)
    x[:, 0] = 1
    return y, x.sum()


@program(3)
def python_values(x):
    return x.shape, x.numel(), x.size(), x.shape[0], {"n": x.shape[0] * 2, "x": x}


@program(3)
def control_flow(x):
    return graphc.cond(x.sum() > 0, lambda x: x * 2, lambda x: x - 1, x)


@program(3)
def transforms(x):
    return torch.func.vmap(lambda r: (r * r).sum())(x), torch.func.grad(lambda x: (x**3).sum())(x)


# --- where Python asks


@program(3, into=TWO_GRAPHS)
def branch(x):
    return x * 2 if x.shape[0] > 10 else x + 1


@program(3, into=TWO_GRAPHS)
def clipped(x):
    return x[:10] * 2, min(x.shape[0], 10)


@program(3, into=PER_SIZE)
def rows(x):
    total = torch.zeros(3)
    for row in x:
        total = total + row
    return total


@program(3, into=PER_SIZE)
def counted(x):
    total = torch.zeros(3)
    for i in range(x.shape[0]):
        total = total + x[i] * i
    return total


@program(3, into=PER_SIZE)
def labelled(x):
    return {f"n{x.shape[0]}": x}


@program(3, into=PER_SIZE)
def looked_up(x):
    return x * {5: 1.0, 7: 2.0}.get(x.shape[0], 3.0)


@program(3, into=PER_SIZE)
def length(x):
    return x / len(x)


# --- training


def _step(net, optimizer, *, clip=False):
    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y, reduction="sum") / x.shape[0]
        loss.backward()
        if clip:
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        return loss

    return step, [*net.parameters(), *net.buffers()]


def sgd():
    net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 4))
    return _step(net, torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9))


def adam():
    net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 4))
    return _step(net, torch.optim.Adam(net.parameters(), lr=0.01), clip=True)


def batch_norm():
    net = nn.Sequential(nn.Linear(3, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 4))
    return _step(net, torch.optim.AdamW(net.parameters(), lr=0.01))


TRAINING = [sgd, adam, batch_norm]
