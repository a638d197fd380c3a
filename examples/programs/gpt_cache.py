"""A small GPT: trained on a pattern, then decoded with a cache of keys and values, and without, which is the same."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Attention(nn.Module):
    def __init__(self, size, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(size, 3 * size, bias=False), nn.Linear(size, size)

    def forward(self, x, cache=None):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        if cache is not None:
            if "k" in cache:
                k, v = torch.cat([cache["k"], k], 2), torch.cat([cache["v"], v], 2)
            cache["k"], cache["v"] = k, v
        y = F.scaled_dot_product_attention(q, k, v, is_causal=q.shape[2] > 1)
        return self.out(y.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, size, heads):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(size), nn.LayerNorm(size)
        self.attention = Attention(size, heads)
        self.mlp = nn.Sequential(nn.Linear(size, 4 * size), nn.GELU(), nn.Linear(4 * size, size))

    def forward(self, x, cache=None):
        x = x + self.attention(self.ln1(x), cache)
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    def __init__(self, vocabulary=10, length=16, size=16, heads=2, layers=2):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, size), nn.Embedding(length, size)
        self.blocks = nn.ModuleList(Block(size, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(size), nn.Linear(size, vocabulary, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, ids, caches=None, start=0):
        x = self.tokens(ids) + self.places(torch.arange(start, start + ids.shape[1]))
        for k, block in enumerate(self.blocks):
            x = block(x, None if caches is None else caches[k])
        return self.head(self.norm(x))


model = GPT()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
data = (torch.arange(12) * 3 % 10).repeat(4, 1) + torch.arange(4).unsqueeze(1)
data = data % 10


def step(ids):
    optimizer.zero_grad(set_to_none=True)
    loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    loss.backward()
    optimizer.step()
    return loss


for k in range(9):
    loss = step(data)
    if k % 3 == 2:
        print(k, round(loss.item(), 4))

with torch.no_grad():
    caches = [{} for _ in model.blocks]
    logits = model(data[:1, :4], caches)
    ids = data[:1, :4]
    for _ in range(5):
        ids = torch.cat([ids, data[:1, ids.shape[1] : ids.shape[1] + 1]], 1)
        logits = model(ids[:, -1:], caches, ids.shape[1] - 1)
    print((logits[0, -1] - model(ids)[0, -1]).abs().max().item() < 1e-5)
print(logits[0, -1])
